//! One record of the audit trail.

use core::fmt;
use core::num::NonZeroU32;

use super::decision::Decision;
use crate::args::Args;
use crate::call::{Closed, End, Held, TaskId, checked_args};
use crate::clamp;
use crate::code::{Code, Effect, Station};
use crate::context::CallContext;
use crate::digest::Digest;
use crate::json::Object;
use crate::name::check_operation;
use crate::policy::{self, By, Subject};
use crate::redact::{RedactedText, Redaction, Secrets};
use crate::request::{Context, copied_caller, with_caller};
use crate::time::Now;
use crate::tool::{FieldRule, Tool, ToolFailure};

/// The version of the record's shape. A reader refuses versions that it does not know (invariant N6).
pub(crate) const VERSION: u64 = 1;

/// Which of a call's records this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a sink must know which records have to be durable")]
pub enum Kind {
    /// The tool is about to start.
    Intent,
    /// The call is over.
    Terminal,
    /// The run of a call that was accepted is over.
    Completion,
    /// Somebody decides about a pending call. Made before the decision takes effect; once more, with a code, when it did not.
    Decision,
}

impl Kind {
    /// The name in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Intent => "intent",
            Self::Terminal => "terminal",
            Self::Completion => "completion",
            Self::Decision => "decision",
        }
    }

    /// Whether what the record announces must not happen without it. Such a record is durable when it was taken, and is not owed
    /// when it wasn't (invariants J2, J8).
    #[must_use]
    pub const fn comes_first(self) -> bool {
        matches!(self, Self::Intent | Self::Decision)
    }
}

/// Writes the reason of an end in the gate's own words, which hold no value of the call.
pub(crate) trait Describe {
    fn describe(&self, out: &mut dyn fmt::Write) -> fmt::Result;
}

/// The reason of an end, fit for a record.
#[derive(Clone, Copy)]
enum Detail<'a> {
    /// What somebody else said (a tool, a panic, an interceptor): goes through redaction.
    Foreign(RedactedText<'a>),
    /// What the gate itself says.
    Own(&'a dyn Describe),
}

impl fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign(text) => write!(f, "{text}"),
            Self::Own(reason) => reason.describe(f),
        }
    }
}

/// A yes that was given before the call, as its record tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Consented<'a> {
    /// By the signature of [`CallContext::signature`].
    Signature,
    /// By a grant of the call's context.
    Grant {
        /// How it came about, as the host says.
        provenance: &'a str,
    },
}

impl<'a> Consented<'a> {
    /// The name in records: `signature` or `grant`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Signature => "signature",
            Self::Grant { .. } => "grant",
        }
    }

    /// How it came about; of a grant.
    #[must_use]
    pub const fn provenance(self) -> Option<&'a str> {
        match self {
            Self::Signature => None,
            Self::Grant { provenance } => Some(provenance),
        }
    }
}

/// One record, as a view of a call. `Debug` shows no argument.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    /// Intent, terminal, completion or decision.
    pub kind: Kind,
    /// When the record was made.
    pub at: Now,
    /// Who asked.
    pub caller: CallContext<'a>,
    /// The name that was asked for.
    pub tool: &'a str,
    /// The digest of the tool's definition, once it was resolved.
    pub definition: Option<Digest>,
    /// The digest of the clamped arguments.
    pub arguments: Option<Digest>,
    /// The digest of policy and configuration in force, where the host has one.
    pub policy: Option<Digest>,
    /// Where the call ended; [`Station::Execute`] for an intent.
    pub station: Station,
    /// Why it did not succeed; `None` for a success and for an intent.
    pub code: Option<Code>,
    /// What the caller was told instead, when its attempts were used up.
    pub told: Option<Code>,
    /// What this call did to the world; [`Effect::Unknown`] for an intent.
    pub effect: Effect,
    /// How the call ended, in a word: `done`, `asked`, `planned`, `answered`, `denied` and so on.
    pub end: &'static str,
    /// The policy check that refused, if one did; for a name outside its grammar, its field.
    pub check: Option<&'static str>,
    /// The rule that allowed or denied.
    pub rule: Option<i64>,
    /// The hash of the token that was issued or presented.
    pub ticket: Option<Digest>,
    /// Who confirmed the call.
    pub confirmed_by: Option<By>,
    /// Whether that was done beforehand, by a standing grant.
    pub granted: bool,
    /// The name of that grant, where the host kept it.
    pub grant: Option<&'a Digest>,
    /// The run that a call was accepted as, in its terminal record and in that of the run's completion.
    pub task: Option<TaskId>,
    /// The id of the operation that the call is one of, as its caller gave it.
    pub operation: Option<&'a str>,
    /// Which attempt of it, once the call claimed it.
    pub attempt: Option<u32>,
    /// The yes that the call brought with it and that covers it, once its arguments were read, whether or not one was needed: without it, a
    /// call that nobody had to be asked about looks like one that asked (invariant J7).
    pub consent: Option<Consented<'a>>,
    /// Whether the channel is one that nobody configured.
    pub unknown_channel: bool,
    /// How long the call took, in nanoseconds.
    pub took_ns: u64,
    /// How long the call may go on from here, in milliseconds, before it counts as lost; in records after which something is open.
    pub lease_ms: Option<u64>,
    args: Option<Args<'a>>,
    fields: &'a [FieldRule<'a>],
    redaction: Redaction<'a>,
    detail: Option<Detail<'a>>,
}

