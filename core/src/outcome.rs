//! What the caller gets: one shape on every front-end.
//!
//! `{"success","data","message","error","meta"}`, in this order and always all five. `meta` always starts with `tool,
//! took_ms, request_id, channel, principal, effect`; a failure adds `code`.

use core::fmt::{self, Write};

use crate::args::Args;
use crate::audit::write_clamped;
use crate::call::{Closed, DEFAULT_APPROVER_SCOPE, End, TaskId, checked_args};
use crate::code::{Code, Effect, Station};
use crate::confirm::Refusal;
use crate::context::CallContext;
use crate::json::{Object, write};
use crate::limit::retry_after_seconds;
use crate::name::check_operation;
use crate::policy::By;
use crate::redact::Secrets;
use crate::request::Context;
use crate::tool::{ConfirmBy, FieldRule, Tool, ToolFailure, ToolOutput, ToolSpec, Violation};

/// The most bytes of an action's summary; what is left out is said, with its length and the arguments' digest.
pub const MAX_SUMMARY: usize = 2_048;

/// The members of `meta` that only the gate writes.
pub const RESERVED_META: &[&str] = &[
    "tool",
    "took_ms",
    "request_id",
    "channel",
    "principal",
    "effect",
    "code",
    "retry_after_seconds",
    "type",
    "requires_confirmation",
    "blocked_by_rule",
    "suggestion",
    "clamped",
    "confirmed_by",
    "cache_served",
    "timeout_exceeded",
    "execution_time",
    "timeout_limit",
    "audit_pending",
    "task_id",
    "operation",
    "attempt",
    "replayed",
    "journal_pending",
];

/// Whether only the gate writes the member `name` of `meta`. A tool names its kind of result with `type`, unless the gate
/// needs that member itself.
#[must_use]
pub fn is_reserved_meta(name: &str) -> bool {
    RESERVED_META.contains(&name)
}

/// The outcome of a call whose record was handed to the audit sink.
pub struct Outcome<C: Context, T: Tool> {
    closed: Closed<C, T>,
    unrecorded: bool,
}

/// What kind of outcome it is: `meta.type` on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OutcomeType {
    /// A result.
    Generic,
    /// A question: nothing has run yet.
    Confirmation,
    /// The tool goes on in the background.
    Accepted,
    /// Vetoed by an interceptor.
    Blocked,
    /// Any other failure.
    Error,
}

impl<C: Context, T: Tool> Outcome<C, T> {
    #[cfg_attr(not(callgate_small), inline)]
    pub(crate) const fn new(closed: Closed<C, T>, unrecorded: bool) -> Self {
        Self { closed, unrecorded }
    }

    /// Whether the call succeeded. A question is a success in which nothing has run: see [`Outcome::asks`].
    pub fn success(&self) -> bool {
        self.code().is_none()
    }

    /// Why the call did not succeed.
    pub fn code(&self) -> Option<Code> {
        match self.closed.throttled {
            Some(_) => Some(Code::RateLimited),
            None => self.end().code(),
        }
    }

    /// What is known of the effect: of a call of an operation, of that of the operation, whichever call of it had it.
    pub fn effect(&self) -> Effect {
        self.end().effect()
    }

    /// Where the call ended.
    pub const fn station(&self) -> Station {
        self.closed.ended.station
    }

    /// How the call ended.
    pub const fn end(&self) -> &End<T::Output, T::Failure, C::Text> {
        &self.closed.ended.end
    }

    /// The tool's result, when the caller gets one.
    pub const fn output(&self) -> Option<&T::Output> {
        match self.end() {
            End::Done(output) | End::Answered(output) | End::Replayed(output) => Some(output),
            _ => None,
        }
    }

    /// The tool's result by value.
    pub fn into_output(self) -> Option<T::Output> {
        match self.closed.ended.end {
            End::Done(output) | End::Answered(output) | End::Replayed(output) => Some(output),
            _ => None,
        }
    }

    /// Whether the outcome is a question: nothing has run, and the caller is to come back with the token.
    pub const fn asks(&self) -> bool {
        matches!(self.end(), End::Asked { .. })
    }

