//! The conformance suite as a command.

use serde_json::Value;

use crate::world::World;

fn callgate() -> &'static str {
    env!("CARGO_BIN_EXE_callgate")
}

#[test]
fn this_gate_holds_and_so_does_it_in_a_process_of_its_own() {
    let world = World::new();
    let here = world.run(&["conformance", "run"]).ok().out;
    let there = world.run(&["conformance", "run", "--", callgate(), "conformance", "subject"]).ok().out;
    assert_eq!(here, there);
    assert!(here.contains(" 0 failed, "), "{here}");
}

#[test]
fn a_wrong_gate_is_told_all_that_is_wrong_in_every_format() {
    let world = World::new();
    let run = |more: &[&str]| {
        let subject = ["--", callgate(), "conformance", "subject", "wrong:token-reusable"];
        world.run(&[&["conformance", "run", "--filter", "token-single-use"], more, &subject].concat())
    };
    let ran = run(&[]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    assert!(ran.out.contains("FAILED: token-single-use"), "{}", ran.out);
    let report: Value = serde_json::from_str(&run(&["--format", "json"]).out).expect("JSON");
    assert_eq!(report["counts"]["failed"], 1);
    assert!(run(&["--format", "junit"]).out.contains("<failure"));

    world.put("known.json", r#"{"format":1,"expected":{"token-single-use":"on purpose"}}"#);
    assert_eq!(run(&["--baseline", "known.json"]).status, 0);
    world.put("stale.json", r#"{"format":1,"expected":{"token-single-use":"on purpose","token-gone":"renamed"}}"#);
    let ran = run(&["--baseline", "stale.json"]);
    assert_eq!(ran.status, 1);
    assert!(ran.out.contains("STALE"), "{}", ran.out);
}

#[test]
fn what_cannot_be_judged_is_said() {
    let world = World::new();
    let ran = world.run(&["conformance", "run", "--", "no-such-program-anywhere"]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("could not be started"), "{}", ran.err);
    assert_eq!(world.run(&["conformance", "run", "--filter", "no-such-vector"]).status, 2);
    assert_eq!(world.run(&["conformance", "run", "--baseline", "missing.json"]).status, 2);
    assert_eq!(world.run(&["conformance", "subject", "other"]).status, 2);
    world.put("own/one.json", "{}");
    assert_eq!(world.run(&["conformance", "run", "--vectors", "own"]).status, 2);
}
