//! The file format of a store: two lines of JSON. The first says what the file is and what the second one hashes to, so that
//! damage is seen before anything in it is believed.

use std::str::FromStr;

use callgate_core::code::Effect;
use callgate_core::confirm::{Binding, By, Ticket, TicketState};
use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::grant::{GrantArguments, StandingGrant};
use super::table::{Capacity, Entry, PendingCall, Table};

/// The version of the format. Another one is refused, never guessed (invariant N6), but for the one before, which is known.
pub(super) const VERSION: u64 = 2;
const VERSION_BEFORE: u64 = 1;

const FORMAT: &str = "callgate confirmations";

/// What a file holds.
pub(super) struct State {
    pub(super) table: Table,
    /// The latest time that any process wrote.
    pub(super) time: Timestamp,
}

/// Why a text is no state.
pub(super) enum StateError {
    UnknownVersion(u64),
    Damaged(String),
}

impl From<&str> for StateError {
    fn from(reason: &str) -> Self {
        Self::Damaged(reason.to_owned())
    }
}

/// What is read of any version, to find out which it is.
#[derive(Deserialize)]
struct AnyHeader {
    format: String,
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    version: u64,
    sha256: Hex,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    time_ms: u64,
    tickets: Vec<Row>,
    #[serde(default)]
    grants: Vec<GrantRow>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantRow {
    id: Hex,
    tool: String,
    tool_digest: Hex,
    tenant: Option<String>,
    principal: String,
    arguments: ArgumentsRow,
    given_by: String,
    given_at_ms: u64,
    expires_at_ms: u64,
    max_uses: u32,
    used: u32,
    revoked: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ArgumentsRow {
    Exactly(Hex),
    Including(String),
    Fitting(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    ticket: Hex,
    state: StateName,
    by: ByName,
    issued_at_ms: u64,
    expires_at_ms: u64,
    tool_digest: Hex,
    args_digest: Hex,
    caller_digest: Hex,
    principal_digest: Hex,
    tool: String,
    tenant: Option<String>,
    principal: Option<String>,
    channel: String,
    request_id: String,
    scope: Option<String>,
    summary: String,
    arguments: String,
    #[serde(default = "one")]
    needs: u8,
    #[serde(default)]
    approved_by: Vec<String>,
    #[serde(default)]
    proof: Option<String>,
    #[serde(default)]
    grant: Option<Hex>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum StateName {
    Pending,
    Approved,
    Denied,
    Cancelled,
    Reserved {
        call: Hex,
        until_ms: u64,
    },
    InDoubt,
    Done {
        took_effect: bool,
    },
    /// In files of the version before. What became of the call was not kept.
    Claimed,
}

const fn one() -> u8 {
    1
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ByName {
    Caller,
    Approver,
}

/// A digest as 64 hexadecimal digits.
struct Hex(Digest);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&str>::deserialize(deserializer)?;
        Digest::from_str(text).map(Self).map_err(de::Error::custom)
    }
}

/// The text of a file with these tickets.
///
/// # Errors
/// Says what cannot be written: arguments that are not text, which the gate's reader never lets through.
pub(super) fn write(table: &Table, time: Timestamp) -> Result<String, String> {
    let tickets = table.iter().map(|(id, entry)| Row::of(*id, entry)).collect::<Result<_, _>>()?;
    let grants = table.all_grants().iter().map(GrantRow::of).collect();
    let body = Body { time_ms: time.as_unix_millis(), tickets, grants };
    let body = serde_json::to_string(&body).map_err(|error| error.to_string())?;
    let header = Header { format: FORMAT.into(), version: VERSION, sha256: Hex(Digest::of_bytes(body.as_bytes())) };
    let header = serde_json::to_string(&header).map_err(|error| error.to_string())?;
    Ok(format!("{header}\n{body}\n"))
}

/// The tickets in the text of a file.
pub(super) fn read(text: &str, capacity: Capacity) -> Result<State, StateError> {
    let (header, body) = text.split_once('\n').ok_or("it has no header")?;
    let body = body.strip_suffix('\n').ok_or("its end is missing")?;
    let any: AnyHeader = serde_json::from_str(header).map_err(|_| StateError::from("its header is unreadable"))?;
    if any.format != FORMAT {
        return Err("it is a file of something else".into());
    }
    if any.version != VERSION && any.version != VERSION_BEFORE {
        return Err(StateError::UnknownVersion(any.version));
    }
    let header: Header = serde_json::from_str(header).map_err(|_| StateError::from("its header is unreadable"))?;
    if Digest::of_bytes(body.as_bytes()) != header.sha256.0 {
        return Err("its content does not have the hash that its header names".into());
    }
    // The error's text could hold a piece of an argument.
    let body: Body = serde_json::from_str(body).map_err(|_| StateError::from("its content is unreadable"))?;
    let mut table = Table::new(capacity);
    for row in body.tickets {
        let (id, entry) = row.into_entry();
        if !table.insert(id, entry) {
            return Err("it holds one ticket twice".into());
        }
    }
    for grant in body.grants {
        table.put_grant(grant.into_grant());
    }
    Ok(State { table, time: Timestamp::from_unix_millis(body.time_ms) })
}

impl Row {
    fn of(id: Digest, Entry { ticket, call, .. }: &Entry) -> Result<Self, String> {
        let arguments = str::from_utf8(&call.arguments).map_err(|_| "the arguments are not text")?;
        Ok(Self {
            ticket: Hex(id),
            state: match ticket.state {
                TicketState::Pending => StateName::Pending,
                TicketState::Approved => StateName::Approved,
                TicketState::Denied => StateName::Denied,
                TicketState::Cancelled => StateName::Cancelled,
                TicketState::Reserved { call, until } => {
                    StateName::Reserved { call: Hex(call), until_ms: until.as_unix_millis() }
                }
                TicketState::InDoubt => StateName::InDoubt,
                TicketState::Done(effect) => StateName::Done { took_effect: effect != Effect::None },
            },
            by: match ticket.by {
                By::Caller => ByName::Caller,
                By::Approver => ByName::Approver,
            },
            issued_at_ms: ticket.issued_at.as_unix_millis(),
            expires_at_ms: ticket.expires_at.as_unix_millis(),
            tool_digest: Hex(ticket.binding.tool),
            args_digest: Hex(ticket.binding.arguments),
            caller_digest: Hex(ticket.binding.caller),
            principal_digest: Hex(ticket.binding.principal),
            tool: call.tool.clone(),
            tenant: call.tenant.clone(),
            principal: call.principal.clone(),
            channel: call.channel.clone(),
            request_id: call.request_id.clone(),
            scope: call.scope.clone(),
            summary: call.summary.clone(),
            arguments: arguments.to_owned(),
            needs: ticket.needs,
            approved_by: call.approved_by.clone(),
            proof: call.proof.clone(),
            grant: call.grant.map(Hex),
        })
    }

    fn into_entry(self) -> (Digest, Entry) {
        let ticket = Ticket {
            binding: Binding {
                tool: self.tool_digest.0,
                arguments: self.args_digest.0,
                caller: self.caller_digest.0,
                principal: self.principal_digest.0,
            },
            needs: self.needs,
            by: match self.by {
                ByName::Caller => By::Caller,
                ByName::Approver => By::Approver,
            },
            issued_at: Timestamp::from_unix_millis(self.issued_at_ms),
            expires_at: Timestamp::from_unix_millis(self.expires_at_ms),
            state: match self.state {
                StateName::Pending => TicketState::Pending,
                StateName::Approved => TicketState::Approved,
                StateName::Denied => TicketState::Denied,
                // A claim that was written down before calls held theirs: just as spent, and nobody has to find out anything.
                StateName::Cancelled | StateName::Claimed => TicketState::Cancelled,
                StateName::Reserved { call, until_ms } => {
                    TicketState::Reserved { call: call.0, until: Timestamp::from_unix_millis(until_ms) }
                }
                StateName::InDoubt => TicketState::InDoubt,
                StateName::Done { took_effect } => {
                    TicketState::Done(if took_effect { Effect::Done } else { Effect::None })
                }
            },
        };
        let call = PendingCall {
            tool: self.tool,
            tenant: self.tenant,
            principal: self.principal,
            channel: self.channel,
            request_id: self.request_id,
            scope: self.scope,
            summary: self.summary,
            arguments: self.arguments.into_bytes().into(),
            approved_by: self.approved_by,
            proof: self.proof,
            grant: self.grant.map(|grant| grant.0),
        };
        (self.ticket.0, Entry::new(ticket, call))
    }
}

impl GrantRow {
    fn of(grant: &StandingGrant) -> Self {
        Self {
            id: Hex(grant.id),
            tool: grant.tool.clone(),
            tool_digest: Hex(grant.definition),
            tenant: grant.tenant.clone(),
            principal: grant.principal.clone(),
            arguments: match &grant.arguments {
                GrantArguments::Exactly(digest) => ArgumentsRow::Exactly(Hex(*digest)),
                GrantArguments::Including(text) => ArgumentsRow::Including(text.clone()),
                GrantArguments::Fitting(text) => ArgumentsRow::Fitting(text.clone()),
            },
            given_by: grant.given_by.clone(),
            given_at_ms: grant.given_at.as_unix_millis(),
            expires_at_ms: grant.expires_at.as_unix_millis(),
            max_uses: grant.max_uses,
            used: grant.used,
            revoked: grant.revoked,
        }
    }

    fn into_grant(self) -> StandingGrant {
        StandingGrant {
            id: self.id.0,
            tool: self.tool,
            definition: self.tool_digest.0,
            tenant: self.tenant,
            principal: self.principal,
            arguments: match self.arguments {
                ArgumentsRow::Exactly(digest) => GrantArguments::Exactly(digest.0),
                ArgumentsRow::Including(text) => GrantArguments::Including(text),
                ArgumentsRow::Fitting(text) => GrantArguments::Fitting(text),
            },
            given_by: self.given_by,
            given_at: Timestamp::from_unix_millis(self.given_at_ms),
            expires_at: Timestamp::from_unix_millis(self.expires_at_ms),
            max_uses: self.max_uses,
            used: self.used,
            revoked: self.revoked,
        }
    }
}
