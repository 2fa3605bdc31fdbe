//! Subjects that break the harness and not the vectors: each fault is told for what it is, apart from failures, takes nothing else
//! along, and is over when the run is.
#![cfg(test)]
#![cfg(unix)]

use std::time::Duration;

use callgate_conformance::event::{Call, Event, Mode};
use callgate_conformance::library::Library;
use callgate_conformance::process::{DEFAULT_PATIENCE, Process};
use callgate_conformance::random::Random;
use callgate_conformance::report::{human, json, junit};
use callgate_conformance::run::{Counts, Runner, Verdict};
use callgate_conformance::stop::Stop;
use callgate_conformance::subject::{Begun, Subject, SubjectFault};
use callgate_conformance::world::{Caller, World};

/// How long a subject that says nothing is waited for here.
const SHORT: Duration = Duration::from_millis(150);

/// A subject written in shell: greets, and does with the lines after that what `then` says, which finds each in `$line`.
fn shell(then: &str, patience: Duration) -> Process {
    let declare = r#"{"declare":{"protocol":1,"name":"shell","version":"1","supports":[],"compares":{"codes":false,"effect":false,"transcript":[],"records":"none"}}}"#;
    let script = format!("read -r line; echo '{declare}'; while read -r line; do {then}\ndone");
    Process::start("sh", ["-c".to_owned(), script], patience).unwrap()
}

