//! The report for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{lacking, scores};
use crate::random::Chance;
use crate::run::{Counts, Report, Verdict};

const GROUPS: &[(char, &str)] = &[
    ('G', "gate structure"),
    ('S', "parse and validate"),
    ('K', "clamp"),
    ('P', "policy and identity"),
    ('R', "rate, batch, plan"),
    ('A', "approval"),
    ('D', "display"),
    ('E', "interception"),
    ('X', "execute and contain"),
    ('O', "output"),
    ('F', "fail closed"),
    ('C', "clock"),
    ('J', "journal and audit"),
    ('L', "secrets"),
    ('T', "MCP transport"),
    ('N', "portability"),
];

/// The report as text: what did not pass and why, the score of each group of rules, and the sum. May hold what a subject said: make
/// it harmless before it goes to a terminal.
#[must_use]
pub fn human(report: &Report) -> String {
    let mut text = String::new();
    for judged in &report.judged {
        let (head, lines): (_, Vec<String>) = match &judged.verdict {
            Verdict::Passed | Verdict::NotApplicable(_) => continue,
            Verdict::Failed(mismatches) => ("FAILED", mismatches.iter().map(ToString::to_string).collect()),
            Verdict::Expected { reason, .. } => ("expected to fail", vec![reason.clone()]),
            Verdict::Errored(why) => ("NOT JUDGED", vec![why.clone()]),
        };
        let rules: Vec<_> = judged.rules.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "{head}: {} ({}, {})", judged.id, rules.join(" "), judged.level.as_str());
        let _ = writeln!(text, "    {}", judged.reason);
        for line in lines {
            let _ = writeln!(text, "    - {line}");
        }
    }
    for id in &report.stale {
        let _ = writeln!(text, "STALE: the baseline says that {id} fails, and it passes or is not there");
    }
    let mut unfit: BTreeMap<String, usize> = BTreeMap::new();
    for judged in &report.judged {
        if let Verdict::NotApplicable(why) = &judged.verdict {
            let count = unfit.entry(lacking(why)).or_default();
            *count = count.saturating_add(1);
        }
    }
    for (why, count) in unfit {
        let _ = writeln!(text, "not applicable: {count}, because {why}");
    }
    if let Some(vector) = report.chance.as_ref().and_then(|chance| chance.found.as_ref()) {
        let _ = writeln!(
            text,
            "the script, with what the model shows:\n{}",
            serde_json::to_string_pretty(vector).unwrap_or_default()
        );
    }
    if !text.is_empty() {
        text.push('\n');
    }
    groups(report, &mut text);
    let Counts { passed, failed, lenient, expected, not_applicable, errored } = report.counts();
    let declaration = &report.declaration;
    let _ = writeln!(text, "\n{} {}, seed {}:", declaration.name, declaration.version, report.seed);
    let _ = writeln!(
        text,
        "{passed} passed, {failed} failed, {lenient} failed that need not pass, {expected} failed as expected, \
         {not_applicable} not applicable, {errored} not judged"
    );
    if let Some(Chance { seed, wanted, run, not_applicable, found }) = &report.chance {
        let what = if found.is_some() { "differs at the last of them" } else { "differs nowhere" };
        let _ = writeln!(
            text,
            "{run} of {wanted} scripts of chance were run, seed {seed}, {not_applicable} not applicable; from the model the subject {what}"
        );
    }
    if report.is_cut_short() {
        let _ = writeln!(text, "STOPPED before everything was run: {} vectors are left", report.not_run);
    }
    text
}

fn groups(report: &Report, text: &mut String) {
    let scores = scores(report);
    for (group, about) in GROUPS {
        let of_group: Vec<_> = scores.iter().filter(|(rule, _)| rule.group() == *group).collect();
        if of_group.is_empty() {
            continue;
        }
        let rules: Vec<_> =
            of_group.iter().map(|(rule, score)| format!("{rule} {}/{}", score.passed, score.judged)).collect();
        let whole = of_group.iter().filter(|(_, score)| score.passed == score.judged && score.judged > 0).count();
        let judged = of_group.iter().filter(|(_, score)| score.judged > 0).count();
        let _ = writeln!(text, "{group}  {about:<20} {whole:>2} of {judged:>2} rules   {}", rules.join("  "));
    }
}
