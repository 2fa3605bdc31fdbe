//! The log on disk: what survives, what is refused, and processes that share it.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate_core::audit::AuditFault;
use callgate_core::audit::chain::Head;
use callgate_core::time::Timestamp;
use callgate_std::audit::{
    Durability, Expected, JsonlAudit, JsonlError, JsonlOptions, LostCall, ProblemKind, Report, Retention, verify_file,
    verify_log,
};
use tempfile::TempDir;

use crate::driven::{CANARY, CASES, Case, Ears, drive, drive_with};
use crate::reaping::{self, Reaped};
use crate::rotation::{self, Rotated};

const DONE: Case = Case { end: "done", mutating: true };

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn log(&self) -> PathBuf {
        self.0.path().join("audit.jsonl")
    }

    fn beside(&self, extension: &str) -> PathBuf {
        self.log().with_added_extension(extension)
    }

    fn open(&self) -> Result<JsonlAudit, JsonlError> {
        JsonlAudit::open(self.log())
    }

    fn verify(&self) -> Report {
        verify_file(&self.log(), None).expect("readable")
    }

    fn append(&self, bytes: &[u8]) {
        OpenOptions::new().append(true).open(self.log()).and_then(|mut log| log.write_all(bytes)).expect("ours");
    }

    fn text(&self) -> String {
        fs::read_to_string(self.log()).expect("text")
    }
}

#[test]
fn every_end_is_recorded_and_the_chain_goes_on_after_a_restart() {
    let place = Place::new();
    for round in 0..2 {
        let audit = place.open().expect("as it was left");
        for (i, case) in CASES.iter().enumerate() {
            drive(*case, &format!("r{round}.{i}"), &audit).expect("written");
        }
    }
    let intents = CASES.iter().filter(|case| case.mutating).count() as u64;
    let report = place.verify();
    assert!(report.is_intact(), "{report:?}");
    assert_eq!((report.terminals, report.intents), (2 * CASES.len() as u64, 2 * intents));
    assert_eq!((report.notes, report.beyond_anchor, report.open_intent_count), (0, 0, 0));
    // L2: no secret of any call, on any path.
    assert!(!place.text().contains(CANARY));
    assert!(verify_file(&place.log(), Some(report.head)).expect("readable").is_intact());
}

