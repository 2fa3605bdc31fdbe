//! The configuration file `callgate.toml`.
//!
//! It is strict. An unknown key, a key given twice, a value of the wrong type or one that can't be used is a problem, and with
//! a problem there is no [`Config`]: the program doesn't start (invariant F7), because a gate that skips what it doesn't
//! understand is less strict than its file reads (case O1). All problems are reported at once, each with its place.
//!
//! ```
//! use std::path::Path;
//! use callgate::config::Config;
//!
//! let error = Config::parse("version = 1\n[channels.web]\nblock_mutatin = true\n", Path::new("callgate.toml")).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "\
//! callgate.toml:3:1: unknown key `block_mutatin` in `channels.web`
//!   |
//! 3 | block_mutatin = true
//!   | ^^^^^^^^^^^^^
//!   = did you mean `block_mutating`? The keys here are: require_auth, allow_all, block_mutating, \
//! require_rule, require_confirmation_for_mutating, confirm_by, consent_required"
//! );
//! ```
//!
//! Everything a file may say is described in `docs/configuration.md`; [`TEMPLATE`] is a file to start from.

mod audit;
mod channel;
mod check;
mod confirmation;
mod decode;
mod digest;
mod discover;
mod document;
mod duration;
mod exec;
mod fault;
mod field;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod keeper;
mod names;
mod parameter;
mod problem;
mod quota;
mod rule;
mod schema;
mod serve;
mod settings;
mod signed;
mod size;
mod source;
mod tool;
mod toolkit;
mod upstream;
mod verification;

pub use audit::{Checkpoints, Keeping};
pub use channel::Channel;
pub use check::check;
pub use confirmation::{APPROVER_SCOPE, Confirm, Confirmation};
pub use decode::{Key, Keys};
pub use discover::{ENVIRONMENT_VARIABLE, FILE_NAME, MAX_FILE_BYTES};
pub use exec::{DEFAULT_MAX_OUTPUT, ExecTool, OutputKind};
pub use fault::Fault;
pub use field::FieldRules;
pub use keeper::Keeper;
pub use parameter::{DEFAULT_MAX_ITEMS, DEFAULT_MAX_LENGTH, MAX_EXACT_INTEGER};
pub use problem::{ConfigError, Problem};
pub use quota::Quotas;
pub use rule::Rule;
pub use serve::{Serve, ServedIssuer, ServedToken};
pub use settings::{Config, Note, Origin};
pub(crate) use settings::{DATABASE, OWN_DIRECTORY};
pub use signed::Signed;
pub use source::{Location, Source};
pub use tool::{Adjusted, ToolAdjustment};
pub use toolkit::Toolkit;
pub use upstream::{Reach, Upstream};
pub(crate) use upstream::{check_header, check_url, is_variable};
pub use verification::Verification;

/// A file to start from: every option with its default, and commented examples. Read as it is, it gives the defaults.
pub const TEMPLATE: &str = include_str!("template.toml");

/// Every kind of table that a file may have, with its keys.
#[must_use]
pub fn known_keys() -> [&'static Keys; 26] {
    [
        &settings::KEYS,
        &settings::STATE,
        &audit::KEYS,
        &audit::CHECKPOINT,
        &settings::REDACTION,
        &channel::KEYS,
        &rule::KEYS,
        &rule::WHERE,
        &quota::KEYS,
        &quota::ATTEMPTS,
        &quota::BY_CHANNEL,
        &quota::BY_PRINCIPAL,
        &quota::BY_TOOL,
        &confirmation::KEYS,
        &signed::KEYS,
        &signed::SIGNER,
        &tool::KEYS,
        &tool::CLAMPS,
        &exec::KEYS,
        &exec::CLAMPS,
        &parameter::KEYS,
        &serve::KEYS,
        &serve::TOKEN,
        &serve::JWT,
        &upstream::KEYS,
        &verification::KEYS,
    ]
}
