//! Each step of the confirmations and of the limiter on a database that fails, at every operation in turn, before it took effect and
//! after: the file is as it was, or as the step leaves it, to the last column; whoever asked is told nothing else; and the next try does
//! what the first should have done (invariants F1, A5, A7, A9, C2, J3 to J5, P5, R2).

use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callgate_core::call::Finish;
use callgate_core::code::Effect;
use callgate_core::confirm::call_digest;
use callgate_core::context::{CallContext, Scopes};
use callgate_core::digest::Digest;
use callgate_core::entropy::{Entropy, EntropyError};
use callgate_core::limit::{Allowance, Bucket, LimitKey, Quota, Receipt};
use callgate_core::time::Instant;
use callgate_std::clock::{Clock, ManualClock};
use callgate_std::confirmations::{
    Capacity, ConfirmationStore, DecideFault, GrantArguments, GrantError, IssueFault, NewGrant, PendingRequest,
    Resolution, Verdict,
};
use callgate_std::limiter::{Charge, ChargeMode, RateLimiter, Refund};
use rusqlite::types::Value;

use crate::bench::{ALICE, BOB, GRANTER, LEASE, STEWARD, TTL, approval, binding, presented, request};
use crate::database::Link;
use crate::faults::Mode;
use crate::{Database, SqliteConfirmations, SqliteLimiter};

const CAROL: CallContext<'static> =
    CallContext::new("web", "r5").with_principal("carol").with_scopes(Scopes::new("approve"));
/// Room for buckets.
const KEYS: usize = 2;

/// Bytes that say which try draws them, so that the same try names the same things.
#[derive(Debug, Default)]
struct Try(AtomicU64);

impl Entropy for Try {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        bytes.fill(0);
        bytes.iter_mut().zip(number.to_le_bytes()).for_each(|(byte, of)| *byte = of);
        Ok(())
    }
}

/// The stores as one process has them.
struct World {
    database: Arc<Database>,
    clock: ManualClock,
    tries: Arc<Try>,
    store: SqliteConfirmations,
    limiter: SqliteLimiter,
}

impl World {
    fn open(path: &Path, clock: &ManualClock) -> Self {
        let database = Arc::new(Database::open(path).expect("new, or whole"));
        let tries = Arc::new(Try::default());
        let capacity = Capacity { entries: 4, ..Capacity::DEFAULT };
        let store =
            SqliteConfirmations::with(Arc::clone(&database), capacity, clock.shared(), Arc::<Try>::clone(&tries));
        store.attach_approvers(true);
        let quota = |_: &LimitKey<'_>| Quota::per_window(4, 60_000).expect("usable");
        let limiter = SqliteLimiter::with(Arc::clone(&database), quota, clock.shared(), KEYS).expect("new, or whole");
        Self { database, clock: clock.clone(), tries, store, limiter }
    }

    fn pass(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }

    /// Everything that is in the file.
    fn content(&self) -> Vec<String> {
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
        let mut content = Vec::new();
        let read = |link: &Link<'_>| {
            let mut names: Vec<String> = Vec::new();
            link.each(tables, [], |row| row.get(0).map(|name| names.push(name)).map(|()| true))?;
            for name in names {
                link.each(&format!("SELECT * FROM {name}"), [], |row| {
                    let columns = row.as_ref().column_count();
                    let row: Result<Vec<Value>, _> = (0..columns).map(|at| row.get(at)).collect();
                    content.push(format!("{name} {:?}", row?));
                    Ok(true)
                })?;
            }
            Ok(())
        };
        self.database.step(read).expect("readable");
        content.sort();
        content
    }

    fn issued(&self, request: &PendingRequest<'_>) -> Digest {
        self.store.issue(request, TTL).expect("room").token.hash()
    }

    /// The name of what the first to be asked about was kept under.
    fn first() -> Digest {
        Try::default().token().expect("it never fails").hash()
    }

    fn claimed(&self) -> Digest {
        let ticket = self.issued(&request(1));
        self.store.claim(ticket, &presented(1)).expect("answers").expect("ours");
        ticket
    }

    fn granted(&self, max_uses: u32) {
        self.store.grant(new_grant(max_uses), &GRANTER).expect("a good grant");
    }

    fn charge(&self, tool: &'static str, cost: u32, mode: ChargeMode) -> Told {
        told(self.limiter.charge(&Charge { key: key(tool), cost, mode }))
    }

    fn finish(&self, effect: Effect) -> Told {
        told(self.store.finish(&Finish { ticket: Self::first(), call: call_digest("r1"), effect }))
    }

    fn decide(&self, verdict: Verdict, by: &CallContext<'_>) -> Told {
        match self.store.decide(Self::first(), verdict, by) {
            Err(DecideFault::Store) => Err(()),
            answer => Ok(format!("{answer:?}")),
        }
    }
}

