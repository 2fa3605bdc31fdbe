//! MCP servers behind the gate: from what the configuration and the command line say of them to a fleet of servers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::sync::Arc;

use callgate_core::context::Scopes;
use callgate_core::tool::{ConfirmBy, ToolSpec};
use callgate_mcp::pins::{PinFile, PinFileError};
use callgate_mcp::proxy::{Adjust, Event, Fleet, Member, Offer};
use callgate_mcp::upstream::{Health, Http, Program, Promise, Reach, Settings};
use callgate_std::clock::{Clock as _, SystemClock};
use callgate_std::registry::Registry;
use callgate_std::tool::ToolBuilder;

use super::tools::with_rules;
use crate::config::{self, Config, ToolAdjustment, Upstream};
use crate::terminal::visible_lines;

/// Why servers can't be put behind the gate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// Nobody says how a server is reached.
    #[error(
        "the upstream {0} has neither a command nor a URL: its servers are those that `callgate proxy --name {0}` is given"
    )]
    NoReach(String),
    /// A header has no value.
    #[error(
        "the header {header} of the upstream {upstream} is to hold what the environment variable {variable} holds, which is not set"
    )]
    NoVariable { upstream: String, header: String, variable: String },
    /// Pins can't be kept.
    #[error("pins can't be kept, so nothing runs: {0}")]
    Pins(#[from] PinFileError),
}

/// Starts the servers. `own` are the tools that stand beside theirs. Has to be called on a runtime of tokio.
///
/// # Errors
/// Something about a server that shows before it is started.
pub(crate) fn start(
    config: &Config,
    upstreams: &[Upstream],
    own: Registry,
    pins: std::path::PathBuf,
) -> Result<Fleet, UpstreamError> {
    let pins = PinFile::open(pins)?;
    let members = upstreams.iter().map(|upstream| member(config, upstream)).collect::<Result<Vec<_>, _>>()?;
    Ok(Fleet::start(own, members, pins, || SystemClock::default().now().wall, Arc::new(|event| tell(&event))))
}

/// Whether the servers that the configuration names could be started: everything that shows before they are. One that `callgate proxy` is
/// given is not reached by the configuration.
///
/// # Errors
/// The first server that could not.
pub(crate) fn check(config: &Config) -> Result<(), UpstreamError> {
    let named = config.upstreams.iter().filter(|upstream| upstream.reach.is_some());
    named.map(|upstream| member(config, upstream)).try_for_each(|member| member.map(drop))
}

/// The servers whose program or directory is not on this machine. They keep no other server from being used.
pub(crate) fn missing_programs(config: &Config) -> Vec<String> {
    let mut missing = Vec::new();
    for upstream in &config.upstreams {
        let Some(config::Reach::Program { command, cwd }) = &upstream.reach else { continue };
        let dir = cwd.clone().unwrap_or_else(|| config.dir.clone());
        if !dir.is_dir() {
            missing.push(format!("upstream {}: there is no directory {}", upstream.name, dir.display()));
        }
        let program = command.first().map(String::as_str).unwrap_or_default();
        let there = if program.contains('/') {
            dir.join(program).is_file()
        } else {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
        };
        if !there {
            missing.push(format!("upstream {}: there is no program {program} here", upstream.name));
        }
    }
    missing
}

/// What an operator has to know goes to standard error, which a client keeps in its log.
fn tell(event: &Event) {
    let text = visible_lines(&event.to_string());
    match event {
        Event::Server { health: Health::Starting | Health::Up | Health::Ended, .. } => tracing::info!("{text}"),
        // Nobody reads: there is nobody to tell.
        _ => drop(writeln!(std::io::stderr(), "callgate: {text}")),
    }
}

fn member(config: &Config, upstream: &Upstream) -> Result<Member, UpstreamError> {
    let reach = reach(config, upstream)?;
    let bytes = usize::try_from(upstream.max_output).unwrap_or(usize::MAX);
    let in_flight = usize::try_from(upstream.max_in_flight).unwrap_or(usize::MAX);
    // The name was checked when it was read.
    let settings = Settings::new(upstream.name.as_str(), reach)
        .map_err(|_| UpstreamError::NoReach(upstream.name.clone()))?
        .with_max_message(bytes)
        .with_max_in_flight(in_flight);
    let prefix = upstream.prefix();
    let adjusted = |(name, adjustment): (&String, &ToolAdjustment)| {
        name.starts_with(&prefix).then(|| (name.clone(), adjustment.clone()))
    };
    let adjustments = config.tools.iter().filter_map(adjusted).collect();
    Ok(Member::new(settings, Asked { upstream: upstream.clone(), adjustments }))
}

