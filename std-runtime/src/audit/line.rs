//! The text of a record, and its place in a chain: what every sink that keeps a log writes.

use std::fmt::{self, Write as _};

use callgate_core::audit::chain::Head;
use callgate_core::audit::{AuditFault, Consented, Record};
use callgate_core::code::Code;
use callgate_core::digest::Digest;
use callgate_core::json::Object;
use callgate_core::time::Timestamp;

/// What a record's text starts with; the chain's members come before it.
const FIRST_MEMBER: &str = "\"v\":";
/// The version of records, and of the lines that a log adds on its own.
pub(super) const VERSION: u64 = 1;
/// What `{"seq":N,"prev":"..",` and `,"hash":".."}` add to a record's text, at most.
pub const CHAIN_BYTES: usize = 200;
/// The most bytes of a text that somebody outside worded, in a record that was too long as a whole.
const MAX_TEXT: usize = 256;

/// The text of a record: a JSON object of at most `max` bytes. A longer one is replaced by one that says so, with the
/// length and the SHA-256 of what it stands for: nothing is cut silently, and no call goes without its record.
///
/// # Errors
/// Not even that has room in `max`, or the record cannot be written.
pub fn render(record: &Record<'_>, max: usize) -> Result<String, AuditFault> {
    let mut text = String::new();
    record.write_json(&mut text).map_err(|fmt::Error| AuditFault)?;
    if text.len() <= max {
        return Ok(text);
    }
    let mut short = String::new();
    write_short(record, &text, &mut short).map_err(|fmt::Error| AuditFault)?;
    if short.len() <= max { Ok(short) } else { Err(AuditFault) }
}

fn write_short(record: &Record<'_>, whole: &str, out: &mut String) -> fmt::Result {
    let caller = &record.caller;
    let mut object = Object::begin(out)?;
    object.number("v", VERSION)?;
    object.text("kind", record.kind.as_str())?;
    object.display("at", &record.at.wall)?;
    for (name, text) in [
        ("request_id", Some(caller.request_id)),
        ("parent", caller.parent),
        ("tenant", caller.tenant),
        ("principal", caller.known_principal()),
        ("channel", Some(caller.channel)),
        ("session", caller.session),
        ("mode", Some(caller.mode.as_str())),
        ("tool", Some(record.tool)),
    ] {
        // Beyond what their grammars allow, these are the texts of a call that was refused for them.
        object.optional(name, text.map(|text| cut(text, MAX_TEXT)))?;
    }
    if caller.depth > 0 {
        object.number("depth", caller.depth.into())?;
    }
    for (name, digest) in
        [("tool_digest", record.definition), ("args_digest", record.arguments), ("policy", record.policy)]
    {
        if let Some(digest) = digest {
            object.display(name, &digest)?;
        }
    }
    object.text("station", record.station.as_str())?;
    object.text("end", record.end)?;
    object.optional("code", record.code.map(Code::as_str))?;
    object.optional("told", record.told.map(Code::as_str))?;
    object.text("effect", record.effect.as_str())?;
    object.optional("check", record.check)?;
    if let Some(rule) = record.rule {
        object.integer("rule", rule)?;
    }
    for (name, digest) in [("ticket", record.ticket), ("grant", record.grant.copied())] {
        if let Some(digest) = digest {
            object.display(name, &digest)?;
        }
    }
    if let Some(task) = record.task {
        object.display("task", &task)?;
    }
    object.optional("operation", record.operation)?;
    if let Some(attempt) = record.attempt {
        object.number("attempt", attempt.into())?;
    }
    object.optional("consent", record.consent.map(Consented::as_str))?;
    if let Some(lease_ms) = record.lease_ms {
        object.number("lease_ms", lease_ms)?;
    }
    if !record.kind.comes_first() {
        object.number("took_us", record.took_ns / 1_000)?;
    }
    object.number("whole_bytes", whole.len() as u64)?;
    object.display("whole_sha256", &Digest::of_bytes(whole.as_bytes()))?;
    object.end()
}

fn cut(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

/// A line that the log itself adds, about what it found.
pub(super) fn note(at: Timestamp, note: &str, members: &[(&str, &dyn fmt::Display)]) -> Result<String, AuditFault> {
    let mut text = String::new();
    let mut write = || {
        let mut object = Object::begin(&mut text)?;
        object.number("v", VERSION)?;
        object.text("kind", "note")?;
        object.display("at", &at)?;
        object.text("note", note)?;
        members.iter().try_for_each(|(name, value)| object.display(name, value))?;
        object.end()
    };
    write().map_err(|fmt::Error| AuditFault)?;
    Ok(text)
}

/// Adds the line of the record with this `text` to `out`, with its line break, and gives the head after it.
///
/// # Errors
/// The text is none that [`render`] makes.
pub fn append(head: &Head, text: &str, out: &mut String) -> Result<Head, AuditFault> {
    let members = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let rest = members.and_then(|members| members.strip_prefix(FIRST_MEMBER)).ok_or(AuditFault)?;
    let next = head.append_with(|object| object.raw("v", |out| out.write_str(rest)), out);
    let next = next.map_err(|fmt::Error| AuditFault)?;
    out.write_char('\n').map_err(|fmt::Error| AuditFault)?;
    Ok(next)
}

/// The head after a line whose bytes fit its own hash, whatever stands before it.
pub(super) fn claimed(line: &str) -> Option<Head> {
    before(line)?.verify(line).ok()
}

/// The head before a line that follows it well.
pub(super) fn before(line: &str) -> Option<Head> {
    let rest = line.strip_prefix("{\"seq\":")?;
    let (seq, rest) = rest.split_once(",\"prev\":\"")?;
    let seq: u64 = seq.parse().ok()?;
    let before = Head { seq: seq.checked_sub(1)?, hash: rest.get(..64)?.parse().ok()? };
    before.verify(line).is_ok().then_some(before)
}

/// The head after a line as the line says it, nothing checked.
pub(super) fn said(line: &str) -> Option<Head> {
    let (seq, _) = line.strip_prefix("{\"seq\":")?.split_once(',')?;
    let (_, hash) = line.strip_suffix("\"}")?.rsplit_once("\"hash\":\"")?;
    Some(Head { seq: seq.parse().ok()?, hash: hash.parse().ok()? })
}
