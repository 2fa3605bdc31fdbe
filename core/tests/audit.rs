//! Lines of a log and what they are chained by; records of decisions.
#![cfg(test)]

use callgate_core::audit::chain::{ChainError, Head};
use callgate_core::audit::{Decision, Kind, Record};
use callgate_core::code::Code;
use callgate_core::context::{CallContext, Scopes};
use callgate_core::digest::Digest;
use callgate_core::redact::Redaction;
use callgate_core::time::{Instant, Now, Timestamp};

const TICKET: Digest = Digest::from_bytes([0x11; 32]);
const AT: Now = Now { monotonic: Instant::from_nanos(5), wall: Timestamp::from_unix_millis(60_000) };

fn decision() -> Decision<'static> {
    Decision {
        at: AT,
        by: CallContext::web("r-2", Some("boss"), Scopes::new("approve")),
        tool: "pay",
        arguments: Some(Digest::from_bytes([0x22; 32])),
        policy: None,
        ticket: Some(TICKET),
        operation: None,
        what: "approved",
        refused: None,
        note: None,
        redaction: Redaction::DEFAULT,
    }
}

fn json(record: &Record<'_>) -> String {
    let mut text = String::new();
    record.write_json(&mut text).expect("a string takes all");
    text
}

fn line(head: &Head, record: &Record<'_>) -> (String, Head) {
    let mut text = String::new();
    let next = head.append(record, &mut text).expect("a string takes all");
    (text, next)
}

/// A2, J7: a decision says who decided what about which ticket, and why it did not count; the note is redacted.
#[test]
fn a2_a_record_of_a_decision_says_who_decided_what() {
    let taken = json(&Record::decision(&decision()));
    assert_eq!(
        taken,
        format!(
            concat!(
                r#"{{"v":1,"kind":"decision","at":"1970-01-01T00:01:00.000Z","request_id":"r-2","principal":"boss","channel":"web","#,
                r#""scopes":["approve"],"mode":"execute","tool":"pay","args_digest":"{}","station":"confirm","end":"approved","#,
                r#""effect":"none","ticket":"{}"}}"#
            ),
            "22".repeat(32),
            "11".repeat(32)
        )
    );
    let refused = Decision {
        refused: Some((Code::Forbidden, "own_request")),
        note: Some("it is fine, password=hunter2"),
        ..decision()
    };
    let record = Record::decision(&refused);
    let text = json(&record);
    assert!(text.contains(r#""code":"FORBIDDEN""#) && text.contains(r#""check":"own_request""#), "{text}");
    assert!(text.contains(r#""detail":"it is fine, password=***REDACTED***""#), "L2: {text}");
    assert_eq!(
        record.redacted_detail().map(|detail| detail.to_string()).as_deref(),
        Some("it is fine, password=***REDACTED***")
    );
    assert!(record.redacted_args().is_none());
    // A note that says nothing is none.
    assert_eq!(json(&Record::decision(&Decision { note: Some(""), ..decision() })), taken);
    for (shown, telling) in [(format!("{refused:?}"), "own_request"), (format!("{record:?}"), "r-2")] {
        assert!(shown.contains(telling) && shown.contains("approved") && !shown.contains("hunter2"), "{shown}");
    }
}

/// J2, J8: what must not happen without its record is durable first; an end is owed when it could not be written.
#[test]
fn j2_intents_and_decisions_come_first() {
    for (kind, first) in
        [(Kind::Intent, true), (Kind::Decision, true), (Kind::Terminal, false), (Kind::Completion, false)]
    {
        assert_eq!(kind.comes_first(), first, "{kind:?}");
    }
    // How long it took is told of what is over, and of nothing that has yet to begin.
    let mut record = Record::decision(&decision());
    (record.took_ns, record.kind) = (1_999_999, Kind::Terminal);
    assert!(json(&record).ends_with(r#","took_us":1999}"#), "{}", json(&record));
    record.kind = Kind::Intent;
    assert!(!json(&record).contains("took_us"));
}

/// J10: a line is good in its place alone: any change, omission, repetition or swap is told, and what kind it is.
#[test]
fn j10_a_line_is_good_in_its_place_alone() {
    let record = Record::decision(&decision());
    let (first, one) = line(&Head::EMPTY, &record);
    let (second, two) = line(&one, &record);
    assert_eq!((one.seq, two.seq), (1, 2));
    assert!(first.starts_with(&format!(r#"{{"seq":1,"prev":"{}","v":1,"#, "00".repeat(32))), "{first}");
    assert!(second.starts_with(&format!(r#"{{"seq":2,"prev":"{}","v":1,"#, one.hash)), "{second}");
    assert!(first.ends_with(&format!(r#","hash":"{}"}}"#, one.hash)), "{first}");
    assert_eq!((Head::EMPTY.verify(&first), one.verify(&second)), (Ok(one), Ok(two)));
    assert_eq!(Head::EMPTY.verify(&second), Err(ChainError::OutOfSequence { expected: 1 }));
    assert_eq!(one.verify(&first), Err(ChainError::OutOfSequence { expected: 2 }));
    let other = Head { hash: TICKET, ..one };
    assert_eq!(other.verify(&second), Err(ChainError::BrokenLink));
    for at in 0..first.len() {
        let mut bytes = first.clone().into_bytes();
        bytes[at] ^= 1;
        let Ok(edited) = String::from_utf8(bytes) else { continue };
        assert!(Head::EMPTY.verify(&edited).is_err(), "{edited}");
        assert!(Head::EMPTY.verify(first.get(..at).unwrap_or_default()).is_err());
    }
    let edited = first.replace("pay", "pax");
    assert_eq!(Head::EMPTY.verify(&edited), Err(ChainError::Edited));
    for text in ["", "{}", "\"}", &"0".repeat(66), &format!("{first} "), &first.to_uppercase()] {
        assert_eq!(Head::EMPTY.verify(text), Err(ChainError::NotALine), "{text}");
    }
}

/// J6: the last number is the last line. There is none behind it, and nothing begins anew.
#[test]
fn j6_a_log_has_a_last_number() {
    let record = Record::decision(&decision());
    let last = Head { seq: u64::MAX - 1, hash: TICKET };
    let (text, full) = line(&last, &record);
    assert_eq!((full.seq, last.verify(&text)), (u64::MAX, Ok(full)));
    assert!(full.append(&record, &mut String::new()).is_err());
    assert_eq!(full.verify(&text), Err(ChainError::NotALine));
}

/// A host's own lines are linked as records are.
#[test]
fn j10_a_checkpoint_is_a_line_like_any_other() {
    let mut text = String::new();
    let next = Head::EMPTY.append_with(|line| line.text("kind", "checkpoint"), &mut text).expect("a string takes all");
    assert_eq!(Head::EMPTY.verify(&text), Ok(next));
    assert!(text.contains(r#","kind":"checkpoint","hash":""#), "{text}");
    assert!(Head::EMPTY.append_with(|_| Err(std::fmt::Error), &mut text).is_err());
}
