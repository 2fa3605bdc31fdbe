//! What happens inside, for whoever asks: `--verbose`, or `RUST_LOG`.

use std::sync::Arc;

use callgate_std::audit::{SharedAudit, TracingAudit};
use tracing_subscriber::EnvFilter;

use crate::trouble::Trouble;

/// The library of the protocol logs messages as they are, secrets included (invariant L2). Whoever wants that asks for it by
/// `RUST_LOG`.
const QUIET: &str = "rmcp=off";

/// Starts to log to standard error, if somebody asked for it; then also with a sink that shows each record there.
///
/// # Errors
/// `RUST_LOG` is no filter.
pub(crate) fn start(verbose: u8) -> Result<Option<SharedAudit>, Trouble> {
    let filter = match (std::env::var("RUST_LOG").ok().filter(|filter| !filter.is_empty()), verbose) {
        (Some(filter), _) => filter,
        (None, 0) => return Ok(None),
        (None, 1) => format!("info,{QUIET}"),
        (None, _) => format!("debug,{QUIET}"),
    };
    let filter = EnvFilter::try_new(&filter).map_err(|error| {
        Trouble::usage(format!("RUST_LOG is not a filter: {error}"))
            .with_help("for example RUST_LOG=info or RUST_LOG=callgate=debug")
    })?;
    let subscriber =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).finish();
    // Set once, at the start: nobody can have set another one.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(Some(Arc::new(TracingAudit::new())))
}
