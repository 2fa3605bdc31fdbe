//! `callgate serve`: the tools as an MCP server.

use std::time::Duration;

use callgate_async::runtime::Tokio;
use callgate_core::digest::{DigestBuilder, DigestKey};
use callgate_mcp::server::{Caller, McpServer};
use callgate_std::context::random_request_id;
use callgate_std::entropy::OsEntropy;

use crate::assemble::{OpenAsync, Plan};
use crate::command_line::{ServeArgs, ServedArgs};
use crate::config::Config;
use crate::exit::Exit;
use crate::interrupt;
use crate::terminal::{Terminal, WARN, visible};
use crate::trouble::Trouble;

use super::Setting;

/// How long calls that are in flight when the server goes down have to end by themselves.
pub(super) const FAREWELL: Duration = Duration::from_secs(5);

pub(super) fn run(args: &ServeArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let config = setting.config()?;
    let plan = Plan::of(&config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Trouble::failed(format!("no threads to serve with: {error}")))?;
    let open = plan.open_async(Tokio::new(runtime.handle().clone()), setting.log.clone())?;
    interrupt::listen();
    let served = runtime.block_on(async {
        let served = serve(args, &config, &open, terminal).await;
        // Every call gets its record before this process ends.
        let down = open.gate.shutdown(FAREWELL).await;
        if down.running > 0 {
            let warning = terminal.err.brush().paint(WARN, "warning");
            terminal.err.line(format_args!("{warning}: {} calls could not be stopped", down.running));
        }
        served
    });
    // A thread may wait for input that never comes.
    runtime.shutdown_background();
    if let Some(error) = open.close() {
        let warning = terminal.err.brush().paint(WARN, "warning");
        terminal.err.line(format_args!("{warning}: the audit log: {}", visible(&error)));
    }
    served?;
    Ok(interrupt::signal().map_or(Exit::Success, Exit::Interrupted))
}

async fn serve(args: &ServeArgs, config: &Config, open: &OpenAsync, terminal: &mut Terminal) -> Result<(), Trouble> {
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
    let mut caller = if channel.is_none() && principal.is_none() && scopes.is_empty() {
        Caller::stdio()
    } else {
        Caller::new(channel.as_deref().unwrap_or("mcp")).with_scopes(scopes)
    };
    if let Some(principal) = principal {
        caller = caller.with_principal(principal.as_str());
    }
    match tenant {
        Some(tenant) => caller.with_tenant(tenant.as_str()),
        None => caller,
    }
}
