//! Observers: who is told what became of calls. They see, and change nothing (invariant E4).
//!
//! Every call that reaches its tool is told of twice (three times, if it goes on in the background), every other call once:
//!
//! | event | when |
//! |---|---|
//! | `tool.executing` | the tool is about to start: every gate is passed and the intent is recorded |
//! | `tool.executed` | the tool returned a result, or an interceptor answered in its place ([`Event::cache_served`]) |
//! | `tool.failed` | the tool started and did not succeed: a failure, a panic, a timeout, a broken result, a cancellation |
//! | `tool.asked` | the call waits for a confirmation; nothing ran |
//! | `tool.accepted` | the tool was started and goes on in the background; `tool.executed` or `tool.failed` follows when it is over |
//! | `tool.planned` | the call was only to be planned; nothing ran |
//! | `tool.refused` | any other end before the tool started: [`Event::end`] and [`Event::code`] say which |

use std::fmt;

use callgate_core::audit::{Kind, Record};
use callgate_core::code::{Code, Effect, Station};
use callgate_core::context::CallContext;
use callgate_core::policy::Subject;
use callgate_core::redact::Redaction;
use callgate_core::time::Now;

use crate::audit::shown::{ArgsOf, DetailOf};
use crate::contain::contain;

/// What an event is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// The tool is about to start.
    Executing,
    /// There is a result.
    Executed,
    /// The tool started and did not succeed.
    Failed,
    /// The call waits for a confirmation.
    Asked,
    /// The tool was started and goes on in the background; `Executed` or `Failed` follows.
    Accepted,
    /// The call was only to be planned.
    Planned,
    /// The call ended before its tool started.
    Refused,
}

impl EventKind {
    /// All of them.
    pub const ALL: &'static [Self] =
        &[Self::Executing, Self::Executed, Self::Failed, Self::Asked, Self::Accepted, Self::Planned, Self::Refused];

    /// The event's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Executing => "tool.executing",
            Self::Executed => "tool.executed",
            Self::Failed => "tool.failed",
            Self::Asked => "tool.asked",
            Self::Accepted => "tool.accepted",
            Self::Planned => "tool.planned",
            Self::Refused => "tool.refused",
        }
    }

    fn of(record: &Record<'_>) -> Self {
        match (record.kind, record.code, record.end) {
            (Kind::Intent, ..) => Self::Executing,
            (_, _, "asked") => Self::Asked,
            (_, _, "accepted") => Self::Accepted,
            (_, _, "planned") => Self::Planned,
            (_, None, _) => Self::Executed,
            _ if record.effect != Effect::None || record.station >= Station::Execute => Self::Failed,
            _ => Self::Refused,
        }
    }
}

/// Something that happened to a call. Shows its arguments redacted or not at all (invariant L1); texts are made only when they
/// are displayed.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    /// What it is about.
    pub kind: EventKind,
    /// When it happened.
    pub at: Now,
    /// Who called.
    pub caller: CallContext<'a>,
    /// The name that was called. Of a call that was refused it can be any text.
    pub tool: &'a str,
    /// How the call ended, in a word; `executing` when it has not.
    pub end: &'static str,
    /// Where it ended; [`Station::Execute`] when it has not.
    pub station: Station,
    /// Why it did not succeed.
    pub code: Option<Code>,
    /// What it did to the world; [`Effect::Unknown`] while it runs.
    pub effect: Effect,
    /// How long the call took, in nanoseconds; 0 while it runs.
    pub took_ns: u64,
    /// Whether an interceptor answered and the tool did not run.
    pub cache_served: bool,
    args: Option<&'a dyn fmt::Display>,
    detail: Option<&'a dyn fmt::Display>,
}

impl<'a> Event<'a> {
    /// The event's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.kind.as_str()
    }

    /// The clamped arguments as JSON, redacted; `None` where they were never read.
    #[must_use]
    pub const fn args(&self) -> Option<&'a dyn fmt::Display> {
        self.args
    }

    /// The reason of an end, redacted; `None` where there is none.
    #[must_use]
    pub const fn detail(&self) -> Option<&'a dyn fmt::Display> {
        self.detail
    }
}

impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("name", &self.name())
            .field("request_id", &self.caller.request_id)
            .field("tool", &self.tool)
            .field("end", &self.end)
            .field("effect", &self.effect)
            .finish_non_exhaustive()
    }
}

/// Who is told. Called on the thread of the call, which waits: hand over what takes long.
pub trait Observer: Send + Sync {
    /// Takes notice of one event.
    fn notify(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Send + Sync> Observer for F {
    fn notify(&self, event: &Event<'_>) {
        self(event);
    }
}

/// A pattern that fits no event.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no event is named {pattern:?}; events are tool.executing, tool.executed, tool.failed, tool.asked, tool.accepted, \
     tool.planned and tool.refused, and a * stands for one part of a name, as in tool.*"
)]
pub struct UnknownEvent {
    /// The pattern.
    pub pattern: String,
}

