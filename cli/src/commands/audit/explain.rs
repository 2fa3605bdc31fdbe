//! `callgate audit explain`: what the record says of one call, replayed against the configuration of now (invariant J7).

use std::io::BufRead as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use callgate_core::audit::{Audit, AuditFault, Record};
use callgate_core::code::Station;
use callgate_core::context::{CallContext, Mode};
use callgate_core::request::Request;
use callgate_std::context::OwnedContext;
use callgate_std::render::approver::Strict;
use serde_json::{Value, json};

use super::super::Setting;
use super::source::{log_file, unreadable, with_lines};
use crate::assemble::Plan;
use crate::command_line::ExplainArgs;
use crate::config::Config;
use crate::exit::Exit;
use crate::table::{Cell, Table};
use crate::terminal::{BAD, BOLD, Brush, DIM, GOOD, NAME, Terminal, WARN, visible};
use crate::trouble::Trouble;

/// What stands in a record for a secret.
const REDACTED: &str = callgate_core::redact::REPLACEMENT;
/// What stands in a record where a text was cut, before the word that closes it.
const CUT: &str = "bytes in all]";
/// Members that a replay gives again from the same call under the same configuration. The clamps are not among them: the record has
/// the arguments as they are after them.
const COMPARED: [&str; 4] = ["tool_digest", "args_digest", "policy", "rule"];

pub(in crate::commands) fn explain(
    args: &ExplainArgs,
    setting: &Setting,
    terminal: &mut Terminal,
) -> Result<Exit, Trouble> {
    let file = log_file(args.file.as_deref(), setting)?;
    let records = about(&file, &args.id)?;
    let Some(call) = records.iter().find(|record| is_call(record, &args.id)) else {
        return Err(Trouble::failed(format!("the log has no call {}", visible(&args.id)))
            .with_help("`callgate audit tail` shows the latest; an ID is a request id, or the number of a line"));
    };
    // The last word on it: the run's end, the call's end, or the intent alone.
    let request = text(call, "request_id");
    let own: Vec<&Value> = records.iter().filter(|record| is_of(record, &request)).collect();
    let end = own.iter().rev().find(|record| text(record, "kind") != "intent").copied().unwrap_or(call);
    let config = setting.config()?;
    let replay = replay(end, &config)?;
    let explained = Explained { end, own: &own, others: &records, replay: &replay, config: &config };
    if args.json {
        terminal.out.line(explained.json());
    } else {
        let text = explained.text(terminal.out.view_width(), terminal.out.brush());
        terminal.out.print(&text);
    }
    Ok(Exit::Success)
}

/// The records of the call that `id` names, and those of others about the same ticket or the grant that covered it.
fn about(file: &Path, id: &str) -> Result<Vec<Value>, Trouble> {
    let mut named: Vec<Value> = Vec::new();
    let read = |wanted: &mut dyn FnMut(Value)| -> Result<(), Trouble> {
        let each = |lines: &mut dyn Iterator<Item = std::io::Result<String>>, wanted: &mut dyn FnMut(Value)| {
            for line in lines {
                let line = line.map_err(|error| unreadable(file, &error))?;
                // What is no record is for `audit verify` to tell.
                if let Ok(record) = serde_json::from_str(&line) {
                    wanted(record);
                }
            }
            Ok(())
        };
        with_lines(file, |lines, _| each(&mut lines.lines(), wanted))
    };
    let (mut request, mut tickets) = (None, Vec::new());
    read(&mut |record| {
        if request.is_none() && is_call(&record, id) {
            request = Some(text(&record, "request_id"));
        }
        if request.as_deref().is_some_and(|request| is_of(&record, request)) {
            let names = ["ticket", "grant"].into_iter().filter_map(|name| record.get(name)?.as_str());
            tickets.extend(names.map(str::to_owned));
        }
    })?;
    let Some(request) = request else { return Ok(named) };
    read(&mut |record| {
        let same_ticket = tickets.contains(&text(&record, "ticket"));
        if same_ticket || is_of(&record, &request) {
            named.push(record);
        }
    })?;
    Ok(named)
}

