//! `callgate serve`: the tools as an MCP server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use callgate_async::runtime::Tokio;
use callgate_core::digest::{Digest, DigestBuilder, DigestKey};
use callgate_mcp::auth::new_token;
use callgate_mcp::http::{Endpoint, Limits, serve as serve_http};
use callgate_mcp::server::{Caller, McpServer};
use callgate_std::context::random_request_id;
use callgate_std::entropy::OsEntropy;
use tokio::runtime::{self, Runtime};

use crate::assemble::{OpenAsync, Plan, Served};
use crate::command_line::{ServeArgs, ServedArgs};
use crate::config::Config;
use crate::exit::Exit;
use crate::interrupt;
use crate::terminal::{Terminal, WARN};
use crate::trouble::Trouble;

use super::Setting;

/// How long calls that are in flight when the server goes down have to end by themselves.
const FAREWELL: Duration = Duration::from_secs(5);

pub(super) fn run(args: &ServeArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    if args.new_token {
        return token(args, terminal);
    }
    let config = setting.config()?;
    let served = args.http.map(|address| served(args, address, &config)).transpose()?;
    let plan = Plan::of(&config)?;
    let runtime = threads()?;
    let open = plan.open_async(Tokio::new(runtime.handle().clone()), setting.log.clone())?;
    super::look_after(&open.stores.upkeep, terminal);
    interrupt::listen();
    let served = runtime.block_on(async {
        let _keeper = Keeper::start(&open, &config);
        let served = match served {
            Some((address, served)) => over_http(address, served, &config, &open, terminal).await,
            None => over_lines(args, &config, &open, terminal).await,
        };
        shut_down(&open, terminal).await;
        served
    });
    close(runtime, open, terminal);
    served?;
    Ok(interrupt::signal().map_or(Exit::Success, Exit::Interrupted))
}

/// What a gate is served on.
pub(super) fn threads() -> Result<Runtime, Trouble> {
    runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Trouble::failed(format!("no threads to serve with: {error}")))
}

/// Looks after the stores of a gate from time to time, until it is dropped.
pub(super) struct Keeper(tokio::task::JoinHandle<()>);

impl Keeper {
    pub(super) fn start(open: &OpenAsync, config: &Config) -> Self {
        let (upkeep, pause) = (Arc::clone(&open.stores.upkeep), config.audit.upkeep);
        Self(tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let upkeep = Arc::clone(&upkeep);
                if let Err(error) = tokio::task::spawn_blocking(move || upkeep.run_and_tell()).await {
                    tracing::error!(%error, "the stores were not looked after");
                }
            }
        }))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Takes no more calls and lets those in flight end, so that each has its record before this process ends.
pub(super) async fn shut_down(open: &OpenAsync, terminal: &mut Terminal) {
    let down = open.gate.shutdown(FAREWELL).await;
    if down.running > 0 {
        let warning = terminal.err.brush().paint(WARN, "warning");
        terminal.err.line(format_args!("{warning}: {} calls could not be stopped", down.running));
    }
}

/// Writes what is still to be written, and leaves the threads behind: one may wait for input that never comes.
pub(super) fn close(runtime: Runtime, open: OpenAsync, terminal: &mut Terminal) {
    runtime.shutdown_background();
    super::warn_of_log(open.close(), terminal);
}

async fn over_lines(
    args: &ServeArgs,
    config: &Config,
    open: &OpenAsync,
    terminal: &mut Terminal,
) -> Result<(), Trouble> {
    let server = server(config, open);
    let session = random_request_id(&OsEntropy::default())
        .map_err(|error| Trouble::failed(format!("no randomness to name this conversation with: {error}")))?;
    let server = server.with_caller(caller(&args.served).with_session(session));
    if terminal.err.is_terminal() {
        terminal.err.line("callgate serves MCP on standard input and output; Ctrl-C ends it");
    }
    let served = server.serve_lines(tokio::io::stdin(), tokio::io::stdout(), interrupt::signalled()).await;
    served.map_err(|error| Trouble::failed(error.to_string()))
}

