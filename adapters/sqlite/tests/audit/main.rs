//! The audit log in SQLite: what a file's log holds, and what only a table can go through.
#![cfg(test)]

#[path = "../../../../std-runtime/tests/calls/driven.rs"]
mod driven;
#[path = "../../../../std-runtime/tests/calls/reaping.rs"]
mod reaping;
#[path = "../../../../std-runtime/tests/calls/rotation.rs"]
mod rotation;

use std::fs;
use std::io::{BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use callgate_core::audit::chain::Head;
use callgate_core::audit::{Audit, AuditFault, Kind, Record};
use callgate_core::time::Timestamp;
use callgate_sqlite::{Database, DatabaseError, Lines, SqliteAudit};
use callgate_std::audit::{Against, Expected, JsonlAudit, LostCall, Report, Retention, verify, verify_file};
use callgate_std::clock::SystemClock;
use tempfile::TempDir;

use reaping::Reaped;
use rotation::Rotated;

use driven::{CANARY, CASES, Case, Ears, drive, drive_with};

const DONE: Case = Case { end: "done", mutating: true };
const READ: Case = Case { end: "done", mutating: false };

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("gate.db")
    }

    fn open(&self) -> Result<SqliteAudit, DatabaseError> {
        SqliteAudit::open(self.path())
    }

    fn sql(&self, sql: &str) -> rusqlite::Result<()> {
        rusqlite::Connection::open(self.path()).expect("a database").execute_batch(sql)
    }

    fn verify(&self, kept: Option<Head>) -> Report {
        // A log that is not as it was left can be opened by nobody who would write to it.
        let audit = self.open();
        match &audit {
            Ok(audit) => audit.verify(kept).expect("readable"),
            Err(_) => {
                let database = Arc::new(Database::open(self.path()).expect("a database"));
                SqliteAudit::verify_in(&database, Expected::new(kept, None)).expect("readable")
            }
        }
    }
}

fn text(audit: &SqliteAudit) -> (String, Head) {
    let mut out = Vec::new();
    let head = audit.export(&mut out).expect("readable");
    (String::from_utf8(out).expect("text"), head)
}

/// N1, J6: the same calls give the same bytes as a file's log, over a restart, and what is exported verifies as such.
#[test]
fn n1_every_end_is_recorded_in_the_bytes_of_a_files_log() {
    let place = Place::new();
    let jsonl = place.0.path().join("audit.jsonl");
    for round in 0..2 {
        let (audit, file) = (place.open().expect("as it was left"), JsonlAudit::open(&jsonl).expect("as it was left"));
        for (i, case) in CASES.iter().enumerate() {
            drive(*case, &format!("r{round}.{i}"), &audit).expect("written");
            drive(*case, &format!("r{round}.{i}"), &file).expect("written");
        }
        assert_eq!(audit.head(), file.head());
    }
    let audit = place.open().expect("as it was left");
    let (exported, head) = text(&audit);
    assert!(exported == fs::read_to_string(&jsonl).expect("text"));
    assert!(!exported.contains(CANARY), "L2");
    let copy = place.0.path().join("copy.jsonl");
    fs::write(&copy, &exported).expect("ours");
    assert!(verify_file(&copy, Some(head)).expect("readable").is_intact());
    let report = audit.verify(None).expect("readable");
    assert!(report.is_intact(), "{report:?}");
    assert_eq!((report.terminals, report.head), (2 * CASES.len() as u64, head));
}

