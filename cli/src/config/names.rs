//! The names that a configuration may refer to. A rule about a tool that doesn't exist would never match, so a name written
//! wrong in a deny rule would leave the file less strict than it reads (case O1): such a name is refused.

use std::collections::{BTreeMap, BTreeSet};

use callgate_core::name::{check_label, check_tool_name};
use callgate_core::nearest::nearest;
use callgate_core::policy::ChannelTable;
use callgate_std::verification::{REQUEST, RESOLVE};

use super::channel::Channel;
use super::decode::Entry;
use super::exec::ExecTool;
use super::problem::quoted;
use super::toolkit::Toolkit;
use super::upstream::Upstream;

/// The channels and tools that one configuration knows.
#[derive(Debug)]
pub(super) struct Names {
    channels: BTreeSet<String>,
    tools: BTreeSet<String>,
    /// How the names of tools start that only their servers know. Whether such a tool exists shows when its server is asked.
    upstreams: Vec<String>,
}

impl Names {
    pub(super) fn new(channels: &BTreeMap<String, Channel>, exec: &[ExecTool], upstreams: &[Upstream]) -> Self {
        let builtin_channels = ChannelTable::DEFAULTS.iter().map(|channel| channel.name.to_owned());
        // Tools of a toolkit that is left out count as known: leaving it out should not break the rules about it.
        let builtin_tools = Toolkit::ALL.into_iter().flat_map(|kit| kit.tools().iter().map(|name| (*name).to_owned()));
        let verification = [REQUEST, RESOLVE].map(str::to_owned);
        Self {
            channels: channels.keys().cloned().chain(builtin_channels).collect(),
            tools: exec.iter().map(|tool| tool.name.clone()).chain(builtin_tools).chain(verification).collect(),
            upstreams: upstreams.iter().filter(|upstream| !upstream.name.is_empty()).map(Upstream::prefix).collect(),
        }
    }

    /// A channel that is built in or stated by the file.
    pub(super) fn channel(&self, entry: &Entry<'_>) -> Option<String> {
        let name = entry.name(check_label)?;
        self.known_channel(&name, |message, help| {
            entry.report_with(message, Some(help));
        })
        .then_some(name)
    }

    pub(super) fn known_channel(&self, name: &str, report: impl FnOnce(String, String)) -> bool {
        let known = self.channels.contains(name);
        if !known {
            let near = nearest(name.chars(), self.channels.iter().map(String::as_str));
            let near = near.map_or_else(
                || format!("the channels here are: {}", listed(&self.channels)),
                |near| format!("did you mean \"{near}\"?"),
            );
            report(
                format!("no channel {} is built in or stated here", quoted(name)),
                format!("{near}; a new one is stated as [channels.NAME]"),
            );
        }
        known
    }

    /// A pattern of tools: a name, or a prefix and `*`.
    pub(super) fn pattern(&self, entry: &Entry<'_>) -> Option<String> {
        let text = entry.text()?;
        let Some(prefix) = text.strip_suffix('*') else {
            let name = entry.name(check_tool_name)?;
            return self.known_tool(&name, |message, help| entry.report_with(message, help)).then_some(name);
        };
        // `fs*` would also take in `fsck`, which nobody means; `*` alone is written by leaving the key out.
        if !prefix.ends_with('.') || check_tool_name(prefix).is_err() {
            let message = format!("{} is not a tool's name or a prefix that ends in `.*`", quoted(text));
            entry.report_with(message, Some("for example \"fs.*\"; for every tool leave the key out".into()));
            return None;
        }
        if !self.tools.iter().any(|tool| tool.starts_with(prefix)) && !self.of_upstream(prefix) {
            let near = self.suggest_tool(prefix);
            entry.report_with(format!("no tool here has a name that starts with {}", quoted(prefix)), near);
            return None;
        }
        Some(text.to_owned())
    }

    pub(super) fn known_tool(&self, name: &str, report: impl FnOnce(String, Option<String>)) -> bool {
        let known = self.tools.contains(name) || (self.of_upstream(name) && !name.ends_with('.'));
        if !known {
            report(format!("there is no tool {}", quoted(name)), self.suggest_tool(name));
        }
        known
    }

    /// Whether the name starts as those of an upstream's tools.
    fn of_upstream(&self, name: &str) -> bool {
        self.upstreams.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }

    fn suggest_tool(&self, name: &str) -> Option<String> {
        let near = nearest(name.chars(), self.tools.iter().map(String::as_str));
        Some(near.map_or_else(
            || format!("the tools here are: {}", listed(&self.tools)),
            |near| format!("did you mean \"{near}\"?"),
        ))
    }
}

/// The first of these names.
fn listed(names: &BTreeSet<String>) -> String {
    const SHOWN: usize = 20;
    let more = if names.len() > SHOWN { ", ..." } else { "" };
    names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ") + more
}
