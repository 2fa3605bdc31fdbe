//! A whole gate on one file, in a process that is killed at whatever moment, or ends at a named place (invariants A5, J1 to J5).
//!
//! The effects are lines of a ledger that the tool writes and waits for, which no store knows of. After each kill the tokens that were
//! given out are presented again: nothing runs twice, and what had not begun can still be had.
#![cfg(test)]
#![cfg(unix)]

use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

use callgate_core::code::{Code, Effect};
use callgate_core::confirm::Token;
use callgate_core::context::{CallContext, Scopes};
use callgate_core::digest::Digest;
use callgate_core::request::Request;
use callgate_core::schema::{Property, Schema};
use callgate_core::tool::ConfirmBy;
use callgate_sqlite::{Database, SqliteAudit, SqliteConfirmations};
use callgate_std::clock::{ManualClock, SystemClock};
use callgate_std::confirmations::{Capacity, ConfirmationStore as _, Resolution, TicketState};
use callgate_std::entropy::{OsEntropy, SeededEntropy};
use callgate_std::failure::Failure;
use callgate_std::gate::Gate;
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::Tool;
use serde_json::Value;

mod points;
mod race;

use points::{Ends, Log, POINTS, Store};

/// How many processes are killed at whatever moment, where the environment says nothing else; and at each named place.
const KILLS: u64 = 104;
const KILLS_AT_A_PLACE: u64 = 8;
/// Says other numbers: how many at whatever moment, and how many at each place, as `1400 50`.
const NUMBERS: &str = "CALLGATE_CRASH_KILLS";
/// How many calls each would make if it were not.
const CALLS: u64 = 10;

/// How many of them at once: in every other round so many that they share transactions.
const fn callers(first: u64) -> u64 {
    if (first / 1_000).is_multiple_of(2) { 1 } else { 3 }
}
/// Set for a process that is a child of this test: its directory, and the number of its first call.
const CHILD: &str = "CALLGATE_TEST_CRASH";
const FIRST: &str = "CALLGATE_TEST_CRASH_FIRST";
/// Where it ends by itself.
const ENDS: &str = "CALLGATE_TEST_CRASH_ENDS";

