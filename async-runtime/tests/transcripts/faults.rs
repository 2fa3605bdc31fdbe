//! F1, exhaustively: whatever is asked, and however it goes wrong, nothing runs that was not allowed to, and every front-end says the
//! same.

use crate::world::log::{WAYS, Way};
use crate::world::runtime::{Jobs, Polls};
use crate::world::script::{Script, Step, scripts};
use crate::world::waiting::{NEVER, Pauses};
use crate::world::{Front, Seams, Transcript, World, run};

const BOTH: Pauses = Pauses { before: true, after: true };

/// Whether calls of these steps make other calls, or are made by one step.
fn nests(steps: &[Step]) -> bool {
    let nests = |tool: &str| ["b.nest", "w.nest", "w.deep", "w.full"].contains(&tool);
    steps.iter().any(|step| match step {
        Step::Call(calling) => nests(calling.tool),
        Step::Batch(_) => true,
        _ => false,
    })
}

fn fronts(steps: &[Step], turn: usize) -> Vec<Front> {
    let threads = steps.iter().any(|step| matches!(step, Step::Call(calling) if calling.tool == "b.nest"));
    let (at_once, later) = if threads { (Jobs::Threads, Jobs::Threads) } else { (Jobs::AtOnce, Jobs::Later) };
    let seams = [Seams::Immediate, Seams::Blocking, Seams::Waiting(NEVER), Seams::Waiting(BOTH)];
    let other = seams[turn / 2 % seams.len()];
    vec![
        Front::Own(Seams::Immediate, at_once, Polls::WhenWoken),
        Front::Own(Seams::Blocking, later, Polls::WhenWoken),
        Front::Own(Seams::Waiting(BOTH), later, Polls::WhenWoken),
        if turn.is_multiple_of(2) { Front::Tokio(other) } else { Front::Smol(other) },
    ]
}

/// The call in which the fault was planted: from the fault on.
fn from_the_fault(transcript: &Transcript) -> Option<&[String]> {
    let at = transcript.lines.iter().position(|line| line.contains("-> planted"))?;
    let rest = &transcript.lines[at..];
    let end = rest.iter().position(|line| line.starts_with("call ")).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// What is asked at the desk.
const DESK: [&str; 12] = [
    "decide",
    "pending",
    "tickets",
    "cancel",
    "reap",
    "reconcile",
    "grant",
    "grants",
    "revoke",
    "operations",
    "lost",
    "settle",
];

/// Whether a question is put before the tool of its call is started.
fn is_before_the_tool(question: &str) -> bool {
    let asked = question.split(' ').next().unwrap_or_default();
    match asked {
        "policy" | "rules" | "charge" | "load" | "recall" | "claim" | "issue" | "judge" | "take" | "covering"
        | "use" => true,
        "record" => question.contains(r#""kind":"intent""#),
        "refund" | "attempt" | "withdraw" | "finish" | "keep" => false,
        desk if DESK.contains(&desk) => false,
        other => panic!("what is {other}?"),
    }
}

#[test]
fn f1_whatever_fails_nothing_runs_and_every_front_end_says_the_same() {
    let mut turn = 0;
    for Script { name, steps } in scripts() {
        let questions = {
            let mut world = World::new(Front::Blocking);
            steps.iter().for_each(|step| world.step(step));
            world.log.book().questions
        };
        for at in 0..questions {
            for way in WAYS {
                // The time that a call within a call takes to hang is the outer call's, too, which only some of the front-ends stop.
                if way == Way::Hang && nests(&steps) {
                    continue;
                }
                turn += 1;
                let planted: Vec<Step> = [Step::Plant(at, way)].into_iter().chain(steps.iter().cloned()).collect();
                let expected = run(Front::Blocking, &planted);
                let rest = from_the_fault(&expected).unwrap();
                if is_before_the_tool(&rest[0]) && !nests(&steps) {
                    let ran = rest.iter().find(|line| line.starts_with("body "));
                    assert!(ran.is_none(), "{name}: {ran:?} although {}", rest[0]);
                }
                // Rules that wait are a part of their policy, which as a whole takes too long; and an interceptor that waits, having
                // taken too long, is stopped before it can say what else is wrong.
                let parts_differ = (way == Way::Hang && rest[0].starts_with("rules "))
                    || (way == Way::Lost && rest[0].starts_with("judge ") && name == "interceptor late");
                for front in fronts(&planted, turn) {
                    let transcript = run(front, &planted);
                    if parts_differ {
                        assert_eq!(codes(&transcript), codes(&expected), "{name} on {front:?}: {}", rest[0]);
                    } else if let Some(difference) = transcript.difference(&expected) {
                        panic!("{name} on {front:?}, {way:?} at {at}: {difference}");
                    }
                }
            }
        }
    }
}

/// Codes and effects of all outcomes.
fn codes(transcript: &Transcript) -> Vec<(String, String)> {
    let code = |answer: &String| {
        let outcome: serde_json::Value = serde_json::from_str(answer).unwrap_or_default();
        (outcome["code"].to_string(), outcome["meta"]["effect"].to_string())
    };
    transcript.answers.iter().map(code).collect()
}
