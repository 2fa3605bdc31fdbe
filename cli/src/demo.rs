//! `callgate demo`: one call to every end that a call can have, with its outcome, its effect and its record side by side.
//!
//! Nothing here touches the world: the tools are toys, the clock moves by hand, tokens come from a seed. The gate, the stores,
//! the interceptors and the log are the real ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use callgate_core::call::{Charge, Refund, StoreFault};
use callgate_core::confirm::Verdict;
use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::intercept::{Interception, Interceptor};
use callgate_core::limit::{Allowance, LimitKey};
use callgate_core::policy::{ChannelPolicy, Effect as RuleEffect, Subject};
use callgate_core::request::Request;
use callgate_core::tool::ConfirmBy;
use callgate_std::audit::MemoryAudit;
use callgate_std::cache::ResultCache;
use callgate_std::clock::ManualClock;
use callgate_std::entropy::SeededEntropy;
use callgate_std::failure::Failure;
use callgate_std::gate::{Gate, GateError, Outcome};
use callgate_std::interceptors::Interceptors;
use callgate_std::limiter::RateLimiter;
use callgate_std::output::Reply;
use callgate_std::policy::{ChannelPolicies, OwnedRule, PolicyError};
use callgate_std::registry::{Registry, RegistryError, Sight, ToolSource};
use callgate_std::tool::Tool;
use serde_json::{Value, json};

/// One call of the demo, and what became of it. Every text is safe to print.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scene {
    /// What is shown.
    pub title: &'static str,
    /// The call as a user would type it.
    pub call: String,
    /// The code, or the kind of success, and what the caller reads.
    pub outcome: String,
    /// What the call did to the world, as the outcome says.
    pub effect: String,
    /// How often a tool's body ran because of it, as the tools themselves count.
    pub ran: u32,
    /// What the log says of it: its lines, each in a few words.
    pub record: String,
}

/// The whole demo.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Demo {
    /// The calls, in order.
    pub scenes: Vec<Scene>,
    /// How many lines the log has.
    pub lines: usize,
    /// Whether every line of the log follows from the one before it.
    pub verified: bool,
}

/// Why the demo could not be set up. None of it depends on the machine.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// A tool of the demo.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A rule of the demo.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The gate of the demo.
    #[error(transparent)]
    Gate(#[from] GateError),
}

/// Vetoes what is aimed at the archive; breaks when it meets the word `crash`.
struct Guard;

impl Interceptor<Reply, Arc<str>> for Guard {
    fn judge(&self, subject: &Subject<'_>) -> Interception<Reply, Arc<str>> {
        match subject.args.get("text").and_then(callgate_core::json::Value::as_text) {
            Some(text) if text.eq_str("archive") => Interception::Veto("the archive is read-only today".into()),
            Some(text) if text.eq_str("crash") => Interception::Failed("the guard lost its list".into()),
            _ => Interception::Continue,
        }
    }
}

/// A limiter whose store is down.
struct Down;

impl RateLimiter for Down {
    fn charge(&self, _: &Charge<'_>) -> Result<Allowance, StoreFault> {
        Err(StoreFault)
    }

    fn refund(&self, _: &Refund<'_>) -> Result<(), StoreFault> {
        Err(StoreFault)
    }

    fn attempt(&self, _: &LimitKey<'_>) -> Result<Allowance, StoreFault> {
        Err(StoreFault)
    }
}

/// Hides one tool from everybody, and admits that it is there.
struct Hiding(Registry);

impl ToolSource for Hiding {
    fn registry(&self) -> Registry {
        self.0.clone()
    }

    fn sight(&self, tool: &Tool, _: &CallContext<'_>) -> Sight {
        if tool.name() == "notes.secret" { Sight::Hidden } else { Sight::Shown }
    }
}

