//! `callgate proxy`: the gate in front of MCP servers.

use std::time::Duration;

use callgate_async::runtime::Tokio;
use callgate_core::code::Code;
use callgate_mcp::proxy::Fleet;
use callgate_std::context::random_request_id;
use callgate_std::entropy::OsEntropy;
use callgate_std::registry::Registry;

use super::Setting;
use super::serve::{Keeper, caller, close, server, shut_down, threads};
use crate::assemble::upstreams::{UpstreamError, start, unmatched};
use crate::assemble::{OpenAsync, Plan};
use crate::command_line::ProxyArgs;
use crate::config::{Config, Reach, Upstream};
use crate::exit::Exit;
use crate::interrupt;
use crate::terminal::{Terminal, visible};
use crate::trouble::Trouble;

/// How long a client waits until every server has had time to answer. One that takes longer joins later.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn run(args: &ProxyArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let config = setting.config()?;
    let behind = behind(args, &config)?;
    let plan = Plan::of(&config)?;
    let runtime = threads()?;
    let pins = plan.files().pins.clone();
    interrupt::listen();
    let fleet = {
        let _entered = runtime.enter();
        start(&config, &behind, Registry::default(), pins)?
    };
    let open = plan.open_async_over(fleet.registry(), Tokio::new(runtime.handle().clone()), setting.log.clone())?;
    super::look_after(&open.stores.upkeep, terminal);
    let served = runtime.block_on(async {
        let _keeper = Keeper::start(&open, &config);
        let served = serve(args, &config, &behind, &open, &fleet, terminal).await;
        shut_down(&open, terminal).await;
        fleet.end().await;
        served
    });
    close(runtime, open, terminal);
    served?;
    Ok(interrupt::signal().map_or(Exit::Success, Exit::Interrupted))
}

async fn serve(
    args: &ProxyArgs,
    config: &Config,
    behind: &[Upstream],
    open: &OpenAsync,
    fleet: &Fleet,
    terminal: &mut Terminal,
) -> Result<(), Trouble> {
    let session = random_request_id(&OsEntropy::default())
        .map_err(|error| Trouble::failed(format!("no randomness to name this conversation with: {error}")))?;
    let mut server =
        server(config, open).with_caller(caller(&args.served).with_session(session)).with_changes(fleet.changes());
    if let ([upstream], true) = (behind, args.is_one()) {
        // What one server's tools are called is nobody else's business: its client goes on with the names that it knows.
        server = server.with_prefix(upstream.prefix());
    }
    if terminal.err.is_terminal() {
        terminal
            .err
            .line("callgate stands in front of what it was given, on standard input and output; Ctrl-C ends it");
    }
    tokio::select! {
        tried = tokio::time::timeout(PATIENCE, fleet.tried()) => drop(tried),
        () = interrupt::signalled() => return Ok(()),
    }
    for note in unmatched(config, behind, fleet) {
        terminal.err.line(format_args!("callgate: {}", visible(&note)));
    }
    let served = server.serve_lines(tokio::io::stdin(), tokio::io::stdout(), interrupt::signalled()).await;
    served.map_err(|error| Trouble::failed(error.to_string()))
}

impl From<UpstreamError> for Trouble {
    fn from(error: UpstreamError) -> Self {
        match error {
            UpstreamError::Pins(_) => Self::refused(Code::StoreUnavailable, error.to_string()),
            UpstreamError::NoReach(_) | UpstreamError::NoVariable { .. } => Self::usage(error.to_string()),
        }
    }
}

/// The servers that the command line names.
fn behind(args: &ProxyArgs, config: &Config) -> Result<Vec<Upstream>, Trouble> {
    let declared = |name: &str| config.upstreams.iter().find(|upstream| upstream.name == name);
    let reach = match (&args.url, args.command.as_slice()) {
        (Some(url), _) => Some(Reach::Url(url.clone())),
        (None, []) => None,
        (None, command) => {
            let words = command.iter().map(|word| word.to_str().map(str::to_owned)).collect::<Option<_>>();
            let command = words.ok_or_else(|| Trouble::usage("the command has a word that is no text"))?;
            // Where the client started it, which is where it would have started the server.
            Some(Reach::Program { command, cwd: std::env::current_dir().ok() })
        }
    };
    let Some(reach) = reach else {
        if args.name.is_some() {
            return Err(Trouble::usage("--name is the name of a server that is given here")
                .with_help("give a command behind --, or --url; servers of callgate.toml are named without --name"));
        }
        return named(args, config);
    };
    let name = args.name.as_deref().unwrap_or(Upstream::UNNAMED);
    let mut upstream = declared(name).cloned().unwrap_or_else(|| Upstream::undeclared(name));
    if upstream.reach.is_some() {
        return Err(Trouble::usage(format!("callgate.toml says already how {} is reached", visible(name)))
            .with_help(format!("`callgate proxy {}` uses that; another server needs another name", visible(name))));
    }
    upstream.reach = Some(reach);
    upstream.env.extend(args.env.iter().cloned());
    upstream.headers.extend(args.headers.iter().cloned());
    Ok(vec![upstream])
}

/// Servers of the configuration.
fn named(args: &ProxyArgs, config: &Config) -> Result<Vec<Upstream>, Trouble> {
    if args.upstreams.is_empty() {
        let known: Vec<_> = config.upstreams.iter().filter(|upstream| upstream.reach.is_some()).cloned().collect();
        if known.is_empty() {
            return Err(Trouble::usage("there is no server to stand in front of").with_help(
                "give its command: callgate proxy -- COMMAND...; or name servers in callgate.toml under [[upstream]]",
            ));
        }
        return Ok(known);
    }
    let mut named: Vec<Upstream> = Vec::new();
    for name in &args.upstreams {
        let upstream = config.upstreams.iter().find(|upstream| upstream.name == *name);
        let upstream = upstream.ok_or_else(|| {
            let names: Vec<_> = config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
            let help =
                if names.is_empty() { "it names none".to_owned() } else { format!("it names {}", names.join(", ")) };
            Trouble::usage(format!("callgate.toml names no upstream {}", visible(name))).with_help(help)
        })?;
        if !named.iter().any(|other| other.name == upstream.name) {
            named.push(upstream.clone());
        }
    }
    Ok(named)
}
