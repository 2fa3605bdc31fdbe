//! Time as an input: the gate never reads a clock (invariants C1, N3).

use core::fmt;
use core::str::FromStr;

/// A point on a monotonic clock, in nanoseconds from an arbitrary start. Deadlines and durations use it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The point `nanos` nanoseconds after the clock's start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Nanoseconds from `earlier` to `self`; 0 when the clock went backwards.
    #[must_use]
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The point `nanos` later, or the end of time.
    #[must_use]
    pub const fn saturating_add_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }
}

/// A point of wall-clock time, in milliseconds since the Unix epoch, UTC. Records and answers show it; it decides only
/// the expiry of things that outlive the process, through the clock of the store that keeps them (invariant C1).
///
/// `Display` prints RFC 3339 with milliseconds, for example `2026-11-30T00:18:49.000Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The point `millis` milliseconds after the Unix epoch.
    #[must_use]
    pub const fn from_unix_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_unix_millis(self) -> u64 {
        self.0
    }

    /// The point `millis` later, or the end of time.
    #[must_use]
    pub const fn saturating_add_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, millis) = (self.0 / 1000, self.0 % 1000);
        let (days, rest) = (secs / 86_400, secs % 86_400);
        // Days to a civil date: Howard Hinnant's public algorithm, in the era that starts 0000-03-01.
        let z = days + 719_468;
        let era = z / 146_097;
        let doe = z % 146_097;
        let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
        let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
        let mp = (5 * doy + 2) / 153;
        let day = doy - (153 * mp + 2) / 5 + 1;
        let month = if mp < 10 { mp + 3 } else { mp - 9 };
        let year = yoe + era * 400 + u64::from(month <= 2);
        let (hour, minute, second) = (rest / 3_600, rest % 3_600 / 60, rest % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

/// Why a text is no [`Timestamp`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoTimestamp;

impl fmt::Display for NoTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is no time as records have it: 2026-11-30T00:18:49.000Z")
    }
}

impl core::error::Error for NoTimestamp {}

/// Reads what `Display` prints, up to the year 9999, and nothing else.
impl FromStr for Timestamp {
    type Err = NoTimestamp;

    fn from_str(text: &str) -> Result<Self, NoTimestamp> {
        const FORM: &[u8; 24] = b"0000-00-00T00:00:00.000Z";
        let text: &[u8; 24] = text.as_bytes().try_into().map_err(|_| NoTimestamp)?;
        let fits =
            text.iter().zip(FORM).all(|(byte, form)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form });
        if !fits {
            return Err(NoTimestamp);
        }
        let number = |at: usize, digits: usize| {
            let digits = text.iter().skip(at).take(digits);
            digits.fold(0_u64, |number, digit| number * 10 + u64::from(digit.wrapping_sub(b'0')))
        };
        let (year, month, day) = (number(0, 4), number(5, 2), number(8, 2));
        let (hour, minute, second, millis) = (number(11, 2), number(14, 2), number(17, 2), number(20, 3));
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let last = match month {
            4 | 6 | 9 | 11 => 30,
            2 => 28 + u64::from(leap),
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            _ => 0,
        };
        if year < 1970 || day < 1 || day > last || hour > 23 || minute > 59 || second > 59 {
            return Err(NoTimestamp);
        }
        // A civil date to days, the other way round than above.
        let y = if month <= 2 { year - 1 } else { year };
        let (era, yoe) = (y / 400, y % 400);
        let mp = if month > 2 { month - 3 } else { month + 9 };
        let doe = yoe * 365 + yoe / 4 - yoe / 100 + (153 * mp + 2) / 5 + day - 1;
        let days = era * 146_097 + doe - 719_468;
        Ok(Self((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + millis))
    }
}

/// One reading of both clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// For durations and deadlines in this process.
    pub monotonic: Instant,
    /// For records, and for expiry of what outlives the process.
    pub wall: Timestamp,
}

impl Now {
    /// The start of both clocks.
    pub const ZERO: Self = Self { monotonic: Instant::from_nanos(0), wall: Timestamp::from_unix_millis(0) };
}

/// The time of a store that lives as long as its host: it neither goes back nor stands still (invariant C2).
///
/// It is the wall clock's, except that while the wall clock is behind, it goes on by the monotonic clock. A clock that is set back
/// makes nothing live longer, and a machine that slept wakes with what expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreTime {
    /// The latest reading of the wall clock that was ahead of everything before, and when it was taken.
    base: Timestamp,
    at: Instant,
    /// The latest time given out.
    mark: Timestamp,
}

impl StoreTime {
    /// Time from this reading on.
    #[must_use]
    pub const fn start(reading: Now) -> Self {
        Self { base: reading.wall, at: reading.monotonic, mark: reading.wall }
    }

    /// The time at this reading.
    pub fn advance(&mut self, reading: Now) -> Timestamp {
        let steady = self.base.saturating_add_millis(reading.monotonic.nanos_since(self.at) / 1_000_000);
        if reading.wall > steady {
            self.base = reading.wall;
            self.at = reading.monotonic;
        }
        self.mark = self.mark.max(steady).max(reading.wall);
        self.mark
    }
}

