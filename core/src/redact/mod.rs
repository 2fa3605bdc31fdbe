//! Redaction: the one choke point that everything passes before it is written to a record, a log, an error or a plan
//! (invariants L1, L2).
//!
//! What is replaced:
//! - every value under a sensitive name (see [`Redaction::is_sensitive`]) and every field that the tool marks as a secret,
//!   with all that is inside it;
//! - secrets inside texts: in URLs, in `name=value` and `"name": "value"` text, after `Authorization:`, `Bearer` and the
//!   like, and what has the shape of a well-known token or of a private key;
//! - every occurrence, in a text, of a value that is a secret of the same call.
//!
//! Everything else is kept as it is. Where bounds are met, more is replaced and never less. What is not found, and why, is in
//! `docs/decisions/0017-redaction-in-doubt.md`.
//!
//! ```
//! use callgate_core::args::Args;
//! use callgate_core::json::{KeySlot, Limits};
//! use callgate_core::redact::{Redaction, Secrets};
//! let mut keys = [KeySlot::default(); 8];
//! let args = Args::read(br#"{"url":"https://h/?api_key=x&n=1","login":{"password":"hunter2"}}"#, &mut keys, &Limits::DEFAULT)?;
//! let redaction = Redaction::DEFAULT;
//! assert_eq!(
//!     redaction.args(args, &[]).to_string(),
//!     r#"{"url":"https://h/?api_key=***REDACTED***&n=1","login":{"password":"***REDACTED***"}}"#
//! );
//! let error = "no user for hunter2 (token=abc, try 5)";
//! assert_eq!(
//!     redaction.text(error, Secrets::of(args, &[])).to_string(),
//!     "no user for ***REDACTED*** (token=***REDACTED***, try 5)"
//! );
//! # Ok::<(), callgate_core::json::ReadError>(())
//! ```

mod coarse;
mod known;
mod names;
mod pairs;
mod shapes;
mod spans;
mod text;
mod units;
mod urls;
mod values;
mod walk;

use core::fmt;

use crate::args::Args;
use crate::json::write::Writer;
use crate::json::{Event, Text};
use crate::tool::FieldRule;
use known::Known;
use text::Way;
use walk::{Standing, Walk};

/// What stands in place of a secret.
pub const REPLACEMENT: &str = "***REDACTED***";

/// The most bytes of one text that are looked at and written, unless a host says otherwise.
pub const TEXT_LIMIT: u32 = 8192;

/// The rules of redaction in force: the built-in sensitive names and the host's own.
///
/// ```
/// use callgate_core::redact::Redaction;
/// let redaction = Redaction::DEFAULT.with_names(&["pin", "tenant id"]);
/// assert!(redaction.is_sensitive("X-Api-Key") && redaction.is_sensitive("refreshToken"));
/// assert!(redaction.is_sensitive("PIN") && redaction.is_sensitive("tenantId"));
/// assert!(!redaction.is_sensitive("max_tokens") && !redaction.is_sensitive("author"));
/// ```
#[derive(Clone, Copy)]
pub struct Redaction<'a> {
    names: &'a [&'a str],
    text_limit: u32,
    way: &'static Way,
}

impl fmt::Debug for Redaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redaction")
            .field("names", &self.names)
            .field("text_limit", &self.text_limit)
            .finish_non_exhaustive()
    }
}

