//! What may stand on the command line.

#[cfg(feature = "mcp")]
mod behind;

use std::ffi::OsString;
use std::path::PathBuf;

use callgate_core::audit::chain::Head;
use callgate_core::digest::Digest;
use callgate_core::name::{NameError, check_label, check_principal, check_scope};
use clap::{Args, ColorChoice, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

#[cfg(feature = "mcp")]
pub(crate) use behind::{PinArgs, PinsCommand, PinsListArgs, ProxyArgs};

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

const APPROVE_EXAMPLES: &str = "\
Examples:
  callgate approvals list --principal ann --scope approve
  callgate approvals show 3fa1c02b77aa --principal ann --scope approve
  callgate approvals approve 3fa1c02b77aa --principal ann --scope approve
  callgate approvals deny 3fa1c02b77aa --principal ann --scope approve

Nobody decides a request of their own, and the first answer stands.";

#[derive(Subcommand, Debug)]
pub(crate) enum ApprovalsCommand {
    /// List what this approver could decide now
    List(WaitingArgs),
    /// Show one request, with every value that would run
    Show(ShowArgs),
    /// Watch what waits on a screen, and decide with keys; or in a browser, with --web
    Watch(WatchArgs),
    /// Let a request run, once, when its caller comes back with its token
    Approve(ApproveArgs),
    /// Have a request never run
    Deny(AnswerArgs),
    /// Take back a request of one's own
    Cancel(AnswerArgs),
    /// Settle a request in doubt: its call was claimed and never heard of again
    ///
    /// Nothing runs again by itself. Whoever has found out what happened says so, with how it is known; that stands in the record. It takes
    /// the scope `reconcile`.
    Resolve(ResolveArgs),
}

/// What a call in doubt did.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It took effect
    Done,
    /// It changed nothing
    None,
}

#[derive(Args, Debug)]
pub(crate) struct ResolveArgs {
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
    /// What the call did
    #[arg(long, value_name = "OUTCOME")]
    pub(crate) outcome: Outcome,
    /// How that is known, for people and for the record
    #[arg(long, value_name = "TEXT")]
    pub(crate) proof: String,
}

