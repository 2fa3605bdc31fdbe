//! The report for programs.

use serde_json::{Value, json};

use super::{lacking, scores, word};
use crate::random::Chance;
use crate::run::{Counts, Report, Verdict};

/// The report as JSON: the subject, the counts, the score of each rule, and every vector with what it came to.
#[must_use]
pub fn json(report: &Report) -> Value {
    let Counts { passed, failed, lenient, expected, not_applicable, errored } = report.counts();
    let vectors = report.judged.iter().map(|judged| {
        let mut one = json!({
            "id": judged.id, "rules": judged.rules, "level": judged.level, "profile": judged.profile,
            "verdict": word(&judged.verdict),
        });
        let why = match &judged.verdict {
            Verdict::Passed => None,
            Verdict::Failed(mismatches) => {
                Some(json!({"mismatches": mismatches.iter().map(mismatch).collect::<Vec<_>>()}))
            }
            Verdict::Expected { mismatches, reason } => {
                Some(json!({"why": reason, "mismatches": mismatches.iter().map(mismatch).collect::<Vec<_>>()}))
            }
            Verdict::NotApplicable(why) => Some(json!({"why": lacking(why)})),
            Verdict::Errored(why) => Some(json!({"why": why})),
        };
        if let (Some(one), Some(Value::Object(why))) = (one.as_object_mut(), why) {
            one.extend(why);
        }
        one
    });
    let rules = scores(report)
        .into_iter()
        .map(|(rule, score)| (rule.to_string(), json!({"passed": score.passed, "judged": score.judged})));
    json!({
        "subject": report.declaration, "seed": report.seed, "holds": report.holds(),
        "counts": {"passed": passed, "failed": failed, "lenient": lenient, "expected": expected,
            "not_applicable": not_applicable, "errored": errored},
        "rules": rules.collect::<serde_json::Map<_, _>>(), "stale": report.stale, "not_run": report.not_run,
        "random": report.chance.as_ref().map(chance), "vectors": vectors.collect::<Vec<_>>(),
    })
}

fn chance(chance: &Chance) -> Value {
    let Chance { seed, wanted, run, not_applicable, found } = chance;
    json!({"seed": seed, "wanted": wanted, "run": run, "not_applicable": not_applicable, "found": found})
}

fn mismatch(mismatch: &crate::compare::Mismatch) -> Value {
    json!({"step": mismatch.step, "what": mismatch.what, "expected": mismatch.expected, "seen": mismatch.seen})
}