#[test]
#[cfg(unix)]
fn the_log_is_its_owners_alone() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let place = Place::new();
    drive(DONE, "r1", &place.open().expect("new")).expect("written");
    for path in [place.log(), place.beside("head")] {
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o7777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).expect("ours");
        assert!(matches!(place.open(), Err(JsonlError::File(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("ours");
    }
    assert!(place.open().is_ok());
}

/// A process that was killed in the middle of a line: what there is of it is kept beside the log, and the log says so.
#[test]
fn a_torn_line_is_set_aside_and_noted() {
    for keep in [1, 20, 300] {
        let place = Place::new();
        drive(DONE, "r1", &place.open().expect("new")).expect("written");
        let whole = place.text();
        let torn = &whole.lines().next().expect("a line").as_bytes()[..keep];
        place.append(torn);
        assert!(place.verify().problems.iter().any(|problem| matches!(problem.kind, ProblemKind::Torn { .. })));
        drive(DONE, "r2", &place.open().expect("recovered")).expect("written");
        let report = place.verify();
        assert!(report.is_intact(), "{report:?}");
        assert_eq!((report.notes, report.terminals), (1, 2));
        assert!(place.text().starts_with(&whole) && place.text().contains("\"note\":\"torn_line_set_aside\""));
        assert_eq!(fs::read(place.beside("torn")).expect("kept"), [torn, b"\n"].concat());
    }
}

/// A process that was killed between a line and its line break, or between the line and the anchor: the record counts.
#[test]
fn a_whole_line_that_was_never_anchored_counts() {
    let place = Place::new();
    drive(DONE, "r1", &place.open().expect("new")).expect("written");
    let anchor = fs::read(place.beside("head")).expect("there");
    drive(DONE, "r2", &place.open().expect("as it was left")).expect("written");
    let whole = place.text();
    for log in [whole.as_str(), whole.trim_end()] {
        fs::write(place.log(), log).expect("ours");
        fs::write(place.beside("head"), &anchor).expect("ours");
        let audit = place.open().expect("recovered");
        assert_eq!(audit.head().seq, if log.ends_with('\n') { 5 } else { 6 });
        drop(audit);
        let report = place.verify();
        assert!(report.is_intact(), "{report:?}");
        assert_eq!((report.terminals, report.beyond_anchor), (2, 0));
        assert!(place.text().starts_with(&whole) && place.text().contains("\"note\":\"anchor_behind\""));
    }
}

/// R6: a log that was cut off, written anew, or robbed of its anchor is not written to any more.
#[test]
fn r6_a_log_that_is_not_as_it_was_left_is_refused() {
    let place = Place::new();
    let audit = place.open().expect("new");
    drive(DONE, "r1", &audit).expect("written");
    drive(DONE, "r2", &audit).expect("written");
    let (log, head) = (place.text(), fs::read(place.beside("head")).expect("there"));
    let lines: Vec<_> = log.split_inclusive('\n').collect();
    let cut = |n: usize| lines[..n].concat();
    let try_with = |log: Option<&str>, head: Option<&[u8]>| {
        let put = |path: PathBuf, content: Option<&[u8]>| match content {
            Some(content) => fs::write(path, content).expect("ours"),
            None => drop(fs::remove_file(path)),
        };
        put(place.log(), log.map(str::as_bytes));
        put(place.beside("head"), head);
        let opened = place.open().map(drop);
        // The sink that was open all the time sees it, too, and nothing runs without a record (F1).
        if opened.is_err() && log.is_some_and(|text| text.len() as u64 != audit.head().seq) {
            assert_eq!(drive_with(DONE, "r3", "{}", &audit, &Ears::default()), Err(AuditFault));
        }
        opened
    };
    assert!(matches!(try_with(Some(&cut(2)), Some(&head)), Err(JsonlError::Truncated { anchored: 4, .. })));
    assert!(matches!(try_with(Some(""), Some(&head)), Err(JsonlError::Truncated { anchored: 4, bytes: 0, .. })));
    assert!(matches!(try_with(None, Some(&head)), Err(JsonlError::Truncated { anchored: 4, bytes: 0, .. })));
    assert!(matches!(try_with(Some(&log), None), Err(JsonlError::NoAnchor { .. })));
    assert!(matches!(try_with(Some(&log), Some(b"")), Err(JsonlError::NoAnchor { .. })));
    assert!(matches!(try_with(Some(&log), Some(&[b' '; 384])), Err(JsonlError::NoAnchor { .. })));
    let edited = log.replace("\"r2\"", "\"rX\"");
    assert!(matches!(try_with(Some(&edited), Some(&head)), Err(JsonlError::Forked { seq: 4, .. })));
    let swapped = [lines[0], lines[1], lines[3], lines[2]].concat();
    assert!(matches!(try_with(Some(&swapped), Some(&head)), Err(JsonlError::Forked { seq: 4, .. })));
    let added = format!("{log}{}", lines[3]);
    assert!(matches!(try_with(Some(&added), Some(&head)), Err(JsonlError::Broken { seq: 5, .. })));
    assert!(try_with(Some(&log), Some(&head)).is_ok());
    // The records that were refused meanwhile waited, and come now.
    audit.flush().expect("as it was left");
    assert_eq!(audit.spooled(), 0);
    let report = place.verify();
    assert!(report.is_intact() && report.terminals > 2, "{report:?}");
}

/// A log that was put aside with its anchor is followed by a new one, without a restart and without losing a record.
#[test]
#[cfg(unix)]
fn a_log_that_was_put_aside_is_followed_by_a_new_one() {
    let place = Place::new();
    let audit = place.open().expect("new");
    drive(DONE, "r1", &audit).expect("written");
    for file in [place.log(), place.beside("head")] {
        fs::rename(&file, file.with_added_extension("old")).expect("ours");
    }
    drive(DONE, "r2", &audit).expect("written");
    let report = place.verify();
    assert_eq!((report.is_intact(), report.lines), (true, 2));
    assert!(place.text().contains("\"r2\"") && !place.text().contains("\"r1\""));
}

#[test]
fn f5_a_full_log_refuses_like_a_full_disk() {
    let place = Place::new();
    let mut options = JsonlOptions::new();
    options.max_bytes = Some(4_000);
    let audit = JsonlAudit::open_with(place.log(), options).expect("new");
    let fits = (0..100).take_while(|i| drive(DONE, &format!("r{i}"), &audit).is_ok()).count();
    assert!((1..10).contains(&fits), "{fits}");
    assert!(audit.spooled() > 0 && audit.last_error().expect("it says why").contains("full"));
    assert!(fs::metadata(place.log()).expect("there").len() <= 4_000);
    drop(audit);
    let report = place.verify();
    assert!(report.is_intact() && report.terminals as usize >= fits, "{report:?}");
}

/// D2, J1: a record that is too long is replaced by one that says so; its call is not without a record.
#[test]
fn a_line_is_bounded_and_says_what_it_stands_for() {
    let place = Place::new();
    let mut options = JsonlOptions::new();
    options.max_line = 0;
    let audit = JsonlAudit::open_with(place.log(), options).expect("new");
    let long = format!("{{\"rows\":[{}1]}}", "1234,".repeat(20_000));
    for case in CASES {
        drive_with(*case, "r", &long, &audit, &Ears::default()).expect("written");
    }
    assert!(place.verify().is_intact());
    let text = place.text();
    assert!(text.lines().all(|line| line.len() <= 16 << 10), "at least 16 KiB whatever is asked for");
    let line = text.lines().find(|line| line.contains("\"end\":\"done\"")).expect("recorded");
    for part in [
        "\"whole_bytes\":100",
        "\"whole_sha256\":\"",
        "\"args_digest\":\"",
        "\"effect\":\"done\"",
        "\"request_id\":\"r\"",
    ] {
        assert!(line.contains(part), "{part} in {}", line.chars().take(2_000).collect::<String>());
    }
}

#[test]
fn intents_alone_can_be_made_durable() {
    let place = Place::new();
    let mut options = JsonlOptions::new();
    options.durability = Durability::Intents;
    let audit = JsonlAudit::open_with(place.log(), options.clone()).expect("new");
    drive(Case { end: "done", mutating: false }, "r1", &audit).expect("written");
    drive(DONE, "r2", &audit).expect("written");
    assert_eq!(
        (place.verify().is_intact(), place.verify().beyond_anchor),
        (true, 1),
        "the last terminal is not anchored yet"
    );
    let other = JsonlAudit::open_with(place.log(), options).expect("shared");
    drive(DONE, "r3", &other).expect("written");
    drive(DONE, "r4", &audit).expect("written");
    drop((audit, other));
    let report = place.verify();
    assert_eq!((report.is_intact(), report.lines, report.beyond_anchor, report.notes), (true, 7, 0, 0));
}

#[test]
fn j9_threads_share_a_sink() {
    let place = Place::new();
    let audit = place.open().expect("new");
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let id = next.fetch_add(1, Ordering::Relaxed);
                    drive(DONE, &format!("r{id}"), &audit).expect("written");
                }
            });
        }
    });
    let report = place.verify();
    assert_eq!((report.is_intact(), report.lines, report.open_intent_count), (true, 80, 0), "{report:?}");
}

