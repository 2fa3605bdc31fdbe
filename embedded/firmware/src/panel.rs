//! The operator's line: decides what the agent asked for, and reads the log.

use core::cell::RefCell;
use core::fmt::{self, Write};

use callgate_core::confirm::Verdict;
use callgate_core::context::{CallContext, Scopes};
use callgate_core::digest::Digest;
use callgate_core::json::{KeySlot, Kind, Limits, Object, scan};
use callgate_core::time::Now;

use crate::device::{Gate, error};

/// Whoever holds this line is the operator.
const OPERATOR: CallContext<'static> =
    CallContext::new("panel", "panel").with_principal("operator").with_scopes(Scopes::new("approve"));

/// Answers a line of the operator, with a line break at the end of each of its own:
///
/// - `{"seed":TEXT}`: randomness, which has to come first;
/// - `{"pending":{}}`: what can be decided;
/// - `{"approve":TICKET}`, `{"deny":TICKET}`;
/// - `{"dump":{}}`: the lines of the log, and then one that says where they begin and end.
///
/// # Errors
/// Those of `out`.
pub fn line<const PLACES: usize, const TEXT: usize, const KEYS: usize, const RING: usize>(
    gate: &Gate<'_, PLACES, TEXT, KEYS, RING>,
    line: &[u8],
    now: Now,
    out: &mut dyn Write,
) -> fmt::Result {
    let mut keys = [KeySlot::default(); 4];
    let scanned = scan(line, &mut keys, &Limits::DEFAULT);
    let command = scanned.as_ref().ok().and_then(|scanned| scanned.value().members().next());
    let Some((name, value)) = command else { return error("this is no command", out).and_then(|()| end(out)) };
    let text = || value.as_text().and_then(|text| text.as_plain()).unwrap_or_default();
    match name.as_plain().unwrap_or_default() {
        "seed" if text().len() >= 32 => {
            gate.seed(text().as_bytes());
            out.write_str(r#"{"seeded":true}"#)?;
        }
        "seed" => error("a seed has at least 32 characters", out)?,
        "pending" => pending(gate, now, out)?,
        "approve" => decide(gate, text(), Verdict::Approve, now, out)?,
        "deny" => decide(gate, text(), Verdict::Deny, now, out)?,
        "dump" if value.kind() == Kind::Object => dump(gate, out)?,
        _ => error("this command is not known", out)?,
    }
    end(out)
}

fn end(out: &mut dyn Write) -> fmt::Result {
    out.write_str("\n")
}

fn pending<const PLACES: usize, const TEXT: usize, const KEYS: usize, const RING: usize>(
    gate: &Gate<'_, PLACES, TEXT, KEYS, RING>,
    now: Now,
    out: &mut dyn Write,
) -> fmt::Result {
    out.write_str(r#"{"pending":["#)?;
    if let Ok(mut store) = gate.confirmations.try_borrow_mut() {
        for (at, pending) in store.pending(&OPERATOR, now).enumerate() {
            if at > 0 {
                out.write_str(",")?;
            }
            let mut object = Object::begin(out)?;
            object.display("ticket", &pending.ticket)?;
            object.nullable("by", pending.principal)?;
            object.text("summary", pending.summary)?;
            object.display("until", &pending.expires_at)?;
            object.end()?;
        }
    }
    out.write_str("]}")
}

fn decide<const PLACES: usize, const TEXT: usize, const KEYS: usize, const RING: usize>(
    gate: &Gate<'_, PLACES, TEXT, KEYS, RING>,
    ticket: &str,
    verdict: Verdict,
    now: Now,
    out: &mut dyn Write,
) -> fmt::Result {
    let (Ok(ticket), Ok(mut store)) = (ticket.parse::<Digest>(), gate.confirmations.try_borrow_mut()) else {
        return error("this is no ticket", out);
    };
    match store.decide(ticket, verdict, &OPERATOR, now) {
        Ok(_) => out.write_str(r#"{"decided":true}"#),
        Err(fault) => {
            let mut object = Object::begin(out)?;
            object.boolean("decided", false)?;
            object.display("why", &fault)?;
            object.end()
        }
    }
}

/// Decides what is asked if it is one question alone, for an operator who has no more than buttons; tells whether it did.
pub fn decide_only<const PLACES: usize, const TEXT: usize, const KEYS: usize, const RING: usize>(
    gate: &Gate<'_, PLACES, TEXT, KEYS, RING>,
    verdict: Verdict,
    now: Now,
) -> bool {
    let Ok(mut store) = gate.confirmations.try_borrow_mut() else { return false };
    let mut pending = store.pending(&OPERATOR, now).map(|pending| pending.ticket);
    let (Some(ticket), None) = (pending.next(), pending.next()) else { return false };
    drop(pending);
    store.decide(ticket, verdict, &OPERATOR, now).is_ok()
}

fn dump<const PLACES: usize, const TEXT: usize, const KEYS: usize, const RING: usize>(
    gate: &Gate<'_, PLACES, TEXT, KEYS, RING>,
    out: &mut dyn Write,
) -> fmt::Result {
    let Some(Ok(ring)) = gate.log().map(RefCell::try_borrow) else { return error("the log is busy", out) };
    let mut written = Ok(());
    ring.dump(|piece| {
        // A piece may end within a character: what is no text goes out byte by byte.
        for part in piece.utf8_chunks() {
            written = written.and_then(|()| out.write_str(part.valid()));
            if !part.invalid().is_empty() {
                written = Err(fmt::Error);
            }
        }
    });
    written?;
    let mut object = Object::begin(out)?;
    object.raw("dumped", |out| {
        let mut dumped = Object::begin(out)?;
        let (before, head) = (ring.before(), ring.head());
        dumped.display("after", &format_args!("{}:{}", before.seq, before.hash))?;
        dumped.display("head", &format_args!("{}:{}", head.seq, head.hash))?;
        dumped.number("lines", ring.lines())?;
        dumped.number("overwritten", ring.overwritten())?;
        dumped.end()
    })?;
    object.end()
}
