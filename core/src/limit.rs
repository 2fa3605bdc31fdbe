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
use core::hash::{Hash, Hasher};
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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

/// All lengths at once and then the texts: what is equal hashes alike, in a fraction of the steps of a hash part by part.
impl Hash for LimitKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { tenant, principal, channel, tool, purpose } = *self;
        let length = |text: Option<&str>| text.map_or(0, |text| (text.len() as u64).wrapping_add(1));
        let lengths = [length(tenant), length(principal), length(Some(channel)), length(tool)];
        let lengths = lengths.iter().fold(purpose as u64, |all, length| all.rotate_left(15) ^ length);
        state.write_u64(lengths);
        for text in [tenant, principal, Some(channel), tool].into_iter().flatten() {
            state.write(text.as_bytes());
        }
    }
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