impl Default for Redaction<'_> {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl<'a> Redaction<'a> {
    /// The built-in names alone, and texts of up to [`TEXT_LIMIT`].
    pub const DEFAULT: Self = Self { names: &[], text_limit: TEXT_LIMIT, way: &text::FINE };

    /// The same for firmware, where code is dear: a text (and a string or key of the arguments) that may hold a secret is
    /// replaced as a whole. It may as soon as a sensitive name, something that looks like a token, a URL with a user or an
    /// encoded character stands in it, and so may all texts of a call with more than 4 secrets of its own. What is a secret among the
    /// arguments by its name or by the tool's rules is the same.
    pub const COARSE: Self = Self { names: &[], text_limit: TEXT_LIMIT, way: &coarse::COARSE };

    /// The same rules, with these names instead of the host's names so far, beside the built-in ones, which always hold.
    ///
    /// A name is compared word by word, whatever separates its words and without regard to the case of ASCII letters:
    /// `tenant id` covers `tenantId`, `X-Tenant-Id` and `TENANT_ID`. Digits and signs are borders of words, so a name needs at least
    /// one letter; one without is never met.
    #[must_use]
    pub const fn with_names(mut self, names: &'a [&'a str]) -> Self {
        self.names = names;
        self
    }

    /// The same rules, with texts cut after `bytes` bytes. The cut is visible: `[cut: 10000 bytes in all]`.
    #[must_use]
    pub const fn with_text_limit(mut self, bytes: u32) -> Self {
        self.text_limit = bytes;
        self
    }

    /// Whether the value beside the name `key` is a secret.
    #[must_use]
    pub fn is_sensitive(&self, key: &str) -> bool {
        names::is_sensitive(key.chars(), self.names)
    }

    /// A free text (an error, a panic, a reason, a note) without the secrets in it, as something to display.
    #[must_use]
    pub const fn text(self, text: &'a str, secrets: Secrets<'a>) -> RedactedText<'a> {
        RedactedText { redaction: self, text, secrets }
    }

    /// The arguments of a call as compact JSON without the secrets in it, as something to display. `fields` are the rules of
    /// the tool; those marked secret count.
    #[must_use]
    pub const fn args(self, args: Args<'a>, fields: &'a [FieldRule<'a>]) -> RedactedArgs<'a> {
        RedactedArgs { redaction: self, args, fields }
    }

    /// Writes a free text without the secrets in it. The rest is written as it stands, controls too: what shows the result
    /// escapes it ([`crate::json::write`] does).
    ///
    /// # Errors
    /// What `out` says.
    pub fn write_text(&self, text: &str, secrets: Secrets<'_>, out: &mut dyn fmt::Write) -> fmt::Result {
        self.with_known(secrets, &mut |known| text::write(text.into(), self, known, out))
    }

    /// Writes the clamped arguments of a call as compact JSON without the secrets in it: values that are secrets become the
    /// string [`REPLACEMENT`], strings and keys are written as [`write_text`](Self::write_text) writes texts. Invisible characters and
    /// controls are escaped (invariants D5, J9).
    ///
    /// # Errors
    /// What `out` says.
    pub fn write_args(&self, args: Args<'_>, fields: &[FieldRule<'_>], out: &mut dyn fmt::Write) -> fmt::Result {
        self.write_events(args.events(), fields, Secrets::of(args, fields), out)
    }

    /// Writes any JSON value (a tool's result, say) as [`write_args`](Self::write_args) writes arguments. `fields` are rules
    /// for this value, `secrets` those of the call that it belongs to.
    ///
    /// # Errors
    /// What `out` says; and [`fmt::Error`] for events that are no JSON value.
    pub fn write_events<'e, I>(
        &self,
        events: I,
        fields: &[FieldRule<'_>],
        secrets: Secrets<'_>,
        out: &mut dyn fmt::Write,
    ) -> fmt::Result
    where
        I: IntoIterator<Item = (u32, Event<'e>), IntoIter: Clone>,
    {
        let mut events = Some(events.into_iter());
        self.with_known(secrets, &mut |known| {
            let Some(events) = events.take() else { return Ok(()) };
            let mut json = Writer::new(out);
            for (event, standing) in Walk::new(events, *self, fields) {
                match (standing, event) {
                    (Standing::Within, _) => {}
                    (Standing::Secret, _) => json.string(REPLACEMENT)?,
                    (Standing::Open, Event::String(text)) => json.display(&Inner { text, redaction: self, known })?,
                    (Standing::Open, Event::Number(number)) if known.is_number(number) => json.string(REPLACEMENT)?,
                    (Standing::Open, Event::Key(key)) if text::key_holds_secrets(key, self, known) => {
                        json.key(REPLACEMENT)?;
                    }
                    (Standing::Open, event) => json.event(event)?,
                }
            }
            Ok(())
        })
    }

    /// Finds the secrets of a call, and shows them to `look`.
    fn with_known(&self, secrets: Secrets<'_>, look: &mut dyn FnMut(&Known<'_>) -> fmt::Result) -> fmt::Result {
        (self.way.room)(&mut |needles| {
            let mut known = Known::new(needles);
            secrets.find(self, &mut known);
            look(&known)
        })
    }
}

/// A string within a JSON value.
struct Inner<'a> {
    text: Text<'a>,
    redaction: &'a Redaction<'a>,
    known: &'a Known<'a>,
}

impl fmt::Display for Inner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write(self.text, self.redaction, self.known, f)
    }
}

/// The secrets that a call's own arguments hold: whatever is written about the call must not repeat them.
#[derive(Clone, Copy)]
pub struct Secrets<'a>(Option<(Args<'a>, &'a [FieldRule<'a>])>);

impl<'a> Secrets<'a> {
    /// No secret is known: only what looks like one is replaced. For texts that no call belongs to.
    pub const NONE: Self = Self(None);

    /// The secrets in `args`: strings and numbers of at least 4 characters under a sensitive name or in a field marked secret.
    #[must_use]
    pub const fn of(args: Args<'a>, fields: &'a [FieldRule<'a>]) -> Self {
        Self(Some((args, fields)))
    }

    /// Adds the secrets to `known`.
    // Not inlined, so that what it needs on the stack is gone when they are looked for.
    #[inline(never)]
    fn find(&self, redaction: &Redaction<'_>, known: &mut Known<'_>) {
        if let Some((args, fields)) = self.0 {
            let walk = Walk::new(args.events(), *redaction, fields);
            for (event, _) in walk.filter(|(_, standing)| *standing != Standing::Open) {
                match event {
                    Event::String(text) => known.add(text.chars()),
                    Event::Number(number) => known.add_number(number),
                    _ => {}
                }
            }
        }
    }
}

impl fmt::Debug for Secrets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(..)")
    }
}

/// A text whose secrets are left out when it is displayed. Made by [`Redaction::text`].
#[derive(Clone, Copy)]
pub struct RedactedText<'a> {
    redaction: Redaction<'a>,
    text: &'a str,
    secrets: Secrets<'a>,
}

impl fmt::Display for RedactedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.redaction.write_text(self.text, self.secrets, f)
    }
}

/// The same text as displayed: the raw one has no `Debug` (invariant L1).
impl fmt::Debug for RedactedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedactedText({self})")
    }
}

/// Arguments whose secrets are left out when they are displayed, as compact JSON. Made by [`Redaction::args`].
#[derive(Clone, Copy)]
pub struct RedactedArgs<'a> {
    redaction: Redaction<'a>,
    args: Args<'a>,
    fields: &'a [FieldRule<'a>],
}

impl fmt::Display for RedactedArgs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.redaction.write_args(self.args, self.fields, f)
    }
}

/// The same JSON as displayed: the raw one has no `Debug` (invariant L1).
impl fmt::Debug for RedactedArgs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedactedArgs({self})")
    }
}
