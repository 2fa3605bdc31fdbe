//! Rate limiting as arithmetic: whether a call may go on, computed from a small value that the host keeps.
//!
//! The rule is the generic cell rate algorithm (GCRA, ITU-T I.371): a [`Bucket`] holds one number, the time at which
//! everything charged so far will have been paid back. Nothing ticks and nothing is counted per window, so there is no edge of
//! a window at which a caller could spend twice.
//!
//! ```
//! use callgate_core::limit::{Allowance, Bucket, Quota};
//! use callgate_core::time::Instant;
//!
//! let quota = Quota::DEFAULT; // 100 in 60 seconds, all at once if need be
//! let mut bucket = Bucket::FRESH;
//! let now = Instant::from_nanos(0);
//! for _ in 0..20 {
//!     match quota.charge(bucket, 5, now) {
//!         Allowance::Granted { bucket: charged, .. } => bucket = charged,
//!         other => panic!("{other:?}"),
//!     }
//! }
//! // The 21st mutating call has to wait until five units are paid back: 5 * 0.6 seconds.
//! assert_eq!(quota.charge(bucket, 5, now), Allowance::Refused { retry_after_ns: Some(3_000_000_000) });
//! ```

use core::fmt;
use core::num::NonZeroU64;

use crate::context::CallContext;
use crate::digest::{Digest, DigestBuilder};
use crate::time::Instant;

const NANOS_PER_MILLI: u64 = 1_000_000;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The longest time, in nanoseconds, in which a whole burst is paid back; about 146 years.
const MAX_SPAN_NANOS: u64 = u64::MAX / 4;

/// The domain of a key's digest.
const KEY_DOMAIN: &str = "gate/limit/v1";

/// What a call that ends without running the tool still pays, at most (invariant R3).
pub const UNEXECUTED_COST: u32 = 1;

/// How much may be spent: `limit` per window in the long run, and `burst` at once.
///
/// In every window, wherever it starts, at most `limit + burst` is admitted (invariant R2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Quota {
    limit: u32,
    burst: u32,
    window_ms: u64,
    /// How long one unit takes to be paid back. Rounded up, so that rounding never admits more than the limit.
    unit_nanos: NonZeroU64,
}

/// Why a quota cannot be used. A host refuses to start with it (invariant F7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum QuotaError {
    /// The limit is 0.
    NoLimit,
    /// The window has no length.
    NoWindow,
    /// The burst is 0.
    NoBurst,
    /// The time in which a burst is paid back does not fit the clock.
    TooLong,
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoLimit => "the limit is 0; give at least 1, or deny the tool by a rule",
            Self::NoWindow => "the window is 0 ms; give at least 1",
            Self::NoBurst => "the burst is 0, so no call could ever pass; give at least 1",
            Self::TooLong => "the window is too long for this burst; shorten the window or lower the burst",
        })
    }
}

impl core::error::Error for QuotaError {}

impl Quota {
    /// 100 units in 60 seconds, all at once if need be: 20 mutating calls or 100 others.
    pub const DEFAULT: Self = match Self::new(100, 60_000, 100) {
        Ok(quota) => quota,
        Err(_) => Self { limit: 1, burst: 1, window_ms: u64::MAX, unit_nanos: NonZeroU64::MAX },
    };

    /// `limit` units per `window_ms` milliseconds in the long run, of which `burst` may be spent at once.
    ///
    /// # Errors
    /// When a number is 0, or the burst takes longer than about 146 years to be paid back.
    pub const fn new(limit: u32, window_ms: u64, burst: u32) -> Result<Self, QuotaError> {
        if limit == 0 {
            return Err(QuotaError::NoLimit);
        }
        if window_ms == 0 {
            return Err(QuotaError::NoWindow);
        }
        if burst == 0 {
            return Err(QuotaError::NoBurst);
        }
        let Some(window_nanos) = window_ms.checked_mul(NANOS_PER_MILLI) else {
            return Err(QuotaError::TooLong);
        };
        let Some(unit_nanos) = NonZeroU64::new(window_nanos.div_ceil(limit as u64)) else {
            return Err(QuotaError::NoWindow);
        };
        match unit_nanos.get().checked_mul(burst as u64) {
            Some(span) if span <= MAX_SPAN_NANOS => Ok(Self { limit, burst, window_ms, unit_nanos }),
            _ => Err(QuotaError::TooLong),
        }
    }