/// Answers worlds with `ready`, and events with what `then` does.
fn at_an_event(then: &str, patience: Duration) -> Process {
    let then =
        format!(r#"case "$line" in '{{"world"'*) echo '{{"ready":{{}}}}';; '{{"bye"'*) exit;; *) {then};; esac"#);
    shell(&then, patience)
}

fn event(subject: &mut Process) -> Result<(), SubjectFault> {
    assert_eq!(subject.begin(&World::default(), 0), Ok(Begun::Ready));
    let caller = Caller { channel: "web".into(), principal: None, scopes: vec![], tenant: None, session: None };
    let call = Call {
        id: "c".into(),
        tool: "t".into(),
        arguments: "{}".into(),
        caller,
        mode: Mode::Execute,
        token: None,
        operation: None,
    };
    subject.event(&Event::Call(call)).map(drop)
}

#[test]
fn every_fault_is_told_for_what_it_is() {
    let kind = |fault: &SubjectFault| match fault {
        SubjectFault::Ended(_) => "ended",
        SubjectFault::Protocol(_) => "protocol",
        SubjectFault::TimedOut(_) => "timed out",
        SubjectFault::GaveUp(_) => "gave up",
        SubjectFault::Unsupported(_) => "unsupported",
        _ => "other",
    };
    for (then, expected, says) in [
        // Frames that are none, or not this one.
        ("echo", "protocol", "EOF"),
        ("echo nonsense", "protocol", "nonsense"),
        (r#"echo '{"seen":{}} {}'"#, "protocol", "trailing"),
        (r#"echo '["seen"]'"#, "protocol", ""),
        (r#"echo '{"ready":{}}'"#, "protocol", "`seen` was to come"),
        (r#"echo '{"seen":{},"more":1}'"#, "protocol", ""),
        (r#"echo '{"seen":{"more":1}}'"#, "protocol", "more"),
        (r#"echo '{"seen":{"effects":-1}}'"#, "protocol", ""),
        (r#"echo '{"seen":{"marks":[{"at":"nowhere"}]}}'"#, "protocol", "nowhere"),
        (r"printf '\377\n'", "protocol", "UTF-8"),
        // Parts of lines.
        (r#"printf '{"seen":{}}'; exit"#, "ended", "middle of a line"),
        (r#"printf '{"seen"'; exec sleep 60"#, "timed out", "150 ms"),
        // A line without an end, longer than any may be.
        ("exec tr '\\0' x < /dev/zero", "protocol", "longer than"),
        // Slow, dead, or at its end.
        ("exec sleep 60", "timed out", "150 ms"),
        ("exit 0", "ended", ""),
        ("kill -9 $$", "ended", ""),
        ("exec >&-; exec sleep 60", "ended", ""),
        (r#"echo '{"error":"out of cheese"}'"#, "gave up", "cheese"),
        (r#"echo '{"unsupported":"no such thing"}'"#, "unsupported", "no such thing"),
    ] {
        // What floods the runner has time to do so.
        let patience = if then.contains("/dev/zero") { DEFAULT_PATIENCE } else { SHORT };
        let fault = event(&mut at_an_event(then, patience)).expect_err(then);
        assert_eq!(kind(&fault), expected, "{then}: {fault}");
        let text = fault.to_string();
        assert!(text.contains(says) && text.len() < 500, "{then}: {text}");
    }
}

/// It goes on where it can: what comes in pieces, or after a while, is a line all the same.
#[test]
fn a_line_that_comes_in_pieces_is_a_line() {
    let mut subject =
        at_an_event(r#"printf '{"se'; sleep 0.05; printf 'en":{}'; sleep 0.05; echo '}'"#, DEFAULT_PATIENCE);
    for _ in 0..2 {
        assert_eq!(event(&mut subject), Ok(()));
    }
}

/// Talk on standard error belongs to the adapter, however much it is.
#[test]
fn what_is_said_on_standard_error_is_in_nobodys_way() {
    let script = "exec 2>/dev/null; head -c 300000 /dev/zero >&2; echo '{\"seen\":{}}'";
    assert_eq!(event(&mut at_an_event(script, DEFAULT_PATIENCE)), Ok(()));
}

/// One that dies in the middle of some vectors: those are not judged, all others are, and each is counted once.
#[test]
fn a_subject_that_dies_in_the_middle_takes_nothing_else_along() {
    // It answers every event as if the call had succeeded, but dies at those about one tool.
    let then =
        r#"case "$line" in *note.read*) exit 7;; *) echo '{"seen":{"outcome":{"success":true},"effects":1}}';; esac"#;
    let library = Library::built_in().unwrap().matching("order-");
    let mut subject = at_an_event(then, DEFAULT_PATIENCE);
    let report = Runner::new().run(&mut subject, library.vectors(), library.vectors(), |_, _| ());
    let counts = report.counts();
    let Counts { passed, failed, lenient, expected, not_applicable, errored } = counts;
    assert_eq!(passed + failed + lenient + expected + not_applicable + errored, library.vectors().len());
    assert!(errored > 0 && failed + passed > 0, "{counts:?}");
    assert!(!report.holds());
    let told = |judged: &callgate_conformance::run::Judged| matches!(&judged.verdict, Verdict::Errored(why) if why.contains("ended"));
    assert_eq!(report.judged.iter().filter(|judged| told(judged)).count(), errored);
    assert!(human(&report).contains("NOT JUDGED"), "{}", human(&report));
    assert_eq!(json(&report)["counts"]["errored"], errored);
    assert!(junit(&report).unwrap().contains("<error"));
}

/// A subject that breaks at every script is given up soon, and not taken for one that differs.
#[test]
fn scripts_of_chance_at_a_broken_subject_find_nothing_and_say_why() {
    let mut subject = at_an_event("exit 7", DEFAULT_PATIENCE);
    let hunted = Random::new(1, 1_000).hunt(&mut subject, |_, _| std::ops::ControlFlow::Continue(()));
    assert!(hunted.chance.run < 10 && hunted.chance.found.is_none(), "{:?}", hunted.chance);
    assert!(matches!(hunted.judged.unwrap().verdict, Verdict::Errored(_)));
}

/// Whoever asks to stop is not kept waiting by a subject that says nothing, and what was judged before is told.
#[test]
fn a_run_that_is_stopped_tells_what_is_known() {
    let library = Library::built_in().unwrap();
    let (judged, stopped) = (std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0)), 3);
    let asked = std::sync::Arc::clone(&judged);
    let stop = Stop::when(move || asked.load(std::sync::atomic::Ordering::SeqCst) >= stopped);
    // It can do nothing; from the fourth world on it says nothing either.
    let then = r#"n=$((n+1)); [ $n -gt 3 ] && exec sleep 600; echo '{"unsupported":"no"}'"#;
    let mut subject = shell(then, Duration::from_secs(600)).until(stop.clone());
    let plain: Vec<_> = library.vectors().iter().filter(|vector| vector.needs().is_empty()).cloned().collect();
    assert!(plain.len() > 3);
    let report = Runner::new().until(stop).run(&mut subject, &plain, library.vectors(), |_, _| {
        judged.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    });
    assert_eq!((report.judged.len(), report.not_run), (3, plain.len() - 3));
    assert!(!report.holds() && report.is_cut_short());
    assert!(human(&report).contains("STOPPED"));
    assert_eq!(json(&report)["not_run"], plain.len() - 3);
    assert!(junit(&report).unwrap().contains("stopped before everything"));
}
