//! J10, R6: whatever is done to a log, the verifier sees it, given the anchored head.

use std::fmt::Write as _;

use callgate_core::audit::chain::{ChainError, Head};
use callgate_std::audit::{Against, MemoryAudit, ProblemKind, Report, verify};

use crate::driven::{CASES, Case, drive};

/// A small log: its lines and its head.
fn small_log() -> (Vec<String>, Head) {
    let audit = MemoryAudit::new();
    for (i, end) in ["done", "denied", "not_found"].into_iter().enumerate() {
        let mutating = end == "done";
        drive(Case { end, mutating }, &format!("r{i}"), &audit).expect("there is room");
    }
    (audit.lines(), audit.head())
}

fn text<S: AsRef<str>>(lines: &[S]) -> Vec<u8> {
    lines.iter().fold(String::new(), |text, line| text + line.as_ref() + "\n").into_bytes()
}

fn check(log: &[u8], head: Head) -> Report {
    verify(&mut &*log, Against::Head(head)).expect("memory can be read")
}

fn kinds(report: &Report) -> Vec<ProblemKind> {
    report.problems.iter().map(|problem| problem.kind).collect()
}

#[test]
fn an_untouched_log_is_intact_and_counted() {
    let (lines, head) = small_log();
    let report = check(&text(&lines), head);
    assert!(report.is_intact(), "{report:?}");
    assert_eq!((report.lines, report.intents, report.terminals, report.notes), (4, 1, 3, 0));
    assert_eq!((report.head, report.beyond_anchor, report.open_intent_count), (head, 0, 0));
    assert!(check(b"", Head::EMPTY).is_intact());
}

/// Every byte of the log, changed in each of three ways, left out, or doubled.
#[test]
fn j10_every_changed_byte_shows() {
    let (lines, head) = small_log();
    let good = text(&lines);
    let see = |bad: &[u8], what: &str, at: usize| {
        let report = check(bad, head);
        let broken = report.first_broken().unwrap_or_else(|| panic!("byte {at} {what} does not show"));
        let line = good[..at].iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        // A line break that is doubled adds a line behind its own.
        assert!(
            broken <= line + u64::from(what == "doubled" && good[at] == b'\n'),
            "byte {at} {what} is in line {line} and shows in line {broken}"
        );
    };
    for at in 0..good.len() {
        for bit in [1, 0x20, 0x80] {
            let mut bad = good.clone();
            bad[at] ^= bit;
            see(&bad, "changed", at);
        }
        let mut bad = good.clone();
        bad.remove(at);
        see(&bad, "removed", at);
        let mut bad = good.clone();
        bad.insert(at, good[at]);
        see(&bad, "doubled", at);
    }
}

#[test]
fn j10_every_truncation_shows_against_the_head() {
    let (lines, head) = small_log();
    let good = text(&lines);
    for length in 0..good.len() {
        let report = check(&good[..length], head);
        let cut = kinds(&report).iter().any(|kind| matches!(kind, ProblemKind::Truncated { anchored: 4 }));
        assert!(cut, "cut to {length} bytes: {report:?}");
    }
    // Without a head there is nothing to compare with, and the report says that instead of nothing.
    let alone = verify(&mut &text(&lines[..2])[..], Against::Nothing).expect("memory can be read");
    assert_eq!(kinds(&alone), [ProblemKind::NoAnchor]);
    let damaged = verify(&mut &good[..], Against::Damaged).expect("memory can be read");
    assert_eq!(kinds(&damaged), [ProblemKind::DamagedAnchor]);
}

#[test]
fn j10_every_deletion_swap_and_copy_of_lines_shows() {
    let (lines, head) = small_log();
    for one in 0..lines.len() {
        let mut bad = lines.clone();
        bad.remove(one);
        assert!(!check(&text(&bad), head).is_intact(), "line {one} removed");
        for other in 0..=lines.len() {
            let mut bad = lines.clone();
            bad.insert(other, lines[one].clone());
            assert!(!check(&text(&bad), head).is_intact(), "line {one} copied to {other}");
            if other < lines.len() && other != one {
                let mut bad = lines.clone();
                bad.swap(one, other);
                assert!(!check(&text(&bad), head).is_intact(), "lines {one} and {other} swapped");
            }
        }
    }
}

