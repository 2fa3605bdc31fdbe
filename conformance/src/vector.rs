//! The format of vectors: files of JSON, grouped by what they are about.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{Fault, Kill, Mode, Point};
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
    /// An approver says yes to what an earlier call asked.
    Approve(DecideStep),
    /// An approver says no to it.
    Deny(DecideStep),
    /// Scopes are taken from a caller, from here on.
    Revoke(RevokeStep),
    /// So many milliseconds pass.
    Advance(u64),
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
    /// Who calls; `agent` where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// Execute or plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// A token that nobody was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
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
    /// How many bodies are started. Said of every call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<u32>,
    /// Whether the decision is taken. Said of every decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<bool>,
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
    /// `data`: at least these members; `"$any"` fits everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// `meta`: at least these members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
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
    approve: Option<DecideStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deny: Option<DecideStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revoke: Option<RevokeStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    advance: Option<u64>,
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
        let RawStep { call, redeem, approve, deny, revoke, advance, rule, define, fault, kill, expect } = raw;
        let acts = [
            call.map(Act::Call),
            redeem.map(Act::Redeem),
            approve.map(Act::Approve),
            deny.map(Act::Deny),
            revoke.map(Act::Revoke),
            advance.map(Act::Advance),
            rule.map(Act::Rule),
            define.map(Act::Define),
            fault.map(Act::Fault),
            kill.map(Act::Kill),
        ];
        let mut acts = acts.into_iter().flatten();
        match (acts.next(), acts.next()) {
            (Some(act), None) => Ok(Self { act, expect: expect.unwrap_or_default() }),
            _ => Err(
                "a step holds exactly one act: call, redeem, approve, deny, revoke, advance, rule, define, fault or kill",
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
            Act::Approve(decide) => raw.approve = Some(decide),
            Act::Deny(decide) => raw.deny = Some(decide),
            Act::Revoke(revoke) => raw.revoke = Some(revoke),
            Act::Advance(ms) => raw.advance = Some(ms),
            Act::Rule(rule) => raw.rule = Some(rule),
            Act::Define(tool) => raw.define = Some(tool),
            Act::Fault(fault) => raw.fault = Some(fault),
            Act::Kill(kill) => raw.kill = Some(kill),
        }
        raw
    }
}
