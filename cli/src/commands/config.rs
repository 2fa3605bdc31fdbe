//! `callgate config`.

use std::fmt::{Display, Write};
use std::path::Path;

use callgate_core::policy::{By, ChannelPolicy, ChannelTable, Effect};
use callgate_core::tool::ConfirmBy;

use super::Setting;
use crate::assemble::{self, Plan};
use crate::command_line::ConfigArgs;
use crate::config::{self, Config};
use crate::exit::Exit;
use crate::table::{Cell, Table};
use crate::terminal::{BOLD, Brush, DIM, GOOD, NAME, Terminal, WARN, visible};
use crate::trouble::Trouble;

/// Reads the file and puts it to use, and calls nothing.
pub(super) fn check(args: &ConfigArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let config = load(args, setting)?;
    let plan = Plan::of(&config)?;
    #[cfg(feature = "mcp")]
    drop(assemble::Served::of(&config)?);
    #[cfg(feature = "mcp")]
    assemble::upstreams::check(&config)?;
    let mut text = config::check(&config);
    // A string takes everything.
    let _ = writeln!(text, "  {:<10} {}", "tools", plan.registry().len());
    for warning in plan.registry().warnings() {
        let _ = writeln!(text, "  {:<10} {}", "note", visible(&warning.to_string()));
    }
    #[cfg(feature = "mcp")]
    for missing in assemble::upstreams::missing_programs(&config) {
        let _ = writeln!(text, "  {:<10} {}", "note", visible(&missing));
    }
    terminal.out.print(&text);
    Ok(Exit::Success)
}

/// Shows what holds.
pub(super) fn show(args: &ConfigArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let config = load(args, setting)?;
    let plan = Plan::of(&config)?;
    let sections = [
        ("Files", files(&config, &plan)),
        ("Channels", channels(&config)),
        ("Rules", rules(&config)),
        ("Quotas", quotas(&config)),
        ("Confirmation", confirmation(&config)),
        ("Redaction", redaction(&config)),
        ("Tools", tools(&plan)),
        ("MCP servers", upstreams(&config)),
    ];
    let (width, brush) = (terminal.out.width(), terminal.out.brush());
    let text: Vec<String> =
        sections.iter().map(|(title, table)| section(title, &table.render(width, brush), brush)).collect();
    terminal.out.print(&text.join("\n"));
    Ok(Exit::Success)
}

fn load(args: &ConfigArgs, setting: &Setting) -> Result<Config, Trouble> {
    match &args.file {
        Some(file) => Ok(assemble::load(Some(file))?),
        None => setting.config(),
    }
}

fn section(title: &str, content: &str, brush: Brush) -> String {
    format!("{}\n{content}", brush.paint(BOLD, title))
}

fn shown(path: &Path) -> String {
    visible(&path.display().to_string())
}

/// Names and what they stand for.
fn pairs<const N: usize>(pairs: [(&str, String); N]) -> Table {
    let mut table = Table::new(["", ""]).indented(2);
    for (name, value) in pairs {
        table.row([Cell::painted(NAME, name), value.into()]);
    }
    table
}

fn files(config: &Config, plan: &Plan<'_>) -> Table {
    let files = plan.files();
    pairs([
        ("configuration", config.file().map_or_else(|| "none: the defaults hold".to_owned(), shown)),
        ("digest", config.digest().to_string()),
        ("root", shown(&config.root)),
        ("confirmations", shown(&files.confirmations)),
        ("rate limits", shown(&files.limits)),
        ("digest key", shown(&files.digest_key)),
        ("audit log", shown(&files.audit)),
    ])
}

fn channels(config: &Config) -> Table {
    let stated: Vec<ChannelPolicy<'_>> = config.channels.values().map(config::Channel::policy).collect();
    let mut all: Vec<ChannelPolicy<'_>> = ChannelTable::over_defaults(&stated).iter().copied().collect();
    all.sort_by_key(|channel| channel.name);
    let mut table = Table::new(["CHANNEL", "FROM", "WHAT HOLDS"]).indented(2);
    for channel in all {
        let from = if config.channels.contains_key(channel.name) { "file" } else { "built in" };
        table.row([Cell::painted(NAME, visible(channel.name)), Cell::painted(DIM, from), flags(&channel).into()]);
    }
    table.row([
        Cell::painted(NAME, "any other"),
        Cell::painted(DIM, "built in"),
        flags(&ChannelPolicy::UNKNOWN).into(),
    ]);
    table
}

fn flags(channel: &ChannelPolicy<'_>) -> String {
    let flags = [
        ("require_auth", channel.require_auth),
        ("allow_all", channel.allow_all),
        ("block_mutating", channel.block_mutating),
        ("require_rule", channel.require_rule),
        ("require_confirmation_for_mutating", channel.require_confirmation_for_mutating),
        ("confirm_by approver", channel.confirm_by == By::Approver),
        ("consent_required", channel.consent_required),
    ];
    let set: Vec<&str> = flags.into_iter().filter(|(_, set)| *set).map(|(name, _)| name).collect();
    if set.is_empty() { "-".to_owned() } else { set.join(", ") }
}