    /// `limit` units per `window_ms` milliseconds, all at once if need be.
    ///
    /// # Errors
    /// As [`Quota::new`].
    pub const fn per_window(limit: u32, window_ms: u64) -> Result<Self, QuotaError> {
        Self::new(limit, window_ms, limit)
    }

    /// Units per window in the long run.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// Units that may be spent at once.
    #[must_use]
    pub const fn burst(&self) -> u32 {
        self.burst
    }

    /// The length of the window, in milliseconds.
    #[must_use]
    pub const fn window_ms(&self) -> u64 {
        self.window_ms
    }

    /// Charges `cost` units to `bucket` at `now`. Pure: the host stores the bucket it gets back, as one atomic step.
    ///
    /// A cost of 0 is always granted; a cost above the burst never. A clock that went backwards pays nothing back, one that
    /// jumped ahead at most a whole burst (invariant C5). Any bound that is reached refuses (invariant F5).
    pub const fn charge(&self, bucket: Bucket, cost: u32, now: Instant) -> Allowance {
        if cost == 0 {
            return Allowance::Granted { bucket, receipt: Receipt::NONE, remaining: self.remaining(bucket, now) };
        }
        if cost > self.burst {
            return Allowance::Refused { retry_after_ns: None };
        }
        let moment = now.as_nanos();
        let start = if bucket.0 > moment { bucket.0 } else { moment };
        let Some(paid_back) = start.checked_add(self.nanos(cost)) else {
            return Allowance::Refused { retry_after_ns: None };
        };
        // What would be owed beyond a burst is what the caller has to wait for.
        let wait = paid_back.saturating_sub(moment).saturating_sub(self.nanos(self.burst));
        if wait > 0 {
            return Allowance::Refused { retry_after_ns: Some(wait) };
        }
        let bucket = Bucket(paid_back);
        Allowance::Granted {
            bucket,
            receipt: Receipt { cost, until: moment.saturating_add(self.nanos(cost)) },
            remaining: self.remaining(bucket, now),
        }
    }

    /// What [`Quota::charge`] would answer, with the bucket left as it is: for plans, which are never charged (invariant R4).
    pub const fn peek(&self, bucket: Bucket, cost: u32, now: Instant) -> Allowance {
        match self.charge(bucket, cost, now) {
            Allowance::Granted { remaining, .. } => Allowance::Granted { bucket, receipt: Receipt::NONE, remaining },
            other => other,
        }
    }

    /// Gives `amount` units of the charge behind `receipt` back and returns the bucket to store.
    ///
    /// Only what time cannot have paid back yet is given back, so nothing once `cost` units' worth of time has passed. Otherwise
    /// a caller who holds charged calls open while its bucket refills could spend more than one burst (invariant R2).
    #[must_use]
    pub const fn refund(&self, bucket: Bucket, receipt: Receipt, amount: u32, now: Instant) -> Bucket {
        let amount = if amount < receipt.cost { amount } else { receipt.cost };
        let outstanding = receipt.until.saturating_sub(now.as_nanos());
        let wanted = self.nanos(amount);
        Bucket(bucket.0.saturating_sub(if wanted < outstanding { wanted } else { outstanding }))
    }

    /// How many units could be spent at `now`.
    #[must_use]
    pub const fn remaining(&self, bucket: Bucket, now: Instant) -> u32 {
        let owed = bucket.0.saturating_sub(now.as_nanos());
        let free = self.nanos(self.burst).saturating_sub(owed);
        let units = free / self.unit_nanos.get();
        if units < self.burst as u64 { units as u32 } else { self.burst }
    }

    /// The time in which `units` are paid back.
    const fn nanos(&self, units: u32) -> u64 {
        self.unit_nanos.get().saturating_mul(units as u64)
    }
}

/// `max 100 tokens per 60s`.
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.window_ms / 1_000, self.window_ms % 1_000);
        write!(f, "max {} tokens per ", self.limit)?;
        if millis == 0 { write!(f, "{seconds}s") } else { write!(f, "{}ms", self.window_ms) }
    }
}

/// The state behind one key: the time, in nanoseconds of the limiter's clock, at which all that was charged is paid back.
///
/// It means something only together with the [`Quota`] and the clock it was charged under. One that is missing, and one that
/// is [idle](Bucket::is_idle), are the same as [`Bucket::FRESH`], so a store may drop idle buckets at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Bucket(u64);

