//! `[[upstream]]`: MCP servers whose tools pass the gate.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callgate_core::name::check_tool_name;

use super::confirmation::{APPROVER_SCOPE_KEY, CONFIRM_KEY, Confirm, confirm};
use super::decode::{Entry, Key, Keys, Table};
use super::exec::{ExecTool, env};
use super::problem::quoted;
use super::source::Location;
use super::tool::{COST_KEY, SCOPES_KEY, TIMEOUT, TIMEOUT_KEY, cost, scopes};
use super::toolkit::Toolkit;

/// An MCP server in front of which the gate stands.
///
/// Its tools have names that start with the server's own name and a dot, in rules, in records and wherever several servers stand
/// beside each other.
#[derive(Clone, PartialEq, Debug)]
pub struct Upstream {
    /// The name: 1 to 40 of `A-Z a-z 0-9 _ -`.
    pub name: String,
    /// How it is reached; `None` when whoever starts `callgate proxy` says it.
    pub reach: Option<Reach>,
    /// The environment variables that a program of its sees beside those of [`Upstream::BASE_ENV`]. Names only.
    pub env: Vec<String>,
    /// Headers of requests over HTTP: the header, and the environment variable that holds its value.
    pub headers: BTreeMap<String, String>,
    /// Tools of which the operator vouches that they change nothing: names as the server gives them, or the start of names and `*`.
    pub read_only: Vec<String>,
    /// Who confirms calls of the tools that can change something.
    pub confirm: Confirm,
    /// Scopes, one of which a caller must hold; none asked when empty.
    pub scopes: Vec<String>,
    /// What one call costs at the rate limiter, where it isn't the usual.
    pub cost: Option<u32>,
    /// How long one call may take.
    pub timeout: Duration,
    /// How many bytes one message of the server, and one result, may have.
    pub max_output: u64,
    /// How many calls may be in flight at once; as many again wait.
    pub max_in_flight: u32,
    /// Where the file states it.
    pub location: Location,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "whoever connects must decide for each")]
pub enum Reach {
    /// A program of its own, over its standard input and output.
    Program {
        /// The program, and its arguments. Never a shell's line.
        command: Vec<String>,
        /// Where it runs; the directory of the file when `None`.
        cwd: Option<PathBuf>,
    },
    /// A server elsewhere, over streamable HTTP.
    Url(String),
}

impl Upstream {
    /// The environment variables that every program sees: without them hardly any finds itself.
    pub const BASE_ENV: [&str; 7] = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER"];
    /// The name of one that was not declared.
    pub const UNNAMED: &str = "upstream";
    /// How many bytes a message may have unless the file says otherwise.
    pub const DEFAULT_MAX_OUTPUT: u64 = 4 << 20;
    /// How many calls may be in flight unless the file says otherwise.
    pub const DEFAULT_MAX_IN_FLIGHT: u32 = 64;
    /// How long one call may take unless the file says otherwise.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

    /// One about which the file says nothing.
    #[must_use]
    pub fn undeclared(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            reach: None,
            env: Vec::new(),
            headers: BTreeMap::new(),
            read_only: Vec::new(),
            confirm: Confirm::Nobody,
            scopes: Vec::new(),
            cost: None,
            timeout: Self::DEFAULT_TIMEOUT,
            max_output: Self::DEFAULT_MAX_OUTPUT,
            max_in_flight: Self::DEFAULT_MAX_IN_FLIGHT,
            location: Location { line: 1, column: 1 },
        }
    }

    /// Whether `name` can be the name of one.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        let shaped = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        !name.is_empty() && name.len() <= MAX_NAME && shaped
    }

    /// How the names of its tools start.
    #[must_use]
    pub fn prefix(&self) -> String {
        format!("{}.", self.name)
    }

    /// Whether the operator vouches that the tool, by the server's own name for it, changes nothing.
    #[must_use]
    pub fn vouches_for(&self, tool: &str) -> bool {
        self.read_only.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => tool.starts_with(start),
            None => tool == pattern,
        })
    }
}

const MAX_NAME: usize = 40;
const MAX_OUTPUT: RangeInclusive<u64> = 1024..=64 << 20;