#[derive(Args, Debug)]
#[command(after_help = APPROVE_EXAMPLES)]
pub(crate) struct WaitingArgs {
    /// Also what is decided, used up or in doubt, as far as it is kept: one's own, what one could decide, and with the scope
    /// `reconcile` all of it
    #[arg(long)]
    pub(crate) all: bool,
    /// Print the requests as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

const WATCH_EXAMPLES: &str = "\
Examples:
  callgate approvals watch --principal ann --scope approve
  callgate approvals watch --web --principal ann --scope approve

Keys: up and down select, page up and down scroll, a approves, d denies (each
asks once more), r looks again, q leaves.";

#[derive(Args, Debug)]
#[command(after_help = WATCH_EXAMPLES)]
pub(crate) struct WatchArgs {
    /// Serve it as a page to one browser on this machine; its address is printed
    #[arg(long)]
    pub(crate) web: bool,
    /// The port of the page; 0 is a free one
    #[arg(long, value_name = "PORT", default_value_t = 0, requires = "web")]
    pub(crate) port: u16,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

#[derive(Args, Debug)]
#[command(after_help = APPROVE_EXAMPLES)]
pub(crate) struct ShowArgs {
    /// The approval id that the question named, or the first eight digits of it or more
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Print the request as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

#[derive(Args, Debug)]
#[command(after_help = APPROVE_EXAMPLES)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
    /// Approve only arguments of this digest. Needed where a request is too long to be shown whole
    #[arg(long, value_name = "DIGEST", value_parser = digest)]
    pub(crate) digest: Option<Digest>,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = APPROVE_EXAMPLES)]
pub(crate) struct AnswerArgs {
    /// The approval id that the question named, or the first eight digits of it or more
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

#[derive(Subcommand, Debug)]
pub(crate) enum AuditCommand {
    /// Show the latest records
    Tail(TailArgs),
    /// Check that no record was changed, removed or added
    ///
    /// Follows the chain of hashes through the whole file and compares its end with the head that is kept beside it. Every
    /// problem is reported with its line. Exit status 0 when the record is whole, 1 when it is not.
    Verify(VerifyArgs),
    /// Explain one call from its record: which stage said what, and whether the gate of now would say the same
    ///
    /// The call is made again as a plan, on a gate that keeps nothing: no tool runs, nothing is asked, charged or recorded.
    Explain(ExplainArgs),
    /// Write the whole record as JSON Lines, for keeping or for another program
    ///
    /// The lines are those of a file's log, so `callgate audit verify FILE --head SEQ:HASH` verifies them; the head is told on
    /// standard error.
    Export(ExportArgs),
}

#[derive(Args, Debug)]
pub(crate) struct TailArgs {
    /// How many records
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(crate) lines: usize,
    /// Go on with the records that come, until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print the records as they are, one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// The log [default: that of the configuration]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// The log [default: that of the configuration]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Compare with this head, which was copied before, instead of the one that stands beside the log
    #[arg(long, value_name = "SEQ:HASH", value_parser = crate::commands::parse_head)]
    pub(crate) head: Option<Head>,
    /// The file is an excerpt that begins behind this line, such as a dump of a device's log
    #[arg(long, value_name = "SEQ:HASH", value_parser = crate::commands::parse_head)]
    pub(crate) after: Option<Head>,
    /// Print the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// The request id of the call, or the number of one of its lines
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The log [default: that of the configuration]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// The log [default: that of the configuration]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
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

const CONFORMANCE_EXAMPLES: &str = "\
Examples:
  # this gate
  callgate conformance run
  # another one, in any language: a program that speaks the protocol
  callgate conformance run --profile ordering -- python3 adapter.py
  # one rule, with all that is wrong
  callgate conformance run --filter A5 -- ./adapter
  callgate conformance run --format junit --baseline known.json -- ./adapter
  # a thousand scripts that nobody thought of; then the one that was found
  callgate conformance run --random 1000 --seed 7 --save found -- ./adapter
  callgate conformance run --vectors found -- ./adapter

Ctrl-C ends a run with what is known so far.

Exit status: 0 it holds what it was judged by, 1 it does not, or could not be
judged, 2 usage, 128 and the number of a signal that ended it.";

#[derive(Subcommand, Debug)]
pub(crate) enum ConformanceCommand {
    /// Run the vectors at a gate, and report every failure
    Run(Box<ConformanceArgs>),
    /// Be a gate under test: speak the protocol on standard input and output
    Subject(SubjectArgs),
}

#[derive(Args, Debug)]
#[command(after_help = CONFORMANCE_EXAMPLES)]
pub(crate) struct ConformanceArgs {
    /// Only the vectors of this profile
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<ProfileName>,
    /// Only vectors whose id contains this, or that hold the rule of this number
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) filter: String,
    /// Where randomness comes from, for gates that can be told: the same seed repeats a run
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Instead of the vectors, run so many scripts of chance, and compare with the reference model
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["profile", "filter", "baseline", "vectors"], value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) random: Option<u32>,
    /// Save the smallest script at which the gate differs from the model there, as a vector
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "random")]
    pub(crate) save: Option<PathBuf>,
    /// How long one answer may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// Failures that are known, each with its reason; an entry that is stale fails the run
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) baseline: Option<PathBuf>,
    /// The vectors of this directory instead of those that are built in
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) vectors: Option<PathBuf>,
    /// How to report
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: ReportFormat,
    /// The program that speaks the protocol, and its arguments [default: this gate, in this process]
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// The profiles of the suite.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub(crate) enum ProfileName {
    /// What any gate must hold
    Ordering,
    /// What the documents of the systems before promise
    Seed,
    /// What those systems leak
    Hardened,
}

/// How a report is written.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub(crate) enum ReportFormat {
    /// For people
    Human,
    /// For programs
    Json,
    /// For continuous integration
    Junit,
}

#[derive(Args, Debug)]
pub(crate) struct SubjectArgs {
    /// Which: blocking, steps, model, or wrong:NAME for a model that is wrong on purpose
    #[arg(value_name = "SUBJECT", default_value = "blocking")]
    pub(crate) name: String,
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

impl AnswerArgs {
    /// The same answer, to arguments of this digest only.
    pub(crate) fn with_digest(&self, digest: Option<Digest>) -> ApproveArgs {
        ApproveArgs { answer: self.clone(), digest }
    }
}

fn digest(text: &str) -> Result<Digest, &'static str> {
    text.parse().map_err(|_| "a digest has 64 hexadecimal digits")
}

fn channel(text: &str) -> Result<String, NameError> {
    check_label(text).map(|()| text.to_owned())
}

fn principal(text: &str) -> Result<String, NameError> {
    check_principal(text).map(|()| text.to_owned())
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
