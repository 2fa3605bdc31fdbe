//! Budgets: what was spent, and when it has come back.

use std::collections::HashMap;

use super::policy::principal;
use crate::world::{Caller, Quota};

/// Whose budget: tenant, principal, channel and tool; neither scopes nor session.
pub(crate) type Account = (Option<String>, Option<String>, String, Option<String>);

pub(crate) fn account(caller: &Caller, tool: Option<&str>) -> Account {
    (caller.tenant.clone(), principal(caller), caller.channel.clone(), tool.map(str::to_owned))
}

/// When everybody will have got back what they spent, in milliseconds since the world began.
#[derive(Debug, Default)]
pub(crate) struct Budgets(HashMap<Account, u64>);

impl Budgets {
    /// Whether the cost can be spent; spends it if it is to be taken. Units come back evenly (invariants R2, R6).
    pub(crate) fn spend(&mut self, now: u64, quota: Quota, whose: Account, cost: u32, take: bool) -> bool {
        let paid_back = self.0.entry(whose).or_insert(0);
        let until = now.max(*paid_back).saturating_add(unit(quota).saturating_mul(cost.into()));
        let free = until <= now.saturating_add(unit(quota).saturating_mul(quota.limit.into()));
        if free && take {
            *paid_back = until;
        }
        free
    }

    /// Gives units back, but none that time has given back already since then.
    pub(super) fn refund(&mut self, now: u64, quota: Quota, whose: Account, cost: u32, then: u64) {
        let outstanding = unit(quota).saturating_mul(cost.into()).saturating_sub(now.saturating_sub(then));
        let given = unit(quota).saturating_mul(cost.saturating_sub(1).into()).min(outstanding);
        self.0.entry(whose).and_modify(|until| *until = until.saturating_sub(given));
    }
}

/// How long one unit takes to come back.
fn unit(quota: Quota) -> u64 {
    quota.window_ms / u64::from(quota.limit.max(1))
}