    /// Whether the result is that of an earlier call of the same operation: this one ran nothing.
    pub const fn replayed(&self) -> bool {
        matches!(self.end(), End::Replayed(_))
    }

    /// Whether the journal could not be told how the call ended: another call of the operation will find it in doubt.
    pub fn unkept(&self) -> bool {
        self.context().facts().unkept
    }

    /// Whether the terminal record could not be written (invariant J8).
    pub const fn unrecorded(&self) -> bool {
        self.unrecorded
    }

    /// Nanoseconds until the same call may be granted, for a limited one.
    pub const fn retry_after_ns(&self) -> Option<u64> {
        match (&self.closed.throttled, self.end()) {
            (Some(ns), _) | (None, End::Limited { retry_after_ns: ns }) => *ns,
            _ => None,
        }
    }

    /// How long the call took, in nanoseconds.
    pub const fn took_ns(&self) -> u64 {
        self.closed.took_ns
    }

    /// The run that goes on in the background, or that this outcome ends.
    pub fn task(&self) -> Option<TaskId> {
        match self.end() {
            End::Accepted(task) => Some(*task),
            _ => self.closed.ended.ctx.facts().task,
        }
    }

    /// What the call carried.
    pub const fn context(&self) -> &C {
        &self.closed.ended.ctx
    }

    /// The tool, if the name was resolved.
    pub const fn tool(&self) -> Option<&T> {
        self.closed.ended.tool.as_ref()
    }

    /// The kind of the outcome.
    pub fn kind(&self) -> OutcomeType {
        match self.end() {
            End::Asked { .. } => OutcomeType::Confirmation,
            End::Accepted(_) => OutcomeType::Accepted,
            End::Vetoed(_) | End::InterceptorFailed(_) => OutcomeType::Blocked,
            _ if self.success() => OutcomeType::Generic,
            _ => OutcomeType::Error,
        }
    }

    /// The error's text for the caller, or nothing for a success. Made anew each time it is shown.
    pub fn error(&self) -> Option<impl fmt::Display> {
        self.code().map(|_| ErrorText(self))
    }

    /// The message for people, or nothing.
    pub fn message(&self) -> Option<impl fmt::Display> {
        match self.end() {
            End::Asked { .. } => Some(Message::Summary(self)),
            End::Done(output) | End::Answered(output) | End::Replayed(output) => output.message().map(Message::Text),
            _ => None,
        }
    }

    /// Writes the outcome as JSON. The bytes depend on the call and the answers alone (invariant N1).
    ///
    /// # Errors
    /// Those of `out`, and of the tool's own output.
    pub fn write_json(&self, out: &mut dyn Write) -> fmt::Result {
        let mut object = Object::begin(out)?;
        object.boolean("success", self.success())?;
        object.raw("data", |out| self.write_data(out))?;
        match self.message() {
            Some(message) => object.display("message", &message)?,
            None => object.null("message")?,
        }
        match self.error() {
            Some(error) => object.display("error", &error)?,
            None => object.null("error")?,
        }
        object.raw("meta", |out| self.write_meta(out))?;
        object.end()
    }

    /// The outcome as JSON.
    ///
    /// # Errors
    /// The tool's own output could not be written.
    #[cfg(feature = "alloc")]
    pub fn to_json(&self) -> Result<alloc::string::String, fmt::Error> {
        let mut text = alloc::string::String::new();
        self.write_json(&mut text).map(|()| text)
    }

    /// Writes the `data` member alone.
    ///
    /// # Errors
    /// Those of `out`, and of the tool's own output.
    pub fn write_data(&self, out: &mut dyn Write) -> fmt::Result {
        match self.end() {
            End::Done(output) | End::Answered(output) | End::Replayed(output) => output.write_data(out),
            End::Planned => self.write_plan(out),
            End::Asked { token, expires_at, by } => {
                let mut object = Object::begin(out)?;
                object.boolean("requires_confirmation", true)?;
                object.display("confirm_token", token)?;
                object.display("action_summary", &Message::Summary(self))?;
                object.display("expires_at", expires_at)?;
                if *by == By::Approver {
                    object.text("confirm_by", by.as_str())?;
                    object.text("approver_scope", self.approver_scope())?;
                    object.display("approval_id", &token.hash())?;
                }
                object.end()
            }
            End::Accepted(task) => {
                let mut object = Object::begin(out)?;
                object.text("status", "accepted")?;
                object.display("task_id", task)?;
                object.end()
            }
            _ => out.write_str("null"),
        }
    }