pub(super) static KEYS: Keys = Keys {
    table: "upstream",
    keys: &[
        Key { name: "name", takes: "a name in quotes", example: "\"files\"" },
        Key {
            name: "command",
            takes: "a list: the program and its arguments, in quotes",
            example: "[\"npx\", \"-y\", \"@modelcontextprotocol/server-filesystem\", \"/srv/files\"]",
        },
        Key { name: "cwd", takes: "a path in quotes", example: "\"data\"" },
        Key { name: "env", takes: "a list of names in quotes", example: "[\"API_KEY\"]" },
        Key { name: "url", takes: "a URL in quotes", example: "\"http://127.0.0.1:8080/mcp\"" },
        Key {
            name: "headers",
            takes: "a table of environment variables by header",
            example: "{ Authorization = \"SEARCH_AUTHORIZATION\" }",
        },
        Key { name: "read_only", takes: "a list of tools in quotes", example: "[\"read_file\", \"list_*\"]" },
        CONFIRM_KEY,
        APPROVER_SCOPE_KEY,
        SCOPES_KEY,
        TIMEOUT_KEY,
        COST_KEY,
        Key { name: "max_output", takes: "a size in quotes, such as \"4MiB\"", example: "\"4MiB\"" },
        Key { name: "max_in_flight", takes: "a whole number", example: "64" },
    ],
};

pub(super) fn read(entry: &Entry<'_>, dir: &Path, exec: &[ExecTool]) -> Vec<Upstream> {
    let mut upstreams: Vec<Upstream> = Vec::new();
    for entry in entry.list() {
        let Some((upstream, name)) = upstream(&entry, dir) else { continue };
        if let Some(name) = name {
            check_unique(&upstream, &name, &upstreams, exec);
        }
        upstreams.push(upstream);
    }
    upstreams
}

/// A name that differs only in case, or is that of a toolkit, would make two tools of one name, or nearly (invariant G3).
fn check_unique(upstream: &Upstream, entry: &Entry<'_>, before: &[Upstream], exec: &[ExecTool]) {
    let taken = |other: &str| !upstream.name.is_empty() && upstream.name.eq_ignore_ascii_case(other);
    let among = |tool: &&ExecTool| tool.name.split_once('.').is_some_and(|(start, _)| taken(start));
    if let Some(other) = before.iter().find(|other| taken(&other.name)) {
        let message =
            format!("the name {} is taken by the upstream on line {}", quoted(&other.name), other.location.line);
        entry.report_with(message, Some("upstreams have names of their own, also when case is ignored".into()));
    } else if let Some(kit) = Toolkit::ALL.into_iter().find(|kit| taken(kit.as_str())) {
        let message = format!("the name `{}` is taken by a built-in toolkit", kit.as_str());
        entry.report_with(
            message,
            Some("the names of its tools would stand among the toolkit's: choose another".into()),
        );
    } else if let Some(tool) = exec.iter().find(among) {
        let message = format!(
            "the tool on line {} has a name that starts with {}",
            tool.location.line,
            quoted(&upstream.prefix())
        );
        entry.report_with(
            message,
            Some("the names of the upstream's tools would stand beside it: choose another".into()),
        );
    }
}

fn upstream<'d>(entry: &Entry<'d>, dir: &Path) -> Option<(Upstream, Option<Entry<'d>>)> {
    let table = entry.table(&KEYS)?;
    let name = table.require("name");
    let default = Upstream::undeclared("");
    let upstream = Upstream {
        name: name.as_ref().and_then(own_name).unwrap_or_default(),
        reach: reach(&table, dir),
        env: env(&table),
        headers: headers(&table),
        read_only: read_only(&table),
        confirm: confirm(&table).unwrap_or(default.confirm),
        scopes: scopes(&table),
        cost: cost(&table),
        timeout: table.get("timeout").and_then(|entry| entry.duration(TIMEOUT)).unwrap_or(default.timeout),
        max_output: table.get("max_output").and_then(|entry| entry.size(MAX_OUTPUT)).unwrap_or(default.max_output),
        max_in_flight: table
            .get("max_in_flight")
            .and_then(|entry| entry.natural(1..=10_000))
            .unwrap_or(default.max_in_flight),
        location: table.location(),
    };
    Some((upstream, name))
}

fn own_name(entry: &Entry<'_>) -> Option<String> {
    let name = entry.text()?;
    let shaped = Upstream::is_name(name);
    if !shaped {
        entry.report(format!("{} is not 1 to {MAX_NAME} of A-Z a-z 0-9 _ -", quoted(name)));
    }
    shaped.then(|| name.to_owned())
}

