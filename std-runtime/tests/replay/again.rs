//! One record's call made again by core's stages. Tools and policy are those of the configuration that the record names; what stores,
//! interceptors and the tool said then is what the record says of it, and is said only where the pipeline asks for it.

use std::num::NonZeroU32;
use std::sync::Arc;

use callgate_core::args::Edits;
use callgate_core::audit::AuditFault;
use callgate_core::call::{
    Call, Confirm, Covered, Ended, Facts, IssueFault, Issued, Load, Loaded, Loading, Lookup, Operate, Ran, Redeeming,
    StoreFault,
};
use callgate_core::confirm::{Binding, By, Refusal, Token, caller_digest, principal_digest};
use callgate_core::context::{CallContext, Mode, Scopes, SignedConsent};
use callgate_core::digest::{Digest, DigestKey};
use callgate_core::intercept::Interception;
use callgate_core::journal::{OperationRefusal, Recalled};
use callgate_core::json::KeySlot;
use callgate_core::limit::Allowance;
use callgate_core::policy::{ConsentGrant, GrantedArgs};
use callgate_core::redact::{REPLACEMENT, Redaction};
use callgate_core::request::{Context, Envelope, Parts, Request, Settings};
use callgate_core::time::{Now, Timestamp};
use callgate_std::failure::Failure;
use callgate_std::gate::Gate;
use callgate_std::output::Reply;
use callgate_std::tool::Tool;
use serde_json::{Map, Value};

use crate::world::{KEY, World};

/// A call with the name of the grant that covered it, for which a borrowed envelope has no room.
struct Carried<'a> {
    envelope: Envelope<'a, Arc<str>>,
    grant: Option<Digest>,
}

impl<'a> Context for Carried<'a> {
    type Text = Arc<str>;
    type Snapshot = &'a [u8];

    fn caller(&self) -> CallContext<'_> {
        self.envelope.caller()
    }

    fn request(&self) -> Request<'_> {
        self.envelope.request()
    }

    fn operation(&self) -> Option<&str> {
        self.envelope.operation()
    }

    fn grant(&self) -> Option<&Digest> {
        self.grant.as_ref()
    }

    fn covered_by(&mut self, grant: Digest) {
        self.grant = Some(grant);
    }

    fn edits(&self) -> &Edits {
        self.envelope.edits()
    }

    fn settings(&self) -> Settings<'_> {
        self.envelope.settings()
    }

    fn facts(&self) -> &Facts {
        self.envelope.facts()
    }

    fn facts_mut(&mut self) -> &mut Facts {
        self.envelope.facts_mut()
    }

    fn parts(&mut self) -> Parts<'_> {
        self.envelope.parts()
    }

    fn adopt(&mut self, snapshot: &'a [u8]) {
        self.envelope.adopt(snapshot);
    }
}

type End<'a> = Ended<Carried<'a>, Arc<Tool>>;

/// Members that are of the moment, of the log, or of a token that a record rightly has no more of than a digest.
const OF_THE_MOMENT: [&str; 6] = ["seq", "prev", "hash", "at", "took_us", "ticket"];

/// What a replay of `record` says otherwise than the record: the member, as it is and as it was made.
pub(crate) fn differences(world: &World, record: &Value) -> Vec<(String, Value, Value)> {
    let said = Said(record);
    let Some(configured) = world.configured(record) else {
        return vec![("policy".to_owned(), record["policy"].clone(), Value::Null)];
    };
    let made = said.again(&configured.gate, configured.digest, configured.max_depth);
    let mut out_of_reach = OF_THE_MOMENT.to_vec();
    if said.arguments().contains(REPLACEMENT) {
        out_of_reach.push("args_digest");
    }
    if said.is("limited") || said.is("malformed") || said.text("told").is_some() {
        // In how many seconds to come back, and at which byte it was no JSON.
        out_of_reach.push("detail");
    }
    let empty = Map::new();
    let (is, made) = (record.as_object().unwrap_or(&empty), made.as_object().unwrap_or(&empty));
    let names: std::collections::BTreeSet<_> = is.keys().chain(made.keys()).collect();
    let value = |of: &Map<String, Value>, name: &str| of.get(name).cloned().unwrap_or_default();
    names
        .into_iter()
        .filter(|name| !out_of_reach.contains(&name.as_str()))
        .map(|name| (name.clone(), value(is, name), value(made, name)))
        .filter(|(_, is, made)| is != made)
        .collect()
}

