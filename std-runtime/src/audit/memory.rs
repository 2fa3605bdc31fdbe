//! Records in memory, for tests.

use std::fmt;
use std::sync::Arc;

use callgate_core::audit::chain::Head;
use callgate_core::audit::{Audit, AuditFault, Record};

use crate::lock::{AtomicBool, AtomicU64, Mutex, Ordering, lock};

/// How many lines are kept where a test says nothing else.
const MAX_LINES: usize = 100_000;

/// Keeps the lines of a log in memory, chained as a file's would be. Clones share the log: keep one, inject the other.
#[derive(Clone)]
pub struct MemoryAudit(Arc<Log>);

struct Log {
    chain: Mutex<(Head, Vec<String>)>,
    max_lines: usize,
    down: AtomicBool,
    faults: AtomicU64,
}

impl MemoryAudit {
    /// An empty log of at most 100,000 lines.
    #[must_use]
    pub fn new() -> Self {
        Self::with_max_lines(MAX_LINES)
    }

    /// An empty log of at most this many lines. A record beyond them is refused, as by a full disk (invariant F5).
    #[must_use]
    pub fn with_max_lines(max_lines: usize) -> Self {
        Self(Arc::new(Log {
            chain: Mutex::new((Head::EMPTY, Vec::new())),
            max_lines,
            down: AtomicBool::new(false),
            faults: AtomicU64::new(0),
        }))
    }

    /// Refuses every record from here on, or no longer.
    pub fn set_down(&self, down: bool) {
        self.0.down.store(down, Ordering::Release);
    }

    /// The lines, each without its line break.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        lock(&self.0.chain).1.clone()
    }

    /// The end of the chain.
    #[must_use]
    pub fn head(&self) -> Head {
        lock(&self.0.chain).0
    }

    /// How many records were refused.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.0.faults.load(Ordering::Relaxed)
    }
}

impl Audit for MemoryAudit {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        let mut line = String::new();
        let mut chain = lock(&self.0.chain);
        let (head, lines) = &mut *chain;
        if lines.len() < self.0.max_lines
            && !self.0.down.load(Ordering::Acquire)
            && let Ok(next) = head.append(record, &mut line)
        {
            *head = next;
            lines.push(line);
            return Ok(());
        }
        self.0.faults.fetch_add(1, Ordering::Relaxed);
        Err(AuditFault)
    }
}

impl Default for MemoryAudit {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryAudit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryAudit").field("head", &self.head()).finish_non_exhaustive()
    }
}
