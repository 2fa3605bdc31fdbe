//! Callers that come at once and wait for the disk: what shares a commit, beside one commit for each record.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use callgate_core::call::End;
use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_core::tool::ConfirmBy;
use callgate_sqlite::{Database, SqliteAudit, SqliteConfirmations, SqliteLimiter};
use callgate_std::clock::SystemClock;
use callgate_std::confirmations::Capacity;
use callgate_std::entropy::OsEntropy;
use callgate_std::gate::Gate;
use callgate_std::limiter::{FileLimiter, Quota, RateLimiter};
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::Tool;
use rusqlite::Connection;

use crate::call::limiter;

/// What one side of a round did.
#[derive(Clone, Debug, Default)]
pub struct Spent {
    /// How long each turn took, the shortest first.
    pub turns: Vec<Duration>,
    /// How long all of it took.
    pub time: Duration,
}

impl Spent {
    /// Turns in a second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.turns.len() as f64 / self.time.as_secs_f64()
    }

    /// So many of a hundred turns took at most this long, in milliseconds.
    #[must_use]
    pub fn at(&self, percent: usize) -> f64 {
        let at = (self.turns.len() * percent / 100).min(self.turns.len().saturating_sub(1));
        self.turns.get(at).map_or(0.0, |turn| turn.as_secs_f64() * 1e3)
    }
}

/// So many callers take turns of their own for this long.
pub fn run(callers: usize, time: Duration, turn: &(dyn Fn() + Sync)) -> Spent {
    let over = AtomicBool::new(false);
    let start = Instant::now();
    let mut turns: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..callers)
            .map(|_| {
                scope.spawn(|| {
                    let mut turns = Vec::new();
                    while !over.load(Ordering::Relaxed) {
                        let start = Instant::now();
                        turn();
                        turns.push(start.elapsed());
                    }
                    turns
                })
            })
            .collect();
        std::thread::sleep(time);
        over.store(true, Ordering::Relaxed);
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    turns.sort_unstable();
    Spent { turns, time: start.elapsed() }
}

/// One row of a kilobyte and one commit for each turn, with what the stores ask of SQLite: what there is without sharing.
///
/// # Panics
/// The file cannot be used.
pub fn one_commit_each(directory: &Path) -> impl Fn() + Sync + use<> {
    let connection = Connection::open(directory.join("bare.db")).expect("new");
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
             CREATE TABLE IF NOT EXISTS audit (seq INTEGER PRIMARY KEY, line TEXT NOT NULL) STRICT;",
        )
        .expect("a table");
    let connection = Mutex::new(connection);
    let line = "x".repeat(1 << 10);
    move || {
        let connection = connection.lock().expect("no panic");
        let sql = "INSERT INTO audit (line) VALUES (?1)";
        connection.prepare_cached(sql).and_then(|mut insert| insert.execute([&line])).expect("written");
    }
}

/// Where budgets are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Budgets {
    /// In memory: what a call costs apart from them.
    Memory,
    /// In a file of text.
    Text,
    /// In the database of the log and the confirmations.
    Database,
}

/// A gate with all that it keeps in one file, but for `budgets`; with a tool that reads and one that asks its caller.
///
/// # Panics
/// The file cannot be used.
#[must_use]
pub fn gate(directory: &Path, budgets: Budgets) -> Gate {
    let database = Arc::new(Database::open(directory.join("gate.db")).expect("new"));
    let capacity = Capacity { per_principal: usize::MAX, ..Capacity::DEFAULT };
    let store = SqliteConfirmations::with(Arc::clone(&database), capacity, SystemClock::shared(), OsEntropy::shared());
    let quota = Quota::new(u32::MAX, 1, u32::MAX).expect("a quota");
    let limiter: Arc<dyn RateLimiter> = match budgets {
        Budgets::Memory => Arc::new(limiter()),
        Budgets::Text => Arc::new(FileLimiter::open(directory.join("limits"), move |_| quota).expect("new")),
        Budgets::Database => Arc::new(SqliteLimiter::on(Arc::clone(&database), move |_| quota).expect("new")),
    };
    let reads = Tool::builder("reads").description("Reads").handler(|_| Ok(Reply::empty()));
    let asks =
        Tool::builder("asks").description("Asks").mutating().confirm(ConfirmBy::Caller).handler(|_| Ok(Reply::empty()));
    Gate::builder(Registry::builder().add(reads).add(asks).build().expect("good tools"))
        .confirmations(Arc::new(store))
        .audit(Arc::new(SqliteAudit::on(database).expect("new")))
        .limiter(limiter)
        .build()
        .expect("a gate")
}

fn call(gate: &Gate, tool: &str, token: Option<&str>) -> Option<String> {
    let outcome = gate.call(&CallContext::cli("r"), Request { tool, arguments: b"{}", token });
    match outcome.end() {
        End::Asked { token, .. } => Some(token.to_string()),
        _ => {
            assert_eq!(outcome.code(), None, "the call failed");
            None
        }
    }
}

/// A call that reads: a charge and a record.
///
/// # Panics
/// The call failed.
pub fn read(gate: &Gate) {
    call(gate, "reads", None);
}

/// A call that changes something, and that its caller confirms: charge, issue, record; load, claim, intent, record, finish.
///
/// # Panics
/// The call failed.
pub fn confirm(gate: &Gate) {
    let token = call(gate, "asks", None).expect("the tool asks");
    call(gate, "asks", Some(&token));
}
