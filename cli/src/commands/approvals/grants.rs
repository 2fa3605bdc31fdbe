//! `callgate approvals grants`, `grant` and `revoke`: a yes beforehand.

use std::fmt::Write;
use std::path::Path;

use callgate_core::args::Args;
use callgate_core::digest::Digest;
use callgate_core::json::{KeySlot, Limits, key_capacity};
use callgate_core::redact::{Redaction, Secrets};
use callgate_core::time::Timestamp;
use callgate_core::tool::Tool as _;
use callgate_std::clock::SystemClock;
use callgate_std::confirmations::{
    DecideFault, GrantArguments, GrantError, MAX_GRANT_ARGUMENTS, NewGrant, StandingGrant,
};
use callgate_std::gate::GrantFault;
use callgate_std::render::approver::Strict;
use serde_json::{Value, json};

use super::super::{Setting, tools};
use super::request::SHORT;
use super::{Desk, MOST, check_id, one};
use crate::command_line::{GrantArgs, GrantedArguments, GrantsArgs, RevokeArgs};
use crate::exit::Exit;
use crate::table::{Cell, Table};
use crate::terminal::{BOLD, Brush, DIM, GOOD, NAME, Terminal, WARN, visible};
use crate::trouble::Trouble;

pub(super) fn grants(args: &GrantsArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let desk = Desk::open(&args.caller, setting)?;
    let grants = desk.grants()?;
    let shown = Shown::of(setting)?;
    if args.json {
        terminal.out.line(grants.iter().map(|grant| shown.json(grant)).collect::<Value>());
    } else if grants.is_empty() {
        terminal.err.line("no grant is kept that this caller may be told of");
    } else {
        let mut table = Table::new(["ID", "STATE", "TOOL", "FOR", "USED", "UNTIL", "ARGUMENTS"]);
        for grant in &grants {
            table.row(shown.row(grant));
        }
        let text = table.render(terminal.out.view_width(), terminal.out.brush());
        terminal.out.print(&text);
    }
    Ok(Exit::Success)
}

pub(super) fn grant(args: &GrantArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let arguments = arguments(&args.arguments)?;
    let desk = Desk::open(&args.caller, setting)?;
    let by = desk.approver.borrow();
    let definition = match args.definition {
        Some(definition) => definition,
        None => match desk.open.gate.tools().registry().get(&args.tool) {
            Some(tool) => tool.definition(),
            None => {
                let trouble = Trouble::usage(format!("there is no tool {}", visible(&args.tool)));
                return Err(trouble.with_help(tools::suggestion(&desk.open.gate, &args.tool, &by)));
            }
        },
    };
    let grant = NewGrant {
        tool: args.tool.clone(),
        definition,
        principal: args.to.clone(),
        arguments,
        lasts_ms: u64::try_from(args.lasts.as_millis()).unwrap_or(u64::MAX),
        max_uses: args.uses,
    };
    let grant = desk.open.gate.approvals().grant(grant, &by).map_err(|fault| refused(&desk, &fault))?;
    let shown = Shown::of(setting)?;
    if args.json {
        terminal.out.line(shown.json(&grant));
    } else {
        terminal.out.print(&shown.text(&grant, terminal.out.brush()));
    }
    Ok(Exit::Success)
}

pub(super) fn revoke(args: &RevokeArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    check_id(&args.id)?;
    let desk = Desk::open(&args.caller, setting)?;
    let named = desk.grants()?.into_iter().map(|grant| grant.id).filter(|id| id.to_string().starts_with(&args.id));
    // A whole id is taken as it is: the store says whether there is such a grant for this caller.
    let ((Some(id), _) | (None, Ok(id))) = (one(named)?, args.id.parse::<Digest>()) else {
        return Err(refused(&desk, &GrantError::Unknown.into()));
    };
    let revoked =
        desk.open.gate.approvals().revoke(id, &desk.approver.borrow()).map_err(|fault| refused(&desk, &fault))?;
    if args.json {
        let json = json!({ "grant_id": id.to_string(), "used": revoked.used, "under_way": revoked.under_way });
        terminal.out.line(json);
        return Ok(Exit::Success);
    }
    let brush = terminal.out.brush();
    terminal.out.line(brush.paint(GOOD, "revoked: it covers nothing any more"));
    terminal.out.line(format_args!("  {} {}", brush.paint(DIM, "covered  "), calls(revoked.used)));
    if revoked.under_way > 0 {
        let under_way = format!("{}: covered before and not over; they may still start", calls(revoked.under_way));
        terminal.out.line(format_args!("  {} {}", brush.paint(DIM, "under way"), brush.paint(WARN, under_way)));
    }
    Ok(Exit::Success)
}

impl Desk {
    /// The grants that whoever asks may be told of.
    fn grants(&self) -> Result<Vec<StandingGrant>, Trouble> {
        let grants = self.open.gate.approvals().grants(&self.approver.borrow(), MOST);
        grants.map_err(|fault| self.refused(DecideFault::from(fault).into()))
    }
}

fn calls(count: u32) -> String {
    if count == 1 { "1 call".to_owned() } else { format!("{count} calls") }
}