/// What a record says.
#[derive(Clone, Copy)]
struct Said<'r>(&'r Value);

impl<'r> Said<'r> {
    fn text(self, name: &str) -> Option<&'r str> {
        self.0[name].as_str()
    }

    fn end(self) -> &'r str {
        self.text("end").unwrap_or_default()
    }

    fn is(self, end: &str) -> bool {
        self.end() == end
    }

    fn store_failed(self, store: &str) -> bool {
        self.is("store_fault") && self.text("check") == Some(store)
    }

    fn detail(self) -> &'r str {
        self.text("detail").unwrap_or_default()
    }

    /// The arguments as they were sent; no JSON where they were never read.
    fn arguments(self) -> String {
        let Some(mut arguments) = self.0.get("args").cloned() else { return "{".to_owned() };
        for clamp in self.0["clamped"].as_array().into_iter().flatten() {
            if let (Some(field), Some(from)) = (clamp["field"].as_str(), clamp["from"].as_str()) {
                arguments[field] = serde_json::from_str(from).expect("a number");
            }
        }
        arguments.to_string()
    }

    /// Whether it brought a token, and didn't get one.
    fn brings_token(self) -> bool {
        let refused = self.is("refused") && self.text("check") == Some("malformed");
        refused || self.text("ticket").is_some() && !self.is("asked") && self.text("confirmed_by") != Some("grant")
    }

    /// The record of the same kind that the call makes now.
    fn again(self, gate: &Gate, policy: Digest, max_depth: u8) -> Value {
        let name = self.text("tool").unwrap_or_default();
        let scopes = self.0["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let scopes = scopes.collect::<Vec<_>>().join(" ");
        let mut caller =
            CallContext::new(self.text("channel").unwrap_or_default(), self.text("request_id").unwrap_or_default());
        caller.principal = self.text("principal");
        caller.tenant = self.text("tenant");
        caller.session = self.text("session");
        caller.parent = self.text("parent");
        caller.scopes = Scopes::new(&scopes);
        caller.depth = self.0["depth"].as_u64().map_or(0, |depth| u8::try_from(depth).expect("small"));
        if self.text("mode") == Some("plan") {
            caller.mode = Mode::Plan;
        }
        let consent = self.text("consent");
        if let Some(signer) = self.text("signer") {
            let digest = self.text("args_digest").filter(|_| consent == Some("signature"));
            let arguments =
                digest.and_then(|digest| digest.parse().ok()).unwrap_or_else(|| Digest::of_bytes(b"another"));
            caller.signature = Some(SignedConsent { signer, tool: name, arguments });
        }
        let found = gate.tools().find(name, &caller);
        let definition = match &found {
            Lookup::Found(tool) => tool.digest(),
            _ => Digest::of_bytes(b"none"),
        };
        let grant = ConsentGrant {
            tool: name,
            definition,
            tenant: caller.tenant,
            principal: caller.principal.unwrap_or_default(),
            session: None,
            granted_at: Timestamp::from_unix_millis(0),
            expires_at: Timestamp::from_unix_millis(u64::MAX),
            uses_left: None,
            arguments: GrantedArgs::Any,
            provenance: self.text("provenance").unwrap_or_default(),
        };
        if consent == Some("grant") {
            caller.grants = std::slice::from_ref(&grant);
        }

        let token = match self.text("check") {
            Some("malformed") if self.is("refused") => Some("no token".to_owned()),
            _ => self.brings_token().then(|| "7".repeat(32)),
        };
        let arguments = self.arguments();
        let key = DigestKey::new(KEY);
        let settings = Settings {
            digest_key: &key,
            redaction: Redaction::DEFAULT,
            digest_all: true,
            max_depth,
            policy: Some(policy),
        };
        let request = Request { tool: name, arguments: arguments.as_bytes(), token: token.as_deref() };
        let mut keys = [KeySlot::default(); 64];
        let envelope = Envelope::new(caller, request, settings, &mut keys);
        // A name that is none is not written down; that it was one of an operation is.
        let operation = match self.text("check") {
            Some("operation") if self.is("bad_context") => Some("no name"),
            _ => self.text("operation"),
        };
        let envelope = match operation {
            Some(operation) => envelope.of_operation(operation),
            None => envelope,
        };
        let call = Call::request(Carried { envelope: envelope.with_texts(), grant: None }, Now::ZERO);
        let mut intent = None;
        let ended = match call.resolve(found) {
            Ok(load) => self.stages(load, gate, arguments.as_bytes(), &mut intent).unwrap_or_else(|ended| ended),
            Err(ended) => ended,
        };
        if self.text("kind") == Some("intent") {
            return intent.unwrap_or_default();
        }
        let mut closed = ended.close(Now::ZERO);
        if self.text("told").is_some() {
            closed.settle(Ok(Allowance::Refused { retry_after_ns: None }));
        }
        let mut line = String::new();
        closed.record().write_json(&mut line).expect("a string takes all");
        serde_json::from_str(&line).expect("a record")
    }

    #[expect(clippy::result_large_err, reason = "as the pipeline has it")]
    fn stages<'a>(
        self,
        load: Load<Carried<'a>, Arc<Tool>>,
        gate: &Gate,
        arguments: &'a [u8],
        intent: &mut Option<Value>,
    ) -> Result<End<'a>, End<'a>> {
        let call = match load {
            Load::Fresh(call) => call,
            Load::Stored(loading) => {
                let found = self.loaded(&loading, arguments);
                loading.loaded(found)?
            }
        };
        let call = call.validate()?;
        let decision = gate.policy().decide(&call.subject());
        let call = call.authorize(decision)?;
        let allowance = match call.charge() {
            Some(_) if self.is("limited") => Ok(Allowance::Refused { retry_after_ns: None }),
            Some(_) if self.store_failed("limits") => Err(StoreFault),
            _ => Ok(Allowance::Unlimited),
        };
        let call = call.admit(allowance)?.unless_planning()?;
        let call = match call.recall()? {
            Operate::NotNeeded(call) => call,
            Operate::Ask(operating) => operating.recalled(self.journal("confirm"))?,
        };
        let call = match call.confirm()? {
            Confirm::NotNeeded(call) => call,
            Confirm::Ask(asking) => match self.text("confirmed_by") {
                Some("grant") => {
                    let grant = self.digest("grant").unwrap_or_else(|| Digest::of_bytes(b"none"));
                    asking.granted(Covered { ticket: self.ticket(), grant })
                }
                _ => {
                    let token = Token::from_random([3; 16]);
                    return Err(asking.asked(match self.end() {
                        "asked" => Ok(Issued { token, expires_at: Timestamp::from_unix_millis(1) }),
                        "no_approver" => Err(IssueFault::NoApprover),
                        _ => Err(IssueFault::Store),
                    }));
                }
            },
            Confirm::Redeem(redeeming) => {
                let claimed = self.claimed(&redeeming);
                redeeming.redeemed(claimed)?
            }
        };
        let call = call.intercept(match self.end() {
            "vetoed" => Interception::Veto(self.detail().into()),
            "interceptor_failed" => Interception::Failed(self.detail().into()),
            "answered" => Interception::Answer(Reply::new("known")),
            _ => Interception::Continue,
        })?;
        let mut call = match call.claim()? {
            Operate::NotNeeded(call) => call,
            Operate::Ask(operating) => operating.claimed(self.journal("emit_executing"))?,
        };
        *intent = call.intent().map(|intent| {
            let mut line = String::new();
            intent.write_json(&mut line).expect("a string takes all");
            serde_json::from_str(&line).expect("a record")
        });
        let call = call.announce(if self.is("audit_unavailable") { Err(AuditFault) } else { Ok(()) })?;
        Ok(call.execute(|_permit| {
            let ran = match self.end() {
                "failed" => Ran::Failed(self.failure()),
                "panicked" => Ran::Panicked(self.detail().into()),
                _ => Ran::Done(Reply::new(1)),
            };
            ran.after(1)
        }))
    }

    fn failure(self) -> Failure {
        match (self.text("code"), self.text("effect")) {
            (Some("NOT_FOUND"), Some("none")) => Failure::not_found(self.detail()).without_effect(),
            (Some("NOT_FOUND"), _) => Failure::not_found(self.detail()),
            (_, Some("none")) => Failure::new(self.detail()).without_effect(),
            _ => Failure::new(self.detail()),
        }
    }

    fn ticket(self) -> Digest {
        self.digest("ticket").unwrap_or_else(|| Digest::of_bytes(b"none"))
    }

    fn digest(self, name: &str) -> Option<Digest> {
        self.text(name).and_then(|digest| digest.parse().ok())
    }

    fn refusal(self) -> Option<Refusal> {
        use Refusal::{
            Cancelled, Denied, Expired, FromTheFuture, Malformed, OtherArguments, OtherCaller, OtherTool, Undecided,
            Unknown, Used,
        };
        let all = [
            Malformed,
            Unknown,
            Expired,
            FromTheFuture,
            Used,
            Cancelled,
            OtherTool,
            OtherCaller,
            OtherArguments,
            Undecided,
            Denied,
        ];
        let check = self.text("check").filter(|_| self.is("refused"));
        check.and_then(|check| all.into_iter().find(|refusal| refusal.as_str() == check))
    }

    /// What the store said of the ticket, before any argument was read.
    fn loaded<'a>(
        self,
        loading: &Loading<Carried<'a>, Arc<Tool>>,
        arguments: &'a [u8],
    ) -> Result<Option<Loaded<&'a [u8]>>, StoreFault> {
        let call = loading.call();
        let (caller, principal) = call.with_caller(|caller| (caller_digest(caller), principal_digest(caller)));
        let tool = call.spec().name;
        let other = Digest::of_bytes(tool.as_bytes());
        let definition = self.text("tool_digest").and_then(|digest| digest.parse().ok()).unwrap_or(other);
        let mut binding = Binding { tool: definition, arguments: other, caller, principal };
        let mut usable = Ok(());
        // Where the arguments were read, it was refused later, if at all.
        let refusal = if self.0.get("args").is_some() { None } else { self.refusal() };
        match refusal {
            Some(Refusal::Unknown) => return Ok(None),
            Some(Refusal::OtherCaller) => binding.caller = other,
            Some(Refusal::OtherTool) => binding.tool = other,
            Some(refusal) => usable = Err(refusal),
            None => {}
        }
        Ok(Some(Loaded { binding, usable, arguments }))
    }

    /// What the store said of the claim.
    fn claimed(self, _: &Redeeming<Carried<'_>, Arc<Tool>>) -> Result<Result<By, Refusal>, StoreFault> {
        match (self.refusal(), self.text("confirmed_by")) {
            (Some(refusal), _) => Ok(Err(refusal)),
            (None, Some("self")) => Ok(Ok(By::Caller)),
            (None, Some("approver")) => Ok(Ok(By::Approver)),
            (None, _) => Err(StoreFault),
        }
    }

    /// What the journal said at this station.
    fn journal(self, station: &str) -> Result<Result<Recalled<Reply>, OperationRefusal>, StoreFault> {
        use OperationRefusal::{Anonymous, Full, InDoubt, InProgress, NotKept, OtherArguments, OtherTool, Unsupported};
        let here = self.text("station") == Some(station);
        let all = [Unsupported, Anonymous, OtherTool, OtherArguments, InProgress, InDoubt, NotKept, Full];
        match self.end() {
            "replayed" if here => Ok(Ok(Recalled::Completed(Reply::new(1)))),
            "operation_refused" if here => {
                let refusal = all.into_iter().find(|refusal| Some(refusal.as_str()) == self.text("check"));
                refusal.map_or(Err(StoreFault), |refusal| Ok(Err(refusal)))
            }
            "store_fault" if here && self.store_failed("journal") => Err(StoreFault),
            _ => {
                let attempt = self.0["attempt"].as_u64().and_then(|attempt| u32::try_from(attempt).ok());
                Ok(Ok(Recalled::Free(attempt.and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX))))
            }
        }
    }
}