/// Who may come in at an address. A caller that the command line names is everybody who comes without a token; that is for this
/// machine alone.
fn served(args: &ServeArgs, address: SocketAddr, config: &Config) -> Result<(SocketAddr, Served), Trouble> {
    let mut served = Served::of(config)?;
    if is_named(&args.served) {
        if !address.ip().is_loopback() {
            let trouble = Trouble::usage(format!("{address} can be reached from elsewhere, so callers need a token"));
            return Err(
                trouble.with_help("leave --principal and --scope out, and name tokens in [serve] of callgate.toml")
            );
        }
        served.authenticator = served.authenticator.with_anyone(caller(&args.served));
    }
    if served.authenticator.is_empty() {
        let trouble = Trouble::usage("nobody could come in: there is no token in [serve] of the configuration");
        return Err(trouble.with_help(
            "`callgate serve --new-token` makes one; --principal and --scope let in whoever is on this machine",
        ));
    }
    Ok((address, served))
}

async fn over_http(
    address: SocketAddr,
    served: Served,
    config: &Config,
    open: &OpenAsync,
    terminal: &mut Terminal,
) -> Result<(), Trouble> {
    let unusable = |error: std::io::Error| Trouble::failed(format!("{address} can't be served at: {error}"));
    let listener = tokio::net::TcpListener::bind(address).await.map_err(unusable)?;
    let address = listener.local_addr().map_err(unusable)?;
    let Served { authenticator, hosts, origins } = served;
    let endpoint = Endpoint::new(server(config, open), authenticator).with_hosts(hosts).with_origins(origins);
    terminal.err.line(format_args!("callgate serves MCP at http://{address}/mcp; Ctrl-C ends it"));
    serve_http(endpoint, listener, Limits::default(), interrupt::signalled()).await;
    Ok(())
}

/// Makes a token. It is shown once and kept nowhere.
fn token(args: &ServeArgs, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let token = new_token(&OsEntropy::default())
        .map_err(|error| Trouble::failed(format!("no randomness for a token: {error}")))?;
    let hash = Digest::of_bytes(token.as_bytes());
    let principal = args.served.principal.as_deref().unwrap_or("alice");
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let scopes: Vec<_> = args.served.scopes.iter().map(|scope| quoted(scope)).collect();
    terminal.out.line(&token);
    terminal.err.line("This is the token; it is shown once. For callgate.toml:\n");
    terminal.err.line(format_args!("[[serve.tokens]]\nprincipal = {}\nsha256 = \"{hash}\"", quoted(principal)));
    if !scopes.is_empty() {
        terminal.err.line(format_args!("scopes = [{}]", scopes.join(", ")));
    }
    Ok(Exit::Success)
}

/// The server of a gate, as the configuration has it.
pub(super) fn server(config: &Config, open: &OpenAsync) -> McpServer {
    // One key for all processes that share these files, and for this purpose alone.
    let key = DigestBuilder::keyed("callgate/mcp/state-key/v1", &DigestKey::new(open.stores.digest_key)).finish();
    McpServer::new(open.gate.clone(), *key.as_bytes()).with_patience(config.confirmation.ttl)
}

/// Who is at the other end of standard input. With nothing said of the caller it is the program that started this one; as soon as
/// something is, nothing is made up (invariants A3, F2).
pub(super) fn caller(args: &ServedArgs) -> Caller {
    let ServedArgs { channel, principal, scopes, tenant } = args;
    let mut caller = if is_named(args) {
        Caller::new(channel.as_deref().unwrap_or("mcp")).with_scopes(scopes)
    } else {
        Caller::stdio()
    };
    if let Some(principal) = principal {
        caller = caller.with_principal(principal.as_str());
    }
    match tenant {
        Some(tenant) => caller.with_tenant(tenant.as_str()),
        None => caller,
    }
}

/// Whether the command line says anything of the caller.
const fn is_named(args: &ServedArgs) -> bool {
    args.channel.is_some() || args.principal.is_some() || !args.scopes.is_empty()
}