fn reach(config: &Config, upstream: &Upstream) -> Result<Reach, UpstreamError> {
    match &upstream.reach {
        None => Err(UpstreamError::NoReach(upstream.name.clone())),
        Some(config::Reach::Program { command, cwd }) => {
            let mut words = command.iter().map(OsString::from);
            let program = words.next().unwrap_or_default();
            let names = Upstream::BASE_ENV.iter().copied().chain(upstream.env.iter().map(String::as_str));
            let env = names.filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?))).collect();
            let cwd = cwd.clone().or_else(|| config.file().is_some().then(|| config.dir.clone()));
            Ok(Reach::Program(Program { program, args: words.collect(), env, cwd }))
        }
        Some(config::Reach::Url(url)) => {
            let header = |(header, variable): (&String, &String)| {
                let missing = || UpstreamError::NoVariable {
                    upstream: upstream.name.clone(),
                    header: header.clone(),
                    variable: variable.clone(),
                };
                Ok((header.clone(), std::env::var(variable).map_err(|_| missing())?))
            };
            let headers = upstream.headers.iter().map(header).collect::<Result<_, UpstreamError>>()?;
            Ok(Reach::Http(Http { url: url.clone(), headers }))
        }
    }
}

/// What the configuration asks of the tools of one server.
struct Asked {
    upstream: Upstream,
    adjustments: BTreeMap<String, ToolAdjustment>,
}

impl Adjust for Asked {
    fn promise(&self, offer: Offer<'_>) -> Promise {
        Promise::read_only(self.upstream.vouches_for(&offer.definition.name))
    }

    fn adjust(&self, offer: Offer<'_>, tool: ToolBuilder) -> Result<Option<ToolBuilder>, String> {
        let confirm = if offer.mutating { self.upstream.confirm.by() } else { ConfirmBy::Nobody };
        let scopes = self.upstream.scopes.join(" ");
        let mut tool = tool.timeout(self.upstream.timeout).confirm(confirm);
        if !self.upstream.scopes.is_empty() {
            tool = tool.scopes(&self.upstream.scopes);
        }
        if let Some(cost) = self.upstream.cost {
            tool = tool.cost(cost);
        }
        let Some(adjustment) = self.adjustments.get(offer.name) else { return Ok(Some(tool)) };
        if adjustment.disabled {
            return Ok(None);
        }
        let spec = ToolSpec {
            mutating: offer.mutating,
            confirm,
            scopes: Scopes::new(&scopes),
            ..ToolSpec::new(offer.name, &self.upstream.name)
        };
        let adjusted = adjustment
            .apply(&spec)
            .map_err(|faults| faults.into_iter().map(|fault| fault.message).collect::<Vec<_>>().join("; "))?;
        tool = with_rules(tool.confirm(adjusted.confirm), &adjusted.fields);
        if !adjustment.scopes.is_empty() {
            tool = tool.scopes(&adjustment.scopes);
        }
        if let Some(timeout) = adjustment.timeout {
            tool = tool.timeout(timeout);
        }
        if let Some(cost) = adjustment.cost {
            tool = tool.cost(cost);
        }
        Ok(Some(tool))
    }
}

/// What the configuration says of tools that no server has: a rule that matches nothing is less strict than it reads (case O1).
pub(crate) fn unmatched(config: &Config, upstreams: &[Upstream], fleet: &Fleet) -> Vec<String> {
    let there = fleet.registry().load();
    let offered = |name: &str| {
        fleet.upstreams().iter().any(|upstream| {
            let of = name.strip_prefix(upstream.name()).and_then(|rest| rest.strip_prefix('.'));
            // One that does not answer may have any tool.
            of.is_some_and(|tool| upstream.definitions().is_none_or(|all| all.iter().any(|one| one.name == tool)))
        })
    };
    let ours = |name: &&str| upstreams.iter().any(|upstream| name.starts_with(&upstream.prefix()));
    let missing = |name: &&str| ours(name) && !name.ends_with('*') && !there.has(name) && !offered(name);
    let adjusted = config.tools.keys().map(|name| (name.as_str(), format!("[tools.\"{name}\"]")));
    let ruled = config.rules.iter().filter_map(|rule| Some((rule.tool.as_deref()?, format!("rule {}", rule.id))));
    let limited = config.quotas.tools.keys().map(|name| (name.as_str(), format!("[quotas.tools.\"{name}\"]")));
    let named = adjusted.chain(ruled).chain(limited);
    named
        .filter(|(name, _)| missing(name))
        .map(|(name, place)| format!("{place} is about {name}, which no server has"))
        .collect()
}
