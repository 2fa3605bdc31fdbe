//! What may stand on the command line.

mod approvals;
mod audit;
#[cfg(feature = "mcp")]
mod behind;
mod conformance;
mod grants;
mod operations;

use std::ffi::OsString;
use std::path::PathBuf;

use callgate_core::name::{NameError, check_label, check_operation, check_principal, check_scope};
use clap::{Args, ColorChoice, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

pub(crate) use approvals::{
    AnswerArgs, ApprovalsCommand, ApproveArgs, Outcome, ResolveArgs, ShowArgs, WaitingArgs, WatchArgs,
};
pub(crate) use audit::{
    AuditCommand, CheckedArgs, CheckpointArgs, ExplainArgs, ExportArgs, ReapArgs, RotateArgs, TailArgs, VerifyArgs,
};
#[cfg(feature = "mcp")]
pub(crate) use behind::{PinArgs, PinsCommand, PinsListArgs, ProxyArgs};
pub(crate) use conformance::{ConformanceArgs, ConformanceCommand, ProfileName, ReportFormat, SubjectArgs};
pub(crate) use grants::{GrantArgs, GrantedArguments, GrantsArgs, RevokeArgs};
pub(crate) use operations::{OperationsCommand, OperationsListArgs, SettleArgs};

const ABOUT: &str = "The gate that every tool call of an AI agent passes";
const LONG_ABOUT: &str = "\
The gate that every tool call of an AI agent passes: resolve, validate, clamp, authorize, rate limit, plan, confirm, \
intercept, execute, contain, audit. In this order, every time, with one record for every call.

It works without any configuration: the built-in tools time.now, fs.list, fs.read, fs.search and fs.write are confined to the \
current directory, and what happens is recorded in .callgate/gate.db. `callgate init` writes a callgate.toml to change that.";
const EXAMPLES: &str = "\
Examples:
  # one call to every end of the gate, explained
  callgate demo
  # search; max is brought to 1000, and said to be
  callgate call fs.search '{\"pattern\":\"TODO\",\"max\":5000}'
  # asks, and says how to confirm
  callgate call fs.write '{\"path\":\"a.txt\",\"content\":\"hi\"}'
  # every step that such a call takes, running nothing
  callgate inspect fs.write
  # whether the record of all calls is whole
  callgate audit verify

Exit status:
  0    the call succeeded
  1    the tool was started and failed; or a check found something broken
  2    the command line or the configuration can't be used; nothing ran
  3    the gate refused the call, or could not serve it; its code is on
       standard error, and nothing ran
  4    the call waits to be confirmed; nothing has run yet
  130  interrupted by Ctrl-C (128 and the number of the signal)";

/// The command line.
#[derive(Parser, Debug)]
#[command(
    name = "callgate",
    bin_name = "callgate",
    version,
    about = ABOUT,
    long_about = LONG_ABOUT,
    after_help = EXAMPLES,
    max_term_width = 110,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const CONFIG_HELP: &str = "The configuration [default: CALLGATE_CONFIG, else the nearest callgate.toml, else none]";
const COLOR_HELP: &str = "When to use colours; auto follows NO_COLOR, CLICOLOR and CLICOLOR_FORCE";
const VERBOSE_HELP: &str = "Log to standard error what happens; twice for more. RUST_LOG says it in detail";

/// What every command takes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Global {
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, help = CONFIG_HELP)]
    pub(crate) config: Option<PathBuf>,
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help = COLOR_HELP)]
    pub(crate) color: ColorChoice,
    #[arg(long, short, global = true, action = clap::ArgAction::Count, help = VERBOSE_HELP)]
    pub(crate) verbose: u8,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Call a tool through the gate
    Call(Box<CallArgs>),
    /// List the tools that a caller may see
    Tools(ToolsArgs),
    /// Explain every step that a call of a tool takes, running nothing
    Inspect(InspectArgs),
    /// Serve the tools to MCP clients
    #[cfg(feature = "mcp")]
    Serve(Box<ServeArgs>),
    /// Stand in front of other MCP servers
    #[cfg(feature = "mcp")]
    Proxy(Box<ProxyArgs>),
    /// See what tools of MCP servers looked like, and accept what changed
    #[cfg(feature = "mcp")]
    #[command(subcommand)]
    Pins(PinsCommand),
    /// See what waits for an approver, and approve or deny it
    #[command(subcommand)]
    Approvals(ApprovalsCommand),
    /// See what became of operations, and settle those in doubt
    #[command(subcommand)]
    Operations(OperationsCommand),
    /// Make the text to sign as a yes to one call
    Sign(SignArgs),
    /// Walk one call to every end of the gate, and show outcome, effect and record
    Demo,
    /// Read and verify the record of calls
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Write a callgate.toml to start from
    Init(InitArgs),
    /// Check and show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Judge gates, this one or another, by the conformance suite
    #[command(subcommand)]
    Conformance(ConformanceCommand),
    /// Print completions for a shell
    Completions(CompletionsArgs),
}

