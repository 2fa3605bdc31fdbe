//! `[quotas]`: how much may be called in how long.

use std::collections::BTreeMap;
use std::time::Duration;

use callgate_core::limit::Quota;
use callgate_core::name::{check_label, check_principal, check_tool_name};
use callgate_core::tool::MUTATING_COST;

use super::decode::{Entry, Key, Keys, Table};
use super::names::Names;

const LIMIT: u32 = 1_000_000;
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The quotas of a configuration. Each channel, principal and tool together has a budget of its own; the quota says how
/// large it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quotas {
    /// Where no other quota applies.
    pub default: Quota,
    /// For calls that are refused before they run: their own budget (invariant R3).
    pub attempts: Quota,
    /// By channel.
    pub channels: BTreeMap<String, Quota>,
    /// By principal.
    pub principals: BTreeMap<String, Quota>,
    /// By tool.
    pub tools: BTreeMap<String, Quota>,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            default: Quota::DEFAULT,
            attempts: Quota::DEFAULT,
            channels: BTreeMap::new(),
            principals: BTreeMap::new(),
            tools: BTreeMap::new(),
        }
    }
}

impl Quotas {
    /// The quota for calls of `tool` by `principal` through `channel`: the strictest of those stated for one of the three,
    /// else the default.
    #[must_use]
    pub fn quota_for(&self, channel: &str, principal: Option<&str>, tool: &str) -> Quota {
        let stated = [
            self.channels.get(channel),
            principal.and_then(|principal| self.principals.get(principal)),
            self.tools.get(tool),
        ];
        let strictest = |left: Quota, right: Quota| {
            if is_stricter(&right, &left) { right } else { left }
        };
        stated.into_iter().flatten().copied().reduce(strictest).unwrap_or(self.default)
    }
}

/// Whether `quota` admits less than `other`: a lower rate, or an equal one with a smaller burst.
fn is_stricter(quota: &Quota, other: &Quota) -> bool {
    let (own, others) = (
        u128::from(quota.limit()).saturating_mul(u128::from(other.window_ms())),
        u128::from(other.limit()).saturating_mul(u128::from(quota.window_ms())),
    );
    own < others || (own == others && quota.burst() < other.burst())
}

pub(super) static KEYS: Keys = Keys {
    table: "quotas",
    keys: &[
        LIMIT_KEY,
        WINDOW_KEY,
        BURST_KEY,
        Key { name: "attempts", takes: "a table", example: "{ limit = 100, window = \"60s\" }" },
        Key { name: "channels", takes: "a table of quotas by channel", example: "{ web = { limit = 20 } }" },
        Key { name: "principals", takes: "a table of quotas by principal", example: "{ alice = { limit = 20 } }" },
        Key { name: "tools", takes: "a table of quotas by tool", example: "{ \"fs.write\" = { limit = 20 } }" },
    ],
};

pub(super) static ATTEMPTS: Keys = quota_keys("quotas.attempts");
pub(super) static BY_CHANNEL: Keys = quota_keys("quotas.channels.NAME");
pub(super) static BY_PRINCIPAL: Keys = quota_keys("quotas.principals.NAME");
pub(super) static BY_TOOL: Keys = quota_keys("quotas.tools.NAME");

const LIMIT_KEY: Key = Key { name: "limit", takes: "a whole number", example: "100" };
const WINDOW_KEY: Key = Key { name: "window", takes: "a duration in quotes, such as \"60s\"", example: "\"60s\"" };
const BURST_KEY: Key = Key { name: "burst", takes: "a whole number", example: "20" };

const fn quota_keys(table: &'static str) -> Keys {
    const QUOTA: &[Key] = &[LIMIT_KEY, WINDOW_KEY, BURST_KEY];
    Keys { table, keys: QUOTA }
}

