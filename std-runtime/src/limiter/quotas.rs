//! Which quota a bucket has.

use std::collections::HashMap;

use callgate_core::limit::{LimitKey, Purpose, Quota};

/// What a quota is stated for: all that is named must fit, what is not named fits everything.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct QuotaScope {
    /// Calls through this channel.
    pub channel: Option<String>,
    /// Calls of this principal, in the tenant if one is named, in every tenant otherwise.
    pub principal: Option<String>,
    /// Calls of this tool.
    pub tool: Option<String>,
    /// Calls in this tenant.
    pub tenant: Option<String>,
}

impl QuotaScope {
    /// Every call; narrow it down.
    ///
    /// ```
    /// use callgate_std::limiter::QuotaScope;
    /// let scope = QuotaScope::all().on_channel("web").of_tool("fs.write");
    /// ```
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Only calls through `channel`.
    #[must_use]
    pub fn on_channel(mut self, channel: impl Into<String>) -> Self {
        self.channel = Some(channel.into());
        self
    }

    /// Only calls of `principal`.
    #[must_use]
    pub fn of_principal(mut self, principal: impl Into<String>) -> Self {
        self.principal = Some(principal.into());
        self
    }

    /// Only calls of `tool`.
    #[must_use]
    pub fn of_tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    /// Only calls in `tenant`.
    #[must_use]
    pub fn in_tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    fn parts(&self) -> [Option<&str>; PARTS] {
        [self.channel.as_deref(), self.principal.as_deref(), self.tool.as_deref(), self.tenant.as_deref()]
    }
}

const PARTS: usize = 4;

/// The quotas of a limiter: a default, overrides, and the quota of attempts.
///
/// A quota is a size, not a bucket: every combination of tenant, principal, channel and tool has a bucket of its own, and the
/// quota says how large that one is. Where several overrides fit, the one that names most parts wins; among those that name
/// equally many, the strictest (the lowest rate, then the smallest burst). The order in which they were stated never counts.
///
/// ```
/// use callgate_std::limiter::{Quota, QuotaScope, Quotas};
/// let quotas = Quotas::new(Quota::DEFAULT)
///     .with(QuotaScope::all().of_tool("fs.write"), Quota::per_window(50, 60_000)?)
///     .with(QuotaScope::all().of_tool("fs.write").of_principal("ci"), Quota::per_window(500, 60_000)?);
/// # Ok::<(), callgate_std::limiter::QuotaError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Quotas {
    default: Quota,
    attempts: Quota,
    overrides: HashMap<QuotaScope, Quota>,
}

impl Quotas {
    /// `default` for every bucket, and for attempts [`Quota::DEFAULT`].
    #[must_use]
    pub fn new(default: Quota) -> Self {
        Self { default, attempts: Quota::DEFAULT, overrides: HashMap::new() }
    }

    /// The same with `quota` for what `scope` says. Of two for the same scope the stricter one stays.
    #[must_use]
    pub fn with(mut self, scope: QuotaScope, quota: Quota) -> Self {
        self.overrides.entry(scope).and_modify(|stated| *stated = stricter(*stated, quota)).or_insert(quota);
        self
    }

    /// The same with this quota for refused calls. One bucket for each caller and channel, whatever the tools (invariant R3).
    #[must_use]
    pub const fn with_attempts(mut self, quota: Quota) -> Self {
        self.attempts = quota;
        self
    }

    /// The quota of the bucket behind `key`. Asked once for each bucket that is opened, not once for each call.
    #[must_use]
    pub fn of(&self, key: &LimitKey<'_>) -> Quota {
        if key.purpose == Purpose::Attempts {
            return self.attempts;
        }
        let key = [Some(key.channel), key.principal, key.tool, key.tenant];
        self.overrides
            .iter()
            .filter(|(scope, _)| {
                scope.parts().iter().zip(&key).all(|(named, part)| named.is_none_or(|named| Some(named) == *part))
            })
            .map(|(scope, quota)| (scope.parts().iter().flatten().count(), *quota))
            .reduce(|best, next| match best.0.cmp(&next.0) {
                std::cmp::Ordering::Less => next,
                std::cmp::Ordering::Equal => (best.0, stricter(best.1, next.1)),
                std::cmp::Ordering::Greater => best,
            })
            .map_or(self.default, |(_, quota)| quota)
    }
}

