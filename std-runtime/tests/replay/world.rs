//! Gates of chance, one log, and calls of chance at them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use callgate_core::audit::{Audit, AuditFault, Kind, Record};
use callgate_core::confirm::Verdict;
use callgate_core::context::{CallContext, Mode, Scopes, SignedConsent};
use callgate_core::digest::Digest;
use callgate_core::intercept::{Interception, Interceptor};
use callgate_core::json::Number;
use callgate_core::policy::{ArgCheck, ArgTest, ChannelPolicy, ConsentGrant, Effect, GrantedArgs, RuleDef, Subject};
use callgate_core::request::Request;
use callgate_core::schema::{Property, Schema};
use callgate_core::time::Timestamp;
use callgate_core::tool::ConfirmBy;
use callgate_std::audit::MemoryAudit;
use callgate_std::clock::ManualClock;
use callgate_std::confirmations::{Capacity, GrantArguments, MemoryConfirmations, NewGrant};
use callgate_std::entropy::SeededEntropy;
use callgate_std::failure::Failure;
use callgate_std::gate::Gate;
use callgate_std::interceptors::Interceptors;
use callgate_std::journal::{JournalLimits, MemoryJournal};
use callgate_std::limiter::{Allowance, Charge, LimitKey, MemoryLimiter, Quota, RateLimiter, Refund, StoreFault};
use callgate_std::output::Reply;
use callgate_std::policy::{ChannelPolicies, OwnedRule};
use callgate_std::registry::Registry;
use callgate_std::tool::Tool;
use serde_json::Value;

use crate::chance::Chance;

/// The key of all digests.
pub(crate) const KEY: [u8; 32] = [1; 32];
const BOSS: CallContext<'static> = CallContext::new("cli", "boss").with_principal("boss").with_scopes(Scopes::ALL);
const NAMES: [&str; 4] = ["get", "set", "pay", "wipe"];
const PROPERTIES: &[Property<'static>] = &[
    Property::optional("how", Schema::string()),
    Property::required("n", Schema::integer()),
    Property::optional("pin", Schema::string()),
];

/// A configuration, as a gate that is asked for nothing but tools and policy.
pub(crate) struct Configured {
    pub(crate) gate: Gate,
    pub(crate) digest: Digest,
    pub(crate) max_depth: u8,
}

pub(crate) struct World {
    audit: Arc<MemoryAudit>,
    configured: HashMap<String, Configured>,
}

/// What a world shares among its gates.
struct Shared {
    chance: Arc<Chance>,
    clock: ManualClock,
    audit: Arc<MemoryAudit>,
    confirmations: Arc<MemoryConfirmations>,
    journal: Arc<MemoryJournal>,
    approvers: bool,
    /// Who calls: few, so that calls are alike.
    cast: Vec<Caller>,
}

/// Whoever asked may come back.
struct Ticket {
    token: String,
    id: Option<Digest>,
    tool: &'static str,
    caller: Caller,
}

#[derive(Clone, Copy)]
struct Caller {
    channel: &'static str,
    principal: Option<&'static str>,
    tenant: Option<&'static str>,
    scopes: &'static str,
    session: Option<&'static str>,
}

impl World {
    /// A world that was played to its end.
    pub(crate) fn played(seed: u64) -> Self {
        callgate_std::contain::quiet_contained_panics();
        let (clock, chance) = (ManualClock::new(), Arc::new(Chance::new(seed)));
        let confirmations = MemoryConfirmations::with(Capacity::DEFAULT, clock.shared(), SeededEntropy::shared(seed));
        let approvers = !chance.once_in(4);
        confirmations.attach_approvers(approvers);
        let cast = (0..4).map(|_| caller(&chance)).collect();
        let shared = Shared {
            cast,
            audit: Arc::new(MemoryAudit::new()),
            confirmations: Arc::new(confirmations),
            journal: Arc::new(MemoryJournal::with(JournalLimits::DEFAULT, clock.shared())),
            chance,
            clock,
            approvers,
        };
        let mut configured = HashMap::new();
        let mut tickets = Vec::new();
        for number in 0..3_u8 {
            let policy = Digest::of_bytes(&[number]);
            let max_depth = shared.chance.one(&[1, 8]);
            let gate = shared.gate(policy, max_depth);
            for call in 0..80 {
                shared.act(&gate, &format!("r{number}.{call}"), &mut tickets);
            }
            configured.insert(policy.to_string(), Configured { gate, digest: policy, max_depth });
        }
        Self { audit: shared.audit, configured }
    }