const CALLER: &str = "Caller";
const CALLER_HELP: &str = "\
Who calls. With none of these three the local user calls: channel cli, principal local-shell, every scope. As soon as one \
of them is given nothing is made up: no principal unless it is named, and no scope but those that are listed.";

/// Who calls.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = CALLER)]
pub(crate) struct CallerArgs {
    /// The channel that the call comes through, such as cli, tui, mcp, web or telegram [default: cli]
    #[arg(long, value_parser = channel, long_help = format!("The channel that the call comes through, such as cli, tui, mcp, web or telegram [default: cli]\n\n{CALLER_HELP}"))]
    pub(crate) channel: Option<String>,
    /// The principal that was authenticated [default: local-shell, when nothing is said of the caller]
    #[arg(long, value_parser = principal)]
    pub(crate) principal: Option<String>,
    /// A scope that the caller holds; may be given several times [default: *, when nothing is said of the caller]
    #[arg(long = "scope", value_name = "SCOPE", value_parser = scope)]
    pub(crate) scopes: Vec<String>,
    /// The tenant, where one gate serves several
    #[arg(long, value_parser = channel)]
    pub(crate) tenant: Option<String>,
    /// The session or conversation
    #[arg(long, value_parser = channel)]
    pub(crate) session: Option<String>,
}

const CALL_EXAMPLES: &str = "\
Examples:
  callgate call time.now
  callgate call fs.search '{\"pattern\":\"TODO\",\"glob\":\"*.rs\"}'
  echo '{\"path\":\"notes.md\"}' | callgate call fs.read -
  callgate call time.now --quiet | jq -r .rfc3339
  # asks: exit status 4, and a token
  callgate call fs.write '{\"path\":\"a.txt\",\"content\":\"hi\"}'
  # runs what was asked about, once
  callgate call fs.write --confirm TOKEN
  # says what would run
  callgate call fs.write '{\"path\":\"a.txt\",\"content\":\"hi\"}' --plan
  # refused: nobody is known on this channel
  callgate call fs.read '{\"path\":\"a.txt\"}' --channel mcp

Exit status: 0 success, 1 the tool failed, 2 usage, 3 refused by the gate,
4 asked (nothing has run yet), 130 interrupted.";

#[derive(Args, Debug)]
#[command(after_help = CALL_EXAMPLES)]
pub(crate) struct CallArgs {
    /// The tool
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// The arguments: one JSON object, `-` to read it from standard input [default: {}]
    #[arg(value_name = "JSON")]
    pub(crate) arguments: Option<OsString>,
    /// Read the arguments from a file; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "arguments", value_hint = ValueHint::FilePath)]
    pub(crate) args_file: Option<PathBuf>,
    /// Say what would run; nothing is run, asked or charged
    #[arg(long)]
    pub(crate) plan: bool,
    /// Run the call that this token was given for. Arguments that stand beside it count for nothing
    #[arg(long, value_name = "TOKEN", conflicts_with = "plan")]
    pub(crate) confirm: Option<String>,
    /// Make the call at most once under this id: the same call with the same id gets the result of the one that ran
    #[arg(long, value_name = "ID", value_parser = operation)]
    pub(crate) operation: Option<String>,
    /// Present a signed yes to this call: what `callgate sign` made, byte for byte
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plan", "confirm"], value_hint = ValueHint::FilePath)]
    pub(crate) signed: Option<PathBuf>,
    /// The signature of it [default: the same name with .sig]
    #[arg(long, value_name = "FILE", requires = "signed", value_hint = ValueHint::FilePath)]
    pub(crate) signature: Option<PathBuf>,
    /// Print the whole outcome as JSON
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) json: bool,
    /// Print only the result, as JSON, and of an error only its code
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
    /// Names this call in the record [default: 128 random bits]
    #[arg(long, value_name = "ID", value_parser = principal, help_heading = CALLER)]
    pub(crate) request_id: Option<String>,
}

