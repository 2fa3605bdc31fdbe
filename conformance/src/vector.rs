//! The format of vectors: files of JSON, grouped by what they are about.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{Fault, Kill, Mode, Point, is_one, one};
use crate::world::{Caller, Rule, Tool, World};

/// The version of the format. A reader refuses versions that it does not know (invariant N6).
pub const FORMAT: u32 = 1;

/// Who calls where a step does not say.
pub const DEFAULT_CALLER: &str = "agent";

/// A file of vectors.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VectorFile {
    /// Where the schema of the file is, for editors.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The version of the format.
    pub format: u32,
    /// What the vectors of the file are about.
    pub about: String,
    /// The vectors.
    pub vectors: Vec<Vector>,
}

/// One vector: a world, a script, and what must be seen.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vector {
    /// Names the vector in reports and baselines; unique, and never used for another one.
    pub id: String,
    /// Why it must be so, in a sentence or two.
    pub reason: String,
    /// The numbers of the invariants that it holds.
    pub rules: Vec<RuleNumber>,
    /// How binding it is.
    pub level: Level,
    /// To which set it belongs.
    pub profile: Profile,
    /// The world.
    pub world: World,
    /// Who acts, by the names that the script uses.
    pub callers: BTreeMap<String, Caller>,
    /// Whether a gate takes this world upon itself. Where it must not, there is no script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<Admission>,
    /// What happens.
    pub script: Vec<Step>,
    /// Texts that must be seen nowhere: in no outcome and no record (invariant L2). Transcripts are the harness's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never: Vec<String>,
    /// Texts that no caller must be told: they are in no outcome (invariant L4).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never_told: Vec<String>,
}

/// The number of an invariant, such as `A5`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RuleNumber {
    group: char,
    number: u8,
}

impl RuleNumber {
    /// The letter of its group.
    #[must_use]
    pub const fn group(&self) -> char {
        self.group
    }
}

impl fmt::Display for RuleNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.group, self.number)
    }
}

/// A text that is not the number of an invariant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not the number of an invariant: write a capital letter and a number from 1 to 99, such as A5")]
pub struct NotARule(String);

impl TryFrom<String> for RuleNumber {
    type Error = NotARule;

    fn try_from(text: String) -> Result<Self, NotARule> {
        let mut rest = text.chars();
        let group = rest.next().filter(char::is_ascii_uppercase);
        let digits = rest.as_str();
        let number = digits.parse().ok().filter(|number| (1..=99).contains(number) && !digits.starts_with(['0', '+']));
        match (group, number) {
            (Some(group), Some(number)) => Ok(Self { group, number }),
            _ => Err(NotARule(text)),
        }
    }
}

impl From<RuleNumber> for String {
    fn from(rule: RuleNumber) -> Self {
        rule.to_string()
    }
}

/// How binding a vector is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the levels of RFC 2119")]
pub enum Level {
    /// A subject that fails it is not a gate of this profile.
    Must,
    /// A subject needs a good reason to fail it.
    Should,
    /// A subject may do otherwise; the vector says what is usual.
    May,
}

/// A set of vectors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a version of the format has exactly these")]
pub enum Profile {
    /// What any gate must hold: the order of its stages, and that it fails closed.
    Ordering,
    /// What the documents of the systems before promise.
    Seed,
    /// What those systems leak: the numbered invariants.
    Hardened,
}

impl Profile {
    /// The name in files and on command lines.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ordering => "ordering",
            Self::Seed => "seed",
            Self::Hardened => "hardened",
        }
    }
}

impl Level {
    /// The name in files and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::May => "may",
        }
    }
}

/// Whether a gate takes a world upon itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a version of the format has exactly these")]
pub enum Admission {
    /// It refuses to start: something in this world cannot be guarded, or means something else than it says.
    Refused,
}

/// One step of a script, and what must be seen of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "RawStep", into = "RawStep")]
pub struct Step {
    /// What happens.
    pub act: Act,
    /// What must be seen.
    pub expect: Expect,
}