/// For which arguments, as the command line says it.
fn arguments(args: &GrantedArguments) -> Result<GrantArguments, Trouble> {
    if let Some(digest) = args.exactly {
        return Ok(GrantArguments::Exactly(digest));
    }
    match (&args.including, &args.fitting) {
        (Some(text), _) => text_of(text).map(GrantArguments::Including),
        (None, Some(text)) => text_of(text).map(GrantArguments::Fitting),
        (None, None) => Err(Trouble::usage("say for which arguments: --exactly, --including or --fitting")),
    }
}

fn text_of(text: &str) -> Result<String, Trouble> {
    let Some(file) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let unreadable =
        |error: &dyn std::fmt::Display| Trouble::usage(format!("{} can't be read: {error}", visible(file)));
    let bytes = crate::arguments::read(None, Some(Path::new(file)))?;
    if bytes.len() > MAX_GRANT_ARGUMENTS {
        return Err(unreadable(&format_args!("it has more than {MAX_GRANT_ARGUMENTS} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| unreadable(&error))
}

fn refused(desk: &Desk, fault: &GrantFault) -> Trouble {
    let help = match fault {
        GrantFault::Refused(GrantError::Unknown) => Some("`callgate approvals grants` shows what there is".to_owned()),
        GrantFault::Refused(GrantError::Unauthenticated) => Some("say who does it: --principal NAME".to_owned()),
        GrantFault::Refused(GrantError::MissingScope) => Some("hold it: --scope grant".to_owned()),
        GrantFault::Refused(GrantError::OwnGrant) => {
            Some("somebody else has to give it: --principal NAME --scope grant".to_owned())
        }
        GrantFault::Refused(GrantError::Store) | GrantFault::Unrecorded => desk.open.last_errors().into_iter().next(),
        _ => None,
    };
    let trouble = match fault {
        // What stands on the command line is wrong.
        GrantFault::Refused(GrantError::Arguments | GrantError::Schema(_)) => Trouble::usage(fault.to_string()),
        _ => Trouble::refused(fault.code(), fault.to_string()),
    };
    match help {
        Some(help) => trouble.with_help(help),
        None => trouble,
    }
}

/// How grants are shown: as of now, and without secrets.
struct Shown {
    now: Timestamp,
    redacted: Vec<String>,
}

impl Shown {
    fn of(setting: &Setting) -> Result<Self, Trouble> {
        let redacted = setting.config()?.redacted_fields;
        Ok(Self { now: SystemClock::shared().now().wall, redacted })
    }

    fn state(&self, grant: &StandingGrant) -> &'static str {
        if grant.revoked {
            "revoked"
        } else if self.now >= grant.expires_at {
            "expired"
        } else if grant.used >= grant.max_uses {
            "used up"
        } else {
            "open"
        }
    }

    /// What the arguments have to be, in printable ASCII.
    fn arguments(&self, grant: &StandingGrant) -> String {
        let names: Vec<_> = self.redacted.iter().map(String::as_str).collect();
        let redaction = Redaction::DEFAULT.with_names(&names).with_text_limit(u32::MAX);
        let (how, text) = match &grant.arguments {
            GrantArguments::Exactly(digest) => return format!("exactly {digest}"),
            GrantArguments::Including(text) => {
                let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
                let args = Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT);
                ("including", args.map_or_else(|_| String::new(), |args| redaction.args(args, &[]).to_string()))
            }
            GrantArguments::Fitting(text) => ("fitting", redaction.text(text, Secrets::NONE).to_string()),
            _ => return "of a kind that this program does not know".to_owned(),
        };
        // The quotes of the JSON are no quotes of a text.
        format!("{how} {}", Strict(&text).to_string().replace("\\\"", "\""))
    }

    fn row(&self, grant: &StandingGrant) -> [Cell; 7] {
        let mut id = grant.id.to_string();
        id.truncate(SHORT);
        let state = self.state(grant);
        [
            Cell::painted(NAME, id),
            Cell::painted(if state == "open" { GOOD } else { DIM }, state),
            Strict(&grant.tool).to_string().into(),
            Strict(&grant.principal).to_string().into(),
            format!("{} of {}", grant.used, grant.max_uses).into(),
            grant.expires_at.to_string().into(),
            self.arguments(grant).into(),
        ]
    }

    fn text(&self, grant: &StandingGrant, brush: Brush) -> String {
        let mut text = format!("{}\n", brush.paint(NAME, grant.id));
        for (name, value) in [
            ("tool", Strict(&grant.tool).to_string()),
            ("definition", grant.definition.to_string()),
            ("for", format!("{}, {}", Strict(&grant.principal), calls(grant.max_uses))),
            ("given by", Strict(&grant.given_by).to_string()),
            ("until", grant.expires_at.to_string()),
            ("arguments", brush.paint(BOLD, self.arguments(grant)).to_string()),
        ] {
            // A string takes everything.
            let _ = writeln!(text, "  {} {value}", brush.paint(DIM, format!("{name:<10}")));
        }
        text
    }

    fn json(&self, grant: &StandingGrant) -> Value {
        json!({
            "grant_id": grant.id.to_string(),
            "state": self.state(grant),
            "tool": grant.tool,
            "definition": grant.definition.to_string(),
            "tenant": grant.tenant,
            "principal": grant.principal,
            "arguments": self.arguments(grant),
            "given_by": grant.given_by,
            "given_at": grant.given_at.to_string(),
            "expires_at": grant.expires_at.to_string(),
            "max_uses": grant.max_uses,
            "used": grant.used,
        })
    }
}
