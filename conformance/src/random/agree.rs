//! Two subjects side by side.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::compare::fits;
use crate::event::{Event, Outcome, Seen};
use crate::play::Play;
use crate::subject::{Begun, Compares, Records, Subject, SubjectFault};
use crate::vector::{Act, Vector};

/// How two subjects came apart.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "whoever compares must know every kind")]
pub enum Apart {
    /// They showed different things.
    Differ {
        /// At which step of the script, from 0.
        step: usize,
        /// What happened there.
        act: String,
        /// What the one showed.
        one: String,
        /// What the other showed.
        other: String,
    },
    /// One of them can't be put into such a world, or have such a thing happen in it.
    NotApplicable {
        /// The step that can't happen, from 0; `None`: the world can't be.
        step: Option<usize>,
        /// Why.
        why: String,
    },
    /// One of them could not be judged.
    Faulty(SubjectFault),
}

impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differ { step, act, one, other } => write!(f, "step {step}, {act}:\n  {one}\nand\n  {other}"),
            Self::NotApplicable { why, .. } => f.write_str(why),
            Self::Faulty(fault) => fault.fmt(f),
        }
    }
}

impl From<SubjectFault> for Apart {
    fn from(fault: SubjectFault) -> Self {
        match fault {
            SubjectFault::Unsupported(why) => Self::NotApplicable { step: None, why },
            fault => Self::Faulty(fault),
        }
    }
}

/// Runs a script at two subjects, up to the first difference in what both can show.
///
/// # Errors
/// They came apart.
pub fn compare(vector: &Vector, one: &mut dyn Subject, other: &mut dyn Subject, seed: u64) -> Result<(), Apart> {
    for begun in [one.begin(&vector.world, seed)?, other.begin(&vector.world, seed)?] {
        if let Begun::Unsupported(why) | Begun::Refused(why) = begun {
            return Err(Apart::NotApplicable { step: None, why });
        }
    }
    let compares = common(&one.declaration().compares, &other.declaration().compares);
    let forgets = forgets(vector);
    let (mut of_one, mut of_other) = (Play::new(vector), Play::new(vector));
    for (at, step) in vector.script.iter().enumerate() {
        let apart = |one: &dyn fmt::Display, other: &dyn fmt::Display| Apart::Differ {
            step: at,
            act: serde_json::to_string(step).unwrap_or_default(),
            one: one.to_string(),
            other: other.to_string(),
        };
        let (first, second) = match (of_one.next(at, &step.act), of_other.next(at, &step.act)) {
            (Ok(Some(first)), Ok(Some(second))) => (first, second),
            (Ok(None), Ok(None)) => continue,
            // Neither was given anything to go on with: a step of chance that came to nothing.
            (Err(first), Err(second)) if first == second => continue,
            (first, second) => return Err(apart(&told(first), &told(second))),
        };
        let at_this_step = |fault| match fault {
            SubjectFault::Unsupported(why) => Apart::NotApplicable { step: Some(at), why },
            fault => Apart::Faulty(fault),
        };
        let seen_of_one = one.event(&first).map_err(at_this_step)?;
        of_one.came_to(&first, &seen_of_one);
        let seen_of_other = other.event(&second).map_err(at_this_step)?;
        of_other.came_to(&second, &seen_of_other);
        if let Err((one, other)) = agree(&seen_of_one, &seen_of_other, &compares, forgets) {
            return Err(apart(&one, &other));
        }
    }
    Ok(())
}

fn told(next: Result<Option<Event>, crate::play::CannotGoOn>) -> String {
    match next {
        Ok(_) => "it can go on".to_owned(),
        Err(why) => why.to_string(),
    }
}

/// What both can show.
fn common(one: &Compares, other: &Compares) -> Compares {
    let records = match (one.records, other.records) {
        (Records::None, _) | (_, Records::None) => Records::None,
        (Records::Count, _) | (_, Records::Count) => Records::Count,
        (Records::Full, Records::Full) => Records::Full,
    };
    Compares {
        codes: one.codes && other.codes,
        effect: one.effect && other.effect,
        transcript: one.transcript.intersection(&other.transcript).copied().collect(),
        records,
    }
}

