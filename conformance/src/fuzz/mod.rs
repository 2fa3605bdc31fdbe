//! The bodies of the fuzz targets: each takes any bytes and panics when something does not hold that should.
//!
//! The programs under `fuzz/` hand them what libFuzzer finds. They live here, behind the feature `fuzz`, so that every build
//! of the workspace checks them, and so that an ordinary test can [`replay`] their corpora. What reads configuration files is
//! in the command, and so is its body.
//!
//! A body asserts what the numbered invariants say, as far as one can tell without knowing the right answer: that two readers
//! agree, that what was written can be read, that a change shows, that a secret is nowhere.
#![expect(clippy::panic, clippy::expect_used, reason = "a panic is how a fuzz body says that something does not hold")]

mod audit;
mod choices;
mod digest;
mod files;
mod pipeline;
mod reader;
mod redaction;
pub mod replay;
mod schema_admission;
mod schema_agreement;
mod wire;

use callgate_core::json::{KeySlot, key_capacity};

pub use audit::audit_log;
pub use digest::digest;
pub use files::state_files;
pub use pipeline::step;
pub use reader::{reader, readers};
pub use redaction::{redacted_arguments, redacted_text};
pub use schema_admission::schema_admission;
pub use schema_agreement::schema_agreement;
pub use wire::wire;

/// A fuzz target: its name, which is also that of its corpus, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// The targets of this crate.
pub const TARGETS: &[Target] = &[
    ("reader", reader),
    ("readers", readers),
    ("schema_admission", schema_admission),
    ("schema_agreement", schema_agreement),
    ("digest", digest),
    ("redacted_text", redacted_text),
    ("redacted_arguments", redacted_arguments),
    ("state_files", state_files),
    ("audit_log", audit_log),
    ("step", step),
    ("wire", wire),
];

/// Room for the keys of a text.
fn slots(text: &[u8]) -> Vec<KeySlot> {
    vec![KeySlot::default(); key_capacity(text)]
}

/// What stands before the first zero byte, and what stands behind it.
fn halves(data: &[u8]) -> (&[u8], &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}