    /// The records of calls.
    pub(crate) fn records(&self) -> Vec<Value> {
        let read = |line: &String| serde_json::from_str::<Value>(line).expect("a record");
        self.audit.lines().iter().map(read).filter(|record| record["kind"] != "decision").collect()
    }

    /// The configuration that a record names.
    pub(crate) fn configured(&self, record: &Value) -> Option<&Configured> {
        self.configured.get(record["policy"].as_str()?)
    }
}

/// Somebody who calls.
fn caller(chance: &Chance) -> Caller {
    Caller {
        channel: chance.one(&["cli", "cli", "web", "fax", "no channel"][..if chance.once_in(6) { 5 } else { 3 }]),
        principal: chance.one(&[Some("alice"), Some("alice"), Some("bob"), None]),
        tenant: chance.one(&[None, None, Some("north")]),
        scopes: chance.one(&["", "read", "read write", "*", "*"]),
        session: chance.one(&[None, Some("s1")]),
    }
}

impl Shared {
    fn gate(&self, policy: Digest, max_depth: u8) -> Gate {
        let mut tools = Registry::builder();
        for name in NAMES {
            tools = tools.add(self.tool(name));
        }
        let mut policies = ChannelPolicies::builder().rules(self.rules());
        for name in ["cli", "web"] {
            policies = policies.channel(name, self.channel());
        }
        if self.chance.once_in(2) {
            policies = policies.provides("bank");
        }
        let quota = Quota::new(12, 60_000, 12).expect("a quota");
        let (chance, clock) = (&self.chance, &self.clock);
        let limiter = MemoryLimiter::with(move |_| quota, clock.shared(), 1_000);
        let mut gate = Gate::builder(tools.build().expect("good tools"))
            .policy(policies.build().expect("a good policy"))
            .policy_digest(policy)
            .max_depth(max_depth)
            .clock(clock.shared())
            .entropy(SeededEntropy::shared(u64::from(max_depth)))
            .digest_key(KEY)
            .limiter(Arc::new(Faulty { limiter, chance: Arc::clone(chance) }))
            .interceptors(Interceptors::with(clock.shared(), 1_000).and("whim", Whim(Arc::clone(chance))))
            .confirmations(Arc::clone(&self.confirmations) as _)
            .audit(Arc::new(Forgetful { log: Arc::clone(&self.audit), chance: Arc::clone(chance) }));
        if !self.chance.once_in(4) {
            gate = gate.journal(Arc::clone(&self.journal) as _);
        }
        gate.build().expect("a good gate")
    }

    fn tool(&self, name: &'static str) -> Tool {
        let chance = &self.chance;
        let mut tool = Tool::builder(name)
            .description("One of chance")
            .const_schema(Schema::object(PROPERTIES))
            .clamp("/n", 0..=chance.one(&[5_i64, 100]))
            .secret("/pin")
            .confirm(chance.one(&[
                ConfirmBy::Nobody,
                ConfirmBy::Nobody,
                ConfirmBy::Caller,
                ConfirmBy::Approver { scope: "approve" },
            ]));
        if !chance.once_in(3) {
            tool = tool.mutating();
        }
        if chance.once_in(4) {
            tool = tool.dangerous();
        }
        if chance.once_in(3) {
            tool = tool.scopes([chance.one(&["read", "write"])]);
        }
        if chance.once_in(5) {
            tool = tool.requires(["bank"]);
        }
        tool.handler(|call| {
            let arguments: Value = call.arguments()?;
            match arguments["how"].as_str() {
                Some("fails") => Err(Failure::new("half of it")),
                Some("nothing") => Err(Failure::new("nothing was done").without_effect()),
                Some("gone") => Err(Failure::not_found("there is none")),
                Some("panics") => panic!("planted"),
                _ => Ok(Reply::new(1)),
            }
        })
        .build()
        .expect("a good tool")
    }

