//! The comparer: what was seen against what must be seen, as strictly as the subject allows.

use std::fmt;

use serde_json::Value;

use crate::event::{Mark, Outcome, Seen};
use crate::subject::{Compares, Records};
use crate::vector::{Expect, ExpectedMark, ExpectedOutcome, ExpectedText, Vector};

/// Fits everything in a pattern.
pub const ANY: &str = "$any";

/// Fits everything that is there, and not `null`.
pub const SOME: &str = "$some";

/// What is told of a member that is not there.
const ABSENT: &str = "absent";

/// Something that was to be otherwise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// Which step of the script, from 0; `None`: the script as a whole.
    pub step: Option<usize>,
    /// What was looked at: `outcome.code`, `transcript`, ...
    pub what: String,
    /// What must be seen.
    pub expected: String,
    /// What was seen.
    pub seen: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(step) = self.step {
            write!(f, "step {step}: ")?;
        }
        write!(f, "{} must be {}, and is {}", self.what, self.expected, self.seen)
    }
}

/// Collects what differs in one step.
struct Differences<'a> {
    step: usize,
    found: &'a mut Vec<Mismatch>,
}

impl Differences<'_> {
    fn add(&mut self, what: impl Into<String>, expected: impl fmt::Display, seen: impl fmt::Display) {
        let (expected, seen) = (expected.to_string(), seen.to_string());
        self.found.push(Mismatch { step: Some(self.step), what: what.into(), expected, seen });
    }

    fn equal<T: PartialEq + fmt::Debug>(&mut self, what: &str, expected: &T, seen: &T) {
        if expected != seen {
            self.add(what, format_args!("{expected:?}"), format_args!("{seen:?}"));
        }
    }

    fn text(&mut self, what: &str, expected: Option<&str>, seen: Option<&str>) {
        if expected != seen {
            self.add(what, expected.unwrap_or(ABSENT), seen.unwrap_or(ABSENT));
        }
    }

    fn pattern(&mut self, what: &str, expected: &Value, seen: &Value) {
        if !fits(expected, seen) {
            self.add(what, expected, seen);
        }
    }
}

/// Compares one step.
pub fn compare(step: usize, expect: &Expect, seen: &Seen, compares: &Compares, found: &mut Vec<Mismatch>) {
    let mut differences = Differences { step, found };
    if expect.killed != seen.killed {
        differences.equal("killed", &expect.killed, &seen.killed);
    } else if let Some(expected) = &expect.outcome {
        match &seen.outcome {
            Some(outcome) => outcomes(expected, outcome, compares, &mut differences),
            None => differences.add("outcome", "there", ABSENT),
        }
    }
    if let Some(expected) = &expect.outcomes {
        batch(expected, expect.any_order, seen, compares, &mut differences);
    }
    if let Some(effects) = &expect.effects {
        differences.equal("effects", effects, &seen.effects);
    }
    if let Some(decided) = &expect.decided {
        match &seen.decided {
            Some(seen) => differences.equal("decided", decided, seen),
            None => differences.add("decided", decided, ABSENT),
        }
    }
    if let Some(expected) = &expect.shown {
        texts("what the approver is shown", expected, seen.shown.as_deref(), &mut differences);
    }
    if let Some(expected) = &expect.inspection {
        differences.pattern("the inspection", expected, seen.inspection.as_ref().unwrap_or(&Value::Null));
    }
    if let Some(expected) = &expect.told {
        each("what listeners are told", expected, &seen.told, &mut differences);
    }
    if let Some(transcript) = &expect.transcript {
        transcripts(transcript, &seen.marks, compares, &mut differences);
    }
    match (&expect.records, expect.outcomes.is_some()) {
        (None, _) => {}
        (Some(records), true) if compares.records == Records::Full => {
            let fit = |expected: &Value, seen: &Value| fits(expected, seen);
            if !paired(records, &seen.records, &fit) {
                differences.add("records, in some order", list(records.iter()), list(seen.records.iter()));
            }
        }
        (Some(records), _) => records_of(records, &seen.records, compares.records, &mut differences),
    }
}

