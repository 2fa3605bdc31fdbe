//! A whole gate on one file, and the ledger of what its tools did.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use callgate_core::code::{Code, Effect};
use callgate_core::context::{CallContext, Scopes};
use callgate_core::request::Request;
use callgate_core::schema::{Property, Schema};
use callgate_core::tool::ConfirmBy;
use callgate_sqlite::{Database, SqliteAudit, SqliteConfirmations, SqliteJournal};
use callgate_std::clock::{SharedClock, SystemClock};
use callgate_std::confirmations::Capacity;
use callgate_std::entropy::OsEntropy;
use callgate_std::failure::Failure;
use callgate_std::gate::Gate;
use callgate_std::journal::JournalLimits;
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::{Tool, ToolBuilder};
use serde_json::{Value, json};

use crate::points::{Ends, Log, Operations, Store};

/// How many calls a round may number.
pub(crate) const OF_A_ROUND: u64 = 1_000;

const PROPERTIES: &[Property<'static>] = &[Property::required("n", Schema::integer())];

/// Where the effects of a round are written down; which one it is, its numbers say.
fn ledger(directory: &Path, n: u64) -> PathBuf {
    directory.join(format!("ledger.{:06}", n / OF_A_ROUND))
}

/// Every effect in a ledger, in order: its number and what it gave as receipt.
fn entries(ledger: &Path) -> Vec<(u64, String)> {
    let text = fs::read_to_string(ledger).unwrap_or_default();
    let entry = |line: &str| {
        let (n, receipt) = line.split_once(' ').expect("a number and a receipt");
        (n.parse().expect("a number"), receipt.to_owned())
    };
    text.lines().map(entry).collect()
}

/// The receipts of the effects of this number.
pub(crate) fn receipts(directory: &Path, n: u64) -> Vec<String> {
    entries(&ledger(directory, n)).into_iter().filter(|(found, _)| *found == n).map(|(_, receipt)| receipt).collect()
}

/// The numbers of all effects, in order.
pub(crate) fn effects(directory: &Path) -> Vec<u64> {
    let mut ledgers: Vec<_> =
        fs::read_dir(directory).expect("readable").map(|entry| entry.expect("readable").path()).collect();
    ledgers.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ledger.")));
    ledgers.sort_unstable();
    ledgers.iter().flat_map(|ledger| entries(ledger)).map(|(n, _)| n).collect()
}

/// One line of the ledger is one effect. Gives its receipt, which no other one has.
fn append(directory: &Path, n: u64) -> std::io::Result<String> {
    static RECEIPTS: AtomicU64 = AtomicU64::new(0);
    let receipt = format!("{}-{}", std::process::id(), RECEIPTS.fetch_add(1, Ordering::SeqCst));
    let mut ledger = OpenOptions::new().append(true).create(true).open(ledger(directory, n))?;
    ledger.write_all(format!("{n} {receipt}\n").as_bytes())?;
    ledger.sync_data()?;
    Ok(receipt)
}

/// What a call of an operation was told.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) code: Option<Code>,
    pub(crate) effect: Effect,
    pub(crate) replayed: bool,
    pub(crate) attempt: Option<u64>,
    /// Everything but what the gate says of this very call, byte for byte.
    pub(crate) delivered: String,
}

pub(crate) struct World {
    pub(crate) gate: Gate,
    pub(crate) audit: Arc<SqliteAudit>,
}

impl World {
    pub(crate) fn open(directory: &Path) -> Self {
        Self::with(directory, &Arc::default(), SystemClock::shared())
    }

