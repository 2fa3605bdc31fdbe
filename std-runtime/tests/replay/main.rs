//! Each record suffices to make the decision again (invariant J7): calls of chance through whole gates, and then every record of theirs
//! decided anew from the record and the configuration that it names, with nothing else at hand.
//!
//! `CALLGATE_REPLAY_WORLDS=2000` looks at so many worlds instead of a few.
#![cfg(test)]

mod again;
mod chance;
mod decided;
mod world;

use serde_json::Value;

use again::differences;
use decided::Decided;
use world::World;

fn worlds(few: u64) -> std::ops::Range<u64> {
    let many = std::env::var("CALLGATE_REPLAY_WORLDS").ok().and_then(|many| many.parse().ok());
    0..many.unwrap_or(few)
}

/// J7: from a record alone comes the same decision, at the same stage, in the same words.
#[test]
fn j7_a_record_suffices_to_decide_again() {
    let mut wrong = std::collections::BTreeMap::new();
    let mut ends = std::collections::BTreeMap::<String, usize>::new();
    for seed in worlds(24) {
        let world = World::played(seed);
        for record in world.records() {
            if let Some(end) = record["end"].as_str() {
                *ends.entry(format!("{} {end} {}", record["station"], record["check"])).or_default() += 1;
            }
            let found = differences(&world, &record);
            if !found.is_empty() {
                let members: Vec<_> = found.iter().map(|(member, ..)| member.clone()).collect();
                wrong.entry((record["end"].to_string(), members)).or_insert((seed, found, record));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // What was never reached was not looked at.
    for end in [
        "bad_context",
        "too_deep",
        "not_found",
        "malformed",
        "invalid",
        "denied",
        "limited",
        "store_fault",
        "planned",
        "asked",
        "no_approver",
        "refused",
        "replayed",
        "operation_refused",
        "vetoed",
        "interceptor_failed",
        "answered",
        "audit_unavailable",
        "done",
        "failed",
        "panicked",
        "intent",
    ] {
        assert!(ends.keys().any(|found| found.contains(&format!(" {end} "))), "{end} is missing of {ends:#?}");
    }
    for check in ["require_auth", "consent", "scopes", "requirements", "rule", "block_mutating", "unknown_channel"] {
        assert!(
            ends.keys().any(|found| found.contains(&format!("denied \"{check}\""))),
            "{check} is missing of {ends:#?}"
        );
    }
}

/// J7: calls that were decided differently have records that differ in something that a decision depends on.
#[test]
fn j7_what_was_decided_differently_is_told_apart() {
    let mut met = 0;
    for seed in worlds(24) {
        let world = World::played(seed);
        let mut decided = Decided::default();
        for record in world.records() {
            if let Err(other) = decided.take(&record) {
                panic!("seed {seed}: {record:#} and {other:#}");
            }
        }
        met += decided.met();
    }
    assert!(met > 100, "only {met} records were like another");
}

/// J7: none of these members is there for nothing. Without it, some record is decided otherwise, or is like one that was.
#[test]
fn j7_without_a_member_a_replay_goes_wrong() {
    let played: Vec<_> = (0..12).map(World::played).collect();
    for member in [
        "policy",
        "tool",
        "args",
        "channel",
        "principal",
        "tenant",
        "scopes",
        "mode",
        "depth",
        "consent",
        "provenance",
        "ticket",
        "operation",
        "attempt",
        "end",
        "check",
        "confirmed_by",
        "grant",
    ] {
        let noticed = played.iter().any(|world| {
            let mut decided = Decided::default();
            world.records().into_iter().any(|mut record| {
                let gone = record.as_object_mut().and_then(|record| record.remove(member));
                gone.is_some_and(|gone| gone != Value::Null) && !differences(world, &record).is_empty()
                    || decided.take(&record).is_err()
            })
        });
        assert!(noticed, "`{member}` could be left out");
    }
}