/// A record too long for a line is replaced by one that says so, and a log of many pages is read whole.
#[test]
fn a_long_log_and_a_long_record_are_read_whole() {
    let place = Place::new();
    let database = Arc::new(Database::open(place.path()).expect("new"));
    let audit = SqliteAudit::with_max_line(database, 200 << 10).expect("new");
    for (i, length) in [1, 30_000, 30_000, 60_000, 30_000, 1].into_iter().enumerate() {
        let arguments = format!(r#"{{"rows":[{}1]}}"#, "1234,".repeat(length));
        drive_with(READ, &format!("r{i}"), &arguments, &audit, &Ears::default()).expect("written");
    }
    let (exported, head) = text(&audit);
    assert_eq!((exported.lines().count(), head.seq), (6, 6));
    let short: Vec<_> = exported.lines().map(|line| line.contains("\"whole_bytes\":")).collect();
    assert_eq!(short, [false, false, false, true, false, false]);
    assert!(audit.verify(None).expect("readable").is_intact());
}

#[test]
fn j6_many_callers_and_two_processes_leave_no_gap() {
    let place = Place::new();
    let sinks = [place.open().expect("new"), place.open().expect("shared")];
    thread::scope(|scope| {
        for caller in 0..8 {
            let audit = &sinks[caller % 2];
            scope.spawn(move || {
                for call in 0..12 {
                    drive(DONE, &format!("r{caller}.{call}"), audit).expect("written");
                }
            });
        }
    });
    let report = place.verify(None);
    assert!(report.is_intact(), "{report:?}");
    assert_eq!((report.intents, report.terminals, report.open_intent_count), (96, 96, 0));
    let (exported, _) = text(&sinks[0]);
    for caller in 0..8 {
        for call in 0..12 {
            assert_eq!(exported.matches(&format!("\"request_id\":\"r{caller}.{call}\"")).count(), 2);
        }
    }
}

/// J6: the rows only grow.
#[test]
fn j6_a_row_is_neither_changed_nor_removed() {
    let place = Place::new();
    drive(DONE, "r1", &place.open().expect("new")).expect("written");
    for sql in ["UPDATE audit SET line = '{}'", "DELETE FROM audit WHERE seq = 2", "DELETE FROM audit"] {
        assert!(place.sql(sql).expect_err("refused").to_string().contains("only grows"), "{sql}");
    }
    assert!(place.verify(None).is_intact());
}

/// J10: whoever takes the triggers away first is found out, and a log that does not end where it should is not written to.
#[test]
fn j10_every_change_shows() {
    const OPEN: &str = "DROP TRIGGER audit_is_not_changed; DROP TRIGGER audit_is_not_cut;";
    let last = "(SELECT max(seq) FROM audit)";
    for (change, refused) in [
        ("UPDATE audit SET line = replace(line, 'alice', 'carol') WHERE seq = 2".to_owned(), false),
        ("UPDATE audit SET line = line || ' ' WHERE seq = 2".to_owned(), false),
        ("DELETE FROM audit WHERE seq = 2".to_owned(), false),
        ("UPDATE audit SET seq = 9 WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 9".to_owned(), false),
        (format!("DELETE FROM audit WHERE seq = {last}"), true),
        ("DELETE FROM audit".to_owned(), true),
        (format!("INSERT INTO audit SELECT {last} + 1, hash, line FROM audit WHERE seq = {last}"), true),
        (format!("UPDATE audit SET hash = zeroblob(32) WHERE seq = {last}"), true),
    ] {
        let place = Place::new();
        let audit = place.open().expect("new");
        for call in ["r1", "r2", "r3"] {
            drive(DONE, call, &audit).expect("written");
        }
        let kept = audit.head();
        place.sql(&format!("{OPEN} {change}")).expect("the operator may");
        // F1: nothing runs without a record, for whoever has it open and for whoever opens it.
        assert_eq!(drive(READ, "r4", &audit).is_err(), refused, "{change}");
        assert_eq!(matches!(place.open(), Err(DatabaseError::Truncated { .. })), refused, "{change}");
        if !refused || !change.contains("hash = zeroblob") {
            assert!(!place.verify(Some(kept)).is_intact(), "{change}");
        }
    }
    // The end cut off together with the head that the file keeps: only a copy of the head tells, and whoever has it open.
    let place = Place::new();
    let audit = place.open().expect("new");
    for call in ["r1", "r2"] {
        drive(DONE, call, &audit).expect("written");
    }
    let kept = audit.head();
    place
        .sql(&format!("{OPEN} DELETE FROM audit WHERE seq > 2; UPDATE audit_head SET (seq, hash) = (SELECT seq, hash FROM audit WHERE seq = 2)"))
        .expect("the operator may");
    assert!(place.verify(None).is_intact());
    assert!(!place.verify(Some(kept)).is_intact());
    assert!(drive(READ, "r3", &audit).is_err());
}

/// J10: against the head of a checkpoint every single change of a byte, deletion, swap, copy and cut of the rows shows, and every fork,
/// also where the head that the file keeps was changed with it.
#[test]
fn j10_every_change_of_a_row_shows_against_a_checkpoint() {
    let place = Place::new();
    let audit = place.open().expect("new");
    for call in ["r1", "r2", "r3"] {
        drive(READ, call, &audit).expect("written");
    }
    drive(DONE, "r4", &audit).expect("written");
    let head = audit.head();
    drop(audit);
    let operator = rusqlite::Connection::open(place.path()).expect("a database");
    operator
        .execute_batch(
            "PRAGMA synchronous = OFF; DROP TRIGGER audit_is_not_changed; DROP TRIGGER audit_is_not_cut; \
             DROP TRIGGER audit_grew; DROP TRIGGER audit_put_aside;",
        )
        .expect("the operator may");
    let mut rows = operator.prepare("SELECT seq, hash, line FROM audit ORDER BY seq").expect("a table");
    let rows: Vec<(i64, [u8; 32], String)> = rows
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .expect("rows")
        .collect::<Result<_, _>>()
        .expect("rows");
    let database = Database::open(place.path()).expect("a database");
    let intact = || {
        let report = SqliteAudit::verify_in(&database, Expected::new(None, Some(head)));
        report.is_ok_and(|report| report.is_intact())
    };
    let put = |rows: &[(i64, [u8; 32], String)]| {
        operator.execute("DELETE FROM audit", []).expect("the operator may");
        for (at, (_, hash, line)) in rows.iter().enumerate() {
            let seq = i64::try_from(at).expect("few") + 1;
            let sql = "INSERT INTO audit (seq, hash, line) VALUES (?1, ?2, ?3)";
            operator.execute(sql, (seq, hash, line)).expect("the operator may");
        }
        // The file's own head goes with it: the checkpoint alone tells.
        if let Some((_, hash, _)) = rows.last() {
            let sql = "UPDATE audit_head SET seq = (SELECT max(seq) FROM audit), hash = ?1";
            operator.execute(sql, [hash]).expect("the operator may");
        }
    };
    assert!(intact());
    for (seq, _, line) in &rows {
        for at in 0..line.len() {
            let mut bytes = line.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(edited) = String::from_utf8(bytes) else { continue };
            operator.execute("UPDATE audit SET line = ?1 WHERE seq = ?2", (&edited, seq)).expect("the operator may");
            assert!(!intact(), "byte {at} of line {seq}");
        }
        operator.execute("UPDATE audit SET line = ?1 WHERE seq = ?2", (line, seq)).expect("the operator may");
    }
    assert!(intact());
    for one in 0..rows.len() {
        let mut deleted = rows.clone();
        deleted.remove(one);
        let mut cut = rows.clone();
        cut.truncate(one);
        let mut changed = vec![deleted, cut];
        for other in 0..rows.len() {
            let mut copied = rows.clone();
            copied.insert(other, rows[one].clone());
            let mut swapped = rows.clone();
            swapped.swap(one, other);
            changed.push(copied);
            if one != other {
                changed.push(swapped);
            }
        }
        for changed in changed {
            put(&changed);
            assert!(!intact(), "{changed:?}");
        }
    }
    // Written anew from some line on, in a chain of its own, and longer.
    for from in 0..rows.len() {
        let mut fork = rows[..from].to_vec();
        let mut end = from.checked_sub(1).map_or(Head::EMPTY, |last| Head {
            seq: from as u64,
            hash: callgate_core::digest::Digest::from_bytes(rows[last].1),
        });
        for at in from..=rows.len() {
            let record = format!(r#"{{"v":1,"kind":"note","at":"2026-01-01T00:00:00.000Z","note":"{at}"}}"#);
            let mut line = String::new();
            end = callgate_std::audit::line::append(&end, &record, &mut line).expect("a record");
            fork.push((0, *end.hash.as_bytes(), line.trim_end().to_owned()));
        }
        put(&fork);
        let report = SqliteAudit::verify_in(&database, Expected::default()).expect("readable");
        assert!(report.is_intact(), "by itself it holds: {report:?}");
        assert!(!intact(), "written anew from line {from} on");
    }
    put(&rows);
    assert!(intact());
}

/// J8: what cannot be written after its effect waits, bounded, and is written once.
#[test]
#[cfg(unix)]
fn j8_a_terminal_record_that_cannot_be_written_comes_later() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |place: &Place, mode| fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).expect("ours");
    let place = Place::new();
    let audit = place.open().expect("new");
    mode(&place, 0o666);
    // F1, J2: what changes something does not start.
    assert_eq!(drive(DONE, "r1", &audit), Err(AuditFault));
    assert_eq!(drive(READ, "r2", &audit), Err(AuditFault));
    assert_eq!(audit.spooled(), 2, "the terminal records, not the intent");
    assert!(audit.flush().is_err());
    mode(&place, 0o600);
    drive(DONE, "r3", &audit).expect("written");
    assert_eq!((audit.spooled(), audit.lost()), (0, 0));
    let (exported, _) = text(&audit);
    let count = |what: &str| exported.matches(what).count();
    assert_eq!([count("\"r1\""), count("\"r2\""), count("\"r3\"")], [1, 1, 2], "{exported}");
    assert!(audit.verify(None).expect("readable").is_intact());
}