impl Bucket {
    /// Nothing was charged yet.
    pub const FRESH: Self = Self(0);

    /// The bucket that a store kept as a number.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The number to keep.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whether everything is paid back, so that the bucket need not be kept.
    #[must_use]
    pub const fn is_idle(self, now: Instant) -> bool {
        self.0 <= now.as_nanos()
    }
}

/// Proof of one charge, kept with the call until it is settled. A host settles each receipt once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Receipt {
    cost: u32,
    /// When the charge is paid back at the earliest: if it was the only one. Its place in the queue of charges does not count,
    /// because a refund of an earlier one moves it forward.
    until: u64,
}

impl Receipt {
    /// Nothing was charged: a plan, a free call, a redemption.
    pub const NONE: Self = Self { cost: 0, until: 0 };

    /// The units that were charged.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.cost
    }
}

/// The limiter's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a refused call must not go on"]
#[expect(clippy::exhaustive_enums, reason = "a host must act on each answer")]
pub enum Allowance {
    /// The call may go on and was charged.
    Granted {
        /// The state to store.
        bucket: Bucket,
        /// What was charged, for a later [`Quota::refund`].
        receipt: Receipt,
        /// The units that could still be spent now.
        remaining: u32,
    },
    /// No limit applies; nothing was charged.
    Unlimited,
    /// The call may not go on; nothing was charged.
    Refused {
        /// The same charge passes after exactly this time if nobody else charges the bucket, and not a nanosecond earlier;
        /// `None` when it never passes, because it costs more than a whole burst.
        retry_after_ns: Option<u64>,
    },
}

impl Allowance {
    /// Whether the call may go on.
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        !matches!(self, Self::Refused { .. })
    }
}

/// `retry_after_seconds` on the wire: whole seconds, rounded up, so that a caller who waits that long is not refused again.
#[must_use]
pub const fn retry_after_seconds(nanos: u64) -> u64 {
    nanos.div_ceil(NANOS_PER_SECOND)
}

/// How much of `charged` goes back when a call has ended: nothing if the tool ran, else all but [`UNEXECUTED_COST`].
///
/// A call that waits for its confirmation has not ended: its charge stands for the whole action, the redemption is not
/// charged again (invariant R7), and a confirmation that is refused or expires settles it as unexecuted.
#[must_use]
pub const fn refund_for(charged: u32, executed: bool) -> u32 {
    if executed { 0 } else { charged.saturating_sub(UNEXECUTED_COST) }
}

/// What a bucket is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// Calls that were authorized.
    Calls,
    /// Calls that were refused before (invalid, denied, a bad token): a budget of their own, so that a caller who probes
    /// the gate is slowed down and does not starve its honest calls (invariant R3).
    Attempts,
}

/// Whose bucket it is. Made from the authenticated context, never from arguments (invariant P2).
///
/// A store keys its buckets by the value (`Eq` and `Hash`), by its [encoding](LimitKey::encode) or by its
/// [digest](LimitKey::digest); each keeps apart what differs in any part (invariant R6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct LimitKey<'a> {
    /// The tenant, when one gate serves several.
    pub tenant: Option<&'a str>,
    /// The authenticated caller.
    pub principal: Option<&'a str>,
    /// The channel.
    pub channel: &'a str,
    /// The tool; `None` where a caller's bucket spans all tools.
    pub tool: Option<&'a str>,
    /// What the bucket is for.
    pub purpose: Purpose,
}

impl<'a> LimitKey<'a> {
    /// The bucket for calls of `tool` in `context`.
    #[must_use]
    pub fn of_call(context: &CallContext<'a>, tool: &'a str) -> Self {
        Self { tool: Some(tool), purpose: Purpose::Calls, ..Self::of_attempts(context) }
    }

    /// The bucket for refused calls in `context`. One for all tools: the name of a tool that does not exist is the caller's
    /// choice, and must not open a fresh budget.
    #[must_use]
    pub fn of_attempts(context: &CallContext<'a>) -> Self {
        Self {
            tenant: context.tenant,
            principal: context.known_principal(),
            channel: context.channel,
            tool: None,
            purpose: Purpose::Attempts,
        }
    }