/// What happens in a step.
#[derive(Clone, PartialEq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a version of the format has exactly these")]
pub enum Act {
    /// A call.
    Call(CallStep),
    /// A call with the token that an earlier call was given.
    Redeem(RedeemStep),
    /// Many calls at once.
    Batch(BatchStep),
    /// An approver says yes to what an earlier call asked.
    Approve(DecideStep),
    /// An approver says no to it.
    Deny(DecideStep),
    /// An approver looks at it.
    Show(DecideStep),
    /// Somebody asks what the pipeline of a tool looks like.
    Inspect(InspectStep),
    /// Scopes are taken from a caller, from here on.
    Revoke(RevokeStep),
    /// So many milliseconds pass.
    Advance(u64),
    /// The clock on the wall is set back by so many milliseconds.
    Rewind(u64),
    /// A rule is added to the policy in force.
    Rule(Rule),
    /// A tool is replaced by this one of the same name.
    Define(Box<Tool>),
    /// A fault is planted for the next time that the gate comes to its point.
    Fault(Fault),
    /// The gate's process is killed and started again, now or at a point of the next call that comes there.
    Kill(Kill),
}

/// A call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallStep {
    /// The name by which later steps speak of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool.
    pub tool: String,
    /// The arguments; `{}` where neither these nor the text is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The arguments as the text that is sent, where its bytes matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_text: Option<String>,
    /// The text is filled up with blanks to so many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pad_to: Option<u32>,
    /// Who calls; `agent` where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// Execute or plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// A token that nobody was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The id of the operation that it is one of. A redemption is of that of the call that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
}

/// A call that brings a token.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedeemStep {
    /// The call that asked. What is not said here is as it was there.
    pub ask: String,
    /// The name by which later steps speak of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Another tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Other arguments, sent beside the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// Another caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// Another mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The token is not brought as it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub altered: Option<Alteration>,
}

/// How a token is altered on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a version of the format has exactly these")]
pub enum Alteration {
    /// Its last character is missing.
    Shorter,
    /// A `0` is added.
    Longer,
    /// Its last character is another one.
    Other,
    /// There is a blank before it.
    Spaced,
    /// It is there twice.
    Doubled,
    /// It says to be of another version: `v2.` stands before it.
    Versioned,
}

impl Alteration {
    /// The token as it is brought.
    #[must_use]
    pub fn of(self, token: &str) -> String {
        let mut rest = token.chars();
        let last = rest.next_back();
        match self {
            Self::Shorter => rest.as_str().to_owned(),
            Self::Longer => format!("{token}0"),
            Self::Other => format!("{}{}", rest.as_str(), if last == Some('0') { '1' } else { '0' }),
            Self::Spaced => format!(" {token}"),
            Self::Doubled => token.repeat(2),
            Self::Versioned => format!("v2.{token}"),
        }
    }
}

/// Many calls at once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchStep {
    /// The calls.
    pub calls: Vec<BatchedStep>,
    /// How many may be under way at once; 1 where it is not said.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub at_once: u32,
}

/// One call of a batch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(clippy::exhaustive_enums, reason = "a version of the format has exactly these")]
pub enum BatchedStep {
    /// A call.
    Call(CallStep),
    /// A call with the token that an earlier step was given.
    Redeem(RedeemStep),
}

/// A question about a pipeline.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InspectStep {
    /// The tool.
    pub tool: String,
    /// For whom; `agent` where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// Of an execution or of a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

/// A decision on what an earlier call asked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecideStep {
    /// The call that asked.
    pub ask: String,
    /// Who decides.
    pub by: String,
}

/// Scopes that are taken from a caller.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokeStep {
    /// From whom.
    pub caller: String,
    /// Which.
    pub scopes: Vec<String>,
}

/// What must be seen of a step. What is not said is not looked at.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// What the caller gets. Said of every call but those that the gate is killed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ExpectedOutcome>,
    /// The gate is killed in this call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub killed: bool,
    /// What the callers of a batch get. Said of every batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<Vec<ExpectedOutcome>>,
    /// Which call of the batch gets which of them is left open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_order: bool,
    /// How many bodies are started. Said of every call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<u32>,
    /// Whether the decision is taken. Said of every decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<bool>,
    /// What the approver is shown. Said whenever one looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<ExpectedText>,
    /// What the pipeline looks like: at least these members; `null` where there is nothing to be told. Said of every inspection.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "there")]
    pub inspection: Option<Value>,
    /// What listeners are told: these, in this order, and no others, each with at least these members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Vec<Value>>,
    /// The points that the gate comes to: these, in this order, and no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<Vec<ExpectedMark>>,
    /// The records that are written: these, in this order, and no others. Members that are not named are not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<Vec<Value>>,
}

