//! L2, R5: one canary, planted in every field, sent down every path, looked for at every exit.

#![expect(clippy::expect_used, clippy::panic, reason = "the helpers of tests fail loudly")]

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use callgate_core::args::Args;
use callgate_core::audit::{Audit, AuditFault, Record, chain::Head};
use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::intercept::{Interception, Interceptor};
use callgate_core::policy::Subject;
use callgate_core::request::Request;
use callgate_core::schema::{Property, Schema};
use callgate_core::tool::ConfirmBy;
use callgate_std::audit::{Fanout, MemoryAudit, TracingAudit};
use callgate_std::clock::ManualClock;
use callgate_std::confirmations::{ConfirmationStore, MemoryConfirmations};
use callgate_std::entropy::SeededEntropy;
use callgate_std::failure::Failure;
use callgate_std::gate::{Gate, Outcome};
use callgate_std::interceptors::Interceptors;
use callgate_std::observer::{Event, Observers};
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::Tool;

/// Long enough to count as a secret, and with nothing in it that an encoder would change.
const CANARY: &str = "CANARYx7f3a9";

/// Everything that any exit showed.
#[derive(Clone, Default)]
struct Exits(Arc<Mutex<String>>);

impl Exits {
    fn add(&self, exit: &str, text: &dyn std::fmt::Display) {
        let mut seen = self.0.lock().expect("no test panics with it");
        writeln!(seen, "[{exit}] {text}").expect("a string takes all");
    }
}

impl Audit for Exits {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        let mut line = String::new();
        Head::EMPTY.append(record, &mut line).map_err(|_| AuditFault)?;
        self.add("audit", &line);
        self.add("audit debug", &format_args!("{record:?}"));
        Ok(())
    }
}

/// Leaks whatever it is given, as a careless author would.
fn leaky(name: &str) -> callgate_std::tool::ToolBuilder {
    Tool::builder(name)
        .description("Leaks what it is given")
        .const_schema(Schema::object(&[]).open())
        .secret("/marked")
        .secret("/rows/*/key")
        .handler(|call| {
            let mut text = String::new();
            call.args().write_json(&mut text).expect("a string takes all");
            match call.spec().name {
                "fails" => Err(Failure::new(format!("could not use {text}"))),
                "fails.publicly" => Err(Failure::new(format!("could not use {text}")).public()),
                "panics" => panic!("could not use {text}"),
                _ => Ok(Reply::new("done").with_message("done")),
            }
        })
}

/// A field that no call brings, so that every call is invalid.
const ABSENT: &[Property<'static>] = &[
    Property::required("absent", Schema::string()),
    Property::optional("marked", Schema::string()),
    Property::optional("rows", Schema::array(&Schema::object(&[Property::optional("key", Schema::string())]))),
];

struct Leaky(bool);

impl Interceptor<Reply, Arc<str>> for Leaky {
    fn judge(&self, subject: &Subject<'_>) -> Interception<Reply, Arc<str>> {
        if subject.spec.name != "vetoed" {
            return Interception::Continue;
        }
        let mut text = String::new();
        subject.args.write_json(&mut text).expect("a string takes all");
        match self.0 {
            true => Interception::Veto(text.into()),
            false => panic!("{text}"),
        }
    }
}

