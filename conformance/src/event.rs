//! What a subject is told, and what it shows: the messages of the protocol.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::world::{Caller, Rule, Tool};

/// What happens in a world.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(clippy::exhaustive_enums, reason = "a version of the protocol has exactly these")]
pub enum Event {
    /// Somebody calls a tool.
    Call(Call),
    /// Many calls are handed in at once.
    Batch(Batch),
    /// An approver decides.
    Decide(Decide),
    /// An approver asks what it is to decide on.
    Show(Show),
    /// Somebody asks what the pipeline of a tool looks like.
    Inspect(Inspect),
    /// Time passes: this many milliseconds.
    Advance(u64),
    /// The clock on the wall is set back: this many milliseconds. What passes goes on passing.
    Rewind(u64),
    /// A rule is added to the policy in force.
    Rule(Rule),
    /// A tool is replaced by this one of the same name.
    Define(Box<Tool>),
    /// Something goes wrong, the next time that the gate comes to this point.
    Fault(Fault),
    /// The gate's process is killed and started again. What its stores and its log keep is there again.
    Kill(Kill),
}

/// One call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Names the call; unique in a script.
    pub id: String,
    /// The name of the tool, byte for byte.
    pub tool: String,
    /// The arguments as JSON text, exactly as they were sent.
    pub arguments: String,
    /// Who calls.
    pub caller: Caller,
    /// Execute or plan.
    #[serde(default)]
    pub mode: Mode,
    /// The confirmation token that the call brings beside its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The id of the operation that the call is one of, which travels beside its arguments, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
}

/// Many calls, handed in at once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// The calls.
    pub calls: Vec<Call>,
    /// How many may be under way at once. With 1 they are made in their order.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub at_once: u32,
}

/// One at a time.
pub(crate) const fn one() -> u32 {
    1
}

/// Whether it is one at a time.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
pub(crate) const fn is_one(number: &u32) -> bool {
    *number == 1
}

/// What the caller wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the papers know these two")]
pub enum Mode {
    /// The effect.
    #[default]
    Execute,
    /// Only to be told what would happen.
    Plan,
}

/// An approver's decision.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decide {
    /// The `data.approval_id` of the outcome that asked.
    pub approval: String,
    /// Yes or no.
    pub verdict: Verdict,
    /// Who decides.
    pub approver: Caller,
}

/// What an approver is shown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// The `data.approval_id` of the outcome that asked.
    pub approval: String,
    /// Who looks.
    pub approver: Caller,
}

/// A question about a pipeline; nothing is called.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inspect {
    /// The name of the tool.
    pub tool: String,
    /// For whom.
    pub caller: Caller,
    /// Of an execution or of a plan.
    #[serde(default)]
    pub mode: Mode,
}

/// Yes or no.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "there is no third answer")]
pub enum Verdict {
    /// Yes.
    Approve,
    /// No.
    Deny,
}

/// A fault that is planted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Where.
    pub at: Point,
    /// How it goes wrong.
    pub how: How,
}

/// The end of a gate's process, as `SIGKILL` brings it: nothing of it gets another word in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kill {
    /// Not now, but the next time that the gate comes to this point. The call that came there has no outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Point>,
    /// What is done at the point is done before the gate is killed; else it is not done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub done: bool,
}

/// How something goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a version of the format has exactly these")]
pub enum How {
    /// It is not done, and the answer says so.
    Error,
    /// It is done, and the answer says that it was not.
    Lost,
    /// Whoever is asked panics (throws, crashes), and it is not done.
    Panic,
}

/// A point at which a gate can be watched: it asks somebody, or does something that others see.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a version of the protocol has exactly these")]
pub enum Point {
    /// The policy decides.
    Authorize,
    /// The limiter takes a charge.
    Charge,
    /// The store of confirmations issues a ticket.
    Issue,
    /// The store of confirmations is asked to claim a ticket.
    Redeem,
    /// An interceptor is asked.
    Intercept,
    /// The intent of a mutating call is recorded.
    Intent,
    /// The body of the tool starts.
    Execute,
    /// The terminal record is written.
    Record,
}

impl Point {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Authorize => "authorize",
            Self::Charge => "charge",
            Self::Issue => "issue",
            Self::Redeem => "redeem",
            Self::Intercept => "intercept",
            Self::Intent => "intent",
            Self::Execute => "execute",
            Self::Record => "record",
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One line of a transcript: the gate came to this point.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// Where.
    pub at: Point,
    /// The arguments that were seen there: at `authorize`, `intercept` and `execute`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// How many units: at `charge`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u32>,
    /// The interceptor's name: at `intercept`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl Mark {
    /// A mark that tells nothing but its point.
    #[must_use]
    pub const fn at(at: Point) -> Self {
        Self { at, args: None, cost: None, by: None }
    }

    /// A mark with the arguments that were seen.
    #[must_use]
    pub const fn with(at: Point, args: Value) -> Self {
        Self { at, args: Some(args), cost: None, by: None }
    }
}

/// What a subject shows of one event.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// What the caller got: for a call that the gate was not killed in, and only then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What the callers of a batch got, in the order of its calls: for a batch, and only then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcomes: Vec<Outcome>,
    /// Whether the gate was killed in this call, which then has no outcome.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub killed: bool,
    /// Whether the decision was taken: for a decision, and only then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<bool>,
    /// What an approver is shown: for that question, and if there is something for it to see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// The pipeline, explained: for that question, and if the caller knows such a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inspection: Option<Value>,
    /// What a listener was told, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<Value>,
    /// The points that the gate came to, in order.
    #[serde(default)]
    pub marks: Vec<Mark>,
    /// How many bodies were started.
    #[serde(default)]
    pub effects: u32,
    /// The audit records that were written, in order. One that could not be written is none.
    #[serde(default)]
    pub records: Vec<Value>,
}

/// What the caller gets.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Whether the call succeeded. A question is a success.
    pub success: bool,
    /// The result.
    #[serde(default)]
    pub data: Value,
    /// A message for people.
    #[serde(default)]
    pub message: Option<String>,
    /// Why it failed, for people.
    #[serde(default)]
    pub error: Option<String>,
    /// The rest: `code`, `effect`, `type` and so on.
    #[serde(default)]
    pub meta: serde_json::Map<String, Value>,
}

impl Outcome {
    /// A text of `meta`.
    #[must_use]
    pub fn meta_text(&self, name: &str) -> Option<&str> {
        self.meta.get(name).and_then(Value::as_str)
    }

    /// A text of `data`.
    #[must_use]
    pub fn data_text(&self, name: &str) -> Option<&str> {
        self.data.get(name).and_then(Value::as_str)
    }
}
