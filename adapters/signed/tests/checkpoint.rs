//! J10: what a signed checkpoint shows of a log.
#![cfg(test)]

use std::io::Cursor;

use callgate_core::audit::chain::Head;
use callgate_core::time::Timestamp;
use callgate_signed::{Checkpoint, CheckpointError, SecretKey, VerifyingKey};
use callgate_std::audit::{Against, line, verify};

fn key(seed: u8) -> (SecretKey, VerifyingKey) {
    let secret = SecretKey::from_seed(&[seed; 32]).expect("a key");
    let public = VerifyingKey::parse(&secret.public().expect("a key")).expect("a key");
    (secret, public)
}

/// A log of so many notes, as its lines, and its head after each.
fn log(count: usize, other: bool) -> (Vec<String>, Vec<Head>) {
    let mut heads = vec![Head::EMPTY];
    let mut lines = Vec::new();
    for i in 0..count {
        let mark = if other { "other" } else { "" };
        let text = format!(r#"{{"v":1,"kind":"note","at":"2026-01-01T00:00:00.000Z","note":"{mark}{i}"}}"#);
        let mut out = String::new();
        let head = line::append(heads.last().expect("one"), &text, &mut out).expect("a record");
        lines.push(out);
        heads.push(head);
    }
    (lines, heads)
}

fn is_intact(lines: &[String], head: Head) -> bool {
    let report = verify(&mut Cursor::new(lines.concat()), Against::Head(head)).expect("readable");
    report.is_intact()
}

fn checkpoint(head: Head) -> Checkpoint {
    Checkpoint::new("gate-1", head, Timestamp::from_unix_millis(1_767_225_600_000)).expect("a good name")
}

#[test]
fn j6_a_checkpoint_is_read_back_by_its_key_alone() {
    let (secret, public) = key(1);
    let (_, heads) = log(3, false);
    let made = checkpoint(heads[3]);
    let text = made.sign(&secret).expect("signed");
    assert_eq!(Checkpoint::read(&text, "gate-1", &public), Ok(made.clone()));
    assert_eq!(Checkpoint::read(&text, "gate-2", &public), Err(CheckpointError::OtherLog));
    assert_eq!(Checkpoint::read(&text, "gate-1", &key(2).1), Err(CheckpointError::BadSignature));
    let newer = text.replace("checkpoint v1", "checkpoint v2");
    assert_eq!(Checkpoint::read(&newer, "gate-1", &public), Err(CheckpointError::UnknownVersion), "N6");
    for bad in ["", "x", "callgate checkpoint v1\n\n"] {
        assert!(Checkpoint::read(bad, "gate-1", &public).is_err());
    }
    for name in ["", "a b", "a\nseq 9", "ä", &"x".repeat(129)] {
        assert_eq!(Checkpoint::new(name, heads[0], Timestamp::default()), Err(CheckpointError::BadName));
    }
}

/// Every byte of a checkpoint counts.
#[test]
fn j10_no_byte_of_a_checkpoint_can_be_changed() {
    let (secret, public) = key(1);
    let (_, heads) = log(2, false);
    let text = checkpoint(heads[2]).sign(&secret).expect("signed");
    let payload = text.find("\n\n").expect("an empty line");
    for at in 0..payload {
        let mut changed = text.clone().into_bytes();
        changed[at] ^= 1;
        let Ok(changed) = String::from_utf8(changed) else { continue };
        assert!(Checkpoint::read(&changed, "gate-1", &public).is_err(), "byte {at}");
    }
}

/// Against the last checkpoint every single edit, deletion, insertion, swap and truncation shows, and every fork: exhaustively on a
/// small log, with the chain written anew by whoever changes it.
#[test]
fn j10_every_change_shows_against_the_last_checkpoint() {
    let (secret, public) = key(1);
    let (lines, heads) = log(5, false);
    let (others, _) = log(6, true);
    let kept = checkpoint(heads[5]).sign(&secret).expect("signed");
    let head = Checkpoint::read(&kept, "gate-1", &public).expect("ours").head();
    assert!(is_intact(&lines, head));
    // A log that went on is one of which more is known.
    assert!(is_intact(&log(6, false).0, head));
    // The bytes alone.
    let whole = lines.concat();
    for at in 0..whole.len() {
        let mut edited = whole.clone().into_bytes();
        edited[at] ^= 1;
        let report = verify(&mut Cursor::new(edited), Against::Head(head)).expect("readable");
        assert!(!report.is_intact(), "byte {at}");
    }
    // Truncation, also at a line's end; all of it.
    for count in 0..lines.len() {
        assert!(!is_intact(&lines[..count], head), "cut off after {count}");
    }
    // The contents without what links them, linked anew after each change.
    let content = |line: &String| {
        let value: serde_json::Value = serde_json::from_str(line).expect("a line");
        value["note"].as_str().expect("a note").to_owned()
    };
    let contents: Vec<String> = lines.iter().map(content).collect();
    let chained = |contents: &[String]| {
        let mut head = Head::EMPTY;
        let mut lines = Vec::new();
        for note in contents {
            let text = format!(r#"{{"v":1,"kind":"note","at":"2026-01-01T00:00:00.000Z","note":"{note}"}}"#);
            let mut out = String::new();
            head = line::append(&head, &text, &mut out).expect("a record");
            lines.push(out);
        }
        lines
    };
    assert_eq!(chained(&contents), lines);
    for at in 0..contents.len() {
        let mut deleted = contents.clone();
        deleted.remove(at);
        let mut edited = contents.clone();
        edited[at] = "edited".to_owned();
        let mut inserted = contents.clone();
        inserted.insert(at, "inserted".to_owned());
        for changed in [deleted, edited, inserted] {
            assert!(!is_intact(&chained(&changed), head), "{changed:?}");
        }
        for other in at + 1..contents.len() {
            let mut swapped = contents.clone();
            swapped.swap(at, other);
            assert!(!is_intact(&chained(&swapped), head), "{swapped:?}");
        }
    }
    assert!(!is_intact(&others, head), "a log that was written anew, and is longer");
}