    fn approver_scope(&self) -> &str {
        match self.spec().map(|spec| spec.confirm) {
            Some(ConfirmBy::Approver { scope }) => scope,
            _ => DEFAULT_APPROVER_SCOPE,
        }
    }

    fn write_plan(&self, out: &mut dyn Write) -> fmt::Result {
        let Some(spec) = self.spec() else {
            return out.write_str("null");
        };
        let mut object = Object::begin(out)?;
        object.raw("plan", |out| {
            let mut plan = Object::begin(out)?;
            plan.text("tool", spec.name)?;
            plan.boolean("mutating", spec.mutating)?;
            plan.boolean("requires_confirmation", self.closed.ended.ctx.facts().confirm.is_some())?;
            plan.strings("scopes_required", spec.scopes.iter())?;
            plan.raw("timeout", |out| write_seconds(out, spec.timeout_ms))?;
            plan.raw("args", |out| {
                write!(out, "{}", self.context().settings().redaction.args(self.args(), spec.fields))
            })?;
            plan.end()
        })?;
        object.end()
    }

    /// Writes the `meta` member alone.
    ///
    /// # Errors
    /// Those of `out`, and of the tool's own output.
    pub fn write_meta(&self, out: &mut dyn Write) -> fmt::Result {
        let caller = self.caller();
        let facts = self.closed.ended.ctx.facts();
        let mut meta = Object::begin(out)?;
        meta.text("tool", self.context().request().tool)?;
        meta.number("took_ms", self.closed.took_ns / 1_000_000)?;
        meta.text("request_id", caller.request_id)?;
        meta.text("channel", caller.channel)?;
        meta.nullable("principal", caller.known_principal())?;
        meta.text("effect", self.effect().as_str())?;
        if let Some(code) = self.code() {
            meta.text("code", code.as_str())?;
        }
        if let Some(ns) = self.retry_after_ns() {
            meta.number("retry_after_seconds", retry_after_seconds(ns))?;
        }
        match self.kind() {
            OutcomeType::Generic => {}
            OutcomeType::Confirmation => {
                meta.text("type", "confirmation")?;
                meta.boolean("requires_confirmation", true)?;
            }
            OutcomeType::Accepted => meta.text("type", "accepted")?,
            OutcomeType::Blocked => {
                meta.text("type", "blocked")?;
                meta.boolean("blocked_by_rule", true)?;
                meta.null("suggestion")?;
            }
            OutcomeType::Error => meta.text("type", "error")?,
        }
        if facts.clamped && self.spec().is_some() {
            meta.raw("clamped", |out| write_clamped(self.args(), self.fields(), out))?;
        }
        if facts.held.confirms() {
            meta.text(
                "confirmed_by",
                match facts.confirm {
                    Some(By::Approver) => "approver",
                    _ => "self",
                },
            )?;
        }
        if matches!(self.end(), End::Answered(_)) {
            meta.boolean("cache_served", true)?;
        }
        if let Some(operation) = self.context().operation().filter(|operation| check_operation(operation).is_ok()) {
            meta.text("operation", operation)?;
        }
        if let Some(attempt) = facts.attempt {
            meta.number("attempt", u64::from(attempt.get()))?;
        }
        if matches!(self.end(), End::Replayed(_)) {
            meta.boolean("replayed", true)?;
        }
        if facts.unkept {
            meta.boolean("journal_pending", true)?;
        }
        if let (Some(spent), Some(spec)) = (facts.spent_ns(), self.spec())
            && spent > spec.deadline_ms().saturating_mul(1_000_000)
        {
            meta.boolean("timeout_exceeded", true)?;
            meta.raw("execution_time", |out| write_seconds(out, spent / 1_000_000))?;
            meta.raw("timeout_limit", |out| write_seconds(out, spec.deadline_ms()))?;
        }
        if let Some(task) = facts.task {
            meta.display("task_id", &task)?;
        }
        if self.unrecorded {
            meta.boolean("audit_pending", true)?;
        }
        if let Some(output) = self.output() {
            output.write_meta(&mut meta)?;
        }
        meta.end()
    }