fn text(record: &Value, name: &str) -> String {
    record.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Whether a record is of a call and has this request id, or is the line of this number.
fn is_call(record: &Value, id: &str) -> bool {
    let call = ["intent", "terminal", "completion"].contains(&text(record, "kind").as_str());
    call && (text(record, "request_id") == id
        || record.get("seq").and_then(Value::as_u64).is_some_and(|seq| Ok(seq) == id.parse()))
}

fn is_of(record: &Value, request: &str) -> bool {
    text(record, "request_id") == request
}

/// What the gate of now says to the same call.
enum Replay {
    /// It can't be asked.
    Impossible(String),
    /// The record that it makes of it.
    Made(Value),
}

/// Keeps the last record.
#[derive(Default)]
struct Last(Mutex<Option<String>>);

impl Audit for Last {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        let mut text = String::new();
        record.write_json(&mut text).map_err(|_| AuditFault)?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        Ok(())
    }
}

/// Makes the recorded call again as a plan, on a gate of this configuration that keeps nothing: no tool runs, nothing is asked, charged or
/// recorded (invariant R4).
fn replay(record: &Value, config: &Config) -> Result<Replay, Trouble> {
    let Some(arguments) = record.get("args") else {
        return Ok(Replay::Impossible("the arguments were never read, so the record has none".to_owned()));
    };
    let arguments = arguments.to_string();
    if arguments.contains(REDACTED) {
        return Ok(Replay::Impossible(
            "the record has secrets replaced, so the call can't be made again from it".to_owned(),
        ));
    }
    if arguments.contains(CUT) {
        return Ok(Replay::Impossible(
            "the record has long texts cut, so the call can't be made again from it".to_owned(),
        ));
    }
    let last = Arc::new(Last::default());
    let gate = Plan::of(config)?.replaying_gate(last.clone())?;
    let mut context = OwnedContext::new(text(record, "channel"), text(record, "request_id"));
    let scopes = record.get("scopes").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    context = context.with_scopes(scopes);
    if let Some(principal) = record.get("principal").and_then(Value::as_str) {
        context = context.with_principal(principal);
    }
    if let Some(tenant) = record.get("tenant").and_then(Value::as_str) {
        context = context.with_tenant(tenant);
    }
    if let Some(session) = record.get("session").and_then(Value::as_str) {
        context = context.with_session(session);
    }
    let context = context.with_mode(Mode::Plan);
    let tool = text(record, "tool");
    let depth = record.get("depth").and_then(Value::as_u64).map_or(0, |depth| depth.try_into().unwrap_or(u8::MAX));
    let caller = CallContext { depth, ..context.borrow() };
    drop(gate.call(&caller, Request { tool: &tool, arguments: arguments.as_bytes(), token: None }));
    let made = last.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok(made
        .and_then(|made| serde_json::from_str(&made).ok())
        .map_or_else(|| Replay::Impossible("the gate of now gave no record".to_owned()), Replay::Made))
}

struct Explained<'e> {
    end: &'e Value,
    own: &'e [&'e Value],
    others: &'e [Value],
    replay: &'e Replay,
    config: &'e Config,
}

