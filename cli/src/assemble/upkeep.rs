//! What stores need from time to time: calls that a dead process left open are closed, and claims that it held are left in doubt.

use std::fmt;
use std::path::{Path, PathBuf};

use callgate_core::audit::chain::Head;
use callgate_core::time::Timestamp;
use callgate_std::audit::{LostCall, Retention, Segments, SharedAudit};
use callgate_std::clock::SystemClock;
use callgate_std::confirmations::TicketView;
use callgate_std::gate::{Gate, GateBuilder};
use callgate_std::journal::OperationView;
use callgate_std::registry::Registry;

use super::stores::{Log, Waiting};
use super::{AssembleError, checkpoints};
use crate::config::{Config, Keeping};

/// Looks after the stores of a gate. Nothing runs by it.
pub(crate) struct Upkeep {
    /// A gate without tools, for its approvals.
    desk: Gate,
    log: Log,
    waiting: Waiting,
    file: PathBuf,
    keeping: Keeping,
    /// The name of the log in its checkpoints.
    name: String,
}

/// What was found.
#[derive(Clone, Default)]
pub(crate) struct Found {
    /// Calls that the log had the beginning of, and now has an end of.
    pub(crate) lost: Vec<LostCall>,
    /// Requests whose call was not heard of within its lease.
    pub(crate) in_doubt: Vec<TicketView>,
    /// Operations whose call was not heard of within its lease.
    pub(crate) operations: Vec<OperationView>,
    /// What could not be looked after.
    pub(crate) troubles: Vec<String>,
}

impl Upkeep {
    /// Looks after these stores. `settings` gives the records of it what those of the gate have.
    ///
    /// # Errors
    /// The settings can't be used.
    pub(super) fn of(
        log: &Log,
        waiting: &Waiting,
        config: &Config,
        file: &Path,
        audit: SharedAudit,
        settings: impl FnOnce(GateBuilder) -> GateBuilder,
    ) -> Result<Self, AssembleError> {
        let builder = Gate::builder(Registry::default()).unlimited().confirmations(waiting.store()).audit(audit);
        let builder = match waiting.journal() {
            Some(journal) => builder.journal(journal),
            None => builder,
        };
        Ok(Self {
            desk: settings(builder).build()?,
            log: log.clone(),
            waiting: waiting.clone(),
            file: file.to_owned(),
            keeping: config.audit.clone(),
            name: checkpoints::name_of(config, file),
        })
    }

    /// Does what there is to do.
    pub(crate) fn run(&self) -> Found {
        let mut found = Found::default();
        let mut log = || {
            found.lost = self.log.reap(now())?;
            if self.keeping.max_size.is_some_and(|most| self.log.bytes().is_ok_and(|bytes| bytes >= most)) {
                self.rotate()?;
            }
            self.retain()
        };
        if let Err(error) = log() {
            found.troubles.push(format!("the audit log was not looked after: {error}"));
        }
        match self.desk.approvals().reap() {
            Ok(in_doubt) => found.in_doubt = in_doubt,
            Err(fault) => {
                let error = self.waiting.last_error().unwrap_or_else(|| fault.to_string());
                found.troubles.push(format!("what waits was not looked after: {error}"));
            }
        }
        if self.waiting.journal().is_some() {
            match self.desk.operations().reap() {
                Ok(operations) => found.operations = operations,
                Err(fault) => {
                    let error = self.waiting.last_error().unwrap_or_else(|| fault.to_string());
                    found.troubles.push(format!("operations were not looked after: {error}"));
                }
            }
        }
        if let Some(settings) = &self.keeping.checkpoint {
            match checkpoints::make_if_due(settings, &self.name, self.log.head(), now()) {
                Ok(None) => {}
                Ok(Some(file)) => tracing::info!(file = %file.display(), "a checkpoint of the audit log was made"),
                Err(error) => found.troubles.push(format!("there is no checkpoint of the audit log: {error}")),
            }
        }
        found
    }

    /// Puts the log aside as a segment, and says where that ends.
    ///
    /// # Errors
    /// The log can't be used.
    pub(crate) fn rotate(&self) -> Result<Option<Head>, AssembleError> {
        self.log.rotate(now())
    }

    /// Removes the segments that the configuration does not have kept, and says up to where.
    ///
    /// # Errors
    /// The log can't be used.
    pub(crate) fn retain(&self) -> Result<Option<Head>, AssembleError> {
        let Keeping { keep_segments, keep_for, .. } = self.keeping;
        if keep_segments.is_none() && keep_for.is_none() {
            return Ok(None);
        }
        let keep_for = keep_for.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self.log.retain(Retention::new(keep_segments, keep_for), now())
    }

    /// Where the segments are.
    pub(crate) fn segments(&self) -> Segments {
        Segments::of(&self.file)
    }

    /// The same, for a server: what was found goes to its log.
    #[cfg(feature = "mcp")]
    pub(crate) fn run_and_tell(&self) {
        for told in self.run().told() {
            tracing::warn!("{told}");
        }
    }
}

fn now() -> Timestamp {
    SystemClock::shared().now().wall
}

impl Found {
    /// In words, a line each.
    pub(crate) fn told(&self) -> Vec<String> {
        let lost = self.lost.iter().map(|LostCall { request_id, tool, line, .. }| {
            format!(
                "{tool}, request {request_id} (line {line}), was not heard of within its lease: it is closed, and what it did is unknown"
            )
        });
        let in_doubt = self.in_doubt.iter().map(|ticket| {
            format!("approval {} of {} is in doubt: its call was not heard of", ticket.ticket, ticket.tool)
        });
        let operations = self.operations.iter().map(|operation| {
            format!(
                "operation {} of {} is in doubt: request {} was not heard of",
                operation.operation, operation.tool, operation.request_id
            )
        });
        lost.chain(in_doubt).chain(operations).chain(self.troubles.iter().cloned()).collect()
    }
}

impl fmt::Debug for Upkeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upkeep").finish_non_exhaustive()
    }
}