/// An outcome without what each subject words or draws for itself.
fn outcome(outcome: &Outcome, compares: &Compares) -> Value {
    let data = match (outcome.data.get("confirm_token"), outcome.data.get("plan")) {
        (Some(_), _) => json!({"approval": outcome.data_text("approval_id").is_some()}),
        (_, Some(plan)) => {
            let part = |name: &str| plan.get(name).cloned().unwrap_or_default();
            json!({"plan": {"tool": part("tool"), "mutating": part("mutating"), "args": part("args")}})
        }
        _ => outcome.data.clone(),
    };
    let names = [
        ("code", compares.codes),
        ("type", compares.codes),
        ("confirmed_by", compares.codes),
        ("audit_pending", compares.codes),
        ("request_id", compares.codes),
        ("tool", compares.codes),
        ("effect", compares.effect),
    ];
    let meta = |name: &str| outcome.meta.get(name).cloned().unwrap_or_default();
    let shown = names.into_iter().filter(|(_, shown)| *shown).map(|(name, _)| (name.to_owned(), meta(name)));
    json!({"success": outcome.success, "data": data, "meta": shown.collect::<Map<_, _>>()})
}

/// What was seen, likewise. Of the arguments in records only those that both show are compared: the papers leave open whether
/// arguments that do not fit are recorded.
fn shown(seen: &Seen, with_args: &[bool], compares: &Compares) -> Value {
    let record = |(at, record): (usize, &Value)| {
        let part = |name: &str| record.get(name).cloned().unwrap_or_default();
        let args = if with_args.get(at) == Some(&true) { part("args") } else { Value::Null };
        let names = ["kind", "request_id", "tool", "channel", "principal", "code", "effect", "confirmed_by"];
        json!({"args": args, "rest": names.map(part)})
    };
    let records = match compares.records {
        Records::None => Value::Null,
        Records::Count => seen.records.len().into(),
        Records::Full => seen.records.iter().enumerate().map(record).collect(),
    };
    let marks: Vec<_> = seen.marks.iter().filter(|mark| compares.transcript.contains(&mark.at)).collect();
    json!({
        "outcome": seen.outcome.as_ref().map(|seen| outcome(seen, compares)),
        "outcomes": seen.outcomes.iter().map(|seen| outcome(seen, compares)).collect::<Vec<_>>(),
        "decided": seen.decided, "killed": seen.killed,
        "marks": marks, "effects": seen.effects, "records": records,
    })
}

/// Whether so much time passes in a script that a store may have forgotten a ticket whose time is over. What was denied is then told
/// as unknown: `PROTOCOL.md` leaves that open.
fn forgets(vector: &Vector) -> bool {
    let passed = vector.script.iter().map(|step| match step.act {
        Act::Advance(ms) => ms,
        // The most that interceptors and bodies take.
        Act::Call(_) | Act::Redeem(_) => 2_000,
        Act::Batch(ref batch) => (batch.calls.len() as u64).saturating_mul(2_000),
        _ => 0,
    });
    passed.sum::<u64>() >= vector.world.ttl_ms()
}

fn agree(one: &Seen, other: &Seen, compares: &Compares, forgets: bool) -> Result<(), (String, String)> {
    let has_args = |seen: &Seen, at: usize| seen.records.get(at).is_some_and(|record| record.get("args").is_some());
    let both: Vec<bool> = (0..one.records.len()).map(|at| has_args(one, at) && has_args(other, at)).collect();
    let told = |seen: &Seen| match shown(seen, &both, compares) {
        shown if forgets => {
            let text = shown.to_string().replace("APPROVAL_DENIED", "CONFIRMATION_INVALID");
            serde_json::from_str(&text).unwrap_or(shown)
        }
        shown => shown,
    };
    let (one, other) = (told(one), told(other));
    // In both directions, because a pattern asks for at least its members.
    if fits(&one, &other) && fits(&other, &one) { Ok(()) } else { Err((one.to_string(), other.to_string())) }
}
