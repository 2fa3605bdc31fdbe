//! The tools of all gates: bodies that return, fail, panic, are late, stop, call others, tell how far they are and go on in the
//! background; those that block and those that wait.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate_core::context::CallContext;
use callgate_core::schema::{Property, Schema};
use callgate_core::tool::ConfirmBy;
use callgate_std::cancellation::Cancellation;
use callgate_std::failure::Failure;
use callgate_std::output::Reply;
use callgate_std::registry::{Registry, RegistryBuilder};
use callgate_std::tool::{NestedOutcome, OwnedCall, Tool, ToolBuilder, ToolCall};
use callgate_std::update::Progress;
use serde::Deserialize;
use serde_json::json;

use super::log::Log;
use super::time::{Pause, Time};

/// What the bodies share with their world. All worlds have the same tools: a body finds its world by the software that its caller
/// says it uses, which no decision and no record depends on.
#[derive(Clone)]
pub(crate) struct Stage {
    /// The name of the world.
    pub(crate) name: String,
    pub(crate) log: Log,
    pub(crate) time: Time,
    /// Cancels the call that is made now.
    pub(crate) caller: Arc<Mutex<Cancellation>>,
}

static STAGES: Mutex<BTreeMap<String, Stage>> = Mutex::new(BTreeMap::new());

impl Stage {
    pub(crate) fn new(log: Log, time: Time) -> Self {
        static WORLDS: AtomicUsize = AtomicUsize::new(0);
        let name = format!("world-{}", WORLDS.fetch_add(1, Ordering::Relaxed));
        let stage = Self { name: name.clone(), log, time, caller: Arc::default() };
        STAGES.lock().unwrap().insert(name, stage.clone());
        stage
    }

    /// The world is over.
    pub(crate) fn clear(&self) {
        STAGES.lock().unwrap().remove(&self.name);
    }

    fn of(caller: &CallContext<'_>) -> Self {
        STAGES.lock().unwrap()[caller.user_agent.unwrap()].clone()
    }

    fn cancel(&self) {
        let caller = self.caller.lock().unwrap().clone();
        caller.cancel();
    }
}

const ROWS: Schema<'static> = Schema::array(&Schema::integer());
const ARGUMENTS: Schema<'static> = Schema::object(&[
    Property::optional("n", Schema::integer()),
    Property::optional("text", Schema::string().max_length(40)),
    Property::optional("password", Schema::string()),
    Property::optional("rows", ROWS),
]);
const NUMBER: Schema<'static> = Schema::integer();
const TIMEOUT: Duration = Duration::from_millis(700);

fn tool(name: &str) -> ToolBuilder {
    Tool::builder(name)
        .description("A tool under test")
        .const_schema(ARGUMENTS)
        .clamp("/n", 1..=10)
        .clamp("/rows/*", 0..=9)
        .secret("/password")
        .timeout(TIMEOUT)
}