/// The outcomes of a batch: one by one, or in some order.
fn batch(
    expected: &[ExpectedOutcome],
    any_order: bool,
    seen: &Seen,
    compares: &Compares,
    differences: &mut Differences<'_>,
) {
    let all = &seen.outcomes;
    differences.equal("number of outcomes", &expected.len(), &all.len());
    if !any_order {
        expected.iter().zip(all).for_each(|(expected, seen)| outcomes(expected, seen, compares, differences));
        return;
    }
    let fit = |expected: &ExpectedOutcome, seen: &Outcome| {
        let mut found = Vec::new();
        outcomes(expected, seen, compares, &mut Differences { step: 0, found: &mut found });
        found.is_empty()
    };
    if !paired(expected, all, &fit) {
        let told =
            |success: bool, code: Option<&str>| code.map_or_else(|| format!("success: {success}"), str::to_owned);
        let ours = expected.iter().map(|one| told(one.success, one.code.as_deref()));
        let theirs = all.iter().map(|one| told(one.success, one.meta_text("code")));
        differences.add("outcomes, in some order", list(ours), list(theirs));
    }
}

/// Whether each of these can be paired with one of those, and none is left. Slow, and they are few.
fn paired<A, B>(these: &[A], those: &[B], fit: &dyn Fn(&A, &B) -> bool) -> bool {
    let those: Vec<&B> = those.iter().collect();
    these.len() == those.len() && paired_with(these, &those, fit)
}

fn paired_with<A, B>(these: &[A], those: &[&B], fit: &dyn Fn(&A, &B) -> bool) -> bool {
    let Some((first, rest)) = these.split_first() else { return true };
    those.iter().enumerate().any(|(at, one)| {
        let left: Vec<&B> = those.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, one)| *one).collect();
        fit(first, one) && paired_with(rest, &left, fit)
    })
}

fn list(items: impl Iterator<Item = impl fmt::Display>) -> String {
    format!("[{}]", items.map(|item| item.to_string()).collect::<Vec<_>>().join(", "))
}

fn texts(what: &str, expected: &ExpectedText, seen: Option<&str>, differences: &mut Differences<'_>) {
    let Some(text) = seen else {
        if !expected.nothing {
            differences.add(what, "there", ABSENT);
        }
        return;
    };
    if expected.nothing {
        differences.add(what, ABSENT, text);
    }
    for part in expected.holds.iter().filter(|part| !text.contains(*part)) {
        differences.add(what, format_args!("with `{part}`"), text);
    }
    for part in expected.lacks.iter().filter(|part| text.contains(*part)) {
        differences.add(what, format_args!("without `{part}`"), text);
    }
    if let Some(c) = text.chars().find(|c| expected.harmless && harms(*c)) {
        differences.add(what, "without characters that do something or cannot be seen", c.escape_unicode());
    }
}

