//! The suite of every log that is rotated: the chain goes through its segments, and whatever is done to them shows (invariants J6, J10).

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use callgate_core::audit::chain::Head;
use callgate_core::time::Timestamp;
use callgate_std::audit::{Expected, ProblemKind, Report, Retention, Segments, verify_file_after};

use crate::driven::{Case, drive};
use crate::reaping::{Deaf, Reaped, Slow};

const CHANGES: Case = Case { end: "done", mutating: true };
const READS: Case = Case { end: "done", mutating: false };

/// A log that is rotated.
pub(crate) trait Rotated: Reaped {
    fn file(&self) -> &Path;
    fn end(&self) -> Head;
    fn rotate(&self) -> Option<Head>;
    fn retain(&self, retention: Retention) -> Option<Head>;
    fn verify_with(&self, expected: Expected) -> Report;
}

fn intact(log: &impl Rotated) -> Report {
    let report = log.verify();
    assert!(report.is_intact(), "{report:?}");
    report
}

/// Three segments and the log itself; the ends of the segments.
fn rotated<L: Rotated>(directory: &Path) -> (L, Vec<Head>) {
    let log = L::open(directory);
    let mut ends = Vec::new();
    for part in 0..3 {
        drive(CHANGES, &format!("w{part}"), &log).expect("written");
        drive(READS, &format!("r{part}"), &log).expect("written");
        let end = log.end();
        assert_eq!(log.rotate(), Some(end));
        ends.push(end);
    }
    drive(CHANGES, "last", &log).expect("written");
    (log, ends)
}

/// J6: the numbers go on, each segment is verified with the others and alone, and a new log is not rotated.
fn j6_the_chain_goes_through_the_segments<L: Rotated>() {
    let directory = tempfile::tempdir().expect("a directory");
    let (log, ends) = rotated::<L>(directory.path());
    let report = intact(&log);
    // Each rotation adds a line of its own.
    assert_eq!((report.lines, report.notes, report.intents, report.terminals), (14, 3, 4, 7));
    assert_eq!((report.lines, report.head, report.removed), (log.end().seq, log.end(), None));
    assert_eq!(report.parts.len(), 4);
    let segments = Segments::of(log.file()).before(u64::MAX).expect("readable");
    let segments: Vec<_> = segments.into_iter().filter(|segment| segment.first <= ends[2].seq).collect();
    assert_eq!(segments.iter().map(|segment| segment.first).collect::<Vec<_>>(), [1, 4, 8]);
    let mut after = Head::EMPTY;
    for (segment, end) in segments.iter().zip(&ends) {
        let alone = verify_file_after(&segment.path, after, Expected::new(Some(*end), None)).expect("readable");
        assert!(alone.is_intact(), "{alone:?}");
        assert_eq!(alone.head, *end);
        after = *end;
    }
    // Whoever has it open meanwhile goes on with it, and so does whoever opens it.
    let other = L::open(directory.path());
    assert!(log.rotate().is_some());
    assert_eq!((log.rotate(), other.rotate()), (None, None), "there is nothing in it yet");
    drive(CHANGES, "other", &other).expect("written");
    assert!(other.rotate().is_some());
    drive(CHANGES, "one", &log).expect("written");
    drop((log, other));
    let log = L::open(directory.path());
    drive(CHANGES, "again", &log).expect("written");
    let report = intact(&log);
    assert_eq!((report.lines, report.terminals, report.open_intent_count), (log.end().seq, 10, 0));
}

/// J10: a segment that is removed, cut, edited in any byte, or that changes places shows, whatever the log itself is.
fn j10_whatever_is_done_to_a_segment_shows<L: Rotated>() {
    let directory = tempfile::tempdir().expect("a directory");
    let (log, ends) = rotated::<L>(directory.path());
    let segments = Segments::of(log.file()).before(ends[2].seq).expect("readable");
    let texts: Vec<_> = segments.iter().map(|segment| fs::read(&segment.path).expect("it is there")).collect();
    let restore =
        || segments.iter().zip(&texts).for_each(|(segment, text)| fs::write(&segment.path, text).expect("ours"));
    // Text segments may have two names; each is written to in place.
    for at in 0..segments.len() {
        let path = &segments[at].path;
        fs::remove_file(path).expect("ours");
        let report = log.verify();
        assert!(!report.is_intact(), "segment {at} removed");
        if at == 0 {
            assert_eq!(report.problems[0].kind, ProblemKind::Missing { up_to: ends[0].seq });
        }
        restore();
        for length in [0, 1, texts[at].len() / 2, texts[at].len() - 1] {
            fs::write(path, &texts[at][..length]).expect("ours");
            assert!(!log.verify().is_intact(), "segment {at} cut to {length}");
        }
        // A line at its end, whole.
        let cut = texts[at][..texts[at].len() - 1].iter().rposition(|byte| *byte == b'\n').expect("lines");
        fs::write(path, &texts[at][..=cut]).expect("ours");
        assert!(!log.verify().is_intact(), "segment {at} without its last line");
        restore();
        for other in at + 1..segments.len() {
            fs::write(path, &texts[other]).expect("ours");
            fs::write(&segments[other].path, &texts[at]).expect("ours");
            assert!(!log.verify().is_intact(), "segments {at} and {other} swapped");
            restore();
        }
    }
    for byte in (0..texts[1].len()).step_by(7) {
        let mut bad = texts[1].clone();
        bad[byte] ^= 1;
        fs::write(&segments[1].path, &bad).expect("ours");
        assert!(!log.verify().is_intact(), "byte {byte}");
    }
    restore();
    intact(&log);
}

