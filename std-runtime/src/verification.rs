//! The tools `request_verification` and `resolve_verification`: an agent asks people to verify something, and they answer through tools.
//!
//! They are ordinary tools on a store of confirmations. A request is a ticket that an approver decides; nothing runs by it. What systems
//! before took on trust is held here: an id that was never given out, a second verdict, a verdict on one's own request are refused, and
//! who decides is the caller that a transport has authenticated, never an argument (invariants A1, A2, A3, A9).
//!
//! Who listens ([`Verification::on_event`]) is told `verification.requested`, `verification.granted` and `verification.rejected`.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use callgate_core::confirm::{Binding, By, DecideError, Decided, Verdict, caller_digest, principal_digest};
use callgate_core::context::CallContext;
use callgate_core::digest::{Digest, DigestBuilder};
use callgate_core::time::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::confirmations::{ConfirmationStore, DecideFault, IssueFault, Issued, PendingRequest};
use crate::failure::Failure;
use crate::lock::{Mutex, lock};
use crate::output::Reply;
use crate::render::approver;
use crate::tool::{Tool, ToolCall, ToolError};

/// The name of the tool that asks.
pub const REQUEST: &str = "request_verification";
/// The name of the tool that answers.
pub const RESOLVE: &str = "resolve_verification";
/// The name under which results name who verified.
pub const VERIFIER: &str = "human_verifier";
/// How long a request waits where a host says nothing else, in milliseconds: one hour.
pub const DEFAULT_TTL_MS: u64 = 3_600_000;
/// How many distinct approvers make a quorum where a host says nothing else.
pub const DEFAULT_QUORUM: u8 = 3;
/// The most ids that callers gave their requests and that are kept apart from the store's own.
const MAX_NAMES: usize = 10_000;

/// Something that happened to a request.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct VerificationEvent<'a> {
    /// What: `verification.requested`, `verification.granted` or `verification.rejected`.
    pub name: &'static str,
    /// The id of the request.
    pub request_id: &'a str,
    /// What is to be verified; where a verdict does not repeat it, `None`.
    pub subject: Option<&'a str>,
    /// Who asked, or who decided: the caller of the tool.
    pub by: CallContext<'a>,
    /// Why it was decided so, as whoever decided says.
    pub reason: Option<&'a str>,
}

