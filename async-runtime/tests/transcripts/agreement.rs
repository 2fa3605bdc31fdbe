//! N1: equal transcripts on every front-end, however it reaches what it asks.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::sequence::sequence;
use crate::world::runtime::{Jobs, Polls};
use crate::world::script::{Script, Step, scripts};
use crate::world::waiting::{AFTER, BEFORE, NEVER, Pauses};
use crate::world::{Front, Seams, World, run};

const BOTH: Pauses = Pauses { before: true, after: true };

/// Every front-end but the blocking one. Bodies that block and call others need threads.
pub(crate) fn fronts(steps: &[Step]) -> Vec<Front> {
    let blocks = steps.iter().any(|step| matches!(step, Step::Call(calling) if calling.tool == "b.nest"));
    let (first, second) = if blocks { (Jobs::Threads, Jobs::Threads) } else { (Jobs::AtOnce, Jobs::Later) };
    let mut all = Vec::new();
    for seams in [Seams::Immediate, Seams::Blocking, Seams::Waiting(NEVER), Seams::Waiting(BOTH)] {
        all.extend([
            Front::Tokio(seams),
            Front::Smol(seams),
            Front::Own(seams, first, Polls::WhenWoken),
            Front::Own(seams, second, Polls::Always),
        ]);
    }
    all.extend([
        Front::Own(Seams::Blocking, second, Polls::WhenWoken),
        Front::Own(Seams::Immediate, second, Polls::ByTheLastWaker),
        Front::Own(Seams::Blocking, second, Polls::ByTheLastWaker),
        Front::Own(Seams::Waiting(BOTH), second, Polls::ByTheLastWaker),
        Front::Own(Seams::Waiting(BEFORE), second, Polls::WhenWoken),
        Front::Own(Seams::Waiting(AFTER), second, Polls::WhenWoken),
    ]);
    all
}

#[test]
fn n1_every_script_has_the_same_transcript_on_every_front_end() {
    for Script { name, steps } in scripts() {
        let expected = run(Front::Blocking, &steps);
        for front in fronts(&steps) {
            if let Some(difference) = run(front, &steps).difference(&expected) {
                panic!("{name} on {front:?}: {difference}");
            }
        }
    }
}

/// `no_room` is for hosts that bring the room for the keys of arguments themselves; `store_fault` and `audit_unavailable` are for parts that fail.
#[test]
fn n1_the_scripts_lead_to_every_end() {
    let (mut ends, mut decisions) = (BTreeSet::new(), BTreeSet::new());
    for Script { steps, .. } in scripts() {
        let mut world = World::new(Front::Blocking);
        steps.iter().for_each(|step| world.step(step));
        for record in &world.log.book().records {
            let of = if record.kind == "decision" { &mut decisions } else { &mut ends };
            of.insert(record.end.clone());
        }
    }
    let expected =
        ["approve", "cancel", "deny", "grant", "in_doubt", "resolve_done", "resolve_none", "resolve_unknown", "revoke"];
    assert_eq!(decisions, expected.map(str::to_owned).into());
    let expected = [
        "accepted",
        "answer_invalid",
        "answered",
        "asked",
        "bad_context",
        "cancelled",
        "denied",
        "done",
        "failed",
        "hidden",
        "intent",
        "interceptor_failed",
        "invalid",
        "limited",
        "malformed",
        "no_approver",
        "not_found",
        "operation_refused",
        "output_invalid",
        "overloaded",
        "panicked",
        "planned",
        "refused",
        "replayed",
        "shutdown",
        "timed_out",
        "too_deep",
        "unclampable",
        "vetoed",
    ];
    assert_eq!(ends, expected.map(str::to_owned).into());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever callers, approvers, time and faults do one after another.
    #[test]
    fn n1_sequences_have_the_same_transcript_on_every_front_end(steps in sequence()) {
        let expected = run(Front::Blocking, &steps);
        for front in fronts(&steps) {
            let difference = run(front, &steps).difference(&expected);
            prop_assert!(difference.is_none(), "on {front:?}: {}", difference.unwrap_or_default());
        }
    }
}