/// Set for a process that is a child of one of these tests: the log that it writes to, and the prefix of its calls.
const CHILD: &str = "CALLGATE_TEST_LOG";

/// The part of a child: records calls until it is killed or has made a hundred, and says which. Does nothing when run as a
/// test.
#[test]
fn child() {
    let Some(log) = std::env::var_os(CHILD) else { return };
    let prefix = std::env::var("CALLGATE_TEST_PREFIX").expect("set with it");
    let audit = JsonlAudit::open(log).expect("as it was left");
    let mut out = std::io::stdout();
    for i in 0..100 {
        drive(DONE, &format!("{prefix}.{i}"), &audit).expect("written");
        out.write_all(format!("\n@{prefix}.{i}\n").as_bytes()).expect("the parent reads");
        out.flush().expect("the parent reads");
    }
}

fn start_child(log: &Path, prefix: &str) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "log::child", "--nocapture", "--test-threads=1"])
        .env(CHILD, log)
        .env("CALLGATE_TEST_PREFIX", prefix)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process")
}

/// The calls that a child says it has recorded, until it is gone, or until `kill` lines were read.
fn calls_of(child: &mut Child, kill: Option<usize>) -> Vec<String> {
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut calls = Vec::new();
    for line in lines {
        if let Some(call) = line.expect("text").strip_prefix('@') {
            calls.push(call.to_owned());
            if kill.is_some_and(|kill| calls.len() == kill) {
                child.kill().expect("it is ours");
            }
        }
    }
    child.wait().expect("it is ours");
    calls
}