/// R6: a line that is written anew with a hash that fits it breaks the link behind it; all of them written anew break
/// away from the anchor.
#[test]
fn r6_a_log_that_is_written_anew_shows() {
    let (lines, head) = small_log();
    let forge = |from: Head, end: &str| {
        let mut line = String::new();
        let write = |object: &mut callgate_core::json::Object<'_>| {
            object.number("v", 1)?;
            object.text("kind", "terminal")?;
            object.text("end", end)
        };
        let next = from.append_with(write, &mut line).expect("a string takes all");
        (line, next)
    };
    let mut from = Head::EMPTY;
    for at in 0..lines.len() {
        let mut bad = lines.clone();
        bad[at] = forge(from, "forged").0;
        let report = check(&text(&bad), head);
        let expected =
            if at + 1 == lines.len() { ProblemKind::Forked } else { ProblemKind::Chain(ChainError::BrokenLink) };
        assert_eq!(kinds(&report), [expected], "line {at}");
        from = from.verify(&lines[at]).expect("a good line");
    }
    let (mut bad, mut from) = (Vec::new(), Head::EMPTY);
    for _ in 0..lines.len() {
        let (line, next) = forge(from, "forged");
        (from, _) = (next, bad.push(line));
    }
    assert_eq!(kinds(&check(&text(&bad), head)), [ProblemKind::Forked]);
    // Lines that are added behind the head follow it well: they are counted, because nobody vouches for them.
    let mut longer = lines;
    longer.push(forge(head, "added").0);
    let report = check(&text(&longer), head);
    assert_eq!((report.is_intact(), report.beyond_anchor), (true, 1));
}

#[test]
fn one_fault_is_told_once_and_with_its_line() {
    let (lines, head) = small_log();
    let mut edited = lines.clone();
    edited[1] = edited[1].replace("alice", "mallory");
    let report = check(&text(&edited), head);
    assert_eq!((kinds(&report), report.first_broken()), (vec![ProblemKind::Chain(ChainError::Edited)], Some(2)));
    let mut two = edited.clone();
    two[3] = two[3].replace("alice", "mallory");
    assert_eq!(check(&text(&two), head).problem_count, 2);
    let mut gap = lines;
    gap.remove(1);
    let report = check(&text(&gap), head);
    assert_eq!(kinds(&report), [ProblemKind::Chain(ChainError::OutOfSequence { expected: 2 })]);
    assert_eq!(report.problems[0].line, 2);
}

#[test]
fn n6_a_line_of_another_version_is_not_guessed_at() {
    let write = |members: &str| {
        let mut line = String::new();
        let next = Head::EMPTY.append_with(|object| object.raw("v", |out| out.write_str(members)), &mut line);
        check(format!("{line}\n").as_bytes(), next.expect("a string takes all"))
    };
    assert!(write("1,\"kind\":\"note\"").is_intact());
    assert_eq!(kinds(&write("2,\"kind\":\"terminal\"")), [ProblemKind::UnknownVersion(2)]);
    assert_eq!(kinds(&write("2,\"what\":{}")), [ProblemKind::UnknownVersion(2)]);
    assert_eq!(kinds(&write("1,\"kind\":\"rumour\"")), [ProblemKind::Unreadable]);
    assert_eq!(kinds(&write("\"1\",\"kind\":\"note\"")), [ProblemKind::Unreadable]);
    assert_eq!(kinds(&write("1,\"kind\":\"note\",\"kind\":\"intent\"")), [ProblemKind::Unreadable]);
}

/// J4: an intent without a terminal record is found, whatever else is in the log.
#[test]
fn j4_intents_without_an_end_are_found() {
    let audit = MemoryAudit::new();
    for (i, case) in CASES.iter().enumerate() {
        drive(*case, &format!("r{i}"), &audit).expect("there is room");
    }
    let lines = audit.lines();
    let mut head = Head::EMPTY;
    let mut log = String::new();
    let mut intents = Vec::new();
    // The same records without those that end a mutating call, chained anew.
    for (i, line) in lines.iter().enumerate() {
        let started = line.contains("\"kind\":\"intent\"");
        let ends = i > 0 && lines[i - 1].contains("\"kind\":\"intent\"");
        if ends {
            continue;
        }
        let members = line.split_once("\"v\":").and_then(|(_, rest)| rest.rsplit_once(",\"hash\":")).expect("a line").0;
        head = head
            .append_with(|object| object.raw("v", |out| out.write_str(members)), &mut log)
            .expect("a string takes all");
        log.push('\n');
        if started {
            intents.push(head.seq);
        }
    }
    let report = check(log.as_bytes(), head);
    assert!(report.is_intact(), "{report:?}");
    assert!(intents.len() > 2);
    assert_eq!(report.open_intents.iter().map(|intent| intent.line).collect::<Vec<_>>(), intents);
    assert!(report.open_intents.iter().all(|intent| intent.tool == "fs.write" && intent.request_id.starts_with('r')));
}

#[test]
fn a_line_without_end_is_passed_over() {
    let (lines, head) = small_log();
    let mut log = text(&lines);
    let long = vec![b'x'; 17 << 20];
    log.splice(0..0, long.into_iter().chain(*b"\n"));
    let report = check(&log, head);
    assert_eq!((kinds(&report), report.lines), (vec![ProblemKind::TooLong], 5));
    let mut text = String::new();
    for problem in &report.problems {
        writeln!(text, "{problem}").expect("a string takes all");
    }
    assert!(text.starts_with("line 1: "));
}
