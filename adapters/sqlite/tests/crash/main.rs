//! A whole gate on one file, in a process that is killed at whatever moment, or at a named place (invariants A5, J1 to J6).
//!
//! The effects are lines of a ledger that the tools write and wait for, which no store knows of. After each kill the tokens that were
//! given out are presented again, and the operations that were begun are asked for again: nothing runs twice, and what had not begun can
//! still be had. In some rounds the log is rotated while it is written to.
#![cfg(test)]
#![cfg(unix)]

use std::collections::{HashMap, HashSet};

use callgate_core::time::Timestamp;
use callgate_std::clock::{Clock as _, ManualClock};

mod confirmed;
mod operations;
mod points;
mod race;
mod records;
#[path = "../../../../std-runtime/tests/calls/steps.rs"]
mod steps;
mod victim;
mod world;

use confirmed::Confirmed;
use operations::Operated;
use points::{POINTS, Passes};
use records::Records;
use victim::{CALLS, Round, Victim, Word};
use world::{World, effects};

/// How many processes are killed at whatever moment, where the environment says nothing else; and at each named place.
const KILLS: u64 = 100;
const KILLS_AT_A_PLACE: u64 = 5;
/// Says other numbers: how many at whatever moment, and how many at each place, as `1000 50`.
const NUMBERS: &str = "CALLGATE_CRASH_KILLS";
/// After how many rounds the log is verified from its first line on. In between it is read on.
const WHOLE: u64 = 50;

/// Numbers that follow from a seed.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Every round: its number, what it has to pass, and where it is killed if not at whatever moment.
fn rounds() -> Vec<(Round, Option<&'static str>)> {
    let said = std::env::var(NUMBERS).ok();
    let (kills, at_a_place) = said.as_deref().map_or((KILLS, KILLS_AT_A_PLACE), |said| {
        let (kills, at_a_place) = said.split_once(' ').expect("two numbers");
        (kills.parse().expect("a number"), at_a_place.parse().expect("a number"))
    });
    let anywhere = (0..kills).map(|_| (Passes::Calls, None));
    let places = POINTS.iter().flat_map(|(place, passes)| (0..at_a_place).map(move |_| (*passes, Some(*place))));
    anywhere.chain(places).zip(0..).map(|((passes, place), number)| (Round::new(number, passes), place)).collect()
}

/// Lets a process come somewhere, and kills it there. Gives what it said.
fn kill(mut victim: Victim, place: Option<&str>, seeded: &mut Seeded) -> Vec<Word> {
    let mut said = Vec::new();
    if let Some(place) = place {
        loop {
            match victim.next() {
                Some(Word::At) | None => break,
                Some(Word::Over) => panic!("it never comes to {place}"),
                Some(word) => said.push(word),
            }
        }
    } else {
        for _ in 0..seeded.below(2 * CALLS) {
            said.extend(victim.next());
        }
        // While it starts, there is more to hit.
        for _ in 0..seeded.below(if said.is_empty() { 4_000_000 } else { 400_000 }) {
            std::hint::spin_loop();
        }
    }
    victim.kill(said)
}

#[test]
fn j3_a_killed_gate_loses_nothing_and_runs_nothing_twice() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path();
    let mut seeded = Seeded(20_260_101);
    let (mut confirmed, mut operated, mut records) = (Confirmed::default(), Operated::new(), Records::new());
    let open = |clock: &ManualClock| World::with(directory, &Default::default(), clock.shared());
    let rounds = rounds();
    let mut of_operations = 0;
    for (number, (round, place)) in (0_u64..).zip(&rounds) {
        let witness = round.is_witnessed().then(|| open(&operated.clock));
        let ends = place.map(|place| format!("{place} {}", seeded.below(CALLS) + 1));
        let said = kill(Victim::start(directory, *round, ends.as_deref(), operated.clock.now()), *place, &mut seeded);
        let world = witness.unwrap_or_else(|| open(&operated.clock));
        records.read_on(&world.audit);
        if round.operates() {
            of_operations += 1;
            operated.after_a_kill(directory, &world, *round, &said);
        } else {
            confirmed.after_a_kill(directory, &world, *round, &said);
        }
        if round.rotates() {
            // One that was killed on its way is made again, by whoever comes.
            world.look(&format!("look-{number}"));
            world.rotate();
        }
        if (number + 1).is_multiple_of(WHOLE) {
            records.read_on(&world.audit);
            records.verify_whole(&world.audit);
        }
    }
    let world = open(&operated.clock);
    confirmed.settle(directory, &world);
    operated.settle_the_rest(directory, &world);
    // J1, J4: the reaper gives those an end whose process died behind their intent. There are no more of them than are in doubt.
    let reaped = world.audit.reap(Timestamp::from_unix_millis(u64::MAX)).expect("usable").len() as u64;
    let in_doubt = confirmed.doubts.len() as u64 + operated.in_doubt;
    assert!(reaped <= in_doubt, "{reaped} of {in_doubt}");
    records.read_on(&world.audit);
    records.verify_whole(&world.audit);
    records.each_has_one_end();
    let mut count = HashMap::new();
    effects(directory).into_iter().for_each(|n| *count.entry(n).or_insert(0) += 1);
    let intents = records.intents();
    confirmed.hold(&records, &count, &intents);
    operated.hold(directory, &records, &count, &intents);
    let sent: HashSet<_> = operated.sent.iter().collect();
    let known = |n| confirmed.asked.contains_key(n) || sent.contains(n);
    assert!(count.keys().all(known), "an effect that nobody asked for");

    let Confirmed { asked, done, redeemed, doubts } = &confirmed;
    let (asked, done, doubts) = (asked.len(), done.len(), doubts.len());
    println!("{} kills; {} rotations, {reaped} calls lost", rounds.len(), records.rotations);
    println!("confirmed: {asked} asked, {done} done, {redeemed} had afterwards, {doubts} in doubt");
    let Operated { sent, done: told, replayed, made, in_doubt, tried_again, .. } = &operated;
    let (sent, told) = (sent.len(), told.len());
    println!(
        "operations in {of_operations} rounds: {sent} sent, {told} told, {replayed} replayed, {made} had afterwards, \
         {in_doubt} in doubt, of which {tried_again} had no effect"
    );
    assert!(done > 50 && *redeemed > 0 && doubts > 0, "the kills hit no confirmed call");
    assert!(
        told > 50 && *replayed > 50 && *made > 0 && (1..*in_doubt).contains(tried_again),
        "the kills hit no operation"
    );
    assert!(records.rotations > 50, "the kills hit no rotation");
}