fn rules(config: &Config) -> Table {
    if config.rules.is_empty() {
        return pairs([("none", String::new())]);
    }
    let mut table = Table::new(["ID", "EFFECT", "MATCHES"]).indented(2);
    for rule in &config.rules {
        let effect = match rule.effect {
            Effect::Allow => Cell::painted(GOOD, "allow"),
            Effect::Deny => Cell::painted(WARN, "deny"),
        };
        let condition = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name} {value}"));
        let conditions = [
            condition("channel", &rule.channel),
            condition("principal", &rule.principal),
            condition("tool", &rule.tool),
            rule.mutating.map(|mutating| format!("mutating {mutating}")),
            (!rule.arguments.is_empty()).then(|| format!("{} tests of the arguments", rule.arguments.len())),
            condition("for holders of", &rule.scopes),
            rule.overrides_block.then(|| "overrides block_mutating".to_owned()),
        ];
        let conditions: Vec<String> = conditions.into_iter().flatten().collect();
        let matches = if conditions.is_empty() { "every call".to_owned() } else { conditions.join("; ") };
        table.row([rule.id.to_string().into(), effect, visible(&matches).into()]);
    }
    table
}

fn quotas(config: &Config) -> Table {
    let quotas = &config.quotas;
    let mut table = Table::new(["FOR", "COST ADMITTED", "AT ONCE"]).indented(2);
    let mut row = |name: &dyn Display, quota: &callgate_core::limit::Quota| {
        table.row([
            Cell::painted(NAME, visible(&name.to_string())),
            format!("{} in {} s", quota.limit(), quota.window_ms() as f64 / 1000.0).into(),
            quota.burst().to_string().into(),
        ]);
    };
    for (kind, by_name) in [("channel", &quotas.channels), ("principal", &quotas.principals), ("tool", &quotas.tools)] {
        for (name, quota) in by_name {
            row(&format_args!("{kind} {name}"), quota);
        }
    }
    row(&"every other call", &quotas.default);
    row(&"refused calls", &quotas.attempts);
    table
}

fn confirmation(config: &Config) -> Table {
    let confirmation = &config.confirmation;
    pairs([
        ("ttl", format!("{} s", confirmation.ttl.as_secs_f64())),
        ("max_pending", confirmation.max_pending.to_string()),
        ("accept_reserved_argument", confirmation.accept_reserved_argument.to_string()),
    ])
}

fn upstreams(config: &Config) -> Table {
    if config.upstreams.is_empty() {
        return pairs([("none", String::new())]);
    }
    let mut table = Table::new(["NAME", "REACHED BY", "SEES", "TIMEOUT", "AT ONCE"]).indented(2);
    for upstream in &config.upstreams {
        let reach = match &upstream.reach {
            Some(config::Reach::Program { command, .. }) => command.join(" "),
            Some(config::Reach::Url(url)) => url.clone(),
            None => "what `callgate proxy` is given".to_owned(),
        };
        let sees = if upstream.env.is_empty() { "-".to_owned() } else { upstream.env.join(" ") };
        table.row([
            Cell::painted(NAME, visible(&upstream.name)),
            visible(&reach).into(),
            sees.into(),
            format!("{} s", upstream.timeout.as_secs_f64()).into(),
            upstream.max_in_flight.to_string().into(),
        ]);
    }
    table
}

fn redaction(config: &Config) -> Table {
    let fields = if config.redacted_fields.is_empty() { "none".to_owned() } else { config.redacted_fields.join(", ") };
    pairs([("beside the built-in names", visible(&fields))])
}

fn tools(plan: &Plan<'_>) -> Table {
    let mut table = Table::new(["NAME", "CHANGES", "CONFIRM", "TIMEOUT", "COST", "SCOPES"]).indented(2);
    for tool in plan.registry() {
        let spec = tool.spec();
        let confirm = match spec.confirm {
            ConfirmBy::Nobody => "-".to_owned(),
            ConfirmBy::Caller => "caller".to_owned(),
            ConfirmBy::Approver { scope } => format!("approver ({scope})"),
            _ => "approver".to_owned(),
        };
        table.row([
            Cell::painted(NAME, spec.name),
            if spec.mutating { "yes" } else { "no" }.into(),
            confirm.into(),
            format!("{} s", spec.timeout_ms as f64 / 1000.0).into(),
            spec.cost().to_string().into(),
            if spec.scopes.is_empty() { "-".to_owned() } else { spec.scopes.to_string() }.into(),
        ]);
    }
    table
}