/// J6: what retention removes is recorded, so that it is told and no fault; the oldest go first, and none with an open call.
fn j6_what_is_removed_is_recorded<L: Rotated>() {
    let directory = tempfile::tempdir().expect("a directory");
    let (log, ends) = rotated::<L>(directory.path());
    assert_eq!(log.retain(Retention::default()), None, "everything is kept");
    assert_eq!(log.retain(Retention::new(Some(3), Some(u64::MAX))), None);
    assert_eq!(log.retain(Retention::new(Some(2), None)), Some(ends[0]));
    let report = intact(&log);
    assert_eq!((report.removed, report.parts.len()), (Some(ends[0]), 3));
    assert_eq!(log.retain(Retention::new(Some(2), None)), None, "once");
    // More that is removed than the log says shows.
    let segments = Segments::of(log.file());
    let second = segments.path_of(ends[0].seq + 1);
    let text = fs::read(&second).expect("it is there");
    fs::remove_file(&second).expect("ours");
    let report = log.verify();
    assert_eq!(report.problems[0].kind, ProblemKind::Missing { up_to: ends[1].seq });
    fs::write(&second, text).expect("ours");
    // A checkpoint or a head of what is here holds; one of what is gone says so.
    let checkpoint = |head| log.verify_with(Expected::new(None, Some(head)));
    assert!(checkpoint(ends[1]).is_intact() && checkpoint(ends[0]).is_intact());
    assert!(!checkpoint(Head { seq: 1, hash: ends[0].hash }).is_intact());
    assert!(!checkpoint(Head { hash: ends[1].hash, ..ends[0] }).is_intact());
    // By age, all of them; the log itself stays.
    assert_eq!(log.retain(Retention::new(None, Some(0))), Some(ends[2]));
    let report = intact(&log);
    assert_eq!((report.removed, report.parts.len()), (Some(ends[2]), 1));
    // Removed in part: whoever removed was killed. What is left is verified, and goes the next time.
    drive(CHANGES, "more", &log).expect("written");
    assert!(log.rotate().is_some());
    assert_eq!(intact(&log).parts.len(), 2);
}

fn j4_a_segment_with_an_open_call_is_kept<L: Rotated>() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = L::open(directory.path());
    drive(READS, "r0", &log).expect("written");
    let first = log.rotate();
    drive(CHANGES, "open", &Deaf(&log)).expect("written");
    log.rotate();
    drive(READS, "r1", &log).expect("written");
    let third = log.rotate();
    let all = Retention::new(Some(0), None);
    assert_eq!(log.retain(all), first, "the second has an open call");
    assert_eq!(log.retain(all), None);
    drop(log);
    // Closed by another process, from a segment.
    let log = L::open(directory.path());
    let report = intact(&log);
    assert_eq!((report.open_intent_count, report.parts.len()), (1, 3));
    let lost = log.reap(Timestamp::from_unix_millis(u64::MAX));
    assert_eq!(lost.iter().map(|call| call.request_id.as_str()).collect::<Vec<_>>(), ["open"]);
    drive(CHANGES, "open", &Slow(&log)).expect("written");
    assert_eq!(log.retain(all), third);
    let report = intact(&log);
    assert_eq!((report.terminals, report.late, report.open_intent_count), (1, 1, 0));
}

/// J6, J9: whoever writes while others rotate and remove loses nothing, and nothing is twice.
fn j6_writers_and_rotations_at_once<L: Rotated + Sync>() {
    let directory = tempfile::tempdir().expect("a directory");
    let logs = [L::open(directory.path()), L::open(directory.path()), L::open(directory.path())];
    std::thread::scope(|scope| {
        for (writer, log) in logs.iter().enumerate().take(2) {
            scope.spawn(move || {
                for call in 0..20 {
                    drive(CHANGES, &format!("w{writer}.{call}"), log).expect("written");
                }
            });
        }
        for log in &logs[1..] {
            scope.spawn(move || (0..5).filter(|_| log.rotate().is_some()).count());
        }
    });
    let report = intact(&logs[0]);
    assert_eq!((report.intents, report.terminals, report.open_intent_count), (40, 40, 0));
    assert_eq!(report.lines, 80 + report.notes);
}

/// J6, J10: whoever verifies while others rotate and remove finds nothing wrong.
fn j6_verified_while_segments_come_and_go<L: Rotated + Sync>() {
    let directory = tempfile::tempdir().expect("a directory");
    let [log, other] = [L::open(directory.path()), L::open(directory.path())];
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for call in 0..40 {
                drive(READS, &format!("r{call}"), &other).expect("written");
                assert!(other.rotate().is_some());
                other.retain(Retention::new(Some(call % 3), None));
            }
            over.store(true, Ordering::Release);
        });
        while !over.load(Ordering::Acquire) {
            intact(&log);
        }
    });
    assert!(intact(&log).removed.is_some());
}

/// All of it.
pub(crate) fn all<L: Rotated + Sync>() {
    j6_the_chain_goes_through_the_segments::<L>();
    j10_whatever_is_done_to_a_segment_shows::<L>();
    j6_what_is_removed_is_recorded::<L>();
    j4_a_segment_with_an_open_call_is_kept::<L>();
    j6_writers_and_rotations_at_once::<L>();
    j6_verified_while_segments_come_and_go::<L>();
}