    /// A digest of all parts, for stores with keys of one length.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut digest = DigestBuilder::new(KEY_DOMAIN);
        digest.u64(match self.purpose {
            Purpose::Calls => 0,
            Purpose::Attempts => 1,
        });
        digest.option_str(self.tenant).option_str(self.principal).str(self.channel).option_str(self.tool);
        digest.finish()
    }

    /// Feeds an injective encoding to `sink`, piece by piece: the purpose, then each part as one byte that says whether it is
    /// there, its length as eight big-endian bytes, and its bytes. Tenant and principal come first (invariants P2, R6).
    pub fn encode(&self, sink: &mut dyn FnMut(&[u8])) {
        sink(match self.purpose {
            Purpose::Calls => b"c",
            Purpose::Attempts => b"a",
        });
        for part in [self.tenant, self.principal, Some(self.channel), self.tool] {
            match part {
                Some(text) => {
                    sink(&[1]);
                    sink(&(text.len() as u64).to_be_bytes());
                    sink(text.as_bytes());
                }
                None => sink(&[0]),
            }
        }
    }
}

/// `channel:principal:tool`, for people to read. Not injective: never a key.
impl fmt::Display for LimitKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.channel, self.principal.unwrap_or(""))?;
        match self.tool {
            Some(tool) => write!(f, ":{tool}"),
            None => Ok(()),
        }
    }
}

/// Says that `key` has spent its `quota`: `Rate limit exceeded for 'web:u1:t': max 100 tokens per 60s.`
#[derive(Clone, Copy, Debug)]
pub struct LimitExceeded<'a> {
    /// Whose bucket is empty.
    pub key: LimitKey<'a>,
    /// What the bucket allows.
    pub quota: Quota,
}

