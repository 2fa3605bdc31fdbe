//! The world that a vector describes: tools with scripted bodies, and everything that a gate is set to.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How long a tool may take where a vector says nothing else, in milliseconds.
pub const DEFAULT_TIMEOUT_MS: u64 = 30_000;
/// How long a confirmation can be redeemed where a vector says nothing else, in milliseconds.
pub const DEFAULT_TTL_MS: u64 = 60_000;
/// The scope that an approver needs where a tool names none.
pub const DEFAULT_APPROVER_SCOPE: &str = "approve";

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A gate and everything around it. What is not said is absent: no rule, no quota, no interceptor, no channel but those listed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// The tools. Their names are unique.
    pub tools: Vec<Tool>,
    /// The channels that are known. Every other one is untrusted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub channels: Vec<Channel>,
    /// The rules of the policy, in no particular order (invariant P1).
    #[serde(default, skip_serializing_if = "is_default")]
    pub rules: Vec<Rule>,
    /// What each combination of tenant, principal, channel and tool may spend; nothing is limited without it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub quota: Option<Quota>,
    /// How many refused calls each combination of tenant, principal and channel may make (invariant R3).
    #[serde(default, skip_serializing_if = "is_default")]
    pub attempts: Option<Quota>,
    /// The interceptors, in the order in which they are asked.
    #[serde(default, skip_serializing_if = "is_default")]
    pub interceptors: Vec<Interceptor>,
    /// Somebody who listens to what happens, and has no say in it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub listener: Option<Listener>,
    /// Whether approvers can be reached.
    #[serde(default, skip_serializing_if = "is_default")]
    pub approvers: bool,
    /// How long a confirmation can be redeemed, in milliseconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ttl_ms: Option<u64>,
    /// Where operations are kept; calls of one are refused without it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub journal: Option<Journal>,
}

/// A journal of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    /// The most bytes of JSON text of a result that is kept. Larger ones are delivered, and not kept.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max_result: Option<u32>,
}

impl World {
    /// How long a confirmation can be redeemed, in milliseconds.
    #[must_use]
    pub fn ttl_ms(&self) -> u64 {
        self.ttl_ms.unwrap_or(DEFAULT_TTL_MS)
    }
}

/// A tool with a scripted body.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// The version that it declares. Another version is another definition (invariant G4).
    #[serde(default, skip_serializing_if = "is_default")]
    pub version: Option<String>,
    /// The schema of its arguments: JSON Schema, in the subset that `PROTOCOL.md` lists. Without one any object fits.
    #[serde(default, skip_serializing_if = "is_default")]
    pub schema: Option<Value>,
    /// Bounds into which arguments are brought after they were checked.
    #[serde(default, skip_serializing_if = "is_default")]
    pub clamps: Vec<Clamp>,
    /// Arguments whose values are secrets: their names, or ways of names into objects, such as `user/password` (`*` stands for
    /// every item and member).
    #[serde(default, skip_serializing_if = "is_default")]
    pub secrets: Vec<String>,
    /// A caller has to hold one of these; with none, no scope is asked for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scopes: Vec<String>,
    /// Whether a call can change something.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mutating: bool,
    /// Who confirms a call before it runs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub confirm: Confirm,
    /// The scope that an approver needs; `approve` where it is not said.
    #[serde(default, skip_serializing_if = "is_default")]
    pub approver_scope: Option<String>,
    /// How long one call may take, in milliseconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timeout_ms: Option<u64>,
    /// The schema of its result, in the same subset.
    #[serde(default, skip_serializing_if = "is_default")]
    pub output_schema: Option<Value>,
    /// The most bytes of JSON text that its result may have.
    #[serde(default, skip_serializing_if = "is_default")]
    pub output_cap: Option<u32>,
    /// What it does when it is run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub body: Body,
}

impl Tool {
    /// How long one call may take, in milliseconds.
    #[must_use]
    pub fn timeout_ms(&self) -> u64 {
        self.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS)
    }

    /// The scope that an approver needs.
    #[must_use]
    pub fn approver_scope(&self) -> &str {
        self.approver_scope.as_deref().unwrap_or(DEFAULT_APPROVER_SCOPE)
    }
}

/// A bound on one argument: on the value of a number, or on the length of a text. Values of other types are left alone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clamp {
    /// The name of the argument.
    pub field: String,
    /// The least value.
    #[serde(default, skip_serializing_if = "is_default")]
    pub min: Option<i64>,
    /// The greatest value.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max: Option<i64>,
    /// The most characters of a text.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max_length: Option<u32>,
}

/// Who confirms a call of a tool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "these three are all that the papers know")]
pub enum Confirm {
    /// Nobody.
    #[default]
    Nobody,
    /// The same caller repeats the call with the token that it was given.
    Caller,
    /// Another principal approves.
    Approver,
}