const PROPERTIES: &[Property<'static>] = &[Property::required("n", Schema::integer())];

/// One line of the ledger is one effect.
fn append(ledger: &Path, n: u64) -> std::io::Result<()> {
    let mut ledger = OpenOptions::new().append(true).create(true).open(ledger)?;
    ledger.write_all(format!("{n}\n").as_bytes())?;
    ledger.sync_data()
}

struct World {
    gate: Gate,
    audit: Arc<SqliteAudit>,
}

impl World {
    fn open(directory: &Path) -> Self {
        Self::ending(directory, &Arc::default())
    }

    fn ending(directory: &Path, ends: &Arc<Ends>) -> Self {
        let database = Arc::new(Database::open(directory.join("gate.db")).expect("new, or whole"));
        let audit = Arc::new(SqliteAudit::on(Arc::clone(&database)).expect("as it was left"));
        let ledger = directory.join("ledger");
        let at = Arc::clone(ends);
        let pay = Tool::builder("account.pay")
            .description("Writes a line")
            .const_schema(Schema::object(PROPERTIES))
            .mutating()
            .confirm(ConfirmBy::Caller)
            .handler(move |call| {
                let arguments: Value = call.arguments()?;
                let n = arguments.get("n").and_then(Value::as_u64).unwrap_or_default();
                at.at("effect.before");
                append(&ledger, n).map_err(|error| Failure::new(error.to_string()))?;
                at.at("effect.after");
                Ok(Reply::new(n))
            });
        let registry = Registry::builder().add(pay).build().expect("a good tool");
        // One principal asks more often here than the store would let it.
        let capacity = Capacity { per_principal: usize::MAX, ..Capacity::DEFAULT };
        let store = SqliteConfirmations::with(database, capacity, SystemClock::shared(), OsEntropy::shared());
        let gate = Gate::builder(registry)
            .digest_key([1; 32])
            .confirmations(Arc::new(Store(store, Arc::clone(ends))))
            .audit(Arc::new(Log(audit.clone(), Arc::clone(ends))))
            .build()
            .expect("a good gate");
        Self { gate, audit }
    }

    /// Call `n`, with or without a token. Gives its code, and the token that it asks with.
    fn call(&self, n: u64, token: Option<&str>) -> (Option<Code>, Option<String>) {
        let arguments = format!("{{\"n\":{n}}}");
        let id = if token.is_some() { format!("redeem-{n}") } else { format!("ask-{n}") };
        let caller = CallContext::new("cli", &id).with_principal("alice");
        let request = Request { tool: "account.pay", arguments: arguments.as_bytes(), token };
        let outcome = self.gate.call(&caller, request);
        let text = outcome.to_json().expect("it can be written");
        let asked =
            text.split_once("\"confirm_token\":\"").and_then(|(_, rest)| rest.split('"').next().map(str::to_owned));
        (outcome.code(), asked)
    }
}

/// The part of a child. Does nothing when run as a test.
#[test]
fn child() {
    let (Some(directory), Some(first)) = (std::env::var_os(CHILD), std::env::var(FIRST).ok()) else { return };
    let world = World::ending(directory.as_ref(), &Ends::told(std::env::var(ENDS).ok()));
    let first: u64 = first.parse().expect("a number");
    // In one piece, so that a kill leaves a whole line or none.
    let say = |line: String| {
        let mut out = std::io::stdout().lock();
        out.write_all(line.as_bytes()).and_then(|()| out.flush()).expect("the parent reads");
    };
    std::thread::scope(|scope| {
        let callers = callers(first);
        for caller in 0..callers {
            let world = &world;
            scope.spawn(move || {
                for n in (first..first + CALLS).filter(|n| n % callers == caller) {
                    let (code, token) = world.call(n, None);
                    let token = token.unwrap_or_else(|| panic!("it asks: {code:?}"));
                    say(format!("\n@asked {n} {token}\n"));
                    let (code, _) = world.call(n, Some(&token));
                    assert_eq!(code, None);
                    say(format!("\n@done {n} -\n"));
                }
            });
        }
    });
    // Until it is killed.
    drop(std::io::stdin().read(&mut [0]));
}

struct Victim {
    child: Child,
    _stdin: Option<ChildStdin>,
    lines: BufReader<std::process::ChildStdout>,
}

impl Victim {
    fn start(directory: &Path, first: u64, ends: Option<&str>) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(CHILD, directory)
            .env(FIRST, first.to_string())
            .envs(ends.map(|ends| (ENDS, ends)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { _stdin: child.stdin.take(), child, lines }
    }

    /// The next thing that it says; `None` when it is gone.
    fn next(&mut self) -> Option<(bool, u64, String)> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).expect("text") == 0 {
                return None;
            }
            let mut words = line.strip_prefix('@').unwrap_or_default().split_whitespace();
            if let (Some(what), Some(n), Some(token)) = (words.next(), words.next(), words.next()) {
                return Some((what == "done", n.parse().expect("a number"), token.to_owned()));
            }
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Numbers that follow from a seed.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// J4, J5: when every lease is over, what was left open is in doubt, exactly that, and can be settled by what the ledger shows.
fn settle(directory: &Path, doubts: &HashMap<u64, Digest>, effects: &HashMap<u64, u32>) {
    let database = Arc::new(Database::open(directory.join("gate.db")).expect("whole"));
    let clock = ManualClock::new();
    clock.step_wall(i64::from(i32::MAX) * 1_000);
    let store = SqliteConfirmations::with(database, Capacity::DEFAULT, clock.shared(), SeededEntropy::shared(7));
    let lost: HashSet<_> = store.reap(usize::MAX).expect("answers").iter().map(|view| view.ticket).collect();
    let by = CallContext::new("cli", "r").with_principal("steward").with_scopes(Scopes::new("reconcile"));
    for (n, ticket) in doubts {
        // One whose call had been told to the store, and nobody else, is settled already.
        if !lost.contains(ticket) {
            continue;
        }
        let effect = if effects.contains_key(n) { Effect::Done } else { Effect::None };
        let resolution = Resolution { effect, proof: "the ledger", by };
        let view = store.reconcile(*ticket, &resolution).expect("answers").expect("it is in doubt");
        assert_eq!(view.state, TicketState::Done(effect), "{n}");
    }
    let known: HashSet<_> = doubts.values().copied().collect();
    assert!(lost.is_subset(&known), "what was told to be done is not in doubt");
    assert_eq!(store.reap(usize::MAX).expect("answers"), []);
}

#[test]
fn j3_a_killed_gate_loses_nothing_and_runs_nothing_twice() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path();
    let mut seeded = Seeded(20_260_101);
    let mut asked: HashMap<u64, String> = HashMap::new();
    let mut done = HashSet::new();
    let (mut in_doubt, mut redeemed) = (0, 0);
    let mut doubts: HashMap<u64, Digest> = HashMap::new();
    let effects = || {
        let text = fs::read_to_string(directory.join("ledger")).unwrap_or_default();
        let mut count = HashMap::new();
        for line in text.lines() {
            *count.entry(line.parse::<u64>().expect("a number")).or_insert(0_u32) += 1;
        }
        count
    };
    let said = std::env::var(NUMBERS).ok();
    let (kills, at_a_place) = said.as_deref().map_or((KILLS, KILLS_AT_A_PLACE), |said| {
        let (kills, at_a_place) = said.split_once(' ').expect("two numbers");
        (kills.parse().expect("a number"), at_a_place.parse().expect("a number"))
    });
    let places = POINTS.iter().flat_map(|place| (0..at_a_place).map(move |_| Some(*place)));
    let rounds: Vec<_> = (0..kills).map(|_| None).chain(places).collect();
    for (round, place) in (0..).zip(&rounds) {
        // In every other round a process has the file open all the time, so that nobody has to recover it.
        let witness = (round % 2 == 0 && round > 0).then(|| World::open(directory));
        let first = 1_000 * round;
        let ends = place.map(|place| format!("{place} {}", seeded.below(CALLS) + 1));
        let mut victim = Victim::start(directory, first, ends.as_deref());
        let mut told = Vec::new();
        for _ in 0..if ends.is_some() { 0 } else { seeded.below(2 * CALLS) } {
            told.extend(victim.next());
        }
        // While it starts, there is more to hit.
        for _ in 0..seeded.below(if told.is_empty() { 4_000_000 } else { 400_000 }) {
            std::hint::spin_loop();
        }
        if ends.is_none() {
            victim.child.kill().expect("it is ours");
        }
        while let Some(line) = victim.next() {
            told.push(line);
        }
        let signal = victim.child.wait().expect("it is ours").signal();
        let expected = if ends.is_some() { 6 } else { 9 };
        assert_eq!(signal, Some(expected), "round {round}: it ended at {ends:?}, and did not fail");
        let mut doubtful = Vec::new();
        for (is_done, n, token) in told {
            if is_done {
                done.insert(n);
            } else {
                asked.insert(n, token);
            }
        }
        let world = witness.unwrap_or_else(|| World::open(directory));
        assert!(world.audit.verify(None).expect("readable").is_intact(), "round {round}");
        for (n, token) in asked.iter().filter(|(n, _)| **n >= first) {
            let before = effects().get(n).copied().unwrap_or_default();
            let (code, _) = world.call(*n, Some(token));
            let after = effects().get(n).copied().unwrap_or_default();
            match code {
                // J5: what had not begun is still to be had.
                None => {
                    assert!((before, after) == (0, 1) && !done.contains(n), "round {round}: {n} ran twice");
                    redeemed += 1;
                }
                Some(code) => {
                    assert_eq!((code, before), (Code::ConfirmationInvalid, after), "round {round}: {n}");
                    assert!(after <= 1, "round {round}: {n} ran twice");
                    if done.contains(n) {
                        assert_eq!(after, 1, "round {round}: {n} was told to be done");
                    } else {
                        doubtful.push((*n, Token::parse(token).expect("a token").hash()));
                    }
                }
            }
            assert_eq!(world.call(*n, Some(token)).0, Some(Code::ConfirmationInvalid), "round {round}: {n} again");
        }
        let under_way = callers(first) as usize;
        assert!(doubtful.len() <= under_way, "round {round}: only calls under way are in doubt: {doubtful:?}");
        in_doubt += doubtful.len() as u64;
        doubts.extend(doubtful);
    }
    let world = World::open(directory);
    let report = world.audit.verify(None).expect("readable");
    assert!(report.is_intact(), "{report:?}");
    // J4: what a killed process left open is no more than what is in doubt.
    assert!(report.open_intent_count <= in_doubt, "{report:?}");
    let mut log = Vec::new();
    world.audit.export(&mut log).expect("readable");
    let mut records: HashMap<(String, String), Vec<Value>> = HashMap::new();
    for line in String::from_utf8(log).expect("text").lines() {
        let record: Value = serde_json::from_str(line).expect("a record");
        let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        records.entry((text("request_id"), text("kind"))).or_default().push(record);
    }
    let find =
        |n: u64, kind: &str| records.get(&(format!("redeem-{n}"), kind.to_owned())).map_or(&[][..], Vec::as_slice);
    for (n, count) in effects() {
        assert_eq!(count, 1, "{n}");
        assert_eq!(find(n, "intent").len(), 1, "J2: the effect {n} had its intent");
        assert!(asked.contains_key(&n), "an effect that nobody asked for");
    }
    for n in &done {
        let ends = find(*n, "terminal").iter().filter(|record| record["end"] == "done").count();
        assert_eq!(ends, 1, "J1: what was told of {n} is recorded");
    }
    settle(directory, &doubts, &effects());
    for (n, token) in asked.iter().filter(|(n, _)| doubts.contains_key(*n)) {
        let before = effects().get(n).copied();
        // By now whoever asks has used up its attempts, too.
        assert!(world.call(*n, Some(token)).0.is_some(), "A5: {n} is not run even then");
        assert_eq!(effects().get(n).copied(), before, "A5: {n}");
    }
    let (asked, done) = (asked.len(), done.len());
    println!("{} kills: {asked} asked, {done} done, {redeemed} had afterwards, {in_doubt} in doubt", rounds.len());
    assert!(done > 50 && redeemed + in_doubt > 0, "the kills hit nothing");
}
