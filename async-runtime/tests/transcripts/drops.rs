//! X4 and J1: a call that is dropped, or whose executor goes down, at whatever poll, has exactly one terminal record, and that tells
//! what happened.

use std::collections::BTreeSet;

use callgate_std::gate::Shutdown;
use proptest::prelude::*;

use crate::sequence::{calling, sequence};
use crate::world::log::Kept;
use crate::world::runtime::{Jobs, Polls};
use crate::world::script::{Brings, Calling, Script, Step, scripts};
use crate::world::waiting::{AFTER, BEFORE};
use crate::world::{Front, Leaving, Seams, World};

const SEAMS: [Seams; 4] = [Seams::Immediate, Seams::Blocking, Seams::Waiting(BEFORE), Seams::Waiting(AFTER)];
const LEAVINGS: [(Leaving, bool); 5] = [
    (Leaving::Dropped, false),
    (Leaving::Dropped, true),
    (Leaving::DroppedThenDown, false),
    (Leaving::DownThenDropped, true),
    (Leaving::Down, false),
];
/// More polls than any call needs.
const MANY: usize = 200;

fn world(seams: Seams) -> World {
    World::new(Front::Own(seams, Jobs::Later, Polls::WhenWoken))
}

/// The records of calls: decisions are none.
fn calls_of(records: &[Kept]) -> impl Iterator<Item = &Kept> {
    records.iter().filter(|record| record.kind != "decision")
}

/// Every call has one terminal record, those that were accepted a completion, and both tell the truth.
fn check_records(world: &World, about: &str) {
    let book = world.log.book();
    let ids: BTreeSet<&String> =
        calls_of(&book.records).map(|record| &record.request_id).chain(book.started.keys()).collect();
    for id in ids {
        let of = |kind: &str| -> Vec<&Kept> {
            book.records.iter().filter(|record| record.kind == kind && record.request_id == *id).collect()
        };
        let (intents, terminals, completions) = (of("intent"), of("terminal"), of("completion"));
        assert_eq!(terminals.len(), 1, "J1: {about}: {id} has {terminals:?}");
        let accepted = terminals[0].end == "accepted";
        assert_eq!(completions.len(), usize::from(accepted), "J1: {about}: {id} has {completions:?}");
        assert!(intents.len() <= 1, "{about}: {id} has {intents:?}");
        let last = completions.first().unwrap_or(&terminals[0]);
        let started = book.started.get(id).copied().unwrap_or_default();
        let may_have = match (last.effect, last.end.as_str()) {
            // A tool that says itself that it did nothing, or that takes no such arguments.
            ("none", "failed") if last.tool.ends_with(".fail") || last.tool.ends_with(".typed") => 0..=1,
            ("none", _) => 0..=0,
            ("done", _) => 1..=1,
            _ => 0..=1,
        };
        assert!(may_have.contains(&started), "X4: {about}: {id} was started {started} times, and says {last:?}");
    }
}

/// The lines of the call `id`.
fn lines_of(world: &World, id: &str) -> Vec<String> {
    let book = world.log.book();
    let begins = format!("call {id}");
    let lines = book.lines.iter().skip_while(|line| **line != begins).skip(1);
    lines.take_while(|line| !line.starts_with("call ")).cloned().collect()
}

/// What was charged for a call that did not run came back once, if it is known what was charged.
fn check_settlement(world: &World, id: &str, seams: Seams, leaving: Leaving, about: &str) {
    let lines = lines_of(world, id);
    let count = |begins: &str| lines.iter().filter(|line| line.starts_with(begins)).count();
    let charged = |line: &&String| line.starts_with("charge ") && line.contains("mode: Take } -> Ok(Granted");
    let charges = lines.iter().filter(charged).count();
    assert!(count("refund ") <= charges, "{about}: {} refunds of {charges} charges", count("refund "));
    let calls: BTreeSet<&str> =
        lines.iter().filter_map(|line| line.strip_prefix("policy ")?.split(' ').next()).collect();
    let book = world.log.book();
    let record = book.records.iter().find(|record| record.request_id == id && record.kind == "terminal").unwrap();
    let ran = book.started.contains_key(id);
    if ran && calls.len() == 1 {
        assert_eq!(count("refund "), 0, "{about}: it ran, and pays");
    }
    // The answer to a charge can get lost with the call, and refunds with the executor.
    let known = matches!(seams, Seams::Immediate | Seams::Waiting(BEFORE)) && leaving == Leaving::Dropped;
    let dear = lines.iter().filter(charged).any(|line| !line.contains("cost: 1,"));
    if known && dear && record.effect == "none" && record.end == "cancelled" {
        assert_eq!(count("refund "), 1, "R3: {about}: it did not run, and keeps at most 1");
    }
}