    fn caller(&self) -> CallContext<'_> {
        self.context().caller()
    }

    fn spec(&self) -> Option<&ToolSpec<'_>> {
        self.tool().map(Tool::spec)
    }

    fn fields(&self) -> &[FieldRule<'_>] {
        self.spec().map_or(&[], |spec| spec.fields)
    }

    fn args(&self) -> Args<'_> {
        checked_args(self.context())
    }
}

/// Seconds with milliseconds, as a JSON number without needless zeros.
fn write_seconds(out: &mut dyn Write, millis: u64) -> fmt::Result {
    let (seconds, rest) = (millis / 1_000, millis % 1_000);
    match rest {
        0 => write!(out, "{seconds}"),
        rest if rest % 100 == 0 => write!(out, "{seconds}.{}", rest / 100),
        rest if rest % 10 == 0 => write!(out, "{seconds}.{:02}", rest / 10),
        rest => write!(out, "{seconds}.{rest:03}"),
    }
}

enum Message<'a, C: Context, T: Tool> {
    Text(&'a str),
    Summary(&'a Outcome<C, T>),
}

impl<C: Context, T: Tool> fmt::Display for Message<'_, C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Summary(outcome) => {
                write!(f, "{}(", outcome.context().request().tool)?;
                let mut capped = Capped { out: f, room: MAX_SUMMARY, total: 0 };
                let redaction = outcome.context().settings().redaction;
                write!(capped, "{}", redaction.args(outcome.args(), outcome.fields()))?;
                let total = capped.total;
                if total > MAX_SUMMARY {
                    write!(f, " ... cut after {MAX_SUMMARY} of {total} bytes")?;
                    if let Some(digest) = outcome.closed.ended.ctx.facts().arguments {
                        write!(f, ", arguments digest {digest}")?;
                    }
                }
                f.write_str(")")
            }
        }
    }
}

/// Passes on as many bytes as there is room for, and counts them all.
struct Capped<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    room: usize,
    total: usize,
}

impl Write for Capped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.total = self.total.saturating_add(text.len());
        let mut end = text.len().min(self.room);
        while !text.is_char_boundary(end) {
            end = end.saturating_sub(1);
        }
        self.room = if end == text.len() { self.room.saturating_sub(end) } else { 0 };
        self.out.write_str(text.get(..end).unwrap_or_default())
    }
}

/// The text of a failure, for the caller: codes with safe details, never a value and never what a tool, a panic, a store or
/// an interceptor said unless it is marked as safe (invariant L4).
struct ErrorText<'a, C: Context, T: Tool>(&'a Outcome<C, T>);

