//! Two processes with one token, at the same instant, each through a whole gate of its own (invariants A5, J1).

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use callgate_core::code::Code;
use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_std::clock::SystemClock;
use serde_json::Value;

use crate::points::Ends;
use crate::world::{World, effects};

/// How many tokens, where the environment says nothing else.
const TICKETS: u64 = 60;
/// Says another number, as `1000`.
const NUMBER: &str = "CALLGATE_RACE_TICKETS";
/// Set for a process that is a child of this test: its directory, and its name.
const CHILD: &str = "CALLGATE_TEST_RACE";
const NAME: &str = "CALLGATE_TEST_RACE_NAME";
const RACERS: [&str; 2] = ["a", "b"];

/// Call `n`, of a principal of its own so that nobody uses up its attempts. Gives its code, and the token that it asks with.
fn call(world: &World, n: u64, id: &str, token: Option<&str>) -> (Option<Code>, Option<String>) {
    let (arguments, principal) = (format!("{{\"n\":{n}}}"), format!("alice-{n}"));
    let caller = CallContext::new("cli", id).with_principal(&principal);
    let outcome = world.gate.call(&caller, Request { tool: "account.pay", arguments: arguments.as_bytes(), token });
    let json: Value = serde_json::from_str(&outcome.to_json().expect("it can be written")).expect("JSON");
    (outcome.code(), json["data"]["confirm_token"].as_str().map(str::to_owned))
}

/// In one piece, for the parent to read.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).expect("the parent reads");
}

/// Waits until the parent says so to both.
fn meet() {
    say("\n@ready 0\n");
    std::io::stdin().read_exact(&mut [0]).expect("the parent says when");
}

/// The part of a child: presents each token when it is told to: the call begins then, or goes on with its claim. Does nothing when run as
/// a test.
#[test]
fn child() {
    let (Some(directory), Ok(name)) = (std::env::var_os(CHILD), std::env::var(NAME)) else { return };
    let ends = Arc::<Ends>::default();
    let world = World::with(directory.as_ref(), &ends, SystemClock::shared());
    loop {
        let mut line = String::new();
        if std::io::stdin().read_line(&mut line).expect("text") == 0 {
            return;
        }
        let (n, token) = line.trim_end().split_once(' ').expect("a number and a token");
        let n = n.parse().expect("a number");
        let before = ends.refused();
        if meets_at_the_claim(n) {
            *ends.meets.lock().expect("no panic") = Some(("claim.before", meet));
        } else {
            meet();
        }
        let code = call(&world, n, &format!("{name}-{n}"), Some(token)).0;
        let code = code.map_or("done", Code::as_str);
        say(&format!("\n@{code} {}\n", ends.refused() - before));
    }
}

/// In every other round both gates have found the token good before either claims it.
const fn meets_at_the_claim(n: u64) -> bool {
    n.is_multiple_of(2)
}

struct Racer {
    child: Child,
    told: Option<ChildStdin>,
    says: BufReader<ChildStdout>,
}

impl Racer {
    fn start(directory: &Path, name: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "race::child", "--nocapture", "--test-threads=1"])
            .env(CHILD, directory)
            .env(NAME, name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let says = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { told: child.stdin.take(), child, says }
    }

    fn tell(&mut self, bytes: &[u8]) {
        let pipe = self.told.as_mut().expect("a pipe");
        pipe.write_all(bytes).and_then(|()| pipe.flush()).expect("it reads");
    }

    /// The next two words that it says.
    fn next(&mut self) -> (String, u64) {
        loop {
            let mut line = String::new();
            assert_ne!(self.says.read_line(&mut line).expect("text"), 0, "it is gone");
            if let Some((what, number)) = line.strip_prefix('@').and_then(|line| line.trim_end().split_once(' ')) {
                return (what.to_owned(), number.parse().expect("a number"));
            }
        }
    }
}

impl Drop for Racer {
    fn drop(&mut self) {
        self.told = None;
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a5_two_gates_with_one_token_have_one_effect() {
    let tickets = std::env::var(NUMBER).map_or(TICKETS, |said| said.parse().expect("a number"));
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path();
    let world = World::open(directory);
    let mut racers = RACERS.map(|name| Racer::start(directory, name));
    let (mut won, mut refused_by_the_claim) = ([0, 0], 0);
    for n in 0..tickets {
        let token = call(&world, n, &format!("ask-{n}"), None).1.expect("it asks");
        for racer in &mut racers {
            racer.tell(format!("{n} {token}\n").as_bytes());
        }
        for racer in &mut racers {
            assert_eq!(racer.next().0, "ready", "{n}");
        }
        // Each is told first as often as the other.
        let first = usize::from(n % 4 > 1);
        racers[first].tell(b"!");
        racers[1 - first].tell(b"!");
        let said = racers.each_mut().map(Racer::next);
        let winner = said.iter().position(|(code, _)| code == "done").unwrap_or_else(|| panic!("{n}: {said:?}"));
        assert_eq!(said[1 - winner].0, "CONFIRMATION_INVALID", "{n}: one is refused");
        let by_the_claim = said[1 - winner].1;
        assert!(by_the_claim == 1 || !meets_at_the_claim(n), "{n}: it was refused before");
        won[winner] += 1;
        refused_by_the_claim += by_the_claim;
    }
    drop(racers);

    // The ledger, which no store knows of, has one line for each.
    assert_eq!(effects(directory), (0..tickets).collect::<Vec<_>>(), "A5");
    // J1: each of the two calls has one end, and the one with the effect had its intent.
    let report = world.audit.verify(None).expect("readable");
    assert!(report.is_intact() && report.open_intent_count == 0, "{report:?}");
    let mut log = Vec::new();
    world.audit.export(&mut log).expect("readable");
    let mut ends: HashMap<String, Vec<String>> = HashMap::new();
    for line in String::from_utf8(log).expect("text").lines() {
        let record: Value = serde_json::from_str(line).expect("a record");
        let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        let what = if text("kind") == "terminal" { text("end") } else { text("kind") };
        ends.entry(text("request_id")).or_default().push(what);
    }
    for n in 0..tickets {
        let mut both = RACERS.map(|name| ends.remove(&format!("{name}-{n}")).unwrap_or_default());
        both.sort_by_key(Vec::len);
        assert_eq!(both[1], ["intent", "done"], "{n}: {both:?}");
        assert!(both[0].len() == 1 && both[0][0] != "done" && both[0][0] != "intent", "{n}: {both:?}");
    }
    println!("{tickets} tokens: won {won:?}, {refused_by_the_claim} refused by the claim");
}