#[expect(clippy::panic, reason = "one of the tools shows how a panic is contained")]
fn tools(ran: &Arc<AtomicU32>, clock: &ManualClock) -> Result<Registry, RegistryError> {
    let schema = json!({
        "type": "object",
        "properties": {"text": {"type": "string"}, "max": {"type": "integer"}, "password": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": false
    });
    let tool = |name: &str| {
        let ran = Arc::clone(ran);
        Tool::builder(name)
            .description("A tool of the demo")
            .json_schema(schema.clone())
            .clamp("/max", 1..=1000)
            .secret("/password")
            .handler(move |call| {
                ran.fetch_add(1, Ordering::Relaxed);
                let arguments: Value = call.arguments()?;
                let max = arguments.get("max").and_then(Value::as_i64).unwrap_or(10);
                Ok(Reply::new(json!({"found": 3, "max": max})))
            })
    };
    let counted = |ran: &Arc<AtomicU32>| {
        let ran = Arc::clone(ran);
        move || {
            ran.fetch_add(1, Ordering::Relaxed);
        }
    };
    let (failing, breaking, late, odd) = (counted(ran), counted(ran), counted(ran), counted(ran));
    let moved = clock.clone();
    Registry::builder()
        .add(tool("notes.find"))
        .add(tool("notes.count").read_only())
        .add(tool("notes.delete").mutating().confirm(ConfirmBy::Caller))
        .add(tool("notes.publish").mutating().confirm(ConfirmBy::Approver { scope: "publish" }))
        .add(tool("notes.export").scopes(["export"]))
        .add(tool("notes.append").mutating())
        .add(tool("notes.secret"))
        .add(tool("notes.sync").handler(move |_| {
            failing();
            Err(Failure::new("connection to 10.0.0.7 refused, password=hunter22"))
        }))
        .add(tool("notes.import").handler(move |_| -> Result<Reply, Failure> {
            breaking();
            std::panic::panic_any("index 9 is out of range")
        }))
        .add(tool("notes.index").timeout(Duration::from_secs(1)).handler(move |_| {
            late();
            moved.advance(Duration::from_millis(2_500));
            Ok(Reply::new("indexed"))
        }))
        .add(tool("notes.stats").output_schema(json!({"type": "object", "required": ["total"]})).handler(move |_| {
            odd();
            Ok(Reply::new("forty-two"))
        }))
        .build()
}

struct Stage {
    gate: Gate,
    without_store: Gate,
    log: Arc<MemoryAudit>,
    clock: ManualClock,
    ran: Arc<AtomicU32>,
    scenes: Vec<Scene>,
    token: String,
    approval: String,
}

/// Plays the demo.
///
/// # Errors
/// One of its own pieces could not be built.
pub fn play() -> Result<Demo, DemoError> {
    let (log, clock, ran) = (Arc::new(MemoryAudit::new()), ManualClock::new(), Arc::new(AtomicU32::new(0)));
    let registry = tools(&ran, &clock)?;
    let rule = OwnedRule {
        channel: Some(Arc::from("web")),
        tool: Some(Arc::from("notes.append")),
        description: Some(Arc::from("Nobody appends from the web.")),
        ..OwnedRule::new(7, RuleEffect::Deny, Vec::new())
    };
    let build = || -> Result<_, DemoError> {
        let policy = ChannelPolicies::builder()
            .channel("kiosk", ChannelPolicy::new("").without_auth().blocking_mutating())
            .rules([rule.clone()])
            .build()?;
        Ok(Gate::builder(Hiding(registry.clone()))
            .policy(policy)
            .clock(clock.shared())
            .entropy(SeededEntropy::shared(2026))
            .digest_key([7; 32])
            .with_approvers()
            .interceptors(Interceptors::with(clock.shared(), 1_000).and("guard", Guard))
            .cache(Arc::new(ResultCache::new(60_000, 16, clock.shared())))
            .audit(log.clone()))
    };
    let gate = build()?.build()?;
    let without_store = build()?.limiter(Arc::new(Down)).build()?;
    let mut stage = Stage {
        gate,
        without_store,
        log,
        clock,
        ran,
        scenes: Vec::new(),
        token: String::new(),
        approval: String::new(),
    };
    stage.play();
    let lines = stage.log.lines();
    let mut head = callgate_core::audit::chain::Head::EMPTY;
    let verified = lines.iter().all(|line| head.verify(line).map(|next| head = next).is_ok());
    Ok(Demo { scenes: stage.scenes, lines: lines.len(), verified })
}

impl Stage {
    fn play(&mut self) {
        let shell = CallContext::cli("demo");
        let ann = CallContext::web("demo", Some("ann"), Scopes::new("read"));
        let boss = CallContext::web("demo", Some("boss"), Scopes::new("publish"));
        let stranger = CallContext::mcp("demo", None, Scopes::NONE);

        self.show("no such tool", &shell, "notes.fnid", r#"{"text":"milk"}"#, false);
        self.show("a tool outside the caller's view", &shell, "notes.secret", r#"{"text":"milk"}"#, false);
        self.show(
            "arguments that are not one JSON object",
            &shell,
            "notes.find",
            r#"{"text":"milk","text":"tea"}"#,
            false,
        );
        self.show("arguments that do not fit the schema", &shell, "notes.find", r#"{"txet":"milk"}"#, false);
        self.show("a value brought into its bounds", &shell, "notes.find", r#"{"text":"milk","max":5000}"#, false);
        self.show(
            "nobody known on a channel that asks for somebody",
            &stranger,
            "notes.find",
            r#"{"text":"milk"}"#,
            false,
        );
        self.show("a scope that is missing", &ann, "notes.export", r#"{"text":"milk"}"#, false);
        self.show("a rule that denies", &ann, "notes.append", r#"{"text":"milk"}"#, false);
        let kiosk = CallContext::new("kiosk", "demo");
        self.show("a channel on which nothing may change", &kiosk, "notes.append", r#"{"text":"milk"}"#, false);
        let plan = shell.with_mode(Mode::Plan);
        self.show(
            "a plan: nothing runs, secrets are replaced",
            &plan,
            "notes.delete",
            r#"{"text":"milk","password":"hunter22"}"#,
            false,
        );
        self.show("a question: nothing has run yet", &shell, "notes.delete", r#"{"text":"milk"}"#, false);
        self.show(
            "the answer: what was asked for runs, not what is sent now",
            &shell,
            "notes.delete",
            r#"{"text":"everything"}"#,
            true,
        );
        self.show("the same token again", &shell, "notes.delete", r#"{"text":"milk"}"#, true);
        self.show("another question", &shell, "notes.delete", r#"{"text":"tea"}"#, false);
        self.show(
            "its token in somebody else's hands, which destroys it",
            &ann,
            "notes.delete",
            r#"{"text":"tea"}"#,
            true,
        );
        self.show("a question that only an approver can answer", &ann, "notes.publish", r#"{"text":"milk"}"#, false);
        self.show("its caller comes back too early", &ann, "notes.publish", "{}", true);
        self.approve(&boss);
        self.show("and again, once the approver said yes", &ann, "notes.publish", "{}", true);
        self.show("a result that is kept ...", &ann, "notes.count", r#"{"text":"milk"}"#, false);
        self.show("... and served again to the same caller", &ann, "notes.count", r#"{"text":"milk"}"#, false);
        self.show("a veto", &shell, "notes.find", r#"{"text":"archive"}"#, false);
        self.show("an interceptor that fails, which vetoes", &shell, "notes.find", r#"{"text":"crash"}"#, false);
        self.show(
            "a tool that fails: its words go to the record only",
            &shell,
            "notes.sync",
            r#"{"text":"milk"}"#,
            false,
        );
        self.show("a tool that panics", &shell, "notes.import", r#"{"text":"milk"}"#, false);
        self.show("a tool that is late", &shell, "notes.index", r#"{"text":"milk"}"#, false);
        self.show(
            "a result that breaks its schema: the effect is done",
            &shell,
            "notes.stats",
            r#"{"text":"milk"}"#,
            false,
        );
        for _ in 0..19 {
            self.gate.call(&shell, Request { tool: "notes.append", arguments: br#"{"text":"milk"}"#, token: None });
        }
        self.show("the last call that the budget has room for", &shell, "notes.append", r#"{"text":"milk"}"#, false);
        self.show("one more", &shell, "notes.append", r#"{"text":"milk"}"#, false);
        self.clock.advance(Duration::from_secs(60));
        std::mem::swap(&mut self.gate, &mut self.without_store);
        self.show("a store that does not answer", &shell, "notes.find", r#"{"text":"milk"}"#, false);
        std::mem::swap(&mut self.gate, &mut self.without_store);
        self.log.set_down(true);
        self.show("a log that cannot be written, before a change", &shell, "notes.append", r#"{"text":"milk"}"#, false);
        self.show("a log that cannot be written, after a look", &shell, "notes.find", r#"{"text":"milk"}"#, false);
        self.log.set_down(false);
    }

    fn approve(&self, approver: &CallContext<'_>) {
        if let Ok(ticket) = self.approval.parse() {
            // A decision that did not count would show in the next scene.
            let _ = self.gate.decide(ticket, Verdict::Approve, approver);
        }
    }

    fn show(&mut self, title: &'static str, caller: &CallContext<'_>, tool: &str, arguments: &str, redeem: bool) {
        let token = redeem.then(|| self.token.clone());
        let before = (self.log.lines().len(), self.ran.load(Ordering::Relaxed));
        let request = Request { tool, arguments: arguments.as_bytes(), token: token.as_deref() };
        let outcome = self.gate.call(caller, request);
        let json: Value = outcome.to_json().ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let scene = Scene {
            title,
            call: spelled(caller, tool, arguments, redeem),
            outcome: told(&outcome, &json),
            effect: outcome.effect().as_str().to_owned(),
            ran: self.ran.load(Ordering::Relaxed) - before.1,
            record: recorded(self.log.lines().get(before.0..).unwrap_or_default()),
        };
        if let Some(token) = json.pointer("/data/confirm_token").and_then(Value::as_str) {
            token.clone_into(&mut self.token);
        }
        if let Some(approval) = json.pointer("/data/approval_id").and_then(Value::as_str) {
            approval.clone_into(&mut self.approval);
        }
        self.scenes.push(scene);
    }
}

/// The call as a user would type it.
fn spelled(caller: &CallContext<'_>, tool: &str, arguments: &str, redeem: bool) -> String {
    let mut text = format!("{tool} '{arguments}'");
    if caller.channel != "cli" {
        text.push_str(&format!(" --channel {}", caller.channel));
        if let Some(principal) = caller.known_principal() {
            text.push_str(&format!(" --principal {principal}"));
        }
        for scope in caller.scopes.iter() {
            text.push_str(&format!(" --scope {scope}"));
        }
    }
    if caller.mode == Mode::Plan {
        text.push_str(" --plan");
    }
    if redeem {
        text.push_str(" --confirm TOKEN");
    }
    text
}

/// What the caller reads, in a line.
fn told(outcome: &Outcome<'_>, json: &Value) -> String {
    let meta = |name: &str| json.pointer(&format!("/meta/{name}"));
    let mut text = match (outcome.code(), outcome.error()) {
        (Some(code), Some(error)) => format!("{code}: {error}"),
        _ if outcome.asks() => format!("asks: {}", json.get("message").and_then(Value::as_str).unwrap_or_default()),
        _ => format!("ok: {}", json.get("data").unwrap_or(&Value::Null)),
    };
    for clamp in meta("clamped").and_then(Value::as_array).into_iter().flatten() {
        let part = |name: &str| clamp.get(name).and_then(Value::as_str).unwrap_or_default();
        text.push_str(&format!("; {} was {}, brought to {}", part("field"), part("from"), part("to")));
    }
    for (name, words) in [
        ("cache_served", "served from the cache"),
        ("timeout_exceeded", "later than its timeout"),
        ("audit_pending", "the record is still to be written"),
    ] {
        if meta(name) == Some(&Value::Bool(true)) {
            text.push_str(&format!("; {words}"));
        }
    }
    text
}

/// What the log says, in a line for each record.
fn recorded(lines: &[String]) -> String {
    let told: Vec<_> = lines
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|line| {
            let part = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let mut text = format!("#{} {}: {}", line.get("seq").unwrap_or(&Value::Null), part("station"), part("end"));
            for name in ["check", "confirmed_by"] {
                if !part(name).is_empty() {
                    text.push_str(&format!(", {name} {}", part(name)));
                }
            }
            if line
                .get("end")
                .and_then(Value::as_str)
                .is_some_and(|end| matches!(end, "failed" | "panicked" | "vetoed" | "interceptor_failed"))
            {
                text.push_str(&format!(" ({})", part("detail")));
            }
            text
        })
        .collect();
    if told.is_empty() { "nothing could be written".to_owned() } else { told.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_shows_every_end_and_its_log_holds() {
        let demo = play().unwrap();
        for scene in &demo.scenes {
            println!("{scene:#?}");
        }
        assert!(demo.verified && demo.lines > demo.scenes.len());
        let shown =
            |text: &str| demo.scenes.iter().any(|scene| scene.outcome.contains(text) || scene.record.contains(text));
        for end in [
            "TOOL_NOT_FOUND",
            "CAPABILITY_DENIED",
            "VALIDATION_ERROR",
            "FORBIDDEN",
            "RATE_LIMITED",
            "CONFIRMATION_INVALID",
            "APPROVAL_PENDING",
            "VETOED",
            "INTERNAL_ERROR",
            "OUTPUT_INVALID",
            "STORE_UNAVAILABLE",
            "AUDIT_UNAVAILABLE",
            "brought to 1000",
            "asks: ",
            "confirmed_by self",
            "confirmed_by approver",
            "served from the cache",
            "planned",
            "later than its timeout",
            "still to be written",
            "panicked (index 9",
        ] {
            assert!(shown(end), "{end}");
        }
        // L2: what the failing tool said of its password is nowhere.
        assert!(!format!("{demo:?}").contains("hunter22\"") || !shown("password=hunter22"));
        // The tools' own count agrees with what the outcomes say.
        for scene in &demo.scenes {
            assert_eq!(scene.ran == 0, scene.effect == "none", "{}", scene.title);
        }
        assert_eq!(demo, play().unwrap(), "it is the same every time");
    }
}