    fn channel(&self) -> ChannelPolicy<'static> {
        let chance = &self.chance;
        let mut channel = ChannelPolicy::new("");
        for (n, change) in [
            (2, ChannelPolicy::without_auth as fn(ChannelPolicy<'static>) -> ChannelPolicy<'static>),
            (3, ChannelPolicy::allowing_all),
            (4, ChannelPolicy::blocking_mutating),
            (6, ChannelPolicy::requiring_rule),
            (3, ChannelPolicy::confirming_mutating),
            (4, ChannelPolicy::confirmed_by_approver),
            (3, ChannelPolicy::requiring_consent),
        ] {
            if chance.once_in(n) {
                channel = change(channel);
            }
        }
        channel
    }

    fn rules(&self) -> Vec<OwnedRule> {
        let chance = &self.chance;
        let some = |of: &[&str]| chance.once_in(2).then(|| Arc::<str>::from(chance.one(of)));
        (0..chance.below(4))
            .map(|id| {
                let effect = if chance.once_in(3) { Effect::Deny } else { Effect::Allow };
                let tests = match chance.below(3) {
                    0 => vec![ArgTest { key: "n".into(), check: ArgCheck::Max(Number::U64(3)), alternative: false }],
                    _ => Vec::new(),
                };
                OwnedRule {
                    channel: some(&["cli", "web"]),
                    principal: some(&["alice", "bob"]),
                    tenant: chance.once_in(4).then(|| "north".into()),
                    tool: some(&["get", "pay", "w*"]),
                    scopes: (effect == Effect::Allow && chance.once_in(4)).then(|| "write".into()),
                    overrides_block: effect == Effect::Allow && chance.once_in(2),
                    ..RuleDef::new(i64::try_from(id).expect("small"), effect, tests)
                }
            })
            .collect()
    }

