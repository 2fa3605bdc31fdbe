//! `[confirmation]`: how long a call waits to be confirmed, and how many may wait.

use std::time::Duration;

use callgate_core::name::check_scope;
use callgate_core::tool::ConfirmBy;

use super::decode::{Entry, Key, Keys, Table};

/// How confirmations are kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Confirmation {
    /// How long a token can be redeemed.
    pub ttl: Duration,
    /// The most calls that wait at once; one more is refused (invariant F5).
    pub max_pending: u32,
    /// Whether a token is also taken from the reserved argument `confirm_token`. It belongs beside the arguments; this is for
    /// callers that can't put it there.
    pub accept_reserved_argument: bool,
}

impl Default for Confirmation {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(60), max_pending: 1000, accept_reserved_argument: false }
    }
}

pub(super) static KEYS: Keys = Keys {
    table: "confirmation",
    keys: &[
        Key { name: "ttl", takes: "a duration in quotes, such as \"60s\"", example: "\"60s\"" },
        Key { name: "max_pending", takes: "a whole number", example: "1000" },
        Key { name: "accept_reserved_argument", takes: "true or false", example: "false" },
    ],
};

pub(super) fn read(entry: &Entry<'_>) -> Confirmation {
    let default = Confirmation::default();
    let Some(table) = entry.table(&KEYS) else {
        return default;
    };
    let ttl = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
    Confirmation {
        ttl: table.get("ttl").and_then(|entry| entry.duration(ttl)).unwrap_or(default.ttl),
        max_pending: table
            .get("max_pending")
            .and_then(|entry| entry.natural(1..=100_000))
            .unwrap_or(default.max_pending),
        accept_reserved_argument: table.boolean("accept_reserved_argument", default.accept_reserved_argument),
    }
}

/// Who has to confirm a call of a tool.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "whoever applies it must decide for each")]
pub enum Confirm {
    /// Nobody.
    Nobody,
    /// The same caller repeats the call with the token that it was given.
    Caller,
    /// Another principal that holds this scope (invariant A2).
    Approver {
        /// The scope.
        scope: String,
    },
}

impl Confirm {
    /// The same, as the gate takes it.
    #[must_use]
    pub fn by(&self) -> ConfirmBy<'_> {
        match self {
            Self::Nobody => ConfirmBy::Nobody,
            Self::Caller => ConfirmBy::Caller,
            Self::Approver { scope } => ConfirmBy::Approver { scope },
        }
    }
}

/// The scope of approvers where a tool names none.
pub const APPROVER_SCOPE: &str = "approve";

pub(super) const CONFIRM_KEY: Key =
    Key { name: "confirm", takes: "\"nobody\", \"caller\" or \"approver\"", example: "\"caller\"" };
pub(super) const APPROVER_SCOPE_KEY: Key =
    Key { name: "approver_scope", takes: "a scope in quotes", example: "\"approve\"" };

/// Reads `confirm` and `approver_scope` of a tool.
pub(super) fn confirm(table: &Table<'_>) -> Option<Confirm> {
    #[derive(Clone, Copy, PartialEq)]
    enum By {
        Nobody,
        Caller,
        Approver,
    }
    let by = table
        .get("confirm")
        .and_then(|entry| entry.one_of(&[("nobody", By::Nobody), ("caller", By::Caller), ("approver", By::Approver)]));
    let scope = table.get("approver_scope");
    if let Some(scope) = &scope
        && by != Some(By::Approver)
    {
        scope.report_with(
            "`approver_scope` means nothing without `confirm = \"approver\"`",
            Some("add confirm = \"approver\", or leave approver_scope out".into()),
        );
    }
    Some(match by? {
        By::Nobody => Confirm::Nobody,
        By::Caller => Confirm::Caller,
        By::Approver => Confirm::Approver {
            scope: scope.and_then(|scope| scope.name(check_scope)).unwrap_or_else(|| APPROVER_SCOPE.to_owned()),
        },
    })
}
