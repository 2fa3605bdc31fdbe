//! Who may call what: channels, consent, scopes, requirements and rules, decided over borrowed values.
//!
//! A [`PolicyGate`] judges a [`Subject`]: the caller, the tool's description and its digest, the clamped arguments and the
//! time, and nothing else (invariant P4). It checks in this order, and the first refusal ends it:
//!
//! 1. `require_auth`: the channel asks for a known principal and there is none.
//! 2. `consent`: the channel takes no confirmation from the caller itself, but a signature or a grant that names the call, and
//!    there is none.
//! 3. `scopes`: the tool asks for one of its scopes and the caller holds none of them.
//! 4. `requirements`: the tool needs something that the host does not say it provides.
//! 5. `rule`: a rule denies, or permits only with a scope that the caller does not hold, or the channel allows only what a rule
//!    permits and none does.
//! 6. `block_mutating` (on a channel that nobody registered: `unknown_channel`): the tool can change something.
//!
//! Forbids win, whatever permits there are and in whatever order they stand (invariant P1). An error is a denial (invariant
//! F1), and nothing widens because a set is empty (invariant F2).
//!
//! Looking up a rule may wait, so it is not a callback: [`PolicyGate::before_rules`] does steps 1 to 4 and says whether a
//! rule is needed, [`RulePending::with_rule`] does the rest. Where rules are at hand, [`PolicyGate::decide_with`] does both.
//!
//! ```
//! use callgate_core::policy::{ChannelPolicy, ChannelTable, Effect, PolicyGate, RuleDef, RuleSet};
//!
//! const CHANNELS: &[ChannelPolicy<'_>] = &[ChannelPolicy::new("api").blocking_mutating()];
//! const RULES: &[RuleDef] = &[
//!     RuleDef::deny(1).for_tools("fs.*").described("no files over the wire"),
//!     RuleDef::allow(2).for_tools("db.write").needing("db:admin").overriding_block(),
//! ];
//! let gate = PolicyGate::new(ChannelTable::over_defaults(CHANNELS));
//! let rules = RuleSet::new(RULES);
//! assert!(rules.check().is_ok() && gate.channels().check().is_ok());
//! ```

mod argument;
mod channel;
mod consent;
mod denial;
mod gate;
mod rule;
mod ruleset;
mod subject;

pub use argument::{ArgCheck, ArgTest, ArgValue};
pub use channel::{Channel, ChannelError, ChannelPolicy, ChannelTable};
pub use consent::{
    By, Consent, ConsentBy, ConsentGrant, GRANT_SKEW_MS, GrantedArgs, Uncovered, confirmation_asked,
    confirmation_required, consent,
};
pub use denial::{Check, Denial, Describe, Reason};
pub use gate::{Decision, Permission, PermittedBy, Phase, PolicyGate, RulePending};
pub use rule::{Effect, NoRules, Rule, RuleFault, RuleProvider};
pub use ruleset::{RuleDef, RuleError, RuleProblem, RuleSet};
pub use subject::Subject;