pub(super) fn read(quotas: &Entry<'_>, names: &Names) -> Quotas {
    let Some(table) = quotas.table(&KEYS) else {
        return Quotas::default();
    };
    let default = quota(&table, Quota::DEFAULT);
    note_unreachable(&table, default);
    let by = |name: &'static str, keys: &'static Keys, known: &dyn Fn(&str, &Entry<'_>) -> bool| {
        let mut quotas = BTreeMap::new();
        for (name, entry) in table.get(name).iter().flat_map(Entry::named) {
            let known = known(name, &entry);
            if let Some(table) = entry.table(keys)
                && known
            {
                let quota = quota(&table, default);
                note_unreachable(&table, quota);
                quotas.insert(name.to_owned(), quota);
            }
        }
        quotas
    };
    Quotas {
        default,
        attempts: table
            .get("attempts")
            .and_then(|entry| entry.table(&ATTEMPTS))
            .map_or(Quota::DEFAULT, |table| quota(&table, Quota::DEFAULT)),
        channels: by("channels", &BY_CHANNEL, &|name, entry| {
            entry.check_key(name, check_label, "write the channel's name")
                && names.known_channel(name, |message, help| entry.report_key(message, Some(help)))
        }),
        principals: by("principals", &BY_PRINCIPAL, &|name, entry| {
            entry.check_key(name, check_principal, "a principal is 1 to 256 printable ASCII characters")
        }),
        tools: by("tools", &BY_TOOL, &|name, entry| {
            entry.check_key(name, check_tool_name, "write the tool's name, in quotes where it has a dot: \"fs.write\"")
                && names.known_tool(name, |message, help| entry.report_key(message, help))
        }),
    }
}

/// A cost above the burst never passes, which is easily meant otherwise: "3 a minute" of a tool that costs 5.
fn note_unreachable(table: &Table<'_>, quota: Quota) {
    if quota.burst() < MUTATING_COST {
        table.note(format!(
            "a call that changes something costs {MUTATING_COST}, unless its tool states a cost, and never passes a burst of {}",
            quota.burst()
        ));
    }
}

/// The quota that `table` states; what it leaves out is as in `inherited`.
fn quota(table: &Table<'_>, inherited: Quota) -> Quota {
    let natural = |name| table.get(name).and_then(|entry: Entry<'_>| entry.natural(1..=LIMIT));
    let stated = natural("limit");
    let limit = stated.unwrap_or(inherited.limit());
    let window = table.get("window").and_then(|window| window.duration(SHORTEST..=LONGEST));
    let window_ms = window.and_then(|window| u64::try_from(window.as_millis()).ok()).unwrap_or(inherited.window_ms());
    // A new limit takes its burst along; only a burst that is written down is another.
    let burst = natural("burst").or(stated).unwrap_or(inherited.burst());
    if let Some(entry) = table.get("burst")
        && burst > limit
    {
        entry.report_with(
            format!("`{}` is {burst}, more than the limit of {limit}", entry.path()),
            Some("burst says how much of the limit may be spent at once".into()),
        );
    }
    Quota::new(limit, window_ms, burst).unwrap_or_else(|error| {
        table.report(error.to_string(), None);
        inherited
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_quota() -> impl Strategy<Value = Quota> {
        (1..=LIMIT, 1_000..=86_400_000_u64, 1..=LIMIT)
            .prop_map(|(limit, window_ms, burst)| Quota::new(limit, window_ms, burst.min(limit)).unwrap())
    }

    proptest! {
        /// Which of several quotas counts does not depend on where they stand (compare P1).
        #[test]
        fn the_strictest_quota_counts_wherever_it_stands(quotas in prop::array::uniform3(any_quota()), turn in 0..3_usize) {
            let mut turned = quotas;
            turned.rotate_left(turn);
            let chosen = |[channel, principal, tool]: [Quota; 3]| Quotas {
                channels: [("c".into(), channel)].into(),
                principals: [("p".into(), principal)].into(),
                tools: [("t".into(), tool)].into(),
                ..Quotas::default()
            }.quota_for("c", Some("p"), "t");
            let (one, other) = (chosen(quotas), chosen(turned));
            prop_assert!(!is_stricter(&one, &other) && !is_stricter(&other, &one));
            prop_assert!(quotas.iter().all(|quota| !is_stricter(quota, &one)));
        }
    }

    #[test]
    fn f2_a_quota_for_somebody_else_changes_nothing() {
        let tight = Quota::per_window(1, 60_000).unwrap();
        let quotas = Quotas { principals: [("bob".into(), tight)].into(), ..Quotas::default() };
        assert_eq!(quotas.quota_for("cli", Some("alice"), "fs.read"), Quota::DEFAULT);
        assert_eq!(quotas.quota_for("cli", None, "fs.read"), Quota::DEFAULT);
        assert_eq!(quotas.quota_for("cli", Some("bob"), "fs.read"), tight);
    }
}
