//! `callgate audit verify`: whether the record is whole.

use std::fmt::Write;
use std::path::Path;

use callgate_core::audit::chain::Head;
use callgate_sqlite::SqliteAudit;
use callgate_std::audit::{Expected, Report, verify_file_after, verify_log};
use serde_json::{Value, json};

use super::super::Setting;
use super::checkpoint::{Checked, checked};
use super::source::{Source, log_file, missing, unreadable};
use crate::command_line::VerifyArgs;
use crate::exit::Exit;
use crate::terminal::{BAD, BOLD, Brush, GOOD, Terminal, WARN, shown_path, visible};
use crate::trouble::Trouble;

pub(in crate::commands) fn verify(
    args: &VerifyArgs,
    setting: &Setting,
    terminal: &mut Terminal,
) -> Result<Exit, Trouble> {
    let file = log_file(args.file.as_deref(), setting)?;
    let after = args.after.unwrap_or(Head::EMPTY);
    let checked = checked(&args.checked, &file, setting)?;
    let expected = Expected::new(args.head, checked.as_ref().map(|checked| checked.head));
    let report = report_of(&file, after, expected)?;
    if args.json {
        terminal.out.line(json_of(&file, &report, checked.as_ref()));
    } else {
        let text = text_of(&file, after, &report, checked.as_ref(), terminal.out.brush());
        terminal.out.print(&text);
    }
    Ok(if report.is_intact() { Exit::Success } else { Exit::Failed })
}

/// What is found in a log, whatever it is kept as.
pub(super) fn report_of(file: &Path, after: Head, expected: Expected) -> Result<Report, Trouble> {
    match Source::of(file)? {
        Source::Nothing => Err(missing(file)),
        Source::Text if after.seq > 0 => {
            verify_file_after(file, after, expected).map_err(|error| unreadable(file, &error))
        }
        Source::Text => verify_log(file, expected).map_err(|error| unreadable(file, &error)),
        Source::Database(_) if after.seq > 0 => Err(Trouble::usage(
            "--after is for a file of lines; a database holds its log, with its segments, from the first line on",
        )),
        Source::Database(database) => {
            SqliteAudit::verify_in(&database, expected).map_err(|error| unreadable(file, &error))
        }
    }
}

/// The file and the line in it, of a line of a log with segments.
fn place(report: &Report, line: u64) -> Option<(&Path, u64)> {
    let parts = if report.parts.len() > 1 { report.parts.as_slice() } else { &[] };
    let (path, before) = parts.iter().rfind(|(_, before)| *before < line)?;
    Some((path, line.saturating_sub(*before)))
}

fn text_of(file: &Path, after: Head, report: &Report, checked: Option<&Checked>, brush: Brush) -> String {
    let mut text = String::new();
    let verdict = if report.is_intact() { brush.paint(GOOD, "intact") } else { brush.paint(BAD, "BROKEN") };
    // A string takes everything.
    let _ = writeln!(text, "{}: {verdict}", brush.paint(BOLD, shown_path(file)));
    for problem in &report.problems {
        let place = place(report, problem.line).map(|(path, line)| format!(" ({} line {line})", shown_path(path)));
        let _ = writeln!(text, "  {}{}", visible(&problem.to_string()), place.unwrap_or_default());
    }
    let more = report.problem_count.saturating_sub(report.problems.len() as u64);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more problems");
    }
    let Report { lines, intents, terminals, decisions, notes, head, .. } = report;
    let decisions = if *decisions > 0 { format!("{decisions} decisions of approvers, ") } else { String::new() };
    let _ = writeln!(
        text,
        "  lines   {lines}: {intents} intents, {terminals} ends of calls, {decisions}{notes} notes of the log"
    );
    if after.seq > 0 {
        let _ = writeln!(text, "  after   {}:{}: an excerpt, whose earlier lines are not here", after.seq, after.hash);
    }
    let _ = writeln!(text, "  head    {}:{}", head.seq, head.hash);
    let segments = report.parts.len().saturating_sub(1);
    if segments > 0 {
        let _ = writeln!(text, "  parts   {segments} segments and the log itself");
    }
    if let Some(removed) = report.removed {
        let _ = writeln!(
            text,
            "  removed segments up to {}:{} were removed by retention, and the log says so",
            removed.seq, removed.hash
        );
    }
    if let Some(Checked { head, at, signer }) = checked {
        let (seq, signer) = (head.seq, visible(signer));
        let _ = writeln!(text, "  checked against the checkpoint of line {seq}, signed by {signer} at {at}");
    }
    if report.beyond_anchor > 0 {
        let _ = writeln!(text, "  beyond  {} lines that the head does not vouch for", report.beyond_anchor);
    }
    if report.open_intent_count > 0 {
        let _ = writeln!(
            text,
            "  {}  {} calls started and have no end here: they run right now, or were killed, and whether they took effect \
             is not known",
            brush.paint(WARN, "open  "),
            report.open_intent_count
        );
    }
    for intent in &report.open_intents {
        let (tool, id) = (visible(&intent.tool), visible(&intent.request_id));
        let _ = writeln!(text, "          line {}: {tool}, request {id}", intent.line);
    }
    text
}

fn json_of(file: &Path, report: &Report, checked: Option<&Checked>) -> Value {
    let problem = |problem: &callgate_std::audit::Problem| {
        let text = problem.to_string();
        let text = text.strip_prefix(&format!("line {}: ", problem.line)).unwrap_or(&text).to_owned();
        let place = place(report, problem.line);
        let place = place.map(|(path, line)| json!({ "file": path.display().to_string(), "line": line }));
        json!({ "line": problem.line, "problem": text, "place": place })
    };
    let head = |head: Head| json!({ "seq": head.seq, "hash": head.hash.to_string() });
    let parts =
        report.parts.iter().map(|(path, before)| json!({ "file": path.display().to_string(), "before": before }));
    let open = report
        .open_intents
        .iter()
        .map(|intent| json!({ "line": intent.line, "tool": intent.tool, "request_id": intent.request_id }));
    json!({
        "file": file.display().to_string(),
        "intact": report.is_intact(),
        "first_broken": report.first_broken(),
        "problems": report.problems.iter().map(problem).collect::<Vec<_>>(),
        "problem_count": report.problem_count,
        "lines": report.lines,
        "intents": report.intents,
        "terminals": report.terminals,
        "decisions": report.decisions,
        "notes": report.notes,
        "beyond_anchor": report.beyond_anchor,
        "open_intents": open.collect::<Vec<_>>(),
        "open_intent_count": report.open_intent_count,
        "head": head(report.head),
        "removed": report.removed.map(head),
        "parts": parts.collect::<Value>(),
        "checkpoint": checked.map(|checked| json!({
            "head": head(checked.head), "signer": checked.signer, "at": checked.at.to_string(),
        })),
    })
}

/// A head as `audit verify` prints it: the number of the last line and its hash.
///
/// # Errors
/// The text is none.
pub(crate) fn parse_head(text: &str) -> Result<Head, &'static str> {
    const EXPECTED: &str = "a head is the number of a line and its hash, as `audit verify` prints it: 12:3fa2...";
    let (seq, hash) = text.split_once(':').ok_or(EXPECTED)?;
    let (seq, hash) = (seq.parse().map_err(|_| EXPECTED)?, hash.parse().map_err(|_| EXPECTED)?);
    Ok(Head { seq, hash })
}