impl Explained<'_> {
    fn seqs(&self) -> String {
        let seqs = self.own.iter().filter_map(|record| record.get("seq")).map(ToString::to_string);
        seqs.collect::<Vec<_>>().join(", ")
    }

    /// Each stage of the pipeline, how it went, and what the record knows of it.
    fn stages(&self) -> Vec<(&'static str, &'static str, String)> {
        let record = self.end;
        let ended_at = Station::parse(&text(record, "station"));
        let started = self.own.iter().any(|record| text(record, "kind") == "intent")
            || ended_at.is_some_and(|ended| ended > Station::Execute);
        let code = text(record, "code");
        let of = |station: Station| -> String {
            match station {
                Station::Resolve => record.get("tool_digest").map_or_else(String::new, |_| text(record, "tool")),
                Station::Clamp => super::tail::clamps(record),
                Station::Authorize => record.get("rule").map_or_else(String::new, |rule| format!("rule {rule}")),
                Station::Confirm => self.confirmation(),
                Station::Execute => format!("effect {}", text(record, "effect")),
                _ => String::new(),
            }
        };
        Station::ALL
            .iter()
            .filter(|station| **station != Station::Audit)
            .map(|station| {
                let how = match ended_at {
                    Some(ended) if *station < ended => "passed",
                    Some(ended) if *station == ended && code.is_empty() => "ended",
                    Some(ended) if *station == ended => "refused",
                    None => "unknown",
                    Some(_) => "not reached",
                };
                let mut known = if how == "not reached" { String::new() } else { of(*station) };
                if how == "refused" {
                    let why = [code.clone(), text(record, "check"), text(record, "detail")];
                    let why: Vec<_> = why.into_iter().filter(|part| !part.is_empty()).collect();
                    known = [known, why.join("; ")]
                        .into_iter()
                        .filter(|part| !part.is_empty())
                        .collect::<Vec<_>>()
                        .join("; ");
                }
                if *station == Station::Execute && !started {
                    known = "the tool never started".to_owned();
                }
                (station.as_str(), how, known)
            })
            .collect()
    }

    /// Who confirmed it, by the records about its ticket.
    fn confirmation(&self) -> String {
        let by = text(self.end, "confirmed_by");
        let signer = text(self.end, "signer");
        // A consent stands for no approver's yes.
        match text(self.end, "consent").as_str() {
            _ if !by.is_empty() => {}
            "signature" => return format!("consent was signed by {}", Strict(&signer)),
            "grant" => return format!("consent was given before: {}", Strict(&text(self.end, "provenance"))),
            _ if !signer.is_empty() => {
                return format!(
                    "a signature of {} came along, and counted as no consent to this call",
                    Strict(&signer)
                );
            }
            _ => {}
        }
        if by == "self" {
            return "the caller itself came back with the token".to_owned();
        }
        let decisions: Vec<String> = self
            .others
            .iter()
            .filter(|record| text(record, "kind") == "decision" && record.get("code").is_none())
            .filter(|record| !self.was_refused(record))
            .map(|record| {
                let (what, who) = (text(record, "end"), text(record, "principal"));
                let line = record.get("seq").map(ToString::to_string).unwrap_or_default();
                format!("{what} by {} at {} (line {line})", Strict(&who), text(record, "at"))
            })
            .collect();
        match (by.as_str(), decisions.is_empty()) {
            ("", true) => String::new(),
            ("grant", _) => {
                let grant = format!("covered by the standing grant {}", Strict(&text(self.end, "grant")));
                std::iter::once(grant).chain(decisions).collect::<Vec<_>>().join("; ")
            }
            (_, true) => "by an approver whose decision is not in this log".to_owned(),
            _ => decisions.join("; "),
        }
    }

    /// Whether a decision did not take effect: its record, made before, is followed by one that says so.
    fn was_refused(&self, decision: &Value) -> bool {
        let same = |record: &Value, name| text(record, name) == text(decision, name);
        let refused = |record: &Value| {
            record.get("code").is_some() && ["kind", "request_id", "end"].into_iter().all(|name| same(record, name))
        };
        self.others.iter().any(refused)
    }

    /// What it had to do with its operation.
    fn operation(&self) -> Option<String> {
        let id = self.end.get("operation")?.as_str()?;
        let id = Strict(id);
        Some(match (text(self.end, "end").as_str(), self.end.get("attempt")) {
            ("replayed", _) => {
                format!("operation {id}: it was given the result of an earlier call of it, and ran nothing")
            }
            ("operation_refused", _) => format!("operation {id}: it was refused ({})", text(self.end, "check")),
            (_, Some(attempt)) => format!("operation {id}: attempt {attempt}"),
            (_, None) => format!("operation {id}: it came not so far as to claim it"),
        })
    }

    /// What of the record is as a replay makes it, and what is not.
    fn compared(&self) -> Vec<(&'static str, &'static str)> {
        let Replay::Made(made) = self.replay else { return Vec::new() };
        COMPARED
            .into_iter()
            .filter(|name| self.end.get(name).is_some() || made.get(name).is_some())
            .map(|name| (name, if self.end.get(name) == made.get(name) { "same" } else { "different" }))
            .collect()
    }

    /// The decision of now beside that of the record: whether the call gets past what a plan decides.
    fn verdict(&self) -> (bool, String) {
        let Replay::Made(made) = self.replay else { return (false, "not replayed".to_owned()) };
        let station = |record: &Value| Station::parse(&text(record, "station"));
        let past = |record: &Value| {
            text(record, "end") == "planned" || station(record).is_some_and(|station| station > Station::PlanMode)
        };
        let how = |record: &Value| match past(record) {
            true => "lets it pass as far as a plan goes".to_owned(),
            false => format!("refuses it at {} ({})", text(record, "station"), text(record, "code")),
        };
        // What a budget said then depends on the calls before it.
        let limited = station(self.end) == Some(Station::RateLimit);
        let same = past(self.end) == past(made)
            && (past(made)
                || (text(self.end, "station"), text(self.end, "check"))
                    == (text(made, "station"), text(made, "check")));
        if text(self.end, "check") == "consent" && text(self.end, "mode") == "execute" {
            // A plan needs none.
            let how = how(made);
            (past(made), format!("no consent came with it then, which a plan does not need; without that, now {how}"))
        } else if limited {
            (
                past(made),
                format!(
                    "the budget refused it then, by calls that are not part of it; without that, now {}",
                    how(made)
                ),
            )
        } else if same {
            (true, format!("the same decision: {}", how(made)))
        } else {
            (false, format!("ANOTHER decision now: {}; then it was: {}", how(made), how(self.end)))
        }
    }

    fn unknown(&self) -> Vec<String> {
        let mut unknown =
            vec!["what the tool did beyond the effect that it told, and what budgets held at that moment".to_owned()];
        if let Replay::Impossible(why) = self.replay {
            unknown.push(why.clone());
        }
        if text(self.end, "kind") == "intent" {
            unknown.push("how it ended: the log has no end of it, so whether it took effect is not known".to_owned());
        }
        if text(self.end, "policy") != self.config.digest().to_string() {
            unknown
                .push("the configuration of then: its digest is another one, and its text is not kept here".to_owned());
        }
        if !text(self.end, "signer").is_empty() || text(self.end, "confirmed_by") == "approver" {
            unknown
                .push("whether a signature or a yes was given freely: only that it was given and by whom".to_owned());
        }
        unknown
    }

    fn text(&self, width: usize, brush: Brush) -> String {
        let record = self.end;
        let who = match text(record, "principal") {
            who if who.is_empty() => "nobody known".to_owned(),
            who => Strict(&who).to_string(),
        };
        let mut out = format!(
            "{} by {who} through {}, request {} (lines {})\n  at {}, {}\n",
            brush.paint(NAME, Strict(&text(record, "tool"))),
            Strict(&text(record, "channel")),
            Strict(&text(record, "request_id")),
            self.seqs(),
            text(record, "at"),
            text(record, "mode"),
        );
        if let Some(arguments) = record.get("args") {
            out.push_str(&format!("  arguments {}\n", visible(&arguments.to_string())));
        }
        let mut table = Table::new(["STAGE", "", ""]).indented(2);
        for (stage, how, known) in self.stages() {
            let style = match how {
                "passed" => GOOD,
                "refused" => BAD,
                "ended" => WARN,
                _ => DIM,
            };
            table.row([Cell::from(stage), Cell::painted(style, how), visible(&known).into()]);
        }
        out.push_str(&table.render(width, brush));
        out.push_str(&format!("  ended as {}, effect {}\n", text(record, "end"), text(record, "effect")));
        if let Some(operation) = self.operation() {
            out.push_str(&format!("  {}\n", visible(&operation)));
        }
        out.push_str(&format!("\n{}\n", brush.paint(BOLD, "replayed with the configuration of now")));
        let (same, verdict) = self.verdict();
        out.push_str(&format!("  {}\n", brush.paint(if same { GOOD } else { WARN }, visible(&verdict))));
        for (name, how) in self.compared() {
            let style = if how == "same" { DIM } else { WARN };
            out.push_str(&format!("  {name:<12} {}\n", brush.paint(style, how)));
        }
        out.push_str(&format!("\n{}\n", brush.paint(BOLD, "not to be known from it")));
        for line in self.unknown() {
            out.push_str(&format!("  - {}\n", visible(&line)));
        }
        out
    }

    fn json(&self) -> Value {
        let stages: Vec<_> = self
            .stages()
            .into_iter()
            .map(|(stage, how, known)| json!({"stage": stage, "how": how, "known": known}))
            .collect();
        let compared: serde_json::Map<String, Value> =
            self.compared().into_iter().map(|(name, how)| (name.to_owned(), how.into())).collect();
        let (same, verdict) = self.verdict();
        json!({
            "record": self.end,
            "records": self.own.iter().filter_map(|record| record.get("seq")).collect::<Vec<_>>(),
            "stages": stages,
            "confirmation": self.confirmation(),
            "operation": self.operation(),
            "replay": {"same_decision": same, "says": verdict, "compared": compared},
            "unknown": self.unknown(),
        })
    }
}