/// J2: a sink that is asked for an intent has it on the disk, as another connection sees, when it answers.
#[test]
fn j2_an_intent_is_there_when_it_is_acknowledged() {
    struct Looks<'a>(&'a SqliteAudit, &'a Place);
    impl Audit for Looks<'_> {
        fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
            self.0.record(record)?;
            let other = rusqlite::Connection::open(self.1.path()).expect("a database");
            let last: String = other
                .query_row("SELECT line FROM audit ORDER BY seq DESC LIMIT 1", [], |row| row.get(0))
                .expect("a line");
            assert!(last.contains(&format!("\"kind\":\"{}\"", record.kind.as_str())));
            assert!(record.kind != Kind::Completion);
            Ok(())
        }
    }
    let place = Place::new();
    let audit = place.open().expect("new");
    drive(DONE, "r1", &Looks(&audit, &place)).expect("written");
}

impl Reaped for SqliteAudit {
    fn open(directory: &Path) -> Self {
        Self::open(directory.join("gate.db")).expect("as it was left")
    }

    fn reap(&self, now: Timestamp) -> Vec<LostCall> {
        self.reap(now).expect("usable")
    }

    fn verify(&self) -> Report {
        self.verify(None).expect("readable")
    }

    fn text(&self) -> String {
        text(self).0
    }
}