/// What a record says of the moment that it is made at.
#[derive(Clone, Copy)]
struct Moment<'a> {
    kind: Kind,
    at: Now,
    station: Station,
    code: Option<Code>,
    told: Option<Code>,
    effect: Effect,
    end: &'static str,
    check: Option<&'static str>,
    rule: Option<i64>,
    task: Option<TaskId>,
    took_ns: u64,
    lease_ms: Option<u64>,
    detail: Option<Detail<'a>>,
}

impl<'a> Record<'a> {
    #[cfg_attr(not(callgate_small), inline(always))]
    fn new<C: Context, T: Tool>(ctx: &'a C, tool: Option<&'a T>, moment: Moment<'a>) -> Self {
        let Moment { kind, at, station, code, told, effect, end, check, rule, task, took_ns, lease_ms, detail } =
            moment;
        let facts = ctx.facts();
        let settings = ctx.settings();
        Self {
            kind,
            at,
            tool: ctx.request().tool,
            definition: tool.map(Tool::definition),
            arguments: facts.arguments,
            policy: settings.policy,
            station,
            code,
            told,
            effect,
            end,
            check,
            rule,
            ticket: facts.ticket,
            confirmed_by: if facts.held.confirms() { facts.confirm } else { None },
            granted: facts.held == Held::Grant,
            grant: if facts.held == Held::Grant { ctx.grant() } else { None },
            task,
            // One outside its grammar is no name to write down.
            operation: ctx.operation().filter(|operation| check_operation(operation).is_ok()),
            attempt: facts.attempt.map(NonZeroU32::get),
            consent: consented(ctx, tool),
            unknown_channel: facts.unknown_channel,
            took_ns,
            lease_ms,
            args: read_args(ctx),
            fields: fields_of(tool),
            redaction: settings.redaction,
            detail,
            // Last, so that it is copied once: straight to where it stays.
            caller: copied_caller(ctx),
        }
    }

    // A record is large for a device's stack: there, none is left behind by who made it.
    #[cfg_attr(callgate_small, inline(never))]
    pub(crate) fn intent<C: Context, T: Tool>(ctx: &'a C, tool: &'a T) -> Self {
        let facts = ctx.facts();
        let moment = Moment {
            kind: Kind::Intent,
            at: facts.started,
            station: Station::Execute,
            code: None,
            told: None,
            effect: Effect::Unknown,
            end: "intent",
            check: None,
            rule: facts.rule(),
            task: facts.task,
            took_ns: 0,
            lease_ms: Some(tool.spec().lease_ms()),
            detail: None,
        };
        Self::new(ctx, Some(tool), moment)
    }

    #[cfg_attr(callgate_small, inline(never))]
    #[cfg_attr(not(callgate_small), inline)]
    pub(crate) fn terminal<C: Context, T: Tool>(closed: &'a Closed<C, T>) -> Self {
        let ended = &closed.ended;
        let (ctx, tool, end) = (&ended.ctx, ended.tool.as_ref(), &ended.end);
        let facts = ctx.facts();
        let (task, lease_ms) = match end {
            End::Accepted(task) => (Some(*task), tool.map(|tool| tool.spec().lease_ms())),
            _ => (facts.task, None),
        };
        let moment = Moment {
            kind: if facts.task.is_some() { Kind::Completion } else { Kind::Terminal },
            at: closed.at,
            station: ended.station,
            code: end.code(),
            told: closed.throttled.map(|_| Code::RateLimited),
            effect: end.own_effect(),
            end: end.name(),
            check: match end {
                End::Denied(denial) => Some(denial.check().as_str()),
                End::BadContext(error) => Some(error.field),
                End::Refused(refusal) => Some(refusal.as_str()),
                End::OperationRefused(refusal) => Some(refusal.as_str()),
                End::StoreFault(store) => Some(store.as_str()),
                _ => None,
            },
            rule: match end {
                End::Denied(denial) => denial.rule(),
                _ => facts.rule(),
            },
            task,
            took_ns: closed.took_ns,
            lease_ms,
            detail: Some(match end {
                End::Vetoed(text) | End::InterceptorFailed(text) | End::Panicked(text) => {
                    foreign(ctx, tool, text.as_ref())
                }
                End::Failed(failure) => foreign(ctx, tool, failure.detail()),
                _ => Detail::Own(closed),
            }),
        };
        Self::new(ctx, tool, moment)
    }

