//! A log of text that is rotated while it is written to, in a process that is killed at whatever moment or at a step of the rotation:
//! nothing of it is lost, and nothing is twice (invariants J1, J6).

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;

use callgate_std::audit::segment::{SegmentLines, begins_after};
use callgate_std::audit::{JsonlAudit, Segments, verify_file};
use serde_json::Value;

use crate::driven::{Case, drive};
use crate::steps::Steps;

/// How many processes are killed at whatever moment, and how many at each step, where the environment says nothing else.
const KILLS: (usize, usize) = (12, 3);
/// Says other numbers, as `400 50`.
const NUMBERS: &str = "CALLGATE_LOG_KILLS";
/// What a rotation passes.
const STEPS: [&str; 4] = ["segment_named", "next_made", "log_replaced", "rotated"];
/// Set for a process that is a child of this test: the log, the prefix of its calls, and where it is to be killed, as `next_made 2`.
const CHILD: &str = "CALLGATE_TEST_KILLED";
const PREFIX: &str = "CALLGATE_TEST_KILLED_PREFIX";
const ENDS: &str = "CALLGATE_TEST_KILLED_ENDS";
/// How many calls each of its two callers makes.
const CALLS: u64 = 20;

/// How many rounds verify the log each, and after how many of the others it is verified.
const EACH: usize = 25;

const DONE: Case = Case { end: "done", mutating: true };

/// In one piece, so that a kill leaves a whole line or none.
fn say(word: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n@{word}\n").as_bytes()).and_then(|()| out.flush()).expect("the parent reads");
}

/// The part of a child. Does nothing when run as a test.
#[test]
fn child() {
    let (Some(path), Ok(prefix)) = (std::env::var_os(CHILD), std::env::var(PREFIX)) else { return };
    let ends = std::env::var(ENDS).ok();
    let ends = ends.as_deref().and_then(|ends| ends.split_once(' '));
    let ends = ends.map(|(step, times)| (step.to_owned(), times.parse::<u64>().expect("a number")));
    let passed = AtomicU64::new(0);
    let steps = Steps(move |step: &str| {
        if ends.as_ref().is_some_and(|(at, times)| at == step && passed.fetch_add(1, Ordering::SeqCst) + 1 == *times) {
            say("at");
            loop {
                std::thread::park();
            }
        }
    });
    tracing::subscriber::set_global_default(steps).expect("nobody else listens");
    // Who rotates has it open on its own, as another process has.
    let logs = [JsonlAudit::open(&path), JsonlAudit::open(&path)].map(|log| log.expect("as it was left"));
    let (over, finished) = channel();
    std::thread::scope(|scope| {
        for caller in 0..2 {
            let (log, prefix, over) = (&logs[0], &prefix, over.clone());
            scope.spawn(move || {
                for call in 0..CALLS {
                    let id = format!("{prefix}.{caller}.{call}");
                    drive(DONE, &id, log).expect("written");
                    say(&id);
                    over.send(()).expect("it is heard");
                }
            });
        }
        drop(over);
        for () in finished {
            // What the calls wrote since is put aside; if they wrote nothing, there is nothing.
            if logs[1].rotate().expect("usable").is_some() {
                tracing::trace!(target: "callgate::rotation", step = "rotated");
            }
        }
    });
    say("over");
    // Until it is killed.
    drop(std::io::stdin().read(&mut [0]));
}

fn start(path: &Path, prefix: &str, ends: Option<&str>) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "killed::child", "--nocapture", "--test-threads=1"])
        .env(CHILD, path)
        .env(PREFIX, prefix)
        .envs(ends.map(|ends| (ENDS, ends)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process")
}

/// Kills it when it has told of so many calls, or stands at its step. Gives the calls that it told of.
fn killed(mut child: Child, after: Option<usize>) -> Vec<String> {
    let mut calls = Vec::new();
    if after == Some(0) {
        child.kill().expect("it is ours");
    }
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        match line.expect("text").strip_prefix('@') {
            Some("at" | "over") => child.kill().expect("it is ours"),
            Some(call) => {
                calls.push(call.to_owned());
                if after == Some(calls.len()) {
                    child.kill().expect("it is ours");
                }
            }
            None => {}
        }
    }
    let ended = child.wait().expect("it is ours");
    assert_eq!(ended.signal(), Some(9), "it failed: {ended}, having told {calls:?}");
    calls
}

#[test]
fn j6_a_rotation_may_be_killed_at_any_moment() {
    let said = std::env::var(NUMBERS).ok();
    let (kills, at_a_step) = said.as_deref().map_or(KILLS, |said| {
        let (kills, at_a_step) = said.split_once(' ').expect("two numbers");
        (kills.parse().expect("a number"), at_a_step.parse().expect("a number"))
    });
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("audit.jsonl");
    let steps = STEPS.iter().flat_map(|step| (1..=at_a_step).map(move |times| Some(format!("{step} {times}"))));
    let rounds: Vec<_> = (0..kills).map(|_| None).chain(steps).collect();
    let mut told = Vec::new();
    for (round, ends) in rounds.iter().enumerate() {
        let child = start(&path, &format!("k{round}"), ends.as_deref());
        told.extend(killed(child, if ends.is_some() { None } else { Some(round * 7 % 30) }));
        // Whoever comes next finds a log that is whole, writes on and rotates it.
        let log = JsonlAudit::open(&path).expect("as it was left");
        let id = format!("after{round}");
        drive(DONE, &id, &log).expect("written");
        told.push(id);
        if round % 2 == 0 {
            log.rotate().expect("usable").expect("there are lines");
        }
        // From its first line on, which takes longer each time: where many are killed, not after each.
        if round < EACH || round % EACH == 0 || round + 1 == rounds.len() {
            let report = verify_file(&path, None).expect("readable");
            assert!(report.is_intact() && report.lines == report.head.seq, "round {round}, {ends:?}: {report:?}");
            let under_way = 2 * (round as u64 + 1);
            assert!(report.open_intent_count <= under_way, "round {round}, {ends:?}: {report:?}");
        }
    }
    let log = File::open(&path).expect("it is there");
    let begin = begins_after(&log).expect("readable").expect("it begins behind the last segment");
    let segments = Segments::of(&path).before(begin.seq + 1).expect("readable");
    let count = segments.len();
    let text = fs::read(&path).expect("readable");
    let mut records: HashMap<(String, String), u32> = HashMap::new();
    for line in SegmentLines::of(segments).chain(&*text).lines() {
        let record: Value = serde_json::from_str(&line.expect("text")).expect("a record");
        let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        *records.entry((text("request_id"), text("kind"))).or_default() += 1;
    }
    let distinct: HashSet<_> = told.iter().collect();
    assert_eq!(distinct.len(), told.len());
    for call in &told {
        for kind in ["intent", "terminal"] {
            let found = records.get(&(call.clone(), kind.to_owned()));
            assert_eq!(found, Some(&1), "J6: {kind} of {call}");
        }
    }
    let twice = records.iter().find(|((_, kind), count)| kind != "note" && **count > 1);
    assert_eq!(twice, None, "J6");
    println!("{} kills: {} calls told, {count} segments", rounds.len(), told.len());
    assert!(count >= rounds.len(), "the kills hit no rotation");
}