/// A body that blocks.
fn blocks(
    tool: ToolBuilder,
    body: impl Fn(&Stage, &ToolCall<'_>) -> Result<Reply, Failure> + Send + Sync + 'static,
) -> ToolBuilder {
    tool.handler(move |call| {
        let stage = Stage::of(call.caller());
        stage.log.started(call.spec().name, call.request_id());
        body(&stage, call)
    })
}

/// A body that waits.
fn waits<R>(tool: ToolBuilder, body: impl Fn(Stage, OwnedCall) -> R + Send + Sync + 'static) -> ToolBuilder
where
    R: Future<Output = Result<Reply, Failure>> + Send + 'static,
{
    tool.async_handler(move |call| {
        let stage = Stage::of(&call.caller());
        stage.log.started(call.spec().name, call.request_id());
        body(stage, call)
    })
}

#[derive(Deserialize)]
struct Count {
    n: u8,
}

fn reply(args: callgate_core::args::Args<'_>) -> Result<Reply, Failure> {
    let mut text = String::new();
    args.write_json(&mut text).map_err(|_| Failure::new("no text"))?;
    Ok(Reply::new(json!({ "ran": text })).with_message("done").with_meta("kind", "echo"))
}

/// What a tool tells of a call that it made.
fn told(outcome: &NestedOutcome) -> String {
    format!("{outcome:?}")
}

fn failure(n: Option<i64>) -> Failure {
    match n {
        Some(1) => Failure::new("a secret reason"),
        Some(2) => Failure::new("a reason for all").public(),
        Some(3) => Failure::not_found("there is no such note").public(),
        Some(4) => Failure::invalid("not like this").public().without_effect(),
        Some(5) => Failure::unauthorized("not you").with_detail("password=hunter2"),
        // What a body says of its caller or its time counts only where the gate sees the same.
        Some(6) => Failure::timed_out(),
        _ => Failure::cancelled(),
    }
}

#[derive(Deserialize)]
struct Chosen {
    n: Option<i64>,
}

pub(crate) fn registry() -> Registry {
    // Worlds of one thread are there one after another, so that the bound on how many calls of a tool run at once, which is the
    // tool's own, holds for one world at a time.
    thread_local! {
        static REGISTRY: Registry = {
            let all = [plain(), judged(), confirmed(), late(), nested(), background()];
            all.into_iter().flatten().fold(Registry::builder(), RegistryBuilder::add).build().unwrap()
        };
    }
    REGISTRY.with(Clone::clone)
}

fn plain() -> Vec<ToolBuilder> {
    vec![
        blocks(tool("b.return"), |_, call| reply(call.args())),
        waits(tool("w.return"), |_, call| async move {
            Pause::default().await;
            Pause::default().await;
            reply(call.args())
        }),
        blocks(tool("b.typed"), |_, call| Ok(Reply::new(call.arguments::<Count>()?.n))),
        waits(tool("w.typed"), |_, call| async move { Ok(Reply::new(call.arguments::<Count>()?.n)) }),
        blocks(tool("b.fail"), |_, call| Err(failure(call.arguments::<Chosen>()?.n))),
        waits(tool("w.fail"), |_, call| async move {
            let chosen = call.arguments::<Chosen>()?.n;
            Pause::default().await;
            Err(failure(chosen))
        }),
        blocks(tool("b.panic"), |_, _| panic!("with password=hunter2")),
        waits(tool("w.panic"), |_, _| async move {
            Pause::default().await;
            panic!("with password=hunter2")
        }),
        blocks(tool("b.broken").output_schema(NUMBER), |_, _| Ok(Reply::new("no number"))),
        waits(tool("w.broken").output_schema(NUMBER).mutating(), |_, _| async move { Ok(Reply::new("no number")) }),
        blocks(tool("b.large").max_output(100), |_, _| Ok(Reply::new("x".repeat(1_000)))),
        waits(tool("w.tells"), |_, call| async move {
            call.progress(Progress::percent(40).with_message("reading")).await;
            call.chunk("one").await?;
            Pause::default().await;
            call.chunk(2).await?;
            reply(call.args())
        }),
        blocks(tool("b.tells"), |_, call| {
            call.progress(Progress::count(3).of(4));
            call.chunk("one")?;
            call.chunk(2)?;
            reply(call.args())
        }),
        blocks(tool("b.slow").cost(3), |stage, call| {
            stage.time.advance(Duration::from_millis(250));
            reply(call.args())
        }),
        waits(tool("hidden.one"), |_, call| async move { reply(call.args()) }),
        waits(tool("absent.one"), |_, call| async move { reply(call.args()) }),
        blocks(tool("ruled.out"), |_, call| reply(call.args())),
        blocks(tool("ruled.in").scopes(["notes:read"]), |_, call| reply(call.args())),
        blocks(tool("scoped").scopes(["notes:write"]), |_, call| reply(call.args())),
        blocks(tool("needs.network").requires(["network"]), |_, call| reply(call.args())),
    ]
}

fn judged() -> Vec<ToolBuilder> {
    ["veto.me", "answer.me", "judge.fails", "judge.late", "judge.panics"]
        .map(|name| waits(tool(name).mutating(), |_, call| async move { reply(call.args()) }))
        .into_iter()
        .chain([blocks(tool("answer.broken").output_schema(NUMBER), |_, _| Ok(Reply::new(1)))])
        .collect()
}

fn confirmed() -> Vec<ToolBuilder> {
    let by_caller = |name| tool(name).mutating().confirm(ConfirmBy::Caller);
    let by_approver = |name| tool(name).mutating().confirm(ConfirmBy::Approver { scope: "approve:all" });
    vec![
        blocks(tool("b.write").mutating(), |_, call| reply(call.args())),
        waits(tool("w.write").mutating(), |_, call| async move {
            Pause::default().await;
            reply(call.args())
        }),
        blocks(by_caller("b.confirm"), |_, call| reply(call.args())),
        waits(by_caller("w.confirm"), |_, call| async move {
            Pause::default().await;
            reply(call.args())
        }),
        blocks(by_approver("b.approve"), |_, call| reply(call.args())),
        blocks(by_approver("nobody.approves"), |_, call| reply(call.args())),
        waits(by_approver("w.approve"), |_, call| async move { reply(call.args()) }),
    ]
}

fn late() -> Vec<ToolBuilder> {
    vec![
        // Stopped at its deadline.
        waits(tool("w.late").mutating(), |stage, _| async move {
            Pause::default().await;
            stage.time.advance(TIMEOUT);
            std::future::pending().await
        }),
        // Looks at the time itself.
        blocks(tool("b.late").mutating(), |stage, call| {
            stage.time.advance(TIMEOUT);
            assert!(call.clock().monotonic() >= call.deadline());
            Err(Failure::timed_out())
        }),
        // Has its result, although it took too long.
        waits(tool("w.result.late"), |stage, call| async move {
            stage.time.advance(TIMEOUT * 2);
            reply(call.args())
        }),
        // Stopped because its caller is gone.
        waits(tool("w.stop").mutating(), |stage, _| async move {
            stage.cancel();
            std::future::pending().await
        }),
        // Stops because its caller is gone.
        blocks(tool("b.stop"), |stage, call| {
            stage.cancel();
            if call.is_cancelled() { Err(Failure::cancelled()) } else { Ok(Reply::new("nobody is gone")) }
        }),
        // Comes to its end although its caller is gone.
        waits(tool("w.goes.on"), |stage, call| async move {
            stage.cancel();
            reply(call.args())
        }),
    ]
}

fn nested() -> Vec<ToolBuilder> {
    const CALLS: [(&str, &str); 6] = [
        ("b.return", r#"{"n":77}"#),
        ("w.write", "{}"),
        ("no.such", "{}"),
        ("b.confirm", "{}"),
        ("scoped", "{}"),
        ("w.panic", "{}"),
    ];
    vec![
        waits(tool("w.nest"), |_, call| async move {
            let mut all = Vec::new();
            for (name, arguments) in CALLS {
                all.push(told(&call.call(name, arguments.as_bytes()).await?));
            }
            Ok(Reply::new(all))
        }),
        blocks(tool("b.nest"), |_, call| {
            let mut all = Vec::new();
            for (name, arguments) in CALLS {
                all.push(told(&call.call(name, arguments.as_bytes())?));
            }
            Ok(Reply::new(all))
        }),
        // Calls itself, for which there is no place.
        waits(tool("w.full").concurrency(1, 0), |_, call| async move {
            Ok(Reply::new(told(&call.call("w.full", b"{}").await?)))
        }),
        waits(tool("w.deep"), |_, call| async move { Ok(Reply::new(told(&call.call("w.deep", b"{}").await?))) }),
    ]
}

fn background() -> Vec<ToolBuilder> {
    let at_most = Duration::from_secs(5);
    let background = |name| tool(name).background(at_most);
    vec![
        waits(background("w.behind").mutating(), |_, call| async move {
            call.progress(Progress::percent(1)).await;
            call.chunk("a part").await?;
            Pause::default().await;
            reply(call.args())
        }),
        blocks(background("b.behind"), |_, call| {
            call.chunk("a part")?;
            reply(call.args())
        }),
        waits(background("w.behind.late"), move |stage, _| async move {
            stage.time.advance(at_most);
            std::future::pending().await
        }),
        blocks(background("b.behind.panic").mutating().confirm(ConfirmBy::Caller), |_, _| panic!("behind")),
        waits(background("w.behind.fail"), |_, _| async move { Err(Failure::new("behind")) }),
    ]
}