/// Observers, in the order in which they are told: by priority, the highest first; of equal priority those of one event
/// before those of a pattern; then as they were added.
///
/// One that panics is reported through `tracing` and skipped; the others are still told, and the call goes on.
///
/// ```
/// use callgate_std::observer::{Event, Observers};
/// let observers = Observers::new()
///     .on("tool.executed", |event: &Event<'_>| println!("{} took {} ns", event.tool, event.took_ns))?
///     .on("tool.*", |event: &Event<'_>| println!("{event:?}"))?;
/// # Ok::<(), callgate_std::observer::UnknownEvent>(())
/// ```
#[derive(Default)]
pub struct Observers {
    subscriptions: Vec<Subscription>,
}

struct Subscription {
    pattern: String,
    priority: i32,
    observer: Box<dyn Observer>,
}

impl Observers {
    /// Nobody.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, and `observer` for the events that `pattern` names: `tool.executed`, or with `*` for exactly one part
    /// between dots. Every other character stands for itself.
    ///
    /// # Errors
    /// No event has such a name.
    pub fn on(self, pattern: &str, observer: impl Observer + 'static) -> Result<Self, UnknownEvent> {
        self.on_with_priority(pattern, 0, observer)
    }

    /// The same with a priority other than 0. A higher one is told earlier.
    ///
    /// # Errors
    /// No event has such a name.
    pub fn on_with_priority(
        mut self,
        pattern: &str,
        priority: i32,
        observer: impl Observer + 'static,
    ) -> Result<Self, UnknownEvent> {
        if !EventKind::ALL.iter().any(|kind| fits(pattern, kind.as_str())) {
            return Err(UnknownEvent { pattern: pattern.to_owned() });
        }
        let key = |priority: i32, pattern: &str| (std::cmp::Reverse(priority), pattern.contains('*'));
        let own = key(priority, pattern);
        let at = self.subscriptions.partition_point(|other| key(other.priority, &other.pattern) <= own);
        let subscription = Subscription { pattern: pattern.to_owned(), priority, observer: Box::new(observer) };
        self.subscriptions.insert(at, subscription);
        Ok(self)
    }

    /// Whether nobody is told of anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.subscriptions.is_empty()
    }

    /// Tells that the tool of `subject` is about to start.
    pub fn executing(&self, subject: &Subject<'_>, redaction: Redaction<'_>, now: Now) {
        if self.is_empty() {
            return;
        }
        let args = redaction.args(subject.args, subject.spec.fields);
        self.notify(&Event {
            kind: EventKind::Executing,
            at: now,
            caller: subject.caller,
            tool: subject.spec.name,
            end: "executing",
            station: Station::Execute,
            code: None,
            effect: Effect::Unknown,
            took_ns: 0,
            cache_served: false,
            args: Some(&args),
            detail: None,
        });
    }

    /// Tells how the call of a terminal `record` ended.
    pub fn ended(&self, record: &Record<'_>) {
        if self.is_empty() {
            return;
        }
        let (args, detail) = (ArgsOf(record), DetailOf(record));
        self.notify(&Event {
            kind: EventKind::of(record),
            at: record.at,
            caller: record.caller,
            tool: record.tool,
            end: record.end,
            station: record.station,
            code: record.code,
            effect: record.effect,
            took_ns: record.took_ns,
            cache_served: record.end == "answered",
            args: record.redacted_args().is_some().then_some(&args),
            detail: record.redacted_detail().is_some().then_some(&detail),
        });
    }

    fn notify(&self, event: &Event<'_>) {
        let name = event.name();
        for Subscription { pattern, observer, .. } in &self.subscriptions {
            if !fits(pattern, name) {
                continue;
            }
            // The panic's text is not reported: whose secrets it holds is unknown (invariant L2).
            if contain(|| observer.notify(event)).is_err() {
                let request_id = event.caller.request_id;
                tracing::error!(event = name, pattern, request_id, "an observer panicked; the call is not concerned");
            }
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.subscriptions.iter().map(|one| (&one.pattern, one.priority))).finish()
    }
}

/// Whether `pattern` fits the whole of `name`: part by part, `*` for any one part.
fn fits(pattern: &str, name: &str) -> bool {
    let (mut parts, mut names) = (pattern.split('.'), name.split('.'));
    loop {
        match (parts.next(), names.next()) {
            (None, None) => return true,
            (Some(part), Some(name)) if part == "*" || part == name => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_exactly_one_part_and_nothing_else_is_special() {
        for (pattern, name, expected) in [
            ("tool.*", "tool.executed", true),
            ("*.executed", "tool.executed", true),
            ("*.*", "tool.executed", true),
            ("tool.executed", "tool.executed", true),
            ("*", "tool.executed", false),
            ("tool.*", "tool", false),
            ("tool.*", "tool.a.b", false),
            ("tool", "tool.executed", false),
            ("Tool.*", "tool.executed", false),
            ("tool.exec*", "tool.executed", false),
            ("tool.+", "tool.executed", false),
            ("t..l.*", "tool.executed", false),
            ("", "tool.executed", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn f7_a_pattern_that_fits_no_event_is_an_error() {
        let ignore = |_: &Event<'_>| {};
        assert!(Observers::new().on("tool.exectued", ignore).is_err());
        assert!(Observers::new().on("*", ignore).is_err());
        assert!(Observers::new().on("tool.*", ignore).is_ok());
    }
}