#[test]
fn j6_processes_share_one_chain() {
    let place = Place::new();
    let mut children: Vec<_> = (0..3).map(|i| start_child(&place.log(), &format!("p{i}"))).collect();
    let calls: usize = children.iter_mut().map(|child| calls_of(child, None).len()).sum();
    assert_eq!(calls, 300);
    let report = place.verify();
    assert!(report.is_intact(), "{report:?}");
    assert_eq!((report.terminals, report.intents, report.open_intent_count, report.notes), (300, 300, 0, 0));
}

/// J1, J2, J4: a process that is killed at whatever point loses nothing that it was told is written; what it left half
/// done is a torn line, or an intent without an end, and both are found.
#[test]
fn j4_a_killed_process_leaves_a_log_that_can_be_gone_on_with() {
    let place = Place::new();
    let mut told = Vec::new();
    let mut open = 0;
    for round in 0..20 {
        let mut child = start_child(&place.log(), &format!("k{round}"));
        told.extend(calls_of(&mut child, Some(1 + round % 7)));
        drop(place.open().expect("recovered"));
        let report = place.verify();
        assert!(report.is_intact(), "round {round}: {report:?}");
        assert!(report.open_intent_count <= open + 1, "round {round}: {report:?}");
        open = report.open_intent_count;
    }
    let text = place.text();
    for call in &told {
        let terminal = text.lines().filter(|line| line.contains(&format!("\"request_id\":\"{call}\"")));
        assert_eq!(terminal.filter(|line| line.contains("\"kind\":\"terminal\"")).count(), 1, "{call}");
    }
}

impl Reaped for JsonlAudit {
    fn open(directory: &Path) -> Self {
        Self::open(directory.join("log")).expect("as it was left")
    }

    fn reap(&self, now: Timestamp) -> Vec<LostCall> {
        self.reap(now).expect("usable")
    }

    fn verify(&self) -> Report {
        verify_file(self.path(), None).expect("readable")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).expect("text")
    }
}

/// J1, J4: the suite of every log that is reaped.
#[test]
fn j1_the_reaper_closes_what_a_dead_process_left_open() {
    reaping::all::<JsonlAudit>();
}

impl Rotated for JsonlAudit {
    fn file(&self) -> &Path {
        self.path()
    }

    fn end(&self) -> Head {
        self.head()
    }

    fn rotate(&self) -> Option<Head> {
        self.rotate().expect("usable")
    }

    fn retain(&self, retention: Retention) -> Option<Head> {
        self.retain(retention).expect("usable")
    }

    fn verify_with(&self, expected: Expected) -> Report {
        verify_log(self.path(), expected).expect("readable")
    }
}

/// J6, J10: the suite of every log that is rotated.
#[test]
fn j6_the_log_is_rotated() {
    rotation::all::<JsonlAudit>();
}
