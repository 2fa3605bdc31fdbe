//! `callgate call`.

use std::time::Duration;

use callgate_core::call::End;
use callgate_core::code::Code;
use callgate_core::context::{CallContext, Mode};
use callgate_core::request::Request;
use callgate_signed::Granted;
use callgate_std::context::random_request_id;
use callgate_std::entropy::OsEntropy;
use callgate_std::gate::{Gate, Outcome};

use super::{Setting, consent, tools};
use crate::assemble::{Open, Plan};
use crate::command_line::CallArgs;
use crate::exit::Exit;
use crate::report::{Again, Report};
use crate::terminal::{BAD, Terminal, visible};
use crate::trouble::Trouble;
use crate::{arguments, caller, interrupt};

pub(super) fn run(args: &CallArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let config = setting.config()?;
    let plan = Plan::of(&config)?;
    let arguments = arguments::read(args.arguments.as_deref(), args.args_file.as_deref())?;
    let open = plan.open(setting.log.clone())?;
    super::look_after(&open.stores.upkeep, terminal);
    let request_id = match &args.request_id {
        Some(id) => id.clone(),
        None => random_request_id(&OsEntropy::default())
            .map_err(|error| Trouble::refused(Code::StoreUnavailable, format!("no id for this call: {error}")))?,
    };
    let context = caller::context(&args.caller, &request_id, args.plan);
    // From here on the call has to get its record, whatever signal comes.
    interrupt::listen();
    let request = Request { tool: &args.tool, arguments: &arguments, token: args.confirm.as_deref() };
    let consent = consent::granted(args, &arguments, &context.borrow(), &config, &open)?;
    let caller = CallContext { signature: consent.as_ref().map(Granted::consent), ..context.borrow() };
    let shown = {
        let outcome = match &args.operation {
            Some(operation) => open.gate.call_operation(&caller, operation, request),
            None => open.gate.call(&caller, request),
        };
        show(&outcome, &caller, args, setting, &open, config.confirmation.ttl, terminal)
    };
    super::warn_of_log(open.close(), terminal);
    shown
}

/// How the command ends for an outcome.
fn exit(outcome: &Outcome<'_>) -> Exit {
    match outcome.end() {
        _ if outcome.asks() => Exit::Asked,
        _ if outcome.success() => Exit::Success,
        End::Cancelled { .. } => interrupt::signal().map_or(Exit::Failed, Exit::Interrupted),
        end if end.started() => Exit::Failed,
        _ => Exit::Refused,
    }
}

fn show(
    outcome: &Outcome<'_>,
    context: &CallContext<'_>,
    args: &CallArgs,
    setting: &Setting,
    open: &Open,
    ttl: Duration,
    terminal: &mut Terminal,
) -> Result<Exit, Trouble> {
    let unwritable = || Trouble::failed("the outcome can't be written as JSON");
    let json = outcome.to_json().map_err(|_| unwritable())?;
    let report = Report::of(&json).ok_or_else(unwritable)?;
    let (out, err) = (terminal.out.brush(), terminal.err.brush());
    if args.json {
        terminal.out.line(&json);
    } else if args.quiet {
        if outcome.success() {
            terminal.out.print(&report.result_json());
        }
    } else {
        terminal.err.print(&report.notes(err));
        if outcome.asks() {
            let again = Again { command: super::command(setting), tool: &args.tool, options: options(args), ttl };
            terminal.out.print(&report.question(&again, out));
        } else if outcome.success() && context.mode == Mode::Plan {
            terminal.out.print(&report.plan(terminal.out.view_width(), out));
        } else if outcome.success() {
            terminal.out.print(&report.result(terminal.out.view_width(), out));
        }
    }
    if let Some(code) = outcome.code() {
        let error = outcome.error().map(|error| error.to_string()).unwrap_or_default();
        if args.quiet {
            terminal.err.line(code);
        } else {
            terminal.err.line(format_args!("{}: {}", err.paint(BAD, format!("error[{code}]")), visible(&error)));
            terminal.err.print(&report.place(outcome.station().as_str(), err));
            for help in help(outcome.end(), code, args, &open.gate, context).into_iter().chain(open.last_errors()) {
                terminal.err.line(format_args!("  = {}", visible(&help)));
            }
        }
    }
    Ok(exit(outcome))
}

/// The options that make the same call again, but for its token.
fn options(args: &CallArgs) -> String {
    let mut options = caller::options(&args.caller);
    if let Some(operation) = &args.operation {
        options.push_str(" --operation ");
        options.push_str(&caller::shell_word(operation));
    }
    options
}

/// What would help.
fn help<O, F, X>(
    end: &End<O, F, X>,
    code: Code,
    args: &CallArgs,
    gate: &Gate,
    context: &CallContext<'_>,
) -> Option<String> {
    match code {
        Code::ToolNotFound => Some(tools::suggestion(gate, &args.tool, context)),
        Code::ConfirmationInvalid => Some("ask anew: make the call without --confirm".to_owned()),
        Code::OperationUnsupported => Some(match context.known_principal() {
            Some(_) => "keep what waits in a database (`state.file`): files of text keep no operations".to_owned(),
            None => "say who calls: --principal NAME".to_owned(),
        }),
        Code::OperationConflict => Some("give each call an id of its own, and the same call the same id".to_owned()),
        Code::UnknownOutcome => Some(
            "`callgate operations list` names it; whoever finds out settles it by `callgate operations resolve`"
                .to_owned(),
        ),
        Code::Forbidden | Code::Unauthorized if !matches!(end, End::Failed(_)) => {
            let options = caller::options(&args.caller);
            Some(format!("`callgate inspect {}{options}` explains what holds", caller::shell_word(&args.tool)))
        }
        _ => None,
    }
}