/// Where a host gets its time from. Injected everywhere, so that tests can step it.
pub trait Clock {
    /// The present moment. Must not go backwards in `monotonic`; may step either way in `wall`.
    fn now(&self) -> Now;

    /// The monotonic clock alone, for hosts on which reading one clock is cheaper than reading two.
    fn monotonic(&self) -> Instant {
        self.now().monotonic
    }

    /// The monotonic clock, up to `slack` nanoseconds behind [`monotonic`](Self::monotonic) and never ahead of it: for hosts
    /// that have a rougher clock which is cheaper to read. Enough to hold something to a limit that is much longer.
    fn monotonic_within(&self, slack: u64) -> Instant {
        let _ = slack;
        self.monotonic()
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Now {
        (**self).now()
    }

    fn monotonic(&self) -> Instant {
        (**self).monotonic()
    }

    fn monotonic_within(&self, slack: u64) -> Instant {
        (**self).monotonic_within(slack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn timestamps_print_as_rfc_3339() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_796_000_329_007, "2026-11-30T00:58:49.007Z"),
            (4_102_444_800_000, "2100-01-01T00:00:00.000Z"),
        ];
        for (millis, text) in cases {
            assert_eq!(Timestamp::from_unix_millis(millis).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_time_is_not_read_as_one() {
        for text in [
            "",
            "2026-11-30T00:58:49Z",
            "2026-11-30T00:58:49.007",
            "2026-11-30 00:58:49.007Z",
            "2026-02-29T00:00:00.000Z",
            "2100-02-29T00:00:00.000Z",
            "2026-00-10T00:00:00.000Z",
            "2026-13-10T00:00:00.000Z",
            "2026-11-00T00:00:00.000Z",
            "2026-11-31T00:00:00.000Z",
            "2026-11-30T24:00:00.000Z",
            "2026-11-30T00:60:00.000Z",
            "2026-11-30T00:00:60.000Z",
            "1969-12-31T23:59:59.999Z",
            "+026-11-30T00:58:49.007Z",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(NoTimestamp), "{text}");
        }
    }

    #[test]
    fn leap_days_are_those_of_the_calendar() {
        for year in ["1972", "2000", "2024", "2028", "2400"] {
            let text = std::format!("{year}-02-29T00:00:00.000Z");
            assert_eq!(text.parse::<Timestamp>().map(|time| time.to_string()), Ok(text), "a leap year");
        }
        for year in ["1970", "1973", "1974", "1975", "1999", "2001", "2026", "2100", "2200", "2300"] {
            let text = std::format!("{year}-02-29T00:00:00.000Z");
            assert_eq!(text.parse::<Timestamp>(), Err(NoTimestamp), "no leap year: {year}");
        }
    }

    #[test]
    fn the_first_moment_is_read_and_what_is_none_is_told() {
        assert_eq!("1970-01-01T00:00:00.000Z".parse(), Ok(Timestamp::from_unix_millis(0)));
        assert!(NoTimestamp.to_string().contains("2026-11-30T00:18:49.000Z"));
        assert!("2026-11-30T00:18:49.000Z".parse::<Timestamp>().is_ok(), "the example in the message is right");
    }

    const fn reading(nanos: u64, wall: u64) -> Now {
        Now { monotonic: Instant::from_nanos(nanos), wall: Timestamp::from_unix_millis(wall) }
    }

    proptest! {
        #[test]
        fn timestamps_read_as_printed(millis in 0..253_402_300_800_000_u64) {
            let at = Timestamp::from_unix_millis(millis);
            prop_assert_eq!(at.to_string().parse(), Ok(at));
        }

        /// C2: whatever the clocks do, the store's time goes on at least as fast as the monotonic clock and never back.
        #[test]
        fn c2_store_time_never_goes_back_nor_stands_still(steps in prop::collection::vec((0_u64..5_000, -9_000_i64..9_000), 1..50)) {
            let mut clock = reading(0, 1_796_000_000_000);
            let mut time = StoreTime::start(clock);
            let (mut last, mut lowest) = (clock.wall, clock.wall);
            for (pass, step) in steps {
                clock.monotonic = clock.monotonic.saturating_add_nanos(pass * 1_000_000);
                clock.wall = Timestamp::from_unix_millis(clock.wall.as_unix_millis().saturating_add_signed(step));
                lowest = lowest.saturating_add_millis(pass);
                let now = time.advance(clock);
                prop_assert!(now >= last && now >= clock.wall && now >= lowest);
                last = now;
            }
        }
    }

    #[test]
    fn c2_time_adds_up_from_readings_closer_than_a_millisecond() {
        const START: u64 = 1_000_000;
        let mut time = StoreTime::start(reading(0, START));
        for step in 1..=10 {
            time.advance(reading(step * 300_000, START));
        }
        let end = Timestamp::from_unix_millis(START + 3);
        assert_eq!(time.advance(reading(3_000_000, START)), end);
        // Even a monotonic clock that goes back, which is broken, turns no time back.
        assert_eq!(time.advance(reading(0, START - 10)), end);
    }

    #[test]
    fn a_clock_that_went_backwards_gives_no_duration() {
        assert_eq!(Instant::from_nanos(5).nanos_since(Instant::from_nanos(9)), 0);
    }
}
