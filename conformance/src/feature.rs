//! What a subject can do, and what a vector needs of it.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::event::Mode;
use crate::vector::{Act, BatchedStep, CallStep, RedeemStep, Vector};
use crate::world::{Body, Confirm, Listener, Tool};

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        /// Something that a gate may or may not have. A vector that needs what a subject lacks does not apply to it.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[expect(clippy::exhaustive_enums, reason = "a version of the protocol has exactly these")]
        pub enum Feature { $($(#[$doc])* $name,)+ }

        impl Feature {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

features! {
    /// Arguments are checked against a schema.
    Schema = "schema",
    /// Arguments are brought into bounds.
    Clamp = "clamp",
    /// Policy goes by channels other than the plain one that asks for a principal.
    Channels = "channels",
    /// Policy goes by rules.
    Rules = "rules",
    /// Rules can be added while the gate is up.
    RuleChange = "rule_change",
    /// Calls are limited.
    Quota = "quota",
    /// Refused calls are limited.
    Attempts = "attempts",
    /// Calls can be planned.
    Plan = "plan",
    /// Callers confirm with a token.
    Confirm = "confirm",
    /// Approvers decide.
    Approvals = "approvals",
    /// Interceptors have a say.
    Intercept = "intercept",
    /// Listeners are told.
    Listen = "listen",
    /// What listeners are told can be shown.
    Events = "events",
    /// Results are checked against a schema.
    OutputSchema = "output_schema",
    /// Results have a cap.
    OutputCap = "output_cap",
    /// Time can be moved, and tools have deadlines.
    Clock = "clock",
    /// The clock on the wall can be set back.
    WallClock = "wall_clock",
    /// Tools can be replaced while the gate is up.
    Define = "define",
    /// Callers have tenants.
    Tenants = "tenants",
    /// Callers have sessions.
    Sessions = "sessions",
    /// Secrets are kept out of records.
    Secrets = "secrets",
    /// Faults can be planted.
    Faults = "faults",
    /// Failures say what was wrong or missing, by the names that the world gave it.
    Reasons = "reasons",
    /// Many calls can be handed in at once.
    Batch = "batch",
    /// What an approver is shown can be asked for.
    Display = "display",
    /// A pipeline can be explained without a call.
    Inspect = "inspect",
    /// Worlds that cannot be guarded are refused.
    Admission = "admission",
    /// The gate can be killed between calls and started again.
    Kill = "kill",
    /// It can be killed in the middle of a call.
    KillWithin = "kill_within",
    /// Calls can be of operations, which take effect at most once.
    Operations = "operations",
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn of_tool(tool: &Tool, needs: &mut BTreeSet<Feature>) {
    let mut need = |feature, if_so: bool| {
        if if_so {
            needs.insert(feature);
        }
    };
    need(Feature::Schema, tool.schema.is_some());
    need(Feature::Clamp, !tool.clamps.is_empty());
    need(Feature::Secrets, !tool.secrets.is_empty());
    need(Feature::Confirm, tool.confirm == Confirm::Caller);
    need(Feature::Approvals, tool.confirm == Confirm::Approver);
    need(Feature::OutputSchema, tool.output_schema.is_some());
    need(Feature::OutputCap, tool.output_cap.is_some());
    need(Feature::Operations, matches!(tool.body, Body::Refuse(_)));
    need(Feature::Clock, tool.timeout_ms.is_some() || matches!(tool.body, Body::Hang(_)));
}

fn of_call(call: &CallStep, needs: &mut BTreeSet<Feature>) {
    needs.extend((call.mode == Some(Mode::Plan)).then_some(Feature::Plan));
    needs.extend(call.token.is_some().then_some(Feature::Confirm));
    needs.extend(call.operation.is_some().then_some(Feature::Operations));
}

fn of_redeem(redeem: &RedeemStep, needs: &mut BTreeSet<Feature>) {
    needs.extend((redeem.mode == Some(Mode::Plan)).then_some(Feature::Plan));
}

impl Vector {
    /// What a subject has to be able to do for this vector to apply to it: what its world and its script make use of.
    #[must_use]
    pub fn needs(&self) -> BTreeSet<Feature> {
        let mut needs = BTreeSet::new();
        let world = &self.world;
        for tool in &world.tools {
            of_tool(tool, &mut needs);
        }
        for step in &self.script {
            let mut outcomes = step.expect.outcome.iter().chain(step.expect.outcomes.iter().flatten());
            if outcomes.any(|outcome| !outcome.says.is_empty()) {
                needs.insert(Feature::Reasons);
            }
            let mut need = |feature| needs.extend([feature]);
            match &step.act {
                Act::Call(call) => of_call(call, &mut needs),
                Act::Redeem(redeem) => of_redeem(redeem, &mut needs),
                Act::Batch(batch) => {
                    need(Feature::Batch);
                    batch.calls.iter().for_each(|one| match one {
                        BatchedStep::Call(call) => of_call(call, &mut needs),
                        BatchedStep::Redeem(redeem) => of_redeem(redeem, &mut needs),
                    });
                }
                Act::Revoke(_) => {}
                Act::Approve(_) | Act::Deny(_) => need(Feature::Approvals),
                Act::Show(_) => need(Feature::Display),
                Act::Inspect(_) => need(Feature::Inspect),
                Act::Advance(_) => need(Feature::Clock),
                Act::Rewind(_) => need(Feature::WallClock),
                Act::Rule(_) => need(Feature::RuleChange),
                Act::Define(tool) => {
                    need(Feature::Define);
                    of_tool(tool, &mut needs);
                }
                Act::Fault(_) => need(Feature::Faults),
                Act::Kill(kill) => need(if kill.at.is_some() { Feature::KillWithin } else { Feature::Kill }),
            }
        }
        let plain = |channel: &crate::world::Channel| *channel == crate::world::Channel::new(&channel.name);
        let known = |name: &str| world.channels.iter().any(|channel| channel.name == name);
        let callers = || self.callers.values();
        let further = [
            (Feature::Channels, !world.channels.iter().all(plain) || !callers().all(|caller| known(&caller.channel))),
            (Feature::Confirm, world.channels.iter().any(|channel| channel.confirm_mutating)),
            (Feature::Approvals, world.channels.iter().any(|channel| channel.confirm_by_approver)),
            (Feature::Rules, !world.rules.is_empty()),
            (Feature::Quota, world.quota.is_some()),
            (Feature::Attempts, world.attempts.is_some()),
            (Feature::Intercept, !world.interceptors.is_empty()),
            (Feature::Listen, world.listener.is_some()),
            (Feature::Events, world.listener == Some(Listener::Listen)),
            (Feature::Admission, self.admission.is_some()),
            (Feature::Operations, world.journal.is_some()),
            (Feature::Tenants, callers().any(|caller| caller.tenant.is_some())),
            (Feature::Sessions, callers().any(|caller| caller.session.is_some())),
        ];
        needs.extend(further.into_iter().filter_map(|(feature, needed)| needed.then_some(feature)));
        needs
    }
}