type Listener = dyn Fn(&VerificationEvent<'_>) + Send + Sync;

/// Both tools on one store.
pub struct Verification {
    store: Arc<dyn ConfirmationStore>,
    scope: String,
    ttl_ms: u64,
    quorum: u8,
    listener: Option<Box<Listener>>,
    /// Requests by the ids that callers gave them: tenant and id to the ticket. They are of this process; after it, a request is known by
    /// its approval id alone.
    names: Mutex<HashMap<(Option<String>, String), Named>>,
}

struct Named {
    ticket: Digest,
    until: Timestamp,
}

impl Verification {
    /// Tools on this store. Whoever resolves has to hold `scope`.
    pub fn new(store: Arc<dyn ConfirmationStore>, scope: impl Into<String>) -> Self {
        Self {
            store,
            scope: scope.into(),
            ttl_ms: DEFAULT_TTL_MS,
            quorum: DEFAULT_QUORUM,
            listener: None,
            names: Mutex::default(),
        }
    }

    /// The same, whose requests wait for so many milliseconds, at least 1.
    #[must_use]
    pub fn with_ttl_ms(mut self, ttl_ms: u64) -> Self {
        self.ttl_ms = ttl_ms.max(1);
        self
    }

    /// The same, whose quorum has so many approvers, at least 2.
    #[must_use]
    pub fn with_quorum(mut self, quorum: u8) -> Self {
        self.quorum = quorum.max(2);
        self
    }

    /// The same, telling `listener` what happens, after it is in the store. What it does changes nothing.
    #[must_use]
    pub fn on_event(mut self, listener: impl Fn(&VerificationEvent<'_>) + Send + Sync + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// The two tools, for a registry. Both change something and ask for no confirmation: they are one.
    ///
    /// # Errors
    /// The scope is none.
    pub fn tools(self) -> Result<[Tool; 2], ToolError> {
        let scope = self.scope.clone();
        let verification = Arc::new(self);
        let resolving = Arc::clone(&verification);
        let request = Tool::builder(REQUEST)
            .description("Opens a request that people verify something, and returns the id that is needed to resolve it.")
            .json_schema(json!({
                "type": "object",
                "properties": {
                    "subject": {"type": "string", "minLength": 1, "maxLength": 2_000, "description": "What is to be verified."},
                    "policy": {
                        "type": "string",
                        "enum": ["single", "dual", "quorum", "auto"],
                        "default": "single",
                        "description": "How many people have to say yes."
                    },
                    "requested_by": {"type": "string", "maxLength": 200, "description": "Who wants to know, in your own words."},
                    "request_id": {"type": "string", "maxLength": 128, "description": "An id of your own."}
                },
                "required": ["subject"],
                "additionalProperties": false
            }))
            .mutating()
            .handler(move |call: &ToolCall<'_>| verification.request(call))
            .build()?;
        let resolve = Tool::builder(RESOLVE)
            .description("Grants or rejects a request that was opened before. Who decides is whoever calls.")
            .json_schema(json!({
                "type": "object",
                "properties": {
                    "request_id": {"type": "string", "minLength": 1, "maxLength": 128},
                    "decision": {"type": "string", "enum": ["grant", "reject"]},
                    "principal": {"type": "string", "minLength": 1, "maxLength": 256, "description": "Your own principal."},
                    "subject": {"type": "string", "maxLength": 2_000},
                    "reason": {"type": "string", "maxLength": 2_000}
                },
                "required": ["request_id", "decision", "principal"],
                "additionalProperties": false
            }))
            .mutating()
            .scopes([scope])
            .handler(move |call: &ToolCall<'_>| resolving.resolve(call))
            .build()?;
        Ok([request, resolve])
    }

    fn request(&self, call: &ToolCall<'_>) -> Result<Reply, Failure> {
        let asked: Asked = call.arguments()?;
        let subject = asked.subject.trim();
        if subject.is_empty() {
            return Err(refused("subject is required"));
        }
        let caller = call.caller();
        let approvals = match asked.policy.as_deref().unwrap_or("single") {
            "single" => 1,
            "dual" => 2,
            "quorum" => self.quorum,
            // Nobody would have to say yes, and what counts as evidence nobody has said (invariant F2).
            _ => return Err(refused("the policy auto is not taken: a request is verified by people")),
        };
        let own_id = asked.request_id.as_deref().map(str::trim).filter(|id| !id.is_empty());
        let policy = asked.policy.as_deref().unwrap_or("single");
        let arguments = json!({"subject": subject, "policy": policy}).to_string();
        let said: Vec<_> = asked.requested_by.as_deref().map(|by| ("it is requested by", by)).into_iter().collect();
        let digest = binding_digest(subject, approvals, own_id);
        let request = PendingRequest {
            binding: Binding {
                tool: Digest::of_bytes(REQUEST.as_bytes()),
                arguments: digest,
                caller: caller_digest(caller),
                principal: principal_digest(caller),
            },
            by: By::Approver,
            approver_scope: Some(&self.scope),
            approvals,
            caller: *caller,
            tool: REQUEST,
            arguments: arguments.as_bytes(),
            summary: approver::view(REQUEST, &arguments, &[], &said, digest),
        };
        let Issued { token, expires_at } = self.store.issue(&request, self.ttl_ms).map_err(|fault| {
            let text = match fault {
                IssueFault::Full => "too many requests wait",
                IssueFault::NoApprover => "there is nobody who could verify it",
                _ => "the request could not be kept",
            };
            Failure::new(text).public().without_effect()
        })?;
        let ticket = token.hash();
        let id = own_id.map_or_else(|| ticket.to_string(), str::to_owned);
        if own_id.is_some() && !self.name(caller, &id, ticket, call.clock().now().wall, expires_at) {
            // Nobody knows of it but this call.
            let _ = self.store.withdraw(ticket);
            return Err(refused("there is a request of this request_id, or too many have ids of their own"));
        }
        self.tell(&VerificationEvent {
            name: "verification.requested",
            request_id: &id,
            subject: Some(subject),
            by: *caller,
            reason: None,
        });
        Ok(Reply::new(json!({
            "subject": subject,
            "policy": policy,
            "request_id": id,
            "approval_id": ticket.to_string(),
            "expires_at": expires_at.to_string(),
        }))
        .with_message(format!(
            "Verification required for '{subject}' (policy: {policy}). Resolve by calling resolve_verification with \
             decision=grant|reject, a principal, and request_id={id}."
        ))
        .with_meta("type", "verification")
        .with_meta("action", "verify"))
    }

    fn resolve(&self, call: &ToolCall<'_>) -> Result<Reply, Failure> {
        let answer: Answer = call.arguments()?;
        let caller = call.caller();
        let id = answer.request_id.trim();
        if id.is_empty() {
            return Err(refused("request_id is required"));
        }
        let verdict = match answer.decision.as_str() {
            "grant" => Verdict::Approve,
            "reject" => Verdict::Deny,
            _ => return Err(refused("decision must be grant|reject")),
        };
        // It says nothing that counts; one that says another than who calls is a mistake or a lie.
        if Some(answer.principal.trim()) != caller.known_principal() {
            return Err(refused("principal must be whoever calls: nobody decides in another's name"));
        }
        let now = call.clock().now().wall;
        let ticket = self.named(caller, id, now).or_else(|| id.parse().ok());
        let ticket = ticket.ok_or_else(unknown)?;
        let decided = self.store.decide(ticket, verdict, caller).map_err(told)?;
        let subject = answer.subject.as_deref().map(str::trim).filter(|subject| !subject.is_empty());
        let reason = answer.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
        let reason = reason.or((verdict == Verdict::Deny).then_some("rejected"));
        let (status, missing, name) = match decided {
            Decided::Approved => ("passed", 0, Some("verification.granted")),
            Decided::Counted { missing } => ("pending", missing, None),
            Decided::Denied => ("failed", 0, Some("verification.rejected")),
        };
        if let Some(name) = name {
            self.tell(&VerificationEvent { name, request_id: id, subject, by: *caller, reason });
        }
        let about = subject.unwrap_or(id);
        let message = match decided {
            Decided::Approved => format!("Verification granted for '{about}'."),
            Decided::Counted { missing } => format!("Counted for '{about}'; {missing} more have to say yes."),
            Decided::Denied => format!("Verification rejected for '{about}'."),
        };
        let missing = if missing > 0 { vec![format!("{missing} approvals")] } else { Vec::new() };
        let metadata = match (verdict, reason) {
            (Verdict::Approve, Some(reason)) => json!({"reason": reason}),
            _ => json!({}),
        };
        Ok(Reply::new(json!({
            "status": status,
            "reason": if verdict == Verdict::Deny { Value::from(reason) } else { Value::Null },
            "verifier": VERIFIER,
            "principal": caller.known_principal(),
            "missing": missing,
            "metadata": metadata,
        }))
        .with_message(message)
        .with_meta("verification_status", status))
    }

    /// The ticket that a caller's own id names; one whose time is over names none.
    fn named(&self, caller: &CallContext<'_>, id: &str, now: Timestamp) -> Option<Digest> {
        let names = lock(&self.names);
        let named = names.get(&(caller.tenant.map(str::to_owned), id.to_owned()))?;
        (named.until > now).then_some(named.ticket)
    }

    /// Gives a ticket the id that its caller chose, unless another one has it.
    fn name(&self, caller: &CallContext<'_>, id: &str, ticket: Digest, now: Timestamp, until: Timestamp) -> bool {
        let mut names = lock(&self.names);
        if names.len() >= MAX_NAMES {
            names.retain(|_, named| named.until > now);
        }
        let key = (caller.tenant.map(str::to_owned), id.to_owned());
        let free = names.len() < MAX_NAMES && names.get(&key).is_none_or(|named| named.until <= now);
        if free {
            names.insert(key, Named { ticket, until });
        }
        free
    }

    fn tell(&self, event: &VerificationEvent<'_>) {
        if let Some(listener) = &self.listener
            && crate::contain::contain(|| listener(event)).is_err()
        {
            tracing::error!(event = event.name, "a listener panicked; the verification is not concerned");
        }
    }
}

impl fmt::Debug for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verification").field("scope", &self.scope).field("quorum", &self.quorum).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Asked {
    subject: String,
    policy: Option<String>,
    requested_by: Option<String>,
    request_id: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    request_id: String,
    decision: String,
    principal: String,
    subject: Option<String>,
    reason: Option<String>,
}

fn binding_digest(subject: &str, approvals: u8, id: Option<&str>) -> Digest {
    let mut hash = DigestBuilder::new("gate/verification/v1");
    hash.str(subject).u64(u64::from(approvals)).option_str(id);
    hash.finish()
}

fn refused(text: &str) -> Failure {
    Failure::invalid(text).public().without_effect()
}

fn unknown() -> Failure {
    Failure::not_found("there is no such request").public().without_effect()
}

fn told(fault: DecideFault) -> Failure {
    match fault {
        DecideFault::Unknown | DecideFault::Refused(DecideError::NotAsked) => unknown(),
        DecideFault::Refused(DecideError::Unauthenticated) => {
            Failure::unauthorized(fault.to_string()).public().without_effect()
        }
        DecideFault::Refused(error) => refused(&error.to_string()),
        DecideFault::Store => Failure::new(fault.to_string()).public(),
    }
}