/// What a body does. It counts one effect as soon as it is started, whatever comes of it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(clippy::exhaustive_enums, reason = "a version of the format has exactly these")]
pub enum Body {
    /// Returns its arguments.
    #[default]
    Echo,
    /// Returns this.
    Return(Value),
    /// Fails with this text, which is not for the caller.
    Fail(String),
    /// Fails with this text, and is known to have done nothing.
    Refuse(String),
    /// Panics (throws, crashes) with this text.
    Panic(String),
    /// Takes this many milliseconds; stops at its deadline, if that comes first, and returns its arguments otherwise.
    Hang(u64),
}

/// What holds on one channel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// Refuses callers without a principal. Holds unless a vector says otherwise.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub require_auth: bool,
    /// Refuses mutating tools, unless an allow rule overrides it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub block_mutating: bool,
    /// Allows only what an allow rule permits.
    #[serde(default, skip_serializing_if = "is_default")]
    pub require_rule: bool,
    /// Asks for a confirmation of every mutating call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub confirm_mutating: bool,
    /// Every confirmation that is asked for on this channel needs an approver.
    #[serde(default, skip_serializing_if = "is_default")]
    pub confirm_by_approver: bool,
}

const fn yes() -> bool {
    true
}

impl Channel {
    /// A channel that asks for a principal and nothing else.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            require_auth: true,
            block_mutating: false,
            require_rule: false,
            confirm_mutating: false,
            confirm_by_approver: false,
        }
    }

    /// A channel that nobody registered: a principal is needed, and nothing that changes anything passes.
    #[must_use]
    pub fn unknown() -> Self {
        Self { block_mutating: true, ..Self::new("") }
    }
}

/// A rule of the policy. What is not said is not asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Names the rule; unique.
    pub id: i64,
    /// What it does.
    pub effect: RuleEffect,
    /// Calls of this tool; with one `*` at the end, of all tools whose names start so.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tool: Option<String>,
    /// Calls of this principal.
    #[serde(default, skip_serializing_if = "is_default")]
    pub principal: Option<String>,
    /// Calls through this channel.
    #[serde(default, skip_serializing_if = "is_default")]
    pub channel: Option<String>,
    /// Calls with such an argument. To a deny an argument that is there and is no number counts as one, too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub at_least: Option<AtLeast>,
    /// The caller must hold one of these for an allow to permit anything.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scopes: Option<Vec<String>>,
    /// An allow also permits mutating tools on a known channel that blocks them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub overrides_block: bool,
}

/// A condition on an argument.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtLeast {
    /// The name of the argument.
    pub field: String,
    /// The least number that fits.
    pub value: i64,
}

/// What a rule does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a rule permits or forbids")]
pub enum RuleEffect {
    /// Permits.
    Allow,
    /// Forbids, whatever else permits.
    Deny,
}

/// So many units in a window, all at once if need be; they come back evenly.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Units.
    pub limit: u32,
    /// The window, in milliseconds; a multiple of the limit, so that no implementation has to round.
    pub window_ms: u64,
}

/// An interceptor, and what it says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interceptor {
    /// Its name in transcripts.
    pub name: String,
    /// It says something about calls of this tool alone, and lets all others pass.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tool: Option<String>,
    /// What it says.
    pub says: Saying,
}

/// What an interceptor says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(clippy::exhaustive_enums, reason = "a version of the format has exactly these")]
pub enum Saying {
    /// Nothing: the call goes on.
    Continue,
    /// No.
    Veto,
    /// This, in the tool's place.
    Answer(Value),
    /// It fails.
    Fail,
    /// It panics (throws, crashes).
    Panic,
    /// Nothing, after more time than it has.
    Hang,
}

/// What a listener does when it is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a version of the format has exactly these")]
pub enum Listener {
    /// It panics (throws, crashes).
    Panic,
    /// It listens, and what it is told is shown.
    Listen,
}

/// Who calls, as a transport authenticated them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caller {
    /// Where the call comes from.
    pub channel: String,
    /// Who it is; absent: nobody is known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub principal: Option<String>,
    /// What they may do; `*` stands for everything.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scopes: Vec<String>,
    /// Whose gate it is, where one serves several.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tenant: Option<String>,
    /// The session or conversation.
    #[serde(default, skip_serializing_if = "is_default")]
    pub session: Option<String>,
}

impl Caller {
    /// Whether the caller holds the scope, or the wildcard.
    #[must_use]
    pub fn holds(&self, scope: &str) -> bool {
        self.scopes.iter().any(|held| held == "*" || held == scope)
    }
}