fn key(tool: &'static str) -> LimitKey<'static> {
    LimitKey::of_call(&CallContext::cli("r"), tool)
}

fn new_grant(max_uses: u32) -> NewGrant {
    NewGrant {
        tool: "fs.write".to_owned(),
        definition: binding(1).tool,
        principal: "alice".to_owned(),
        arguments: GrantArguments::Including(r#"{"path":"notes.txt"}"#.to_owned()),
        lasts_ms: 2 * TTL,
        max_uses,
    }
}

/// What was answered, or that there was no answer.
type Told = Result<String, ()>;

fn told<T: Debug, E>(answer: Result<T, E>) -> Told {
    answer.map(|answer| format!("{answer:?}")).map_err(drop)
}

fn told_of_grant<T: Debug>(answer: Result<T, GrantError>) -> Told {
    match answer {
        Err(GrantError::Store) => Err(()),
        answer => Ok(format!("{answer:?}")),
    }
}

/// One step.
struct Step {
    name: &'static str,
    /// What is in the file before, by another process.
    before: fn(&World),
    /// What this process has done before.
    armed: fn(&World),
    act: fn(&World) -> Told,
}

fn step(name: &'static str, before: fn(&World), act: fn(&World) -> Told) -> Step {
    Step { name, before, armed: |_| (), act }
}

/// The stores in a copy of the file, at this time.
fn copy(step: &Step, base: &Path, now: &ManualClock, directory: &Path) -> World {
    let path = directory.join("gate.db");
    fs::copy(base, &path).expect("a file");
    let clock = ManualClock::new();
    clock.set(now.now());
    let world = World::open(&path, &clock);
    (step.armed)(&world);
    world
}

/// What a try answers and leaves. Tries of one number draw the same bytes, other ones than there are in the file.
fn attempt(step: &Step, world: &World, number: u64) -> (Told, Vec<String>) {
    world.tries.0.store(100 * number, Ordering::Relaxed);
    let told = (step.act)(world);
    (told, world.content())
}

/// How it should be: what is in the file before, and after one try and another one.
struct Sound {
    before: Vec<String>,
    once: (Told, Vec<String>),
    twice: (Told, Vec<String>),
}

/// Takes a step with operation `fails` and `more` after it failing in this `mode`. Gives how many operations there were.
fn fail(step: &Step, world: &World, sound: &Sound, (mode, fails, more): (Mode, usize, usize)) -> usize {
    let what = format!("{}: {mode:?} at operation {fails} and {more} more", step.name);
    let Sound { before, once, twice } = sound;
    assert_eq!(world.content(), *before, "{what}");
    world.tries.0.store(100, Ordering::Relaxed);
    world.database.faults.set(mode, fails, more);
    let told = (step.act)(world);
    let operations = world.database.faults.clear();
    let after = world.content();
    if told.is_ok() {
        assert_eq!((&told, &after), (&once.0, &once.1), "{what}: it was told");
    } else {
        let is_whole = after == *before || mode == Mode::After && after == once.1;
        assert!(is_whole, "{what}: half done: {after:#?}\nbefore: {before:#?}\nafter: {:#?}", once.1);
    }
    assert!(operations < fails || world.database.last_error().is_some(), "{what}: nobody was told");
    // A step that changes nothing is the same step again.
    let (number, expected) = if after == *before { (1, once) } else { (2, twice) };
    assert_eq!(attempt(step, world, number), *expected, "{what}: the next try");
    operations
}

/// Every operation of these steps fails, alone and with the two after it.
fn fail_everywhere(steps: &[Step]) {
    for step in steps {
        let place = tempfile::tempdir().expect("a directory");
        let base = place.path().join("gate.db");
        let clock = ManualClock::new();
        (step.before)(&World::open(&base, &clock));
        let fresh = || {
            let directory = tempfile::tempdir().expect("a directory");
            (copy(step, &base, &clock, directory.path()), directory)
        };
        let sound = {
            let (world, _directory) = fresh();
            let before = world.content();
            let once = attempt(step, &world, 1);
            assert!(once.0.is_ok(), "{}: {:?}", step.name, once.0);
            Sound { before, once, twice: attempt(step, &world, 2) }
        };
        for (mode, more) in [(Mode::Before, 0), (Mode::Before, 2), (Mode::After, 0)] {
            for fails in 1.. {
                let (world, _directory) = fresh();
                if fail(step, &world, &sound, (mode, fails, more)) < fails {
                    // It begins, looks whose file it is and what time it is, and ends.
                    assert!(fails > 4, "{}: the loop saw {fails} operations", step.name);
                    break;
                }
            }
        }
    }
}

fn two_approvers() -> PendingRequest<'static> {
    PendingRequest { approvals: 2, ..approval(1) }
}

#[test]
fn f1_every_operation_of_an_end_may_fail() {
    let claimed = |world: &World| _ = world.claimed();
    let doubtful = |world: &World| {
        world.claimed();
        world.finish(Effect::Unknown).expect("answers");
    };
    let lost = |world: &World| {
        for _ in 0..3 {
            world.claimed();
        }
        world.pass(LEASE);
    };
    fail_everywhere(&[
        step("finish, done", claimed, |world| world.finish(Effect::Done)),
        step("finish, without an effect", claimed, |world| world.finish(Effect::None)),
        step("finish, not known how", claimed, |world| world.finish(Effect::Unknown)),
        step("finish, too late", doubtful, |world| world.finish(Effect::Done)),
        step("reap", lost, |world| told(world.store.reap(2))),
        step("reconcile", doubtful, |world| {
            let resolution = Resolution { effect: Effect::Done, proof: "the ledger", by: STEWARD };
            told(world.store.reconcile(World::first(), &resolution))
        }),
    ]);
}

#[test]
fn f1_every_operation_of_a_grant_may_fail() {
    let used = |world: &World| {
        world.granted(2);
        told_of_grant(world.store.claim_grant(World::first(), &approval(1), &presented(1))).expect("covered");
    };
    let claim = |world: &World| told_of_grant(world.store.claim_grant(World::first(), &approval(1), &presented(1)));
    fail_everywhere(&[
        step("grant", |_| (), |world| told_of_grant(world.store.grant(new_grant(2), &GRANTER))),
        step("the first use", |world| world.granted(2), claim),
        step("the last use", used, claim),
        step(
            "a use that there is no room for",
            |world| {
                world.granted(9);
                for _ in 0..4 {
                    world.claimed();
                }
            },
            claim,
        ),
        step("revoke", used, |world| told_of_grant(world.store.revoke(World::first(), &GRANTER))),
        step("the grants of a caller", used, |world| told(world.store.grants_for(&ALICE, binding(1).tool))),
        step("all grants", used, |world| told(world.store.grants(&GRANTER, 9))),
    ]);
}

#[test]
fn f1_every_operation_of_a_decision_may_fail() {
    let asked = |world: &World| _ = world.issued(&two_approvers());
    let half = |world: &World| {
        world.issued(&two_approvers());
        world.decide(Verdict::Approve, &CAROL).expect("answers");
    };
    let approved = |world: &World| {
        world.issued(&two_approvers());
        world.decide(Verdict::Approve, &CAROL).expect("answers");
        world.decide(Verdict::Approve, &BOB).expect("answers");
    };
    let claim = |world: &World| told(world.store.claim(World::first(), &presented(1)));
    fail_everywhere(&[
        step("the first yes", asked, |world| world.decide(Verdict::Approve, &BOB)),
        step("the last yes", half, |world| world.decide(Verdict::Approve, &BOB)),
        step("a second yes of one approver", half, |world| world.decide(Verdict::Approve, &CAROL)),
        step("a no after a yes", half, |world| world.decide(Verdict::Deny, &BOB)),
        step("cancel, half approved", half, |world| told(world.store.cancel(World::first(), &ALICE))),
        step("cancel, of another", half, |world| told(world.store.cancel(World::first(), &BOB))),
        step("withdraw", approved, |world| told(world.store.withdraw(World::first()))),
        step("claim", approved, claim),
        step("claim, half approved", half, claim),
        step("claim, for another call", approved, |world| told(world.store.claim(World::first(), &presented(2)))),
        step("what is pending", half, |world| told(world.store.pending(&BOB, 9))),
        step("all tickets", half, |world| told(world.store.tickets(&ALICE, 9))),
    ]);
}

/// C2, C3: room is made, and what waits is forgotten where the clock was set back, in the step that sees it, or in the next.
#[test]
fn c2_every_operation_of_a_step_that_forgets_may_fail() {
    let issue = |world: &World| match world.store.issue(&request(3), TTL) {
        Err(IssueFault::Store) => Err(()),
        answer => Ok(format!("{:?}", answer.map(|issued| issued.token.hash()))),
    };
    let full = |world: &World| {
        for number in 0..3 {
            world.issued(&request(number));
        }
        world.claimed();
        world.pass(TTL);
    };
    fn waiting(world: &World) {
        world.granted(2);
        world.issued(&approval(1));
        world.claimed();
    }
    let set_back = |world: &World| {
        waiting(world);
        world.clock.step_wall(-600_000);
    };
    let seen_by_this_process_alone = |world: &World| {
        world.store.tickets(&ALICE, 9).expect("answers");
        world.pass(600_000);
        world.clock.step_wall(-600_000);
    };
    let look = |world: &World| told(world.store.tickets(&ALICE, 9));
    // What is held would be held until twice as much earlier where nobody knows whether the step was taken.
    let nothing_held = |world: &World| {
        world.granted(2);
        world.issued(&approval(1));
    };
    fail_everywhere(&[
        step("issue, into room that is made", full, issue),
        step("issue, after the clock was set back", set_back, issue),
        step("look, after the clock was set back", set_back, look),
        Step { armed: seen_by_this_process_alone, ..step("look, set back as one process saw", nothing_held, look) },
    ]);
}

#[test]
fn r2_every_operation_of_the_limiter_may_fail() {
    let spent = |world: &World| drop(world.charge("a", 3, ChargeMode::Take));
    let full = |world: &World| {
        world.charge("a", 3, ChargeMode::Take).expect("answers");
        world.charge("b", 1, ChargeMode::Take).expect("answers");
    };
    let paid_back = |world: &World| {
        world.charge("a", 4, ChargeMode::Take).expect("answers");
        world.charge("b", 1, ChargeMode::Take).expect("answers");
        world.pass(30_000);
    };
    let set_back = |world: &World| {
        world.charge("a", 3, ChargeMode::Take).expect("answers");
        world.clock.step_wall(-600_000);
    };
    fail_everywhere(&[
        step("the first charge", |_| (), |world| world.charge("a", 1, ChargeMode::Take)),
        step("the last charge", spent, |world| world.charge("a", 1, ChargeMode::Take)),
        step("a charge too many", spent, |world| world.charge("a", 2, ChargeMode::Take)),
        step("a probe", spent, |world| world.charge("a", 1, ChargeMode::Probe)),
        step("a charge that there is no room for", full, |world| world.charge("c", 1, ChargeMode::Take)),
        step("a charge into room that is made", paid_back, |world| world.charge("c", 1, ChargeMode::Take)),
        step("a charge after the clock was set back", set_back, |world| world.charge("a", 1, ChargeMode::Take)),
        step("an attempt", spent, |world| told(world.limiter.attempt(&LimitKey::of_attempts(&CallContext::cli("r"))))),
        step("a refund", spent, |world| {
            let receipt = spent_receipt(world);
            told(world.limiter.refund(&Refund { key: key("a"), receipt, units: 2 }))
        }),
    ]);
}

/// The receipt of the charge of `spent`: that of the same charge of a fresh bucket at the same time.
fn spent_receipt(world: &World) -> Receipt {
    let quota = Quota::per_window(4, 60_000).expect("usable");
    let now = world.clock.now().wall.as_unix_millis() * 1_000_000;
    let fresh = quota.charge(Bucket::FRESH, 3, Instant::from_nanos(now));
    match fresh {
        Allowance::Granted { receipt, .. } => receipt,
        other => panic!("{other:?}"),
    }
}