impl Rotated for SqliteAudit {
    fn file(&self) -> &Path {
        self.database().path()
    }

    fn end(&self) -> Head {
        self.head()
    }

    fn rotate(&self) -> Option<Head> {
        self.rotate(SystemClock::shared().now().wall).expect("usable")
    }

    fn retain(&self, retention: Retention) -> Option<Head> {
        self.retain(retention, SystemClock::shared().now().wall).expect("usable")
    }

    fn verify_with(&self, expected: Expected) -> Report {
        Self::verify_in(self.database(), expected).expect("readable")
    }
}

/// J6, J10: the suite of every log that is rotated.
#[test]
fn j6_the_log_is_rotated() {
    rotation::all::<SqliteAudit>();
}

/// J6: a reading that was begun goes on in the segments that are made meanwhile, page by page, and misses nothing.
#[test]
fn j6_what_is_put_aside_while_it_is_read_is_read_on() {
    let place = Place::new();
    let audit = place.open().expect("new");
    let arguments = format!(r#"{{"rows":[{}1]}}"#, "1234,".repeat(20_000));
    let call = |name: &str| {
        drive_with(READ, name, &arguments, &audit, &Ears::default()).expect("written");
    };
    let rotate = || audit.rotate(SystemClock::shared().now().wall).expect("usable").expect("lines");
    for part in ["a", "b"] {
        (0..4).for_each(|i| call(&format!("{part}{i}")));
        rotate();
    }
    // Of three pages and more, in two segments and the file.
    (0..8).for_each(|i| call(&format!("c{i}")));
    for after in [0, 3, 4, 5, 9, 12, 18] {
        let (whole, end) = text(&audit);
        assert_eq!(whole.lines().count() as u64, end.seq);
        assert!(verify(&mut whole.as_bytes(), Against::Head(end)).expect("readable").is_intact());
        let mut lines = Lines::after(audit.database(), after).expect("readable");
        assert_eq!((lines.head(), lines.last()), (end, end.seq));
        let mut read = String::new();
        for part in ["before", "after"] {
            // Its first page. What comes behind is no part of the reading.
            rotate();
            call(&format!("{part}{after}"));
            lines.read_line(&mut read).expect("readable");
        }
        lines.read_to_string(&mut read).expect("readable");
        let expected = whole.split_inclusive('\n').skip(usize::try_from(after).expect("few"));
        assert!(read == expected.collect::<String>(), "after {after}: {} lines", read.lines().count());
    }
    let all = Retention::new(Some(0), None);
    let mut lines = Lines::all(audit.database()).expect("readable");
    lines.read_line(&mut String::new()).expect("readable");
    audit.retain(all, SystemClock::shared().now().wall).expect("usable").expect("segments");
    let told = lines.read_to_string(&mut String::new()).expect_err("a part of it is gone");
    assert!(told.to_string().contains("were removed while they were read"), "{told}");
    // Whoever begins then begins with what there is.
    let (rest, _) = text(&audit);
    assert!(
        rest.starts_with(&format!("{{\"seq\":{},", 1 + Lines::all(audit.database()).expect("readable").begin().seq))
    );
}

/// J1, J4: the suite of every log that is reaped.
#[test]
fn j1_the_reaper_closes_what_a_dead_process_left_open() {
    reaping::all::<SqliteAudit>();
}
