//! Interceptors: order, first word, and what a bad one does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate_core::policy::Subject;
use callgate_std::audit::MemoryAudit;
use callgate_std::clock::ManualClock;
use callgate_std::interceptors::{Interception, Interceptor, Interceptors};

use crate::driven::{ARGUMENTS, Case, Ears, drive_with};

type Verdict = Interception<u32, Arc<str>>;

struct Says<F>(F);

impl<F: Fn(&Subject<'_>) -> Verdict> Interceptor<u32, Arc<str>> for Says<F> {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        (self.0)(subject)
    }
}

/// What `interceptors` say of a call that came so far.
fn judge(interceptors: &Interceptors<u32>) -> Verdict {
    let verdict = Mutex::new(None);
    let ears = Ears {
        subject: Some(&|subject| *verdict.lock().expect("no panic") = Some(interceptors.judge(subject))),
        ..Ears::default()
    };
    drive_with(Case { end: "done", mutating: false }, "r1", ARGUMENTS, &MemoryAudit::new(), &ears).expect("written");
    verdict.into_inner().expect("no panic").expect("it was judged")
}

fn failed(verdict: &Verdict) -> &str {
    match verdict {
        Interception::Failed(text) => text,
        other => panic!("not a failure: {other:?}"),
    }
}

#[test]
fn the_first_word_counts_by_priority_then_order() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str, verdict: Verdict| {
        let asked = Arc::clone(&asked);
        Says(move |_: &Subject<'_>| {
            asked.lock().expect("no panic").push(name);
            verdict.clone()
        })
    };
    let interceptors = Interceptors::new()
        .and("b", note("b", Interception::Continue))
        .and("c", note("c", Interception::Answer(7)))
        .and("d", note("d", Interception::Veto("too late".into())))
        .and_with_priority("low", -5, note("low", Interception::Continue))
        .and_with_priority("a", 5, note("a", Interception::Continue));
    assert_eq!(judge(&interceptors), Interception::Answer(7));
    assert_eq!(*asked.lock().expect("no panic"), ["a", "b", "c"]);
    assert_eq!(judge(&Interceptors::new()), Interception::Continue);
}

#[test]
fn e3_a_panic_or_a_failure_vetoes() {
    let interceptors = Interceptors::new()
        .and("broken", Says(|_: &Subject<'_>| panic!("planted {}", 1)))
        .and("cache", Says(|_: &Subject<'_>| Interception::Answer(7)));
    for _ in 0..2 {
        assert_eq!(failed(&judge(&interceptors)), "interceptor broken panicked: planted 1");
    }
    let interceptors = Interceptors::new().and("db", Says(|_: &Subject<'_>| Interception::Failed("no answer".into())));
    assert_eq!(failed(&judge(&interceptors)), "interceptor db failed: no answer");
}

#[test]
fn e3_a_late_answer_is_no_answer() {
    let clock = ManualClock::new();
    for (took_ms, verdict, expected) in [
        (100, Interception::Continue, Interception::Continue),
        (100, Interception::Answer(7), Interception::Answer(7)),
        (
            101,
            Interception::Continue,
            Interception::Failed("interceptor slow took more than the 100 ms that it has".into()),
        ),
        (
            101,
            Interception::Answer(7),
            Interception::Failed("interceptor slow took more than the 100 ms that it has".into()),
        ),
        (101, Interception::Veto("no".into()), Interception::Veto("no".into())),
    ] {
        let stepped = clock.clone();
        let slow = Says(move |_: &Subject<'_>| {
            stepped.advance(Duration::from_millis(took_ms));
            verdict.clone()
        });
        let interceptors = Interceptors::with(clock.shared(), 100).and("slow", slow);
        assert_eq!(judge(&interceptors), expected, "after {took_ms} ms");
    }
}

/// K4, E1: what an interceptor sees are the arguments that will run.
#[test]
fn e1_an_interceptor_sees_the_call() {
    let interceptors = Interceptors::new().and(
        "look",
        Says(|subject: &Subject<'_>| {
            assert_eq!(subject.spec.name, "fs.write");
            assert_eq!(
                subject.args.get("path").and_then(callgate_core::json::Value::as_text),
                Some("notes.txt".into())
            );
            Interception::Veto(subject.caller.request_id.into())
        }),
    );
    assert_eq!(judge(&interceptors), Interception::Veto("r1".into()));
}
