//! Outcomes in a buffer that may be too small for them.

use core::fmt;

use super::Buffer;
use crate::json::Object;
use crate::outcome::{Outcome, OutcomeType};
use crate::request::Context;
use crate::tool::Tool;

/// Not even the short form of an outcome fits into the buffer, which is empty now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutcomeTooLong {
    /// How many bytes the whole outcome has.
    pub bytes: usize,
}

impl fmt::Display for OutcomeTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the outcome has {} bytes, and there is no room even for its short form", self.bytes)
    }
}

impl core::error::Error for OutcomeTooLong {}

/// Writes `outcome` into `buffer` in place of what was there, and says whether it is whole.
///
/// One that does not fit is written in short: `data`, `message` and `error` are `null`, and `meta` has no other members than the
/// gate's `tool`, `request_id`, `channel`, `principal`, `effect`, `code`, `retry_after_seconds`, `type` and
/// `audit_pending`, with `"cut":true` and the whole outcome's `bytes` (invariant O2). So a caller always learns what its call did to
/// the world. A question in short has no token: nobody confirms what could not be shown (invariant D2).
///
/// # Errors
/// Not even that fits.
pub fn write_outcome<C: Context, T: Tool, const N: usize>(
    outcome: &Outcome<C, T>,
    buffer: &mut Buffer<N>,
) -> Result<bool, OutcomeTooLong> {
    buffer.clear();
    if outcome.write_json(buffer).is_ok() {
        return Ok(true);
    }
    let mut count = Count(0);
    // A count takes everything; what the tool's own output gives up on ends it.
    let _ = outcome.write_json(&mut count);
    buffer.clear();
    match write_short(outcome, count.0, buffer) {
        Ok(()) => Ok(false),
        Err(fmt::Error) => {
            buffer.clear();
            Err(OutcomeTooLong { bytes: count.0 })
        }
    }
}

fn write_short<C: Context, T: Tool>(outcome: &Outcome<C, T>, bytes: usize, out: &mut dyn fmt::Write) -> fmt::Result {
    let caller = outcome.context().caller();
    let mut object = Object::begin(out)?;
    object.boolean("success", outcome.success())?;
    object.null("data")?;
    object.null("message")?;
    object.null("error")?;
    object.raw("meta", |out| {
        let mut meta = Object::begin(out)?;
        meta.text("tool", outcome.context().request().tool)?;
        meta.text("request_id", caller.request_id)?;
        meta.text("channel", caller.channel)?;
        meta.nullable("principal", caller.known_principal())?;
        meta.text("effect", outcome.effect().as_str())?;
        if let Some(code) = outcome.code() {
            meta.text("code", code.as_str())?;
        }
        if let Some(ns) = outcome.retry_after_ns() {
            meta.number("retry_after_seconds", crate::limit::retry_after_seconds(ns))?;
        }
        match outcome.kind() {
            OutcomeType::Generic => {}
            OutcomeType::Confirmation => meta.text("type", "confirmation")?,
            OutcomeType::Accepted => meta.text("type", "accepted")?,
            OutcomeType::Blocked => meta.text("type", "blocked")?,
            OutcomeType::Error => meta.text("type", "error")?,
        }
        if outcome.unrecorded() {
            meta.boolean("audit_pending", true)?;
        }
        meta.boolean("cut", true)?;
        meta.number("bytes", bytes as u64)?;
        meta.end()
    })?;
    object.end()
}

struct Count(usize);

impl fmt::Write for Count {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.saturating_add(text.len());
        Ok(())
    }
}
