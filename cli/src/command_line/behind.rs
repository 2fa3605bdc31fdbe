//! What may stand on the command line about MCP servers behind the gate.

use std::ffi::OsString;

use clap::{Args, Subcommand, ValueHint};

use super::ServedArgs;
use crate::config::{Upstream, check_header, check_url, is_variable};

const PROXY_EXAMPLES: &str = "\
Examples:
  # in front of one server, whose tools keep their names
  callgate proxy -- npx -y @modelcontextprotocol/server-filesystem /srv/files
  # the same under a name, so that rules in callgate.toml can be about it
  callgate proxy --name files --env API_KEY -- npx -y @modelcontextprotocol/server-filesystem /srv/files
  # one that runs elsewhere
  callgate proxy --name search --url https://search.example/mcp --header Authorization=SEARCH_AUTHORIZATION
  # all that callgate.toml names, or some of them, as NAME.TOOL
  callgate proxy
  callgate proxy files search

It speaks MCP on its standard input and output. A server sees no environment
variable but PATH, HOME and the like and those that are named, and nothing
that came from the client but the name and the arguments of a call.";

#[derive(Args, Debug)]
#[command(after_help = PROXY_EXAMPLES)]
pub(crate) struct ProxyArgs {
    /// Only these of the servers that callgate.toml names
    #[arg(value_name = "UPSTREAM", conflicts_with_all = ["url", "command"])]
    pub(crate) upstreams: Vec<String>,
    /// The name of the server, for rules, records and pins [default: upstream]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) name: Option<String>,
    /// Where the server is, instead of a command
    #[arg(long, value_name = "URL", value_parser = url, value_hint = ValueHint::Url, conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// A header of each request, and the environment variable that holds its value; may be given several times
    #[arg(long = "header", value_name = "NAME=VARIABLE", value_parser = header, requires = "url")]
    pub(crate) headers: Vec<(String, String)>,
    /// An environment variable that the command sees; may be given several times
    #[arg(long = "env", value_name = "VARIABLE", value_parser = variable, requires = "command")]
    pub(crate) env: Vec<String>,
    #[command(flatten)]
    pub(crate) served: ServedArgs,
    /// The program that is the server, and its arguments
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

impl ProxyArgs {
    /// Whether it is about one server, which is given here.
    pub(crate) const fn is_one(&self) -> bool {
        self.url.is_some() || !self.command.is_empty()
    }
}

const PINS_EXAMPLES: &str = "\
Examples:
  callgate pins list --waiting
  callgate pins show files.read_file
  callgate pins accept files.read_file
  # all that waits of a server, after a look at it
  callgate pins accept files

The definition of each tool is pinned when it is seen first. A tool that does
not look so any more is withheld until it is accepted here; so is one that has
the name of another server's tool, or is a copy of a tool under another name.";

#[derive(Subcommand, Debug)]
#[command(after_help = PINS_EXAMPLES)]
pub(crate) enum PinsCommand {
    /// List the tools that were seen, and those that wait to be accepted
    List(PinsListArgs),
    /// Show what a tool is, and what has changed
    Show(PinArgs),
    /// Accept what waits of a tool
    Accept(PinArgs),
    /// Forget a tool: it is pinned anew when it is seen next
    Remove(PinArgs),
}

#[derive(Args, Debug)]
pub(crate) struct PinsListArgs {
    /// Only what waits to be accepted
    #[arg(long)]
    pub(crate) waiting: bool,
    /// Print the list as JSON, definitions included
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct PinArgs {
    /// The tool, as SERVER.TOOL, or all tools of a server, as SERVER
    #[arg(value_name = "TOOL", required = true)]
    pub(crate) names: Vec<String>,
}

fn name(text: &str) -> Result<String, &'static str> {
    if Upstream::is_name(text) { Ok(text.to_owned()) } else { Err("a name is 1 to 40 of A-Z a-z 0-9 _ -") }
}

fn url(text: &str) -> Result<String, String> {
    check_url(text).map(|()| text.to_owned()).map_err(|reason| format!("it {reason}"))
}

fn variable(text: &str) -> Result<String, &'static str> {
    if is_variable(text) { Ok(text.to_owned()) } else { Err("it is no name of an environment variable") }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VARIABLE: the value stays out of the command line")?;
    check_header(name).map_err(|reason| format!("it {reason}"))?;
    Ok((name.to_owned(), variable(value)?))
}