/// Controls, and what turns the direction of writing or cannot be seen (invariant D5).
/// A gate may lay out what it shows in lines; whether a value can break one is for `lacks` to say.
fn harms(c: char) -> bool {
    c != '\n' && c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

fn outcomes(expected: &ExpectedOutcome, seen: &Outcome, compares: &Compares, differences: &mut Differences<'_>) {
    differences.equal("outcome.success", &expected.success, &seen.success);
    if compares.codes {
        differences.text("outcome.meta.code", expected.code.as_deref(), seen.meta_text("code"));
        if let Some(kind) = &expected.kind {
            differences.text("outcome.meta.type", Some(kind), seen.meta_text("type"));
        }
    }
    if compares.effect
        && let Some(effect) = &expected.effect
    {
        differences.text("outcome.meta.effect", Some(effect), seen.meta_text("effect"));
    }
    for part in expected.says.iter().filter(|part| !seen.error.as_ref().is_some_and(|error| error.contains(*part))) {
        differences.add("outcome.error", format_args!("with `{part}`"), seen.error.as_deref().unwrap_or(ABSENT));
    }
    if let Some(data) = &expected.data {
        differences.pattern("outcome.data", data, &seen.data);
    }
    if let Some(meta) = &expected.meta {
        differences.pattern("outcome.meta", meta, &Value::Object(seen.meta.clone()));
    }
}

fn transcripts(expected: &[ExpectedMark], seen: &[Mark], compares: &Compares, differences: &mut Differences<'_>) {
    let expected: Vec<_> = expected.iter().filter(|mark| compares.transcript.contains(&mark.at())).collect();
    let seen: Vec<_> = seen.iter().filter(|mark| compares.transcript.contains(&mark.at)).collect();
    let points = |points: &mut dyn Iterator<Item = &'static str>| points.collect::<Vec<_>>().join(" > ");
    let ours = points(&mut expected.iter().map(|mark| mark.at().as_str()));
    let theirs = points(&mut seen.iter().map(|mark| mark.at.as_str()));
    if ours != theirs {
        differences.add("transcript", format_args!("[{ours}]"), format_args!("[{theirs}]"));
        return;
    }
    for (expected, seen) in expected.into_iter().zip(seen) {
        let ExpectedMark::Mark(expected) = expected else { continue };
        if let Some(args) = &expected.args {
            differences.pattern(&format!("args at {}", expected.at), args, seen.args.as_ref().unwrap_or(&Value::Null));
        }
        if let Some(cost) = &expected.cost {
            differences.equal(&format!("cost at {}", expected.at), cost, &seen.cost.unwrap_or_default());
        }
        if let Some(by) = &expected.by {
            differences.text(&format!("who is asked at {}", expected.at), Some(by), seen.by.as_deref());
        }
    }
}

fn records_of(expected: &[Value], seen: &[Value], shown: Records, differences: &mut Differences<'_>) {
    if shown == Records::None {
        return;
    }
    if shown == Records::Full {
        each("records", expected, seen, differences);
    } else {
        differences.equal("number of records", &expected.len(), &seen.len());
    }
}

fn each(what: &str, expected: &[Value], seen: &[Value], differences: &mut Differences<'_>) {
    differences.equal(&format!("number of {what}"), &expected.len(), &seen.len());
    for (at, (expected, seen)) in expected.iter().zip(seen).enumerate() {
        differences.pattern(&format!("{what}, {at}"), expected, seen);
    }
}

/// Whether `seen` has the shape of `pattern`: of an object at least its members, where `null` stands for one that is missing, too;
/// everything else as it is. Numbers compare by value.
#[must_use]
pub fn fits(pattern: &Value, seen: &Value) -> bool {
    match (pattern, seen) {
        (Value::String(any), _) if any == ANY => true,
        (Value::String(some), seen) if some == SOME => !seen.is_null(),
        (Value::Object(pattern), Value::Object(seen)) => {
            pattern.iter().all(|(name, pattern)| fits(pattern, seen.get(name).unwrap_or(&Value::Null)))
        }
        (Value::Array(pattern), Value::Array(seen)) => {
            pattern.len() == seen.len() && pattern.iter().zip(seen).all(|(pattern, seen)| fits(pattern, seen))
        }
        (Value::Number(one), Value::Number(other)) => {
            one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
        }
        _ => pattern == seen,
    }
}

/// Where texts that must not be seen are seen all the same.
pub(crate) fn leaks(step: usize, vector: &Vector, seen: &Seen, found: &mut Vec<Mismatch>) {
    let records = seen.records.iter();
    let outcomes = seen.outcome.iter().chain(&seen.outcomes);
    let outcomes: Vec<Value> = outcomes.filter_map(|outcome| serde_json::to_value(outcome).ok()).collect();
    let shown: Vec<Value> = seen.shown.iter().map(|text| Value::String(text.clone())).collect();
    for (place, shown, texts) in [
        ("the outcome", outcomes.iter().collect::<Vec<_>>(), vector.never.iter().chain(&vector.never_told)),
        ("the records", records.collect(), vector.never.iter().chain(&[])),
        ("what listeners are told", seen.told.iter().collect(), vector.never.iter().chain(&[])),
        ("what the approver is shown", shown.iter().collect(), vector.never.iter().chain(&[])),
        ("the inspection", seen.inspection.iter().collect(), vector.never.iter().chain(&[])),
    ] {
        for text in texts.filter(|text| shown.iter().any(|shown| holds(shown, text))) {
            let (expected, seen) = (format!("without `{text}`"), "with it".to_owned());
            found.push(Mismatch { step: Some(step), what: place.to_owned(), expected, seen });
        }
    }
}

fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(string) => string.contains(text),
        Value::Array(items) => items.iter().any(|item| holds(item, text)),
        Value::Object(members) => members.iter().any(|(name, value)| name.contains(text) || holds(value, text)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn patterns_ask_for_at_least_their_members() {
        let seen = json!({"a": 1, "b": {"c": [1, 2.0], "d": "x"}});
        for pattern in [json!("$any"), json!({}), json!({"a": 1.0}), json!({"b": {"c": [1, 2]}}), json!({"z": null})] {
            assert!(fits(&pattern, &seen), "{pattern}");
        }
        for pattern in [json!({"a": 2}), json!({"z": 1}), json!({"b": {"c": [1]}}), json!({"b": null}), json!([])] {
            assert!(!fits(&pattern, &seen), "{pattern}");
        }
        assert!(!fits(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992_u64)), "S4: exactly");
    }

    #[test]
    fn what_a_subject_cannot_show_is_not_compared() {
        let expect: Expect = serde_json::from_value(json!({
            "outcome": {"success": false, "code": "FORBIDDEN", "effect": "none"},
            "effects": 0, "transcript": ["authorize", "record"], "records": [{"code": "FORBIDDEN"}],
        }))
        .unwrap();
        let seen: Seen =
            serde_json::from_value(json!({"outcome": {"success": false}, "marks": [{"at": "record"}]})).unwrap();
        let blind = Compares { codes: false, effect: false, transcript: [].into(), records: Records::None };
        let mut found = Vec::new();
        compare(0, &expect, &seen, &blind, &mut found);
        assert_eq!(found, []);
        compare(0, &expect, &seen, &crate::subject::Declaration::full("x").compares, &mut found);
        assert_eq!(found.len(), 4, "{found:?}");
    }

    /// Each thing that can be expected, alone, at something that was seen and is otherwise in just that.
    #[test]
    fn every_difference_is_found_alone() {
        let seen: Seen = serde_json::from_value(json!({
            "outcome": {"success": true, "data": {"n": 1}, "meta": {"effect": "done", "type": "list", "clamped": []}},
            "decided": true, "effects": 1,
            "marks": [{"at": "authorize", "args": {"n": 1}}, {"at": "charge", "cost": 5}, {"at": "intercept", "by": "first"}],
            "records": [{"kind": "terminal", "effect": "done"}],
            "shown": "pay(n=1)\u{200b}", "inspection": {"operation": "pay"}, "told": [{"event": "tool.asked"}],
        }))
        .unwrap();
        let full = crate::subject::Declaration::full("x").compares;
        let found = |expect: &Value| {
            let mut found = Vec::new();
            compare(3, &serde_json::from_value(expect.clone()).unwrap(), &seen, &full, &mut found);
            found
        };
        let point = |name: &str, what: &Value| {
            let with = |at: &str| {
                if at == name {
                    json!({"at": at, "args": what["args"], "cost": what["cost"], "by": what["by"]})
                } else {
                    json!(at)
                }
            };
            let points = ["authorize", "charge", "intercept"].map(with);
            json!({ "transcript": points })
        };
        let right = [
            json!({"outcome": {"success": true, "effect": "done", "type": "list", "data": {"n": 1}, "meta": {"clamped": "$any"}}}),
            json!({"effects": 1, "decided": true, "transcript": ["authorize", "charge", "intercept"], "records": [{"kind": "terminal"}]}),
            json!({"outcome": {"success": true, "meta": {"clamped": "$some"}}, "told": [{"event": "tool.asked"}]}),
            json!({"shown": {"holds": ["pay", "n=1"], "lacks": ["n=2"]}, "inspection": {"operation": "pay"}}),
            point("authorize", &json!({"args": {"n": 1}})),
            point("charge", &json!({"cost": 5})),
            point("intercept", &json!({"by": "first"})),
        ];
        for expect in right {
            assert_eq!(found(&expect), [], "{expect}");
        }
        let wrong = [
            json!({"outcome": {"success": false}}),
            json!({"outcome": {"success": true, "code": "FORBIDDEN"}}),
            json!({"outcome": {"success": true, "effect": "none"}}),
            json!({"outcome": {"success": true, "type": "confirmation"}}),
            json!({"outcome": {"success": true, "data": {"n": 2}}}),
            json!({"outcome": {"success": true, "meta": {"clamped": null}}}),
            json!({"outcome": {"success": true, "meta": {"other": "$some"}}}),
            json!({"outcome": {"success": true, "says": ["a reason"]}}),
            json!({"shown": {"nothing": true}}),
            json!({"shown": {"holds": ["n=2"]}}),
            json!({"shown": {"lacks": ["n=1"]}}),
            json!({"shown": {"harmless": true}}),
            json!({"inspection": null}),
            json!({"inspection": {"operation": "read"}}),
            json!({"told": [{"event": "tool.refused"}]}),
            json!({"told": []}),
            json!({"effects": 0}),
            json!({"decided": false}),
            json!({"transcript": ["charge", "authorize", "intercept"]}),
            json!({"transcript": ["authorize", "charge"]}),
            point("authorize", &json!({"args": {"n": 2}})),
            point("charge", &json!({"cost": 1})),
            point("intercept", &json!({"by": "second"})),
            json!({"records": []}),
            json!({"records": [{"effect": "none"}]}),
        ];
        for expect in wrong {
            let found = found(&expect);
            assert_eq!(found.len(), 1, "{expect}: {found:?}");
            assert_eq!(found[0].step, Some(3));
        }
    }

    /// R1: one outcome for each call; in some order only where that is said.
    #[test]
    fn batches_are_compared_in_their_order_unless_it_is_left_open() {
        let seen: Seen = serde_json::from_value(json!({
            "outcomes": [{"success": true, "data": 1}, {"success": false, "meta": {"code": "FORBIDDEN"}}],
            "records": [{"code": "FORBIDDEN"}, {"code": null}],
        }))
        .unwrap();
        let full = crate::subject::Declaration::full("x").compares;
        let differs = |expect: &Value| {
            let mut found = Vec::new();
            compare(0, &serde_json::from_value(expect.clone()).unwrap(), &seen, &full, &mut found);
            !found.is_empty()
        };
        let (one, other) = (json!({"success": true, "data": 1}), json!({"success": false, "code": "FORBIDDEN"}));
        for (expect, wrong) in [
            (json!({"outcomes": [one, other]}), false),
            (json!({"outcomes": [other, one]}), true),
            (json!({"outcomes": [other, one], "any_order": true}), false),
            (json!({"outcomes": [other, other], "any_order": true}), true),
            (json!({"outcomes": [one], "any_order": true}), true),
            (json!({"outcomes": [one, other], "records": [{"code": null}, {"code": "FORBIDDEN"}]}), false),
            (json!({"outcomes": [one, other], "records": [{"code": null}, {"code": null}]}), true),
            (json!({"outcomes": [one, other], "records": [{"code": null}]}), true),
        ] {
            assert_eq!(differs(&expect), wrong, "{expect}");
        }
    }

    #[test]
    fn l2_a_text_that_must_not_be_seen_is_found_wherever_it_is() {
        let text = crate::library::FILES.iter().find(|(name, _)| *name == "hardened/secrets").unwrap().1;
        let file: crate::vector::VectorFile = serde_json::from_str(text).unwrap();
        let with = |never: &[&str], never_told: &[&str]| {
            let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            Vector { never: texts(never), never_told: texts(never_told), ..file.vectors[0].clone() }
        };
        let seen: Seen = serde_json::from_value(json!({
            "outcome": {"success": true, "data": [{"a-told-b": 1}], "error": null},
            "marks": [{"at": "execute", "args": {"x": "marked"}}], "records": [{"args": {"x": "a recorded b"}}],
        }))
        .unwrap();
        let count = |vector: &Vector| {
            let mut found = Vec::new();
            leaks(0, vector, &seen, &mut found);
            found.len()
        };
        assert_eq!(count(&with(&["told", "recorded"], &[])), 2);
        assert_eq!(count(&with(&[], &["told"])), 1);
        assert_eq!(count(&with(&["marked"], &["recorded", "other"])), 0, "transcripts are the harness's own");
    }
}