fn reach(table: &Table<'_>, dir: &Path) -> Option<Reach> {
    let (command, url) = (table.get("command"), table.get("url"));
    let cwd = table.get("cwd");
    if let Some(cwd) = cwd.as_ref().filter(|_| command.is_none()) {
        cwd.report_key("`cwd` says where a program runs, and there is no `command`", None);
    }
    if let Some(headers) = table.get("headers").filter(|_| command.is_some()) {
        headers.report_key("`headers` are sent over HTTP, and this is a program", Some("a program gets `env`".into()));
    }
    if let Some(env) = table.get("env").filter(|_| url.is_some()) {
        env.report_key("`env` is what a program sees, and this is reached over HTTP", Some("it gets `headers`".into()));
    }
    match (command, url) {
        (Some(_), Some(url)) => {
            let help = "keep `command` for a program that is started, or `url` for a server that runs".into();
            url.report_key("an upstream has either `command` or `url`", Some(help));
            None
        }
        (Some(command), None) => {
            let words = command.filled_list("name the program, and its arguments behind it");
            let command = words.iter().filter_map(|word| word.text().map(str::to_owned)).collect::<Vec<_>>();
            let cwd = cwd.and_then(|entry| entry.filled_text().map(|path| dir.join(path)));
            Some(Reach::Program { command, cwd })
        }
        (None, Some(url)) => self::url(&url).map(Reach::Url),
        (None, None) => None,
    }
}

/// What is sent to a server crosses no network in the clear.
fn url(entry: &Entry<'_>) -> Option<String> {
    let url = entry.filled_text()?;
    match check_url(url) {
        Ok(()) => Some(url.to_owned()),
        Err(reason) => {
            entry.report(format!("{} {reason}", quoted(url)));
            None
        }
    }
}

/// Whether a server can be reached by this URL: `https`, or `http` to this machine.
///
/// # Errors
/// Says what is wrong with it.
pub(crate) fn check_url(url: &str) -> Result<(), &'static str> {
    let (clear, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (false, rest),
        (None, Some(rest)) => (true, rest),
        (None, None) => return Err("does not start with https:// or http://"),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("holds a user or a password; send it as a header, whose value is in an environment variable");
    }
    if !url.bytes().all(|b| b.is_ascii_graphic()) {
        return Err("has a character that a URL has not");
    }
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    if host.is_empty() {
        return Err("names no host");
    }
    let local = host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if clear && !local {
        return Err("would cross the network in the clear; use https://");
    }
    Ok(())
}

fn headers(table: &Table<'_>) -> BTreeMap<String, String> {
    let read = |(name, entry): (&str, Entry<'_>)| {
        if let Err(reason) = check_header(name) {
            entry.report_key(format!("the header {} {reason}", quoted(name)), None);
        }
        let variable = entry.filled_text()?;
        let shaped = is_variable(variable);
        if !shaped {
            let help = "write the name of an environment variable: what it holds is sent, and stays out of this file";
            let message = format!("{} is no name of an environment variable", quoted(variable));
            entry.report_with(message, Some(help.into()));
        }
        shaped.then(|| (name.to_owned(), variable.to_owned()))
    };
    table.get("headers").iter().flat_map(Entry::named).filter_map(read).collect()
}

/// Whether `name` can be the name of an environment variable.
pub(crate) fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether a header of this name may be added to requests.
///
/// # Errors
/// Says why not.
pub(crate) fn check_header(name: &str) -> Result<(), &'static str> {
    let own = ["accept", "connection", "content-length", "content-type", "host", "last-event-id", "transfer-encoding"];
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)) {
        return Err("is no name of a header");
    }
    let lower = name.to_ascii_lowercase();
    if own.contains(&lower.as_str()) || lower.starts_with("mcp-") {
        return Err("belongs to the protocol");
    }
    Ok(())
}

fn read_only(table: &Table<'_>) -> Vec<String> {
    let Some(tools) = table.get("read_only") else {
        return Vec::new();
    };
    tools.set(&tools.filled_list("with no such tool, leave the key out"), |item| {
        let pattern = item.text()?;
        let start = pattern.strip_suffix('*').unwrap_or(pattern);
        if let Err(reason) = check_tool_name(start) {
            let help = "a tool as the server names it, or the start of names and *: \"read_file\", \"list_*\"";
            item.report_with(format!("{} {reason}", quoted(pattern)), Some(help.into()));
            return None;
        }
        Some(pattern.to_owned())
    })
}