    /// One call, or something else that happens.
    fn act(&self, gate: &Gate, request_id: &str, tickets: &mut Vec<Ticket>) {
        let chance = &self.chance;
        self.clock.advance(Duration::from_millis(chance.one(&[1, 100, 1_000, 20_000])));
        if self.approvers && chance.once_in(3) && !tickets.is_empty() {
            let verdict = if chance.once_in(5) { Verdict::Deny } else { Verdict::Approve };
            let of = &tickets[chance.below(tickets.len())];
            let boss = CallContext { tenant: of.caller.tenant, ..BOSS };
            // What does not count is the store's matter.
            let _ = of.id.map(|id| gate.decide(id, verdict, &boss));
        }
        let redeemed = if chance.once_in(3) { tickets.last() } else { None };
        let tool = match redeemed {
            Some(ticket) if !chance.once_in(8) => ticket.tool,
            _ => chance.one(&NAMES),
        };
        let registered = gate.tools().registry().get(tool).map(|tool| tool.digest());
        let definition = registered.expect("each gate has all tools");
        if self.approvers && chance.once_in(20) {
            let grant = NewGrant {
                tool: tool.to_owned(),
                definition,
                principal: "alice".to_owned(),
                arguments: GrantArguments::Including(r#"{"n":1}"#.to_owned()),
                lasts_ms: 100_000,
                max_uses: 5,
            };
            gate.approvals().grant(grant, &BOSS).expect("the boss may");
        }
        let who = match redeemed {
            Some(ticket) if !chance.once_in(8) => ticket.caller,
            _ => chance.one(&self.cast),
        };
        let how = chance.one(&["", "fails", "nothing", "gone", "panics"]);
        let n = chance.one(&["1", "1", "4", "900"]);
        let secret = chance.once_in(6);
        let arguments = match chance.below(16) {
            0 => r#"{"n":"#.to_owned(),
            1 => r#"{"n":"one"}"#.to_owned(),
            _ if secret => format!(r#"{{"how":"{how}","n":{n},"pin":"4711{n}"}}"#),
            2..=11 => format!(r#"{{"n":{n}}}"#),
            _ => format!(r#"{{"how":"{how}","n":{n}}}"#),
        };
        let grant = ConsentGrant {
            tool,
            definition,
            tenant: who.tenant,
            principal: who.principal.unwrap_or_default(),
            session: None,
            granted_at: Timestamp::from_unix_millis(0),
            expires_at: Timestamp::from_unix_millis(chance.one(&[1, u64::MAX])),
            uses_left: chance.one(&[None, Some(0), Some(3)]),
            arguments: GrantedArgs::Any,
            provenance: "asked in the terminal",
        };
        let mut caller =
            CallContext { grants: std::slice::from_ref(&grant), ..CallContext::new(who.channel, request_id) };
        if !chance.once_in(3) {
            caller.grants = &[];
        }
        (caller.principal, caller.tenant, caller.session) = (who.principal, who.tenant, who.session);
        caller.scopes = Scopes::new(who.scopes);
        caller.depth = chance.one(&[0, 0, 0, 0, 0, 0, 1, 3]);
        if chance.once_in(8) {
            caller.mode = Mode::Plan;
        }
        if !secret && chance.once_in(5) {
            let digest = self.digest_of_alike(&arguments).filter(|_| !chance.once_in(4));
            let arguments = digest.unwrap_or_else(|| Digest::of_bytes(b"another call"));
            caller.signature = Some(SignedConsent { signer: "key of alice", tool, arguments });
        }
        let token = redeemed.map(|ticket| ticket.token.clone());
        let token = if chance.once_in(40) { Some("no token".to_owned()) } else { token };
        let name = if chance.once_in(30) { "none" } else { tool };
        let request = Request { tool: name, arguments: arguments.as_bytes(), token: token.as_deref() };
        let operations = ["op-1", "op-2", "op 3"];
        let operation = chance.once_in(4).then(|| operations[chance.below(if chance.once_in(6) { 3 } else { 2 })]);
        let outcome = match operation {
            Some(operation) => gate.call_operation(&caller, operation, request),
            None => gate.call(&caller, request),
        };
        let told: Value = serde_json::from_str(&outcome.to_json().expect("text")).expect("JSON");
        if let Some(token) = told["data"]["confirm_token"].as_str() {
            let id = told["data"]["approval_id"].as_str().and_then(|id| id.parse().ok());
            tickets.push(Ticket { token: token.to_owned(), id, tool, caller: who });
        }
    }

    /// The digest of arguments that the log has seen before.
    fn digest_of_alike(&self, arguments: &str) -> Option<Digest> {
        let wanted: Value = serde_json::from_str(arguments).ok()?;
        self.audit.lines().iter().rev().take(60).find_map(|line| {
            let record: Value = serde_json::from_str(line).ok()?;
            (record["args"] == wanted).then(|| record["args_digest"].as_str()?.parse().ok())?
        })
    }
}

/// A log that now and then takes no intent.
struct Forgetful {
    log: Arc<MemoryAudit>,
    chance: Arc<Chance>,
}

impl Audit for Forgetful {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        if record.kind == Kind::Intent && self.chance.once_in(20) { Err(AuditFault) } else { self.log.record(record) }
    }
}

struct Faulty {
    limiter: MemoryLimiter,
    chance: Arc<Chance>,
}

impl RateLimiter for Faulty {
    fn charge(&self, charge: &Charge<'_>) -> Result<Allowance, StoreFault> {
        if self.chance.once_in(40) { Err(StoreFault) } else { self.limiter.charge(charge) }
    }

    fn refund(&self, refund: &Refund<'_>) -> Result<(), StoreFault> {
        self.limiter.refund(refund)
    }

    fn attempt(&self, key: &LimitKey<'_>) -> Result<Allowance, StoreFault> {
        self.limiter.attempt(key)
    }
}

/// An interceptor whose word nobody can foresee.
struct Whim(Arc<Chance>);

impl Interceptor<Reply, Arc<str>> for Whim {
    fn judge(&self, _: &Subject<'_>) -> Interception<Reply, Arc<str>> {
        match self.0.below(16) {
            0 => Interception::Veto("not today".into()),
            1 => Interception::Failed("it broke".into()),
            2 => Interception::Answer(Reply::new("known")),
            _ => Interception::Continue,
        }
    }
}