impl Default for Quotas {
    fn default() -> Self {
        Self::new(Quota::DEFAULT)
    }
}

/// The one with the lower rate; of equal rates the one with the smaller burst.
fn stricter(one: Quota, other: Quota) -> Quota {
    // Two rates are compared without rounding: limit over window, multiplied out.
    let rate = |quota: &Quota, window: u64| u128::from(quota.limit()) * u128::from(window);
    let key = |quota: &Quota, window| (rate(quota, window), quota.burst());
    if key(&other, one.window_ms()) < key(&one, other.window_ms()) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate_core::context::CallContext;
    use proptest::prelude::*;

    fn quota(limit: u32) -> Quota {
        Quota::per_window(limit, 60_000).expect("a usable quota")
    }

    fn key(channel: &'static str, principal: Option<&'static str>, tool: &'static str) -> LimitKey<'static> {
        let mut caller = CallContext::new(channel, "r");
        caller.principal = principal;
        LimitKey::of_call(&caller, tool)
    }

    #[test]
    fn the_override_that_names_most_wins_and_then_the_strictest() {
        let all = QuotaScope::all;
        let quotas = Quotas::new(quota(100))
            .with(all().on_channel("web"), quota(50))
            .with(all().of_tool("t"), quota(60))
            .with(all().of_principal("ci").of_tool("t"), quota(500))
            .with(all().of_principal("ci").of_tool("t").in_tenant("b"), quota(7));
        assert_eq!(quotas.of(&key("cli", None, "x")), quota(100));
        assert_eq!(quotas.of(&key("web", None, "x")), quota(50));
        assert_eq!(quotas.of(&key("web", None, "t")), quota(50), "equally specific: the stricter one");
        assert_eq!(quotas.of(&key("web", Some("ci"), "t")), quota(500), "more specific, though wider");
        let mut tenant = key("web", Some("ci"), "t");
        tenant.tenant = Some("b");
        assert_eq!(quotas.of(&tenant), quota(7));
        // A name is never a pattern, and the absence of a principal is no principal.
        assert_eq!(quotas.of(&key("webx", Some(""), "tt")), quota(100));
    }

    #[test]
    fn r3_attempts_have_their_own_quota() {
        let quotas = Quotas::new(quota(100)).with(QuotaScope::all(), quota(1)).with_attempts(quota(9));
        assert_eq!(quotas.of(&LimitKey::of_attempts(&CallContext::new("web", "r"))), quota(9));
        assert_eq!(quotas.of(&key("web", None, "t")), quota(1));
    }

    fn scopes() -> impl Strategy<Value = Vec<(QuotaScope, Quota)>> {
        let part =
            |a: &'static str, b: &'static str| prop::option::of(prop_oneof![Just(a.to_owned()), Just(b.to_owned())]);
        let scope = (part("web", "cli"), part("p", "q"), part("t", "u"))
            .prop_map(|(channel, principal, tool)| QuotaScope { channel, principal, tool, tenant: None });
        let quota = (1..9_u32, 1..9_u64).prop_map(|(limit, window)| Quota::per_window(limit, window).expect("usable"));
        prop::collection::vec((scope, quota), 0..8)
    }

    proptest! {
        #[test]
        fn the_order_of_overrides_never_counts(scopes in scopes()) {
            let build = |scopes: &mut dyn Iterator<Item = &(QuotaScope, Quota)>| {
                scopes.fold(Quotas::default(), |quotas, (scope, quota)| quotas.with(scope.clone(), *quota))
            };
            let (forward, backward) = (build(&mut scopes.iter()), build(&mut scopes.iter().rev()));
            for key in [key("web", Some("p"), "t"), key("cli", None, "u"), key("web", Some("q"), "u")] {
                let (one, other) = (forward.of(&key), backward.of(&key));
                // Two quotas of the same strictness may differ in how they are written, 2 in 2 s or 1 in 1 s.
                prop_assert_eq!(u64::from(one.limit()) * other.window_ms(), u64::from(other.limit()) * one.window_ms());
                prop_assert_eq!(one.burst(), other.burst());
            }
        }
    }
}