impl<C: Context, T: Tool> fmt::Display for ErrorText<'_, C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = self.0;
        let tool = outcome.context().request().tool;
        if outcome.closed.throttled.is_some() {
            return f.write_str("Too many refused calls; try again later");
        }
        match outcome.end() {
            End::Planned
            | End::Asked { .. }
            | End::Replayed(_)
            | End::Answered(_)
            | End::Accepted(_)
            | End::Done(_) => Ok(()),
            End::BadContext(error) => write!(f, "The call's context is unusable: {error}"),
            End::TooDeep => f.write_str("Too many calls stand above this one"),
            End::Shutdown => f.write_str("The gate is shutting down and takes no more calls"),
            End::Overloaded => f.write_str("Too many calls are in flight; try again later"),
            End::Spent => f.write_str("The session has made all the calls that it may make"),
            End::NotFound => f.write_str("Tool not found: ").and_then(|()| write::escape(tool, f)),
            End::Hidden => f.write_str("Tool not available to this session: ").and_then(|()| write::escape(tool, f)),
            End::Malformed(error) => write!(f, "malformed_arguments: {error}"),
            End::Invalid => write_violations(&outcome.closed, f),
            End::Unclampable(error) => write!(f, "{error}"),
            End::NoRoom(error) => write!(f, "{error}"),
            End::Denied(denial) => match outcome.spec() {
                Some(spec) => write!(f, "{}", denial.describe(spec, &outcome.caller())),
                None => f.write_str("Denied"),
            },
            End::Limited { retry_after_ns: Some(ns) } => {
                write!(f, "Rate limit exceeded for tool '{tool}'; try again in {} s", retry_after_seconds(*ns))
            }
            End::Limited { retry_after_ns: None } => write!(f, "Tool '{tool}' costs more than the whole rate limit"),
            End::StoreFault(_) => f.write_str("A store of the gate did not answer, so the call was not run"),
            End::NoApprover => f.write_str("The call needs an approver and none can be reached"),
            End::Refused(Refusal::Undecided) => f.write_str("The approval has not been decided yet"),
            End::Refused(Refusal::Denied) => f.write_str("The approver denied the call"),
            End::Refused(_) => f.write_str("Invalid or expired confirmation token"),
            End::OperationRefused(refusal) => write!(f, "{refusal}"),
            End::Vetoed(_) | End::InterceptorFailed(_) => f.write_str("Tool execution vetoed by an interceptor"),
            End::AnswerInvalid(_) => f.write_str("An interceptor's answer does not fit the tool's output schema"),
            End::AuditUnavailable => f.write_str("The call could not be recorded, so it was not run"),
            End::Cancelled { started: false } => f.write_str("The call was cancelled before the tool started"),
            End::Cancelled { started: true } => {
                f.write_str("The call was cancelled; whether the tool took effect is not known")
            }
            End::Failed(failure) => match failure.public_text() {
                Some(text) => write!(f, "{}", outcome.context().settings().redaction.text(text, outcome.secrets())),
                None => write!(f, "Tool '{tool}' failed"),
            },
            End::Panicked(_) => write!(f, "Tool '{tool}' failed"),
            End::TimedOut => f.write_str("The tool did not finish in time; whether it took effect is not known"),
            End::OutputInvalid(_) => write!(f, "Tool '{tool}' ran, and its result does not fit its output schema"),
        }
    }
}

impl<C: Context, T: Tool> Outcome<C, T> {
    fn secrets(&self) -> Secrets<'_> {
        if self.closed.ended.ctx.facts().was_read { Secrets::of(self.args(), self.fields()) } else { Secrets::NONE }
    }
}

impl<C: Context, T: Tool> crate::audit::Describe for Closed<C, T> {
    fn describe(&self, out: &mut dyn Write) -> fmt::Result {
        match &self.ended.end {
            End::Denied(denial) => match &self.ended.tool {
                Some(tool) => write!(out, "{}", denial.describe(tool.spec(), &self.ended.ctx.caller())),
                None => Ok(()),
            },
            End::BadContext(error) => write!(out, "{error}"),
            End::Malformed(error) => write!(out, "{error}"),
            End::Unclampable(error) => write!(out, "{error}"),
            End::NoRoom(error) => write!(out, "{error}"),
            End::Invalid => write_violations(self, out),
            _ => Ok(()),
        }
    }
}

/// Asks the tool again what is wrong: the texts were never kept.
fn write_violations<C: Context, T: Tool>(closed: &Closed<C, T>, out: &mut dyn Write) -> fmt::Result {
    let mut result = Ok(());
    let mut separator = "";
    if let Some(tool) = &closed.ended.tool {
        tool.validate(checked_args(&closed.ended.ctx), &mut |violation: Violation<'_>| {
            if result.is_ok() {
                result = write!(out, "{separator}{violation}");
                separator = "; ";
            }
        });
    }
    result
}

impl<C: Context, T: Tool> fmt::Debug for Outcome<C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome")
            .field("tool", &self.context().request().tool)
            .field("code", &self.code())
            .field("effect", &self.effect())
            .field("station", &self.station())
            .finish_non_exhaustive()
    }
}
