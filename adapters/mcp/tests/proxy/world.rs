//! A gate with servers behind it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use callgate_async::gate::{CallOptions, Gate, Outcome};
use callgate_async::runtime::Tokio;
use callgate_async::seam::Immediate;
use callgate_core::context::{CallContext, Scopes};
use callgate_core::request::Request;
use callgate_core::time::Timestamp;
use callgate_mcp::pins::PinFile;
use callgate_mcp::proxy::{Adjust, Event, Fleet, Member};
use callgate_mcp::upstream::{Reach, Settings};
use callgate_std::audit::MemoryAudit;
use callgate_std::registry::Registry;
use serde_json::Value;

use crate::script::Script;

pub(crate) struct World {
    pub(crate) gate: Gate,
    pub(crate) fleet: Fleet,
    pub(crate) pins: PinFile,
    pub(crate) audit: Arc<MemoryAudit>,
    events: Arc<Mutex<Vec<Event>>>,
    _dir: Arc<tempfile::TempDir>,
}

/// How a world is made.
pub(crate) struct Plan {
    members: Vec<Member>,
    dir: Arc<tempfile::TempDir>,
    own: Registry,
}

pub(crate) fn settings(name: &str, script: &Script) -> Settings {
    Settings::new(name, Reach::Stream(script.open())).expect("a name")
}

impl Plan {
    pub(crate) fn new() -> Self {
        let dir = Arc::new(tempfile::tempdir().expect("a directory"));
        Self { members: Vec::new(), dir, own: Registry::default() }
    }

    pub(crate) fn server(self, name: &str, script: &Script) -> Self {
        self.adjusted(settings(name, script), ())
    }

    pub(crate) fn adjusted(mut self, settings: Settings, adjust: impl Adjust + 'static) -> Self {
        self.members.push(Member::new(settings, adjust));
        self
    }

    pub(crate) fn own(mut self, own: Registry) -> Self {
        self.own = own;
        self
    }

    /// In the directory of another world.
    pub(crate) fn beside(mut self, world: &World) -> Self {
        self.dir = Arc::clone(&world._dir);
        self
    }

    pub(crate) async fn start(self) -> World {
        let pins = PinFile::open(self.dir.path().join("state.pins")).expect("a file");
        let events: Arc<Mutex<Vec<Event>>> = Arc::default();
        let told = Arc::clone(&events);
        let watch = Arc::new(move |event| told.lock().unwrap_or_else(PoisonError::into_inner).push(event));
        let now = || Timestamp::from_unix_millis(1_000);
        let fleet = Fleet::start(self.own, self.members, pins.clone(), now, watch);
        fleet.tried().await;
        let audit = Arc::new(MemoryAudit::new());
        let runtime = Tokio::new(tokio::runtime::Handle::current());
        let builder = Gate::builder(fleet.registry(), runtime).audit(Immediate(Arc::clone(&audit)));
        let gate = builder.unlimited().build().expect("a gate");
        World { gate, fleet, pins, audit, events, _dir: self.dir }
    }
}

impl World {
    pub(crate) async fn call(&self, tool: &str, arguments: &str) -> Outcome {
        self.call_with(tool, arguments, CallOptions::new()).await
    }

    pub(crate) async fn call_with(&self, tool: &str, arguments: &str, options: CallOptions) -> Outcome {
        let caller = CallContext::web("r-1", Some("ann"), Scopes::new("*"));
        let request = Request { tool, arguments: arguments.as_bytes(), token: None };
        self.gate.call_with(&caller, request, options).await
    }

    /// The names of the tools that are there, sorted.
    pub(crate) fn tools(&self) -> Vec<String> {
        let mut names: Vec<_> = self.fleet.registry().load().iter().map(|tool| tool.name().to_owned()).collect();
        names.sort();
        names
    }

    /// What was told so far.
    pub(crate) fn told(&self) -> Vec<String> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).iter().map(ToString::to_string).collect()
    }

    /// Waits, on the test's clock, until it is so.
    pub(crate) async fn until(&self, what: &str, so: impl Fn(&Self) -> bool) {
        for _ in 0..100_000 {
            if so(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{what} never comes: {:?} {:?}", self.tools(), self.told());
    }

    /// The ends of the calls, and their effects.
    pub(crate) fn ends(&self) -> Vec<(String, String)> {
        let word = |record: &Value, name: &str| record[name].as_str().unwrap_or("-").to_owned();
        let records = self.audit.lines();
        let records = records.iter().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
        records
            .filter(|record| record["end"] != "intent")
            .map(|record| (word(&record, "end"), word(&record, "effect")))
            .collect()
    }
}

/// What a client would read of an outcome.
pub(crate) fn data(outcome: &Outcome) -> Value {
    let mut text = String::new();
    outcome.write_data(&mut text).expect("JSON");
    serde_json::from_str(&text).expect("JSON")
}

/// Its code, its effect, and what it says.
pub(crate) fn failure(outcome: &Outcome) -> (String, String, String) {
    let json: Value = serde_json::from_str(&outcome.to_json().expect("JSON")).expect("JSON");
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    (
        outcome.code().map_or("-".to_owned(), |code| code.to_string()),
        word(&json["meta"]["effect"]),
        word(&json["error"]),
    )
}