/// Arguments with the canary in every place that holds a secret, by name, by mark and by shape.
fn arguments() -> Vec<String> {
    let escaped: String = CANARY.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    let mut all = Vec::new();
    for value in [CANARY.to_owned(), escaped] {
        for key in ["password", "apiKey", "access_token", "Authorization", "client_secret", "marked", "passw\\u006frd"]
        {
            all.push(format!(r#"{{"n":1,"{key}":"{value}"}}"#));
            all.push(format!(r#"{{"n":1,"cfg":{{"headers":[{{"{key}":"{value}"}}]}},"marked":"{value}"}}"#));
            all.push(format!(r#"{{"n":1,"{key}":{{"deep":["{value}",{{"x":"{value}"}}]}}}}"#));
        }
        all.push(format!(r#"{{"rows":[{{"key":"{value}"}},{{"key":"{value}"}}]}}"#));
        all.push(format!(r#"{{"url":"https://user:{value}@host/p?x=1&api_key={value}&y=2"}}"#));
        all.push(format!(r#"{{"text":"password={value} and token: {value}"}}"#));
        all.push(format!(r#"{{"text":"Authorization: Bearer {value}"}}"#));
    }
    all
}

fn look(exits: &Exits, outcome: &Outcome<'_>) {
    exits.add("outcome", &outcome.to_json().expect("it can be written"));
    exits.add("outcome debug", &format_args!("{outcome:?}"));
    if let Some(error) = outcome.error() {
        exits.add("error", &error);
    }
    if let Some(message) = outcome.message() {
        exits.add("message", &message);
    }
}

/// What goes to `tracing` is an exit, too.
impl std::io::Write for Exits {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.add("tracing", &String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn l2_a_canary_appears_on_no_exit() {
    callgate_std::contain::quiet_contained_panics();
    let exits = Exits::default();
    let traced = exits.clone();
    tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || traced.clone()).init();
    let observed = exits.clone();
    for veto in [true, false] {
        let clock = ManualClock::new();
        let registry = Registry::builder()
            .add(leaky("works"))
            .add(leaky("fails"))
            .add(leaky("fails.publicly"))
            .add(leaky("panics"))
            .add(leaky("vetoed"))
            .add(leaky("changes").mutating())
            .add(leaky("asks").mutating().confirm(ConfirmBy::Caller))
            .add(leaky("approved").confirm(ConfirmBy::Approver { scope: "approve" }))
            .add(leaky("denied").scopes(["admin"]))
            .add(leaky("strict").const_schema(Schema::object(ABSENT).open()))
            .build()
            .expect("good tools");
        let store = Arc::new(MemoryConfirmations::with(
            callgate_std::confirmations::Capacity::default(),
            clock.shared(),
            SeededEntropy::shared(7),
        ));
        store.attach_approvers(true);
        let memory = Arc::new(MemoryAudit::default());
        let observed = observed.clone();
        let observers = Observers::new()
            .on("tool.*", move |event: &Event<'_>| observed.add("event", &format_args!("{event:?}")))
            .expect("a pattern");
        let gate = Gate::builder(registry)
            .clock(clock.shared())
            .digest_key([1; 32])
            .unlimited()
            .interceptors(Interceptors::new().and("leaky", Leaky(veto)))
            .observers(observers)
            .confirmations(store.clone())
            .audit(Arc::new(
                Fanout::new("memory", memory.clone())
                    .and_required("exits", Arc::new(exits.clone()))
                    .and_optional("tracing", Arc::new(TracingAudit::default())),
            ))
            .build()
            .expect("a gate");
        let shell = CallContext::web("r-1", Some("u1"), Scopes::new("read"));
        for arguments in arguments() {
            let request = |tool| Request { tool, arguments: arguments.as_bytes(), token: None };
            for tool in [
                "works",
                "fails",
                "fails.publicly",
                "panics",
                "vetoed",
                "changes",
                "asks",
                "approved",
                "denied",
                "strict",
                "nowhere",
            ] {
                for mode in [Mode::Execute, Mode::Plan] {
                    let caller = shell.with_mode(mode);
                    exits.add("request debug", &format_args!("{:?}", request(tool)));
                    look(&exits, &gate.call(&caller, request(tool)));
                }
            }
            for pending in
                store.pending(&CallContext::web("r-2", Some("boss"), Scopes::new("approve")), 100).expect("a list")
            {
                exits.add("approval", &format_args!("{pending:?}"));
            }
            // Broken texts: the reader's errors show no value.
            for cut in [arguments.len() - 1, arguments.len() / 2] {
                let cut = arguments.as_bytes().get(..cut).expect("a prefix");
                look(&exits, &gate.call(&shell, Request { tool: "works", arguments: cut, token: Some(CANARY) }));
                look(&exits, &gate.call(&shell, Request { tool: "works", arguments: cut, token: None }));
            }
            exits.add("args debug", &format_args!("{:?}", Args::EMPTY));
        }
        for line in memory.lines() {
            exits.add("memory", &line);
        }
    }
    let seen = exits.0.lock().expect("no test panics with it").clone();
    let lower = seen.to_lowercase();
    for spelling in [CANARY.to_lowercase(), "\\u0043\\u0041\\u004e".into()] {
        let leak = lower.find(&spelling).map(|at| {
            let start = lower.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |line| line + 1);
            lower.get(start..).and_then(|line| line.lines().next()).unwrap_or_default().to_owned()
        });
        assert_eq!(leak, None, "the canary got out");
    }
    // The test looks at something: each exit was seen, and what is no secret is still there.
    for exit in [
        "[audit]",
        "[outcome]",
        "[error]",
        "[message]",
        "[event]",
        "[approval]",
        "[memory]",
        "[tracing]",
        "***redacted***",
        r#""n":1"#,
    ] {
        assert!(lower.contains(exit), "{exit}");
    }
}
