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
//! Everything else is kept as it is. Where bounds are met, more is replaced and never less.

mod names;

use core::fmt;

use crate::args::Args;
use crate::tool::FieldRule;

/// What stands in place of a secret.
pub const REPLACEMENT: &str = "***REDACTED***";

/// The rules of redaction in force: the built-in sensitive names and the host's own.
///
/// ```
/// use callgate_core::redact::Redaction;
/// let redaction = Redaction::DEFAULT.with_names(&["pin", "tenant id"]);
/// assert!(redaction.is_sensitive("X-Api-Key") && redaction.is_sensitive("refreshToken"));
/// assert!(redaction.is_sensitive("PIN") && redaction.is_sensitive("tenantId"));
/// assert!(!redaction.is_sensitive("max_tokens") && !redaction.is_sensitive("author"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Redaction<'a> {
    names: &'a [&'a str],
}

impl<'a> Redaction<'a> {
    /// The built-in names alone.
    pub const DEFAULT: Self = Self { names: &[] };

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

    /// Whether the value beside the name `key` is a secret.
    #[must_use]
    pub fn is_sensitive(&self, key: &str) -> bool {
        names::is_sensitive(key.chars(), self.names)
    }

    /// A free text (an error, a panic, a reason, a note) without the secrets in it, as something to display.
    #[must_use]
    pub const fn text(self, text: &'a str, secrets: Secrets<'a>) -> RedactedText<'a> {
        RedactedText {
            redaction: self,
            text,
            secrets,
        }
    }

    /// The arguments of a call as compact JSON without the secrets in it, as something to display. `fields` are the rules of
    /// the tool; those marked secret count.
    #[must_use]
    pub const fn args(self, args: Args<'a>, fields: &'a [FieldRule<'a>]) -> RedactedArgs<'a> {
        RedactedArgs {
            redaction: self,
            args,
            fields,
        }
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
        let _ = (self.redaction, self.text, self.secrets.0);
        f.write_str(REPLACEMENT)
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
        let _ = (self.redaction, self.args, self.fields);
        write!(f, "\"{REPLACEMENT}\"")
    }
}

/// The same JSON as displayed: the raw one has no `Debug` (invariant L1).
impl fmt::Debug for RedactedArgs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedactedArgs({self})")
    }
}