impl fmt::Display for LimitExceeded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rate limit exceeded for '{}': {}.", self.key, self.quota)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Scopes;
    use proptest::prelude::*;
    use std::collections::HashSet;
    use std::string::ToString;
    use std::vec::Vec;

    const SECOND: u64 = 1_000_000_000;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// Charges and keeps the new state; gives the receipt and what remains, or how long to wait.
    fn spend(quota: &Quota, bucket: &mut Bucket, cost: u32, now: u64) -> Result<(Receipt, u32), Option<u64>> {
        match quota.charge(*bucket, cost, at(now)) {
            Allowance::Granted { bucket: charged, receipt, remaining } => {
                *bucket = charged;
                Ok((receipt, remaining))
            }
            Allowance::Unlimited => panic!("a quota limits"),
            Allowance::Refused { retry_after_ns } => Err(retry_after_ns),
        }
    }

    #[test]
    fn the_default_quota_is_a_hundred_a_minute_at_once() {
        assert_eq!(Quota::new(100, 60_000, 100), Ok(Quota::DEFAULT));
        for (cost, calls) in [(5, 20), (1, 100)] {
            let mut bucket = Bucket::FRESH;
            for call in 0..calls {
                assert!(spend(&Quota::DEFAULT, &mut bucket, cost, 7).is_ok(), "call {call} of cost {cost}");
            }
            let refused = spend(&Quota::DEFAULT, &mut bucket, cost, 7).unwrap_err();
            assert_eq!(refused, Some(600_000_000 * u64::from(cost)));
        }
    }

    #[test]
    fn remaining_units_count_down_and_come_back() {
        let mut bucket = Bucket::FRESH;
        assert_eq!(spend(&Quota::DEFAULT, &mut bucket, 1, 0).unwrap().1, 99);
        assert_eq!(spend(&Quota::DEFAULT, &mut bucket, 49, 0).unwrap().1, 50);
        assert_eq!(spend(&Quota::DEFAULT, &mut bucket, 50, 0).unwrap().1, 0);
        assert!(spend(&Quota::DEFAULT, &mut bucket, 1, 0).is_err());
        assert_eq!(Quota::DEFAULT.remaining(bucket, at(30 * SECOND)), 50);
        assert_eq!(Quota::DEFAULT.remaining(bucket, at(600 * SECOND)), 100);
        assert!(bucket.is_idle(at(60 * SECOND)) && !bucket.is_idle(at(60 * SECOND - 1)));
    }

    #[test]
    fn a_cost_above_the_burst_never_passes_and_no_cost_always_does() {
        let never = Quota::DEFAULT.charge(Bucket::FRESH, 101, at(0));
        assert_eq!(never, Allowance::Refused { retry_after_ns: None });
        let full = Bucket::from_nanos(u64::MAX);
        assert!(Quota::DEFAULT.charge(full, 0, at(0)).is_admitted());
        // F5: at the end of the clock nothing is admitted any more.
        assert!(!Quota::DEFAULT.charge(Bucket::FRESH, 1, at(u64::MAX)).is_admitted());
    }

    #[test]
    fn seconds_are_rounded_up() {
        assert_eq!([0, 1, SECOND, SECOND + 1].map(retry_after_seconds), [0, 1, 1, 2]);
    }

    #[test]
    fn f7_a_quota_that_cannot_work_is_refused_with_its_reason() {
        assert_eq!(Quota::new(0, 1, 1), Err(QuotaError::NoLimit));
        assert_eq!(Quota::new(1, 0, 1), Err(QuotaError::NoWindow));
        assert_eq!(Quota::new(1, 1, 0), Err(QuotaError::NoBurst));
        assert_eq!(Quota::new(1, u64::MAX, 1), Err(QuotaError::TooLong));
        assert_eq!(Quota::new(1, 1_000_000_000, u32::MAX), Err(QuotaError::TooLong));
        assert!(QuotaError::NoLimit.to_string().contains("at least 1"));
    }

    #[test]
    fn r4_a_plan_is_told_the_answer_and_charges_nothing() {
        let mut bucket = Bucket::FRESH;
        spend(&Quota::DEFAULT, &mut bucket, 98, 0).unwrap();
        let told = Allowance::Granted { bucket, receipt: Receipt::NONE, remaining: 0 };
        assert_eq!(Quota::DEFAULT.peek(bucket, 2, at(0)), told);
        assert_eq!(Quota::DEFAULT.peek(bucket, 3, at(0)), Quota::DEFAULT.charge(bucket, 3, at(0)));
    }

    /// O6: three confirmations that were refused leave room for an honest call.
    #[test]
    fn r3_a_call_that_did_not_run_keeps_at_most_one_unit() {
        assert_eq!((refund_for(5, false), refund_for(5, true)), (4, 0));
        assert_eq!((refund_for(1, false), refund_for(0, false)), (0, 0));
        let quota = Quota::per_window(9, 60_000).unwrap();
        let mut bucket = Bucket::FRESH;
        for _ in 0..3 {
            let (receipt, _) = spend(&quota, &mut bucket, 5, 0).unwrap();
            bucket = quota.refund(bucket, receipt, refund_for(receipt.cost(), false), at(0));
        }
        assert_eq!(quota.remaining(bucket, at(0)), 6);
        assert!(spend(&quota, &mut bucket, 5, 0).is_ok());
    }

    #[test]
    fn r2_a_late_refund_does_not_add_a_second_burst() {
        let quota = Quota::DEFAULT;
        let mut bucket = Bucket::FRESH;
        let early = spend(&quota, &mut bucket, 100, 0).unwrap().0;
        // The bucket has refilled by itself; the early call is settled only now.
        spend(&quota, &mut bucket, 100, 60 * SECOND).unwrap();
        bucket = quota.refund(bucket, early, 99, at(60 * SECOND));
        assert_eq!(quota.remaining(bucket, at(60 * SECOND)), 0);
    }

    #[test]
    fn r2_a_refund_moves_later_charges_forward() {
        // One unit a second, ten at once.
        let quota = Quota::new(10, 10_000, 10).unwrap();
        let mut bucket = Bucket::FRESH;
        let (first, _) = spend(&quota, &mut bucket, 5, 0).unwrap();
        let (second, _) = spend(&quota, &mut bucket, 5, 0).unwrap();
        bucket = quota.refund(bucket, first, 5, at(0));
        // Without the first, the second is paid back after five seconds: nothing of it is left to give back.
        spend(&quota, &mut bucket, 10, 5 * SECOND).unwrap();
        bucket = quota.refund(bucket, second, 5, at(5 * SECOND));
        assert_eq!(quota.remaining(bucket, at(5 * SECOND)), 0);
    }

    #[test]
    fn no_more_than_the_charge_is_given_back() {
        let mut bucket = Bucket::FRESH;
        spend(&Quota::DEFAULT, &mut bucket, 50, 9 * SECOND).unwrap();
        let before = bucket;
        let (receipt, _) = spend(&Quota::DEFAULT, &mut bucket, 5, 9 * SECOND).unwrap();
        // Not even when the clock went back behind the charge.
        for now in [0, 9 * SECOND] {
            assert_eq!(Quota::DEFAULT.refund(bucket, receipt, u32::MAX, at(now)), before);
        }
        assert_eq!(Quota::DEFAULT.refund(before, Receipt::NONE, u32::MAX, at(0)), before);
    }

    fn encoded(key: &LimitKey<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        key.encode(&mut |piece| bytes.extend_from_slice(piece));
        bytes
    }

    #[test]
    fn r6_a_separator_inside_a_name_moves_no_border() {
        let context = CallContext::mcp("r", Some("c"), Scopes::NONE);
        let key = |channel, tool| LimitKey { channel, ..LimitKey::of_call(&context, tool) };
        let (a, b) = (key("a:b", "t"), LimitKey { principal: Some("b:c"), ..key("a", "t") });
        assert_eq!(a.to_string(), b.to_string(), "what people read is not the key");
        assert_ne!(encoded(&a), encoded(&b));
        assert_ne!(encoded(&LimitKey { principal: None, ..a }), encoded(&LimitKey { principal: Some(""), ..a }));
        assert_ne!(encoded(&LimitKey::of_call(&context, "t")), encoded(&LimitKey::of_attempts(&context)));
    }

    #[test]
    fn r6_every_key_has_its_own_encoding() {
        let parts =
            [None, Some(""), Some("\0"), Some("\u{1}"), Some("\0\0"), Some("\u{1}\0"), Some("\u{1}\u{1}"), Some("a")];
        let mut seen = HashSet::new();
        for index in 0..parts.len().pow(4) {
            let part = |place: u32| parts[index / parts.len().pow(place) % parts.len()];
            let Some(channel) = part(2) else { continue };
            for purpose in [Purpose::Calls, Purpose::Attempts] {
                let key = LimitKey { tenant: part(0), principal: part(1), channel, tool: part(3), purpose };
                assert!(seen.insert(encoded(&key)), "{key:?}");
                assert!(seen.insert(key.digest().as_bytes().to_vec()), "{key:?}");
            }
        }
    }

    #[test]
    fn a_refusal_names_key_and_quota() {
        let context = CallContext::web("r", Some("u1"), Scopes::NONE);
        let text = LimitExceeded { key: LimitKey::of_call(&context, "t"), quota: Quota::DEFAULT }.to_string();
        assert_eq!(text, "Rate limit exceeded for 'web:u1:t': max 100 tokens per 60s.");
    }

    prop_compose! {
        fn quotas()(limit in 1u32..200, window_ms in 1u64..100_000, burst in 1u32..200) -> Quota {
            Quota::new(limit, window_ms, burst).unwrap()
        }
    }

    /// One thing that happens at a limiter: time passes, then a charge, or an earlier charge is settled.
    #[derive(Clone, Debug)]
    enum Happens {
        Charge { after: u64, cost: u32 },
        Settle { after: u64, which: prop::sample::Index },
    }

    fn happenings() -> impl Strategy<Value = Vec<Happens>> {
        let after = prop_oneof![Just(0u64), 0..SECOND, 0..120 * SECOND];
        let one = prop_oneof![
            3 => (after.clone(), 0u32..60).prop_map(|(after, cost)| Happens::Charge { after, cost }),
            1 => (after, any::<prop::sample::Index>()).prop_map(|(after, which)| Happens::Settle { after, which }),
        ];
        prop::collection::vec(one, 1..120)
    }

    proptest! {
        /// R2, over every pair of points in time, with calls that are settled late or never.
        #[test]
        fn r2_no_window_admits_more_than_limit_and_burst(quota in quotas(), schedule in happenings()) {
            let mut now = SECOND;
            let mut bucket = Bucket::FRESH;
            // What each admitted call has paid in the end, and when it was admitted.
            let mut admitted: Vec<(u64, u32, Receipt)> = Vec::new();
            for event in schedule {
                match event {
                    Happens::Charge { after, cost } => {
                        now += after;
                        if let Ok((receipt, _)) = spend(&quota, &mut bucket, cost, now) {
                            admitted.push((now, cost, receipt));
                        }
                    }
                    Happens::Settle { after, which } => {
                        now += after;
                        if !admitted.is_empty() {
                            let (_, kept, receipt) = which.get(&admitted);
                            let amount = refund_for(*kept, false);
                            bucket = quota.refund(bucket, *receipt, amount, at(now));
                            let index = which.index(admitted.len());
                            admitted[index].1 = *kept - amount;
                        }
                    }
                }
                prop_assert!(quota.remaining(bucket, at(now)) <= quota.burst());
            }
            for (first, &(start, ..)) in admitted.iter().enumerate() {
                let mut sum = 0u64;
                for &(time, kept, _) in &admitted[first..] {
                    sum += u64::from(kept);
                    let nanos = u128::from(quota.window_ms()) * u128::from(NANOS_PER_MILLI);
                    let refilled = u128::from(time - start) * u128::from(quota.limit()) / nanos;
                    prop_assert!(u128::from(sum) <= u128::from(quota.burst()) + refilled);
                }
            }
        }

        #[test]
        fn a_retry_passes_at_the_promised_nanosecond_and_not_before(
            quota in quotas(), owed in 0u64..200 * SECOND, cost in 1u32..200, now in 0u64..100 * SECOND,
        ) {
            let bucket = Bucket::from_nanos(owed);
            if let Allowance::Refused { retry_after_ns: Some(wait) } = quota.charge(bucket, cost, at(now)) {
                prop_assert!(wait > 0);
                prop_assert!(quota.charge(bucket, cost, at(now + wait)).is_admitted());
                prop_assert!(!quota.charge(bucket, cost, at(now + wait - 1)).is_admitted());
            }
        }

        #[test]
        fn c5_a_clock_that_jumps_gives_no_more_than_a_burst(
            quota in quotas(), owed in any::<u64>(), now in any::<u64>(), back in any::<u64>(), ahead in any::<u64>(),
        ) {
            let bucket = Bucket::from_nanos(owed);
            let here = quota.remaining(bucket, at(now));
            prop_assert!(quota.remaining(bucket, at(now.saturating_sub(back))) <= here);
            prop_assert!(quota.remaining(bucket, at(now.saturating_add(ahead))) <= quota.burst());
            prop_assert!(!quota.charge(bucket, quota.burst().saturating_add(1), at(now)).is_admitted());
        }

        /// R2: rounding never lets the limit come back in less than a window.
        #[test]
        fn the_limit_takes_a_whole_window_to_come_back(limit in 1u32..1_000, window_ms in 1u64..100_000) {
            let quota = Quota::per_window(limit, window_ms).unwrap();
            let mut bucket = Bucket::FRESH;
            spend(&quota, &mut bucket, limit, 0).unwrap();
            let window = window_ms * NANOS_PER_MILLI;
            prop_assert!(quota.remaining(bucket, at(window - 1)) < limit);
            // One unit's worth of rounding, at most, is lost to the caller.
            prop_assert_eq!(quota.remaining(bucket, at(window + u64::from(limit))), limit);
        }

        #[test]
        fn dropping_an_idle_bucket_changes_no_answer(
            quota in quotas(), owed in 0u64..100 * SECOND, cost in 0u32..200, now in 0u64..200 * SECOND,
        ) {
            let bucket = Bucket::from_nanos(owed);
            if bucket.is_idle(at(now)) && cost > 0 {
                prop_assert_eq!(quota.charge(bucket, cost, at(now)), quota.charge(Bucket::FRESH, cost, at(now)));
            }
        }

        /// Nothing overflows, whatever a store hands back.
        #[test]
        fn f5_no_number_makes_the_arithmetic_wrap(
            limit in any::<u32>(), window in any::<u64>(), burst in any::<u32>(),
            owed in any::<u64>(), cost in any::<u32>(), now in any::<u64>(), then in any::<u64>(),
        ) {
            if let Ok(quota) = Quota::new(limit, window, burst) {
                let bucket = Bucket::from_nanos(owed);
                if let Allowance::Granted { bucket: charged, receipt, .. } = quota.charge(bucket, cost, at(now)) {
                    prop_assert!(charged.as_nanos() >= bucket.as_nanos());
                    let back = quota.refund(charged, receipt, u32::MAX, at(then));
                    prop_assert!(back.as_nanos() <= charged.as_nanos());
                }
            }
        }
    }
}
