//! Budgets: what was spent, and when it has come back.

use super::policy::principal;
use crate::world::{Caller, Quota};

/// What somebody has spent and not got back yet, in milliseconds until it is paid back.
#[derive(Clone, Debug)]
pub(super) struct Debt {
    caller: Caller,
    tool: Option<String>,
    until: u64,
}

/// What everybody has spent.
#[derive(Clone, Debug, Default)]
pub(super) struct Budgets(Vec<Debt>);

impl Budgets {
    /// Whether the cost can be spent; spends it if it is to be taken. Units come back evenly (invariants R2, R6).
    pub(super) fn spend(
        &mut self,
        now: u64,
        quota: Quota,
        caller: &Caller,
        tool: Option<&str>,
        cost: u32,
        take: bool,
    ) -> bool {
        let (cost, most) = (unit(quota).saturating_mul(cost.into()), unit(quota).saturating_mul(quota.limit.into()));
        let debt = self.debt(caller, tool);
        let owed = debt.until.saturating_sub(now);
        let free = owed.saturating_add(cost) <= most;
        if free && take {
            debt.until = now.saturating_add(owed).saturating_add(cost);
        }
        free
    }

    fn debt(&mut self, caller: &Caller, tool: Option<&str>) -> &mut Debt {
        // Tenant, principal, channel and tool; neither scopes nor session.
        let caller = Caller { scopes: Vec::new(), session: None, principal: principal(caller), ..caller.clone() };
        let tool = tool.map(str::to_owned);
        let at = self.0.iter().position(|debt| debt.caller == caller && debt.tool == tool);
        let at = at.unwrap_or_else(|| {
            self.0.push(Debt { caller, tool, until: 0 });
            self.0.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "it was found or pushed just now")]
        &mut self.0[at]
    }

    /// Gives units back, but none that time has given back already.
    pub(super) fn refund(&mut self, quota: Quota, caller: &Caller, tool: &str, units: u32, outstanding: u64) {
        let debt = self.debt(caller, Some(tool));
        debt.until = debt.until.saturating_sub(unit(quota).saturating_mul(units.into()).min(outstanding));
    }
}

/// How long one unit takes to come back.
pub(super) fn unit(quota: Quota) -> u64 {
    quota.window_ms / u64::from(quota.limit.max(1))
}