const SIGN_EXAMPLES: &str = "\
Examples:
  # the text, and a signature by a key of OpenSSH
  callgate sign fs.write --args-file a.json --host build-7 > call.json
  ssh-keygen -Y sign -n callgate -f ~/.ssh/id_ed25519 call.json
  # the same at once, with a key that no passphrase locks
  callgate sign fs.write --args-file a.json --key id_ed25519 --out call.json
  # on the host: runs once, within the window, and for these arguments alone
  callgate call fs.write --args-file a.json --signed call.json --principal ann";

#[derive(Args, Debug)]
#[command(after_help = SIGN_EXAMPLES)]
pub(crate) struct SignArgs {
    /// The tool
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// The arguments: one JSON object, `-` to read it from standard input [default: {}]
    #[arg(value_name = "JSON")]
    pub(crate) arguments: Option<OsString>,
    /// Read the arguments from a file; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "arguments", value_hint = ValueHint::FilePath)]
    pub(crate) args_file: Option<PathBuf>,
    /// The host on which the call is to run [default: that of the configuration]
    #[arg(long, value_name = "NAME", value_parser = channel)]
    pub(crate) host: Option<String>,
    /// Sign with this private key of OpenSSH (Ed25519, not locked); the signature goes beside the text, with .sig
    #[arg(long, value_name = "FILE", requires = "out", value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<PathBuf>,
    /// Write the text to this file, which must not be there yet, instead of standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ToolsArgs {
    /// Only tools whose names start so
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Only as many as fit into the context of this model
    #[arg(long, value_name = "MODEL")]
    pub(crate) budget: Option<String>,
    /// Print what a model is told of the tools, as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

const INSPECT_EXAMPLES: &str = "\
Examples:
  callgate inspect fs.write
  callgate inspect fs.write --channel telegram --principal alice
  callgate inspect fs.write --plan --json

A step is active (runs), conditional (depends on the call), dormant (can't
fire as things are) or skipped.";

#[derive(Args, Debug)]
#[command(after_help = INSPECT_EXAMPLES)]
pub(crate) struct InspectArgs {
    /// The tool
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// As for a call with --plan
    #[arg(long)]
    pub(crate) plan: bool,
    /// Print the inspection as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

#[cfg(feature = "mcp")]
const SERVE_EXAMPLES: &str = "\
Examples:
  # as a client starts it: messages on standard input and output
  callgate serve
  # only what this caller may do
  callgate serve --principal assistant --scope notes:read
  # over HTTP, for callers with a token of callgate.toml
  callgate serve --new-token
  callgate serve --http 127.0.0.1:8642

Exit status: 0 the client went away, 1 it could not be served, 2 usage, 130
interrupted.";

#[cfg(feature = "mcp")]
const SERVED_HELP: &str = "\
Who calls. With none of these three it is the program that started this one: channel mcp, principal stdio, every scope. As soon \
as one of them is given nothing is made up: no principal unless it is named, and no scope but those that are listed.";

#[cfg(feature = "mcp")]
#[derive(Args, Debug)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Serve over HTTP at this address instead, under /mcp. Callers need a token of [serve] in callgate.toml
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:8642")]
    pub(crate) http: Option<std::net::SocketAddr>,
    /// Print a new bearer token, and what to write into callgate.toml for it; serve nothing
    #[arg(long, conflicts_with = "http")]
    pub(crate) new_token: bool,
    #[command(flatten)]
    pub(crate) served: ServedArgs,
}

/// Who calls over a protocol that says nothing of it.
#[cfg(feature = "mcp")]
#[derive(Args, Debug)]
pub(crate) struct ServedArgs {
    /// The channel that the calls come through [default: mcp]
    #[arg(long, value_parser = channel, help_heading = CALLER, long_help = format!("The channel that the calls come through [default: mcp]\n\n{SERVED_HELP}"))]
    pub(crate) channel: Option<String>,
    /// The principal that calls [default: stdio, when nothing is said of the caller]
    #[arg(long, value_parser = principal, help_heading = CALLER)]
    pub(crate) principal: Option<String>,
    /// A scope that the caller holds; may be given several times [default: *, when nothing is said of the caller]
    #[arg(long = "scope", value_name = "SCOPE", value_parser = scope, help_heading = CALLER)]
    pub(crate) scopes: Vec<String>,
    /// The tenant, where one gate serves several
    #[arg(long, value_parser = channel, help_heading = CALLER)]
    pub(crate) tenant: Option<String>,
}

const INIT_EXAMPLES: &str = "\
Examples:
  callgate init
  # what would change, so that the servers of a client pass the gate
  callgate init --from vscode .vscode/mcp.json
  callgate init --from claude claude_desktop_config.json ~/gate --write

Values of environment variables and headers stay in the client's file, and
are never shown.";

#[derive(Args, Debug)]
#[command(
    after_help = INIT_EXAMPLES,
    override_usage = "callgate init [OPTIONS] [DIR]\n       callgate init --from <CLIENT> [--write] <FILE> [DIR]"
)]
pub(crate) struct InitArgs {
    /// Where to write callgate.toml [default: .]; with --from the client's file, and then that directory
    #[arg(value_name = "DIR", num_args = 0..=2, value_hint = ValueHint::AnyPath)]
    places: Vec<PathBuf>,
    /// Replace a callgate.toml that is there
    #[arg(long, conflicts_with = "from")]
    pub(crate) force: bool,
    /// Put the gate in front of the MCP servers that a client's configuration names; prints the change
    #[arg(long, value_name = "CLIENT", requires = "places")]
    pub(crate) from: Option<ClientName>,
    /// Make the change; the client's file as it was is kept beside it
    #[arg(long, requires = "from")]
    pub(crate) write: bool,
}