    /// One that ends somewhere, and whose journal has this clock.
    pub(crate) fn with(directory: &Path, ends: &Arc<Ends>, clock: SharedClock) -> Self {
        let database = Arc::new(Database::open(directory.join("gate.db")).expect("new, or whole"));
        let audit = Arc::new(SqliteAudit::on(Arc::clone(&database)).expect("as it was left"));
        let tool =
            |name: &str| Tool::builder(name).description("Writes a line").const_schema(Schema::object(PROPERTIES));
        let pays = |tool: ToolBuilder| {
            let (at, directory) = (Arc::clone(ends), directory.to_owned());
            tool.mutating().handler(move |call| {
                let arguments: Value = call.arguments()?;
                let n = arguments.get("n").and_then(Value::as_u64).unwrap_or_default();
                at.at("effect.before");
                let receipt = append(&directory, n).map_err(|error| Failure::new(error.to_string()))?;
                at.at("effect.after");
                Ok(Reply::new(json!({"receipt": receipt, "n": n, "fee": 0.1})).with_message("paid \u{e4}\n"))
            })
        };
        let registry = Registry::builder()
            .add(pays(tool("account.pay").confirm(ConfirmBy::Caller)))
            .add(pays(tool("account.order")))
            .add(tool("account.look").handler(|_| Ok(Reply::new(Value::Null))))
            .build()
            .expect("good tools");
        // One principal asks more often here than the store would let it.
        let capacity = Capacity { per_principal: usize::MAX, ..Capacity::DEFAULT };
        let store =
            SqliteConfirmations::with(Arc::clone(&database), capacity, SystemClock::shared(), OsEntropy::shared());
        // The leases of operations end by a clock that runs ahead; nothing is forgotten for it.
        let limits = JournalLimits { retention_ms: u64::MAX, ..JournalLimits::DEFAULT };
        let gate = Gate::builder(registry)
            .digest_key([1; 32])
            .unlimited()
            .confirmations(Arc::new(Store(store, Arc::clone(ends))))
            .journal(Arc::new(Operations(SqliteJournal::with(database, limits, clock), Arc::clone(ends))))
            .audit(Arc::new(Log(audit.clone(), Arc::clone(ends))))
            .build()
            .expect("a good gate");
        Self { gate, audit }
    }

    /// Call `n`, with or without a token. Gives its code, and the token that it asks with.
    pub(crate) fn call(&self, id: &str, n: u64, token: Option<&str>) -> (Option<Code>, Option<String>) {
        let arguments = format!("{{\"n\":{n}}}");
        let caller = CallContext::new("cli", id).with_principal("alice");
        let request = Request { tool: "account.pay", arguments: arguments.as_bytes(), token };
        let outcome = self.gate.call(&caller, request);
        let text = outcome.to_json().expect("it can be written");
        let asked =
            text.split_once("\"confirm_token\":\"").and_then(|(_, rest)| rest.split('"').next().map(str::to_owned));
        (outcome.code(), asked)
    }

    /// The call of operation `n`.
    pub(crate) fn operate(&self, id: &str, n: u64) -> Told {
        let (arguments, operation, tenant) = (format!("{{\"n\":{n}}}"), operation(n), tenant(n));
        let caller = CallContext { tenant: Some(&tenant), ..CallContext::new("cli", id).with_principal("alice") };
        let request = Request { tool: "account.order", arguments: arguments.as_bytes(), token: None };
        let outcome = self.gate.call_operation(&caller, &operation, request);
        let text = outcome.to_json().expect("it can be written");
        let (delivered, _) = text.rsplit_once(",\"meta\":").expect("meta is last");
        let json: Value = serde_json::from_str(&text).expect("JSON");
        Told {
            code: outcome.code(),
            effect: outcome.effect(),
            replayed: outcome.replayed(),
            attempt: json["meta"]["attempt"].as_u64(),
            delivered: delivered.to_owned(),
        }
    }

    /// A call that changes nothing.
    pub(crate) fn look(&self, id: &str) {
        let caller = CallContext::new("cli", id).with_principal("alice");
        let outcome = self.gate.call(&caller, Request { tool: "account.look", arguments: b"{\"n\":0}", token: None });
        assert_eq!(outcome.code(), None);
    }

    /// Puts the log aside; it has lines.
    pub(crate) fn rotate(&self) {
        let now = SystemClock::shared().now().wall;
        self.audit.rotate(now).expect("usable").expect("there are lines");
    }
}

/// The id of operation `n`.
pub(crate) fn operation(n: u64) -> String {
    format!("order-{n}")
}

/// Whose operation `n` is: those of a round have a tenant of their own, so that a host who settles one goes through few.
pub(crate) fn tenant(n: u64) -> String {
    format!("t{}", n / OF_A_ROUND)
}

/// Who settles what is in doubt.
pub(crate) fn steward<'a>(id: &'a str, tenant: Option<&'a str>) -> CallContext<'a> {
    let steward = CallContext::new("cli", id).with_principal("steward").with_scopes(Scopes::new("reconcile"));
    CallContext { tenant, ..steward }
}