    /// The record of a decision about a pending call.
    #[must_use]
    pub fn decision(decision: &Decision<'a>) -> Self {
        let Decision { at, by, tool, arguments, policy, ticket, operation, what, refused, note, redaction } = *decision;
        Self {
            kind: Kind::Decision,
            at,
            caller: by,
            tool,
            definition: None,
            arguments,
            policy,
            station: Station::Confirm,
            code: refused.map(|(code, _)| code),
            told: None,
            effect: Effect::None,
            end: what,
            check: refused.map(|(_, why)| why),
            rule: None,
            ticket,
            confirmed_by: None,
            granted: false,
            grant: None,
            task: None,
            operation,
            attempt: None,
            consent: None,
            unknown_channel: false,
            took_ns: 0,
            lease_ms: None,
            args: None,
            fields: &[],
            redaction,
            detail: note.map(|note| Detail::Foreign(redaction.text(note, Secrets::NONE))),
        }
    }

    /// The clamped arguments as JSON text, redacted; `None` when they were never read.
    #[must_use]
    pub fn redacted_args(&self) -> Option<impl fmt::Display> {
        self.args.map(|args| self.redaction.args(args, self.fields))
    }

    /// The reason of the end, redacted; `None` for an intent.
    #[must_use]
    pub fn redacted_detail(&self) -> Option<impl fmt::Display> {
        self.detail
    }

    /// Writes the record as one line of JSON without a line break at its end. The same call gives the same bytes on every
    /// front-end (invariant N1); absent members are left out; every text is escaped, so that no record can forge another
    /// (invariant J9).
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        let mut object = Object::begin(out)?;
        self.write_members(&mut object)?;
        object.end()
    }

    /// Writes the members of the record into an object that a sink began, for example after its sequence number.
    ///
    /// # Errors
    /// Those of the object's writer.
    pub fn write_members(&self, object: &mut Object<'_>) -> fmt::Result {
        let Self { kind, at, caller, .. } = self;
        object.number("v", VERSION)?;
        object.text("kind", kind.as_str())?;
        object.display("at", &at.wall)?;
        object.text("request_id", caller.request_id)?;
        object.optional("parent", caller.parent)?;
        if caller.depth > 0 {
            object.number("depth", caller.depth.into())?;
        }
        object.optional("tenant", caller.tenant)?;
        object.optional("principal", caller.known_principal())?;
        object.text("channel", caller.channel)?;
        object.strings("scopes", caller.scopes.iter())?;
        object.optional("session", caller.session)?;
        object.optional("ip", caller.ip)?;
        object.text("mode", caller.mode.as_str())?;
        object.optional("signer", caller.signature.map(|signature| signature.signer))?;
        object.text("tool", self.tool)?;
        self.digest(object, "tool_digest", self.definition)?;
        self.digest(object, "args_digest", self.arguments)?;
        self.digest(object, "policy", self.policy)?;
        if let Some(args) = self.args {
            object.raw("args", |out| write!(out, "{}", self.redaction.args(args, self.fields)))?;
            if args.clamps().next().is_some() {
                object.raw("clamped", |out| write_clamped(args, self.fields, out))?;
            }
        }
        object.text("station", self.station.as_str())?;
        object.text("end", self.end)?;
        object.optional("code", self.code.map(Code::as_str))?;
        object.optional("told", self.told.map(Code::as_str))?;
        object.text("effect", self.effect.as_str())?;
        object.optional("check", self.check)?;
        if let Some(rule) = self.rule {
            object.integer("rule", rule)?;
        }
        self.digest(object, "ticket", self.ticket)?;
        if let Some(by) = self.confirmed_by {
            object.text(
                "confirmed_by",
                match by {
                    By::Approver if self.granted => "grant",
                    By::Caller => "self",
                    By::Approver => "approver",
                },
            )?;
        }
        self.digest(object, "grant", self.grant.copied())?;
        if let Some(task) = self.task {
            object.display("task", &task)?;
        }
        object.optional("operation", self.operation)?;
        if let Some(attempt) = self.attempt {
            object.number("attempt", attempt.into())?;
        }
        object.optional("consent", self.consent.map(Consented::as_str))?;
        object.optional("provenance", self.consent.and_then(Consented::provenance))?;
        if self.unknown_channel {
            object.boolean("unknown_channel", true)?;
        }
        if let Some(detail) = self.redacted_detail() {
            let mut empty = true;
            fmt::write(&mut Probe(&mut empty), format_args!("{detail}"))?;
            if !empty {
                object.display("detail", &detail)?;
            }
        }
        if let Some(lease_ms) = self.lease_ms {
            object.number("lease_ms", lease_ms)?;
        }
        if !self.kind.comes_first() {
            object.number("took_us", self.took_ns / 1_000)?;
        }
        Ok(())
    }

    #[expect(clippy::unused_self, reason = "reads as one of the record's members")]
    fn digest(&self, object: &mut Object<'_>, name: &str, digest: Option<Digest>) -> fmt::Result {
        match digest {
            Some(digest) => object.display(name, &digest),
            None => Ok(()),
        }
    }
}

