//! `callgate operations`: what became of operations, and how those in doubt are settled.

use callgate_core::code::{Code, Effect};
use callgate_core::confirm::ReconcileError;
use callgate_std::confirmations::{DecideFault, Resolution};
use callgate_std::context::{OwnedContext, random_request_id};
use callgate_std::entropy::OsEntropy;
use callgate_std::gate::DecisionFault;
use callgate_std::journal::OperationView;
use serde_json::{Value, json};

use super::Setting;
use crate::assemble::{Open, Plan};
use crate::caller;
use crate::command_line::{CallerArgs, OperationsCommand, OperationsListArgs, Outcome, SettleArgs};
use crate::exit::Exit;
use crate::table::{Cell, Table};
use crate::terminal::{GOOD, Terminal, visible};
use crate::trouble::Trouble;

/// The most operations that are shown, and that an id is looked for among.
const MOST: usize = 10_000;

pub(super) fn run(command: &OperationsCommand, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    match command {
        OperationsCommand::List(args) => list(args, setting, terminal),
        OperationsCommand::Resolve(args) => resolve(args, setting, terminal),
    }
}

fn open(caller: &CallerArgs, setting: &Setting) -> Result<(Open, OwnedContext), Trouble> {
    let config = setting.config()?;
    let open = Plan::of(&config)?.open(setting.log.clone())?;
    if open.stores.waiting.journal().is_none() {
        return Err(Trouble::refused(Code::OperationUnsupported, "files of text keep no operations")
            .with_help("keep what waits in a database (`state.file`), as is the default"));
    }
    let id = random_request_id(&OsEntropy::default())
        .map_err(|error| Trouble::refused(Code::StoreUnavailable, format!("no id for the record: {error}")))?;
    Ok((open, caller::context(caller, &id, false)))
}

fn known(open: &Open, viewer: &OwnedContext) -> Result<Vec<OperationView>, Trouble> {
    let known = open.gate.operations().list(&viewer.borrow(), MOST);
    known.map_err(|fault| refused(open, DecideFault::from(fault).into()))
}

fn list(args: &OperationsListArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let (open, viewer) = open(&args.caller, setting)?;
    let known = known(&open, &viewer)?;
    if args.json {
        terminal.out.line(Value::Array(known.iter().map(told).collect()));
    } else if known.is_empty() {
        terminal.err.line("no operation is kept that this caller may be told of");
    } else {
        let mut table = Table::new(["ID", "STATE", "TOOL", "OF", "ATTEMPT", "SINCE", "REQUEST"]);
        for view in &known {
            let cells = [
                visible(&view.operation),
                view.state.as_str().to_owned(),
                visible(&view.tool),
                visible(&view.principal),
                view.attempt.to_string(),
                view.since.to_string(),
                visible(&view.request_id),
            ];
            table.row(cells.map(Cell::from));
        }
        let text = table.render(terminal.out.view_width(), terminal.out.brush());
        terminal.out.print(&text);
    }
    Ok(Exit::Success)
}

fn told(view: &OperationView) -> Value {
    json!({
        "operation": view.operation,
        "key": view.key.to_string(),
        "state": view.state.as_str(),
        "attempt": view.attempt,
        "since": view.since.to_string(),
        "tool": view.tool,
        "tenant": view.tenant,
        "principal": view.principal,
        "request_id": view.request_id,
        "has_result": view.has_result,
        "proof": view.proof,
    })
}

fn resolve(args: &SettleArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let (open, by) = open(&args.caller, setting)?;
    let named = |view: &&OperationView| {
        view.operation == args.id && args.of.as_ref().is_none_or(|principal| *principal == view.principal)
    };
    let known = known(&open, &by)?;
    let mut named = known.iter().filter(named);
    let view = match (named.next(), named.next()) {
        (Some(_), Some(_)) => {
            return Err(Trouble::usage("more than one principal has an operation of this id")
                .with_help("say whose it is: --of PRINCIPAL"));
        }
        (None, _) => return Err(refused(&open, DecisionFault::Resolve(ReconcileError::Unknown))),
        (Some(view), None) => view,
    };
    let effect = match args.outcome {
        Outcome::Done => Effect::Done,
        Outcome::None => Effect::None,
    };
    let resolution = Resolution { effect, proof: &args.proof, by: by.borrow() };
    let settled = open.gate.operations().resolve(view.key, &resolution).map_err(|fault| refused(&open, fault))?;
    let means = match effect {
        Effect::Done => "completed: it counts as made",
        _ => "open: the next call of it may try again",
    };
    let line = format!("{} is {means}", visible(&settled.operation));
    terminal.out.line(terminal.out.brush().paint(GOOD, line));
    Ok(Exit::Success)
}

fn refused(open: &Open, fault: DecisionFault) -> Trouble {
    let help = match fault {
        DecisionFault::Resolve(ReconcileError::Unknown) => {
            Some("`callgate operations list` shows what this caller may be told of".to_owned())
        }
        DecisionFault::Resolve(ReconcileError::MissingScope) => Some("it takes --scope reconcile".to_owned()),
        DecisionFault::Resolve(_) => None,
        _ => open.last_errors().into_iter().next(),
    };
    let trouble = Trouble::refused(fault.code(), fault.to_string());
    match help {
        Some(help) => trouble.with_help(help),
        None => trouble,
    }
}
