//! Observers are told of every end, and change nothing.

use std::sync::{Arc, Mutex};

use callgate_core::redact::Redaction;
use callgate_core::time::Now;
use callgate_std::audit::MemoryAudit;
use callgate_std::observer::{Event, EventKind, Observers};

use crate::driven::{ARGUMENTS, CANARY, CASES, Case, Ears, drive_with};

type Heard = Arc<Mutex<Vec<String>>>;

/// Drives `case` and tells `observers`, as a gate does.
fn tell(case: Case, observers: &Observers) {
    let executing = |subject: &callgate_core::policy::Subject<'_>| {
        if !matches!(case.end, "vetoed" | "interceptor_failed" | "answered" | "answer_invalid" | "audit_unavailable") {
            observers.executing(subject, Redaction::DEFAULT, Now::default());
        }
    };
    let ended = |record: &callgate_core::audit::Record<'_>| observers.ended(record);
    let ears = Ears { subject: Some(&executing), terminal: Some(&ended), ..Ears::default() };
    drive_with(case, "r1", ARGUMENTS, &MemoryAudit::new(), &ears).expect("memory writes");
}

/// An observer that notes what `text` says of each event.
fn note<F>(heard: &Heard, text: F) -> impl Fn(&Event<'_>) + Send + Sync + use<F>
where
    F: Fn(&Event<'_>) -> String + Send + Sync + 'static,
{
    let heard = Arc::clone(heard);
    move |event: &Event<'_>| heard.lock().expect("no test panics here").push(text(event))
}

#[test]
fn every_end_has_its_event() {
    for case in CASES {
        let heard = Heard::default();
        let observers =
            Observers::new().on("tool.*", note(&heard, |event| event.name().to_owned())).expect("a pattern");
        tell(*case, &observers);
        let expected: &[_] = match case.end {
            "cancelled" if case.mutating => &["tool.executing", "tool.failed"],
            "done" => &["tool.executing", "tool.executed"],
            "answered" => &["tool.executed"],
            "failed" | "panicked" | "timed_out" | "output_invalid" => &["tool.executing", "tool.failed"],
            "asked" => &["tool.asked"],
            "planned" => &["tool.planned"],
            "accepted" => &["tool.executing", "tool.accepted"],
            _ => &["tool.refused"],
        };
        assert_eq!(*heard.lock().expect("no panic"), expected, "{}", case.end);
    }
}

#[test]
fn an_event_tells_what_happened() {
    let heard = Heard::default();
    let text = |event: &Event<'_>| {
        format!(
            "{} {} {} {:?} {} {} {} {}",
            event.name(),
            event.tool,
            event.end,
            event.code.map(callgate_core::code::Code::as_str),
            event.effect,
            event.took_ns,
            event.cache_served,
            event.args().map_or_else(String::new, ToString::to_string),
        )
    };
    let observers = Observers::new().on("tool.executed", note(&heard, text)).expect("a pattern");
    let observers = observers.on("tool.refused", note(&heard, text)).expect("a pattern");
    for end in ["answered", "done", "vetoed", "malformed"] {
        tell(Case { end, mutating: false }, &observers);
    }
    let heard = heard.lock().expect("no panic");
    let args = r#"{"path":"notes.txt","password":"***REDACTED***","n":[1,{"token":"***REDACTED***"}]}"#;
    assert_eq!(heard[0], format!("tool.executed fs.write answered None none 5000000 true {args}"));
    assert_eq!(heard[1], format!("tool.executed fs.write done None done 5000000 false {args}"));
    assert_eq!(heard[2], format!(r#"tool.refused fs.write vetoed Some("VETOED") none 5000000 false {args}"#));
    assert_eq!(heard[3], r#"tool.refused fs.write malformed Some("VALIDATION_ERROR") none 5000000 false "#);
}

/// L2, R5: nothing that an observer can get at holds a secret of the call.
#[test]
fn l2_no_event_shows_a_secret() {
    for case in CASES {
        let heard = Heard::default();
        let all = |event: &Event<'_>| {
            let shown = |text: Option<&dyn std::fmt::Display>| text.map_or_else(String::new, ToString::to_string);
            format!("{event:?} {} {}", shown(event.args()), shown(event.detail()))
        };
        let observers = Observers::new().on("*.*", note(&heard, all)).expect("a pattern");
        tell(*case, &observers);
        for text in &*heard.lock().expect("no panic") {
            assert!(!text.contains(CANARY), "{}: {text}", case.end);
        }
    }
}

#[test]
fn e4_an_observer_that_panics_silences_nobody() {
    let heard = Heard::default();
    let observers = Observers::new()
        .on_with_priority("tool.*", 9, |_: &Event<'_>| panic!("planted"))
        .and_then(|observers| observers.on("tool.executed", note(&heard, |event| event.end.to_owned())))
        .expect("patterns");
    tell(Case { end: "done", mutating: true }, &observers);
    tell(Case { end: "done", mutating: false }, &observers);
    assert_eq!(*heard.lock().expect("no panic"), ["done", "done"]);
}

#[test]
fn priority_then_exact_names_then_order_of_addition() {
    let heard = Heard::default();
    let say = |text: &'static str| note(&heard, move |_| text.to_owned());
    let observers = Observers::new()
        .on("tool.*", say("pattern 1"))
        .and_then(|all| all.on("tool.executed", say("exact 1")))
        .and_then(|all| all.on_with_priority("*.executed", -1, say("low")))
        .and_then(|all| all.on("tool.executed", say("exact 2")))
        .and_then(|all| all.on("*.*", say("pattern 2")))
        .and_then(|all| all.on_with_priority("tool.*", 100, say("high")))
        .expect("patterns");
    tell(Case { end: "answered", mutating: false }, &observers);
    assert_eq!(*heard.lock().expect("no panic"), ["high", "exact 1", "exact 2", "pattern 1", "pattern 2", "low"]);
}

#[test]
fn names_are_unique() {
    let names: std::collections::HashSet<_> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(names.len(), EventKind::ALL.len());
}