/// The arguments, if they were read.
fn read_args<C: Context>(ctx: &C) -> Option<Args<'_>> {
    ctx.facts().was_read.then(|| checked_args(ctx))
}

fn fields_of<T: Tool>(tool: Option<&T>) -> &[FieldRule<'_>] {
    tool.map_or(&[], |tool| tool.spec().fields)
}

/// The consent that policy found, found again: it is a matter of the call alone, as it was when it was received. Most calls bring none.
#[cfg_attr(not(callgate_small), inline)]
fn consented<'a, C: Context, T: Tool>(ctx: &'a C, tool: Option<&'a T>) -> Option<Consented<'a>> {
    let brings = with_caller(ctx, |caller| caller.signature.is_some() || !caller.grants.is_empty());
    if brings { found_consent(ctx, tool?) } else { None }
}

#[cold]
#[inline(never)]
fn found_consent<'a, C: Context, T: Tool>(ctx: &'a C, tool: &'a T) -> Option<Consented<'a>> {
    let facts = ctx.facts();
    let subject = Subject {
        spec: tool.spec(),
        definition: tool.definition(),
        args: read_args(ctx)?,
        arguments: facts.arguments,
        now: facts.started.wall,
        caller: copied_caller(ctx),
    };
    Some(match policy::consent(&subject)? {
        policy::Consent::Signature(_) => Consented::Signature,
        policy::Consent::Grant { grant, .. } => Consented::Grant { provenance: grant.provenance },
    })
}

/// What somebody else said of a call. It may repeat what the arguments hold in secret.
fn foreign<'a, C: Context, T: Tool>(ctx: &'a C, tool: Option<&'a T>, text: &'a str) -> Detail<'a> {
    let secrets = read_args(ctx).map_or(Secrets::NONE, |args| Secrets::of(args, fields_of(tool)));
    Detail::Foreign(ctx.settings().redaction.text(text, secrets))
}

/// Writes the clamps of `args` as a list of `{"field","from","to"}` (invariant K3).
pub(crate) fn write_clamped(args: Args<'_>, fields: &[FieldRule<'_>], out: &mut dyn fmt::Write) -> fmt::Result {
    out.write_str("[")?;
    let mut separator = "";
    let mut result = Ok(());
    clamp::changes(args, fields, &mut |change| {
        let mut write = || {
            out.write_str(separator)?;
            separator = ",";
            let mut object = Object::begin(out)?;
            object.display("field", change.field)?;
            object.display("from", &change.from)?;
            object.display("to", &change.to)?;
            object.end()
        };
        if result.is_ok() {
            result = write();
        }
    });
    result?;
    out.write_str("]")
}

struct Probe<'a>(&'a mut bool);

impl fmt::Write for Probe<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        *self.0 &= text.is_empty();
        Ok(())
    }
}

impl fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("kind", &self.kind)
            .field("request_id", &self.caller.request_id)
            .field("tool", &self.tool)
            .field("station", &self.station)
            .field("end", &self.end)
            .field("code", &self.code)
            .field("effect", &self.effect)
            .finish_non_exhaustive()
    }
}
