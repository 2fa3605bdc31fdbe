//! Who verifies signed consent, where a configuration names signers.

use std::sync::Arc;

use callgate_signed::Authorizer;
use callgate_sqlite::SqliteNonces;
use callgate_std::nonces::{DirectoryNonces, NonceLedger};

use super::StateFiles;
use super::stores::Waiting;
use crate::config::Config;

/// The authorizer of a configuration; `None` where this host has no name, so that no signature counts (invariant F2). Nonces are spent
/// in the store of what waits.
pub(super) fn authorizer(config: &Config, files: &StateFiles, waiting: &Waiting) -> Option<Authorizer> {
    let nonces: Arc<dyn NonceLedger> = match waiting {
        Waiting::Database(store) => Arc::new(SqliteNonces::on(Arc::clone(store.database()))),
        Waiting::Text(_) => Arc::new(DirectoryNonces::new(&files.nonces)),
    };
    let window = u64::try_from(config.signed.window.as_millis()).unwrap_or(u64::MAX);
    let host = config.signed.host.as_deref()?;
    Some(Authorizer::new(config.signed.signers.clone(), host, nonces).with_window_ms(window))
}