/// Tries whatever token there is twice more: none is good for two runs.
fn check_tokens(world: &mut World, calling: &Calling, about: &str) {
    for token in 0..world.asked() {
        for _ in 0..2 {
            world.step(&Step::Call(Calling { gone: false, plan: false, ..calling.clone().with(Brings::Token(token)) }));
        }
    }
    let book = world.log.book();
    let claims: Vec<_> =
        book.lines.iter().filter(|line| line.starts_with("claim ") && line.contains("-> Ok(Ok(")).collect();
    let tickets: BTreeSet<_> = claims.iter().map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(claims.len(), tickets.len(), "A5: {about}: {claims:?}");
    let body = format!("body {} ", calling.tool);
    let runs = book.lines.iter().filter(|line| line.starts_with(&body)).count();
    let confirms = ["b.confirm", "w.confirm", "b.approve", "w.approve", "b.behind.panic"].contains(&calling.tool);
    assert!(!confirms || runs <= claims.len(), "A5: {about}: {runs} runs for {claims:?}");
}

/// Asks for the operation again: whatever became of the call that was left, no second one runs before that is known to have had no
/// effect.
fn check_operation(world: &mut World, calling: &Calling, about: &str) {
    if calling.operation.is_none() {
        return;
    }
    let again = Calling { gone: false, plan: false, brings: Brings::Nothing, ..calling.clone() };
    for pass in [0, 0, 3_600_000] {
        world.step(&Step::Advance(pass));
        world.step(&Step::Call(again.clone()));
    }
    let book = world.log.book();
    let of = |begins: &str, told: &str| {
        let lines = book.lines.iter().filter(move |line| line.starts_with(begins) && line.contains(told));
        lines.filter_map(|line| line.split_once("key: ")?.1.split(',').next()).collect::<Vec<_>>()
    };
    let takes = of("take ", "-> Ok(Ok(Free(");
    // By the call itself, or by somebody who found out.
    let opened = [of("keep ", "effect: None"), of("settle ", " None the books ")].concat();
    for key in takes.iter().collect::<BTreeSet<_>>() {
        let count = |keys: &[&str]| keys.iter().filter(|one| one == &key).count();
        let (takes, opened) = (count(&takes), count(&opened));
        assert!(takes <= opened + 1, "A5: {about}: {takes} claims, and {opened} without effect: {:#?}", book.lines);
    }
}

/// Leaves `calling` after `polls` polls, and checks what is left. Says whether it came to its end before.
fn leave(
    world: &mut World,
    seams: Seams,
    calling: &Calling,
    polls: usize,
    (leaving, late): (Leaving, bool),
    about: &str,
) -> bool {
    let (id, over) = world.leave(calling, polls, late, leaving);
    check_records(world, about);
    check_settlement(world, &id, seams, leaving, about);
    assert_eq!(world.gate().running_tasks(), [], "{about}");
    if leaving == Leaving::Dropped && !over {
        check_operation(world, calling, about);
        check_tokens(world, calling, about);
        check_records(world, about);
    }
    assert_eq!(world.shutdown(), Shutdown { cancelled: 0, running: 0 }, "X6: {about}: places are kept");
    over
}

#[test]
fn x4_j1_a_call_that_is_left_at_any_poll_has_one_record_that_tells_the_truth() {
    let mut left = 0_usize;
    for Script { name, steps } in scripts() {
        let Some((Step::Call(calling), before)) = steps.split_last() else { panic!("{name} ends with a call") };
        // Its body blocks the executor's only thread while it waits for other calls.
        if calling.tool == "b.nest" {
            continue;
        }
        for seams in SEAMS {
            for how in LEAVINGS {
                let over = (0..MANY).find(|polls| {
                    let about = format!("{name} with {seams:?}, {how:?} after {polls} polls");
                    let mut world = world(seams);
                    before.iter().for_each(|step| world.step(step));
                    left += 1;
                    leave(&mut world, seams, calling, *polls, how, &about)
                });
                assert!(over.is_some(), "{name} with {seams:?} goes on for ever");
            }
        }
    }
    println!("left {left} calls");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same after whatever happened before.
    #[test]
    fn x4_j1_a_call_that_is_left_after_anything(
        before in sequence(),
        calling in calling(),
        polls in 0..12_usize,
        seams in prop::sample::select(SEAMS.as_slice()),
        how in prop::sample::select(LEAVINGS.as_slice()),
    ) {
        let blocks = |calling: &Calling| calling.tool == "b.nest";
        prop_assume!(!blocks(&calling));
        let mut world = world(seams);
        // Faults make records that are lost, which is another matter.
        let harmless = |step: &&Step| match step {
            Step::Call(calling) => !blocks(calling),
            Step::Plant(..) => false,
            _ => true,
        };
        before.iter().filter(harmless).for_each(|step| world.step(step));
        leave(&mut world, seams, &calling, polls, how, "a sequence");
    }
}
