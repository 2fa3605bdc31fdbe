//! The demo.

use crate::world::World;

#[test]
fn the_demo_walks_to_every_end_and_is_the_same_every_time() {
    let world = World::new();
    let demo = world.run(&["demo"]).ok().out;
    assert_eq!(demo, world.run(&["demo"]).ok().out);
    for end in [
        "TOOL_NOT_FOUND",
        "CAPABILITY_DENIED",
        "VALIDATION_ERROR",
        "FORBIDDEN",
        "RATE_LIMITED",
        "CONFIRMATION_INVALID",
        "APPROVAL_PENDING",
        "VETOED",
        "INTERNAL_ERROR",
        "OUTPUT_INVALID",
        "STORE_UNAVAILABLE",
        "AUDIT_UNAVAILABLE",
        "brought to 1000",
        "planned",
        "asked",
        "served from the cache",
        "panicked",
        "chain holds",
    ] {
        assert!(demo.contains(end), "{end}");
    }
    assert!(demo.lines().all(|line| line.chars().count() <= 100), "it fits a page");
    // L2: what the failing tool said of its password.
    assert!(!demo.contains("password=hunter22"));
}