/// What a caller must get.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedOutcome {
    /// Whether the call succeeds.
    pub success: bool,
    /// `meta.code`; absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// `meta.effect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// `meta.type`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Texts that must be in `error`: names that the world gave, no prose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub says: Vec<String>,
    /// `data`: at least these members; `"$any"` fits everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// `meta`: at least these members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// A value that is there, be it `null`.
fn there<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// What must be seen of a text.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedText {
    /// There is none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nothing: bool,
    /// These are in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<String>,
    /// These are not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
    /// Nothing in it moves a cursor, turns the direction of writing, or cannot be seen (invariant D5).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub harmless: bool,
}

/// A point that a gate must come to: its name, or its name and what must be seen there.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(clippy::exhaustive_enums, reason = "a version of the format has exactly these")]
pub enum ExpectedMark {
    /// The point alone.
    Point(Point),
    /// The point with what is seen there.
    Mark(crate::event::Mark),
}

impl ExpectedMark {
    /// Where it is.
    #[must_use]
    pub const fn at(&self) -> Point {
        match self {
            Self::Point(at) => *at,
            Self::Mark(mark) => mark.at,
        }
    }
}

/// A step as it stands in a file: exactly one of its acts is there.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<CallStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redeem: Option<RedeemStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch: Option<BatchStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approve: Option<DecideStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deny: Option<DecideStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    show: Option<DecideStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inspect: Option<InspectStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revoke: Option<RevokeStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    advance: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rewind: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule: Option<Rule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    define: Option<Box<Tool>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fault: Option<Fault>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kill: Option<Kill>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expect: Option<Expect>,
}

impl TryFrom<RawStep> for Step {
    type Error = &'static str;

    fn try_from(raw: RawStep) -> Result<Self, &'static str> {
        let expect = raw.expect;
        let acts = [
            raw.call.map(Act::Call),
            raw.redeem.map(Act::Redeem),
            raw.batch.map(Act::Batch),
            raw.approve.map(Act::Approve),
            raw.deny.map(Act::Deny),
            raw.show.map(Act::Show),
            raw.inspect.map(Act::Inspect),
            raw.revoke.map(Act::Revoke),
            raw.advance.map(Act::Advance),
            raw.rewind.map(Act::Rewind),
            raw.rule.map(Act::Rule),
            raw.define.map(Act::Define),
            raw.fault.map(Act::Fault),
            raw.kill.map(Act::Kill),
        ];
        let mut acts = acts.into_iter().flatten();
        match (acts.next(), acts.next()) {
            (Some(act), None) => Ok(Self { act, expect: expect.unwrap_or_default() }),
            _ => Err(
                "a step holds exactly one act: call, redeem, batch, approve, deny, show, inspect, revoke, advance, rewind, rule, \
                 define, fault or kill",
            ),
        }
    }
}

impl From<Step> for RawStep {
    fn from(step: Step) -> Self {
        let mut raw = Self { expect: (step.expect != Expect::default()).then_some(step.expect), ..Self::default() };
        match step.act {
            Act::Call(call) => raw.call = Some(call),
            Act::Redeem(redeem) => raw.redeem = Some(redeem),
            Act::Batch(batch) => raw.batch = Some(batch),
            Act::Approve(decide) => raw.approve = Some(decide),
            Act::Deny(decide) => raw.deny = Some(decide),
            Act::Show(look) => raw.show = Some(look),
            Act::Inspect(inspect) => raw.inspect = Some(inspect),
            Act::Revoke(revoke) => raw.revoke = Some(revoke),
            Act::Advance(ms) => raw.advance = Some(ms),
            Act::Rewind(ms) => raw.rewind = Some(ms),
            Act::Rule(rule) => raw.rule = Some(rule),
            Act::Define(tool) => raw.define = Some(tool),
            Act::Fault(fault) => raw.fault = Some(fault),
            Act::Kill(kill) => raw.kill = Some(kill),
        }
        raw
    }
}