impl InitArgs {
    /// The first place on the command line.
    pub(crate) fn place(&self) -> &std::path::Path {
        self.places.first().map_or(std::path::Path::new("."), PathBuf::as_path)
    }

    /// The second.
    pub(crate) fn second(&self) -> &std::path::Path {
        self.places.get(1).map_or(std::path::Path::new("."), PathBuf::as_path)
    }

    /// Whether there is one place too many.
    pub(crate) fn is_too_long(&self) -> bool {
        self.from.is_none() && self.places.len() > 1
    }
}

/// A client whose configuration can be read.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClientName {
    /// Claude Desktop and Claude Code: `mcpServers` in JSON
    Claude,
    /// Cursor: `mcpServers`, comments allowed
    Cursor,
    /// VS Code: `servers` in mcp.json, comments allowed
    Vscode,
}

#[derive(Subcommand, Debug)]
pub(crate) enum ConfigCommand {
    /// Say everything that is wrong with a configuration
    ///
    /// Reads the file as every command does, and puts it to use without calling anything: schemas are built, programs are looked
    /// up. Exit status 0 when it can be used, 2 when it can't.
    Check(ConfigArgs),
    /// Show what holds, with the defaults filled in
    Show(ConfigArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ConfigArgs {
    /// The configuration [default: as for every command]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "config")]
    pub(crate) file: Option<PathBuf>,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  # in ~/.bashrc
  source <(callgate completions bash)
  callgate completions zsh > ~/.zfunc/_callgate
  callgate completions fish > ~/.config/fish/completions/callgate.fish";

#[derive(Args, Debug)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

fn channel(text: &str) -> Result<String, NameError> {
    check_label(text).map(|()| text.to_owned())
}

fn principal(text: &str) -> Result<String, NameError> {
    check_principal(text).map(|()| text.to_owned())
}

fn operation(text: &str) -> Result<String, NameError> {
    check_operation(text).map(|()| text.to_owned())
}

fn scope(text: &str) -> Result<String, NameError> {
    check_scope(text).map(|()| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }
}
