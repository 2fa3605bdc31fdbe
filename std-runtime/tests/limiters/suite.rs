//! What every limiter that outlives its process must do. Each function takes what opens the limiter at a path, as another process
//! would, with this limit for a minute and room for eight buckets.

use std::path::Path;
use std::time::Duration;

use callgate_core::context::CallContext;
use callgate_std::clock::ManualClock;
use callgate_std::limiter::{Allowance, Charge, ChargeMode, LimitKey, MemoryLimiter, Quota, RateLimiter, Refund};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;

pub(crate) type Open<'a> = &'a dyn Fn(&Path, Quota, usize, &ManualClock) -> Box<dyn RateLimiter>;

fn key(tool: &'static str) -> LimitKey<'static> {
    LimitKey::of_call(&CallContext::cli("r"), tool)
}

fn charge(limiter: &dyn RateLimiter, tool: &'static str, cost: u32, mode: ChargeMode) -> Allowance {
    limiter.charge(&Charge { key: key(tool), cost, mode }).expect("it answers")
}

fn take(limiter: &dyn RateLimiter, tool: &'static str, cost: u32) -> Allowance {
    charge(limiter, tool, cost, ChargeMode::Take)
}

const KEYS: usize = 8;

fn quota(limit: u32) -> Quota {
    Quota::per_window(limit, 60_000).expect("usable")
}

struct Shop<'a> {
    directory: TempDir,
    clock: ManualClock,
    open: Open<'a>,
}

impl<'a> Shop<'a> {
    fn new(open: Open<'a>) -> Self {
        Self { directory: tempfile::tempdir().expect("a directory"), clock: ManualClock::new(), open }
    }

    fn open(&self, limit: u32) -> Box<dyn RateLimiter> {
        (self.open)(&self.directory.path().join("state/limits"), quota(limit), KEYS, &self.clock)
    }
}

/// R2: what one process spent, another one can't spend again.
pub(crate) fn r2_a_budget_holds_over_processes(open: Open<'_>) {
    let shop = Shop::new(open);
    for _ in 0..3 {
        assert!(take(&*shop.open(3), "t", 1).is_admitted());
    }
    let refused = take(&*shop.open(3), "t", 1);
    assert_eq!(refused, Allowance::Refused { retry_after_ns: Some(20_000_000_000) });
    assert!(take(&*shop.open(3), "other", 1).is_admitted(), "its own bucket");
    shop.clock.advance(Duration::from_secs(20));
    assert!(take(&*shop.open(3), "t", 1).is_admitted());
    assert!(!take(&*shop.open(3), "t", 1).is_admitted());
}

/// R3: attempts have a budget of their own, which holds as well.
pub(crate) fn r3_attempts_are_counted_apart(open: Open<'_>) {
    let shop = Shop::new(open);
    let attempts = || LimitKey::of_attempts(&CallContext::cli("r"));
    for _ in 0..2 {
        assert!(shop.open(2).attempt(&attempts()).expect("it answers").is_admitted());
    }
    assert!(!shop.open(2).attempt(&attempts()).expect("it answers").is_admitted());
    assert!(take(&*shop.open(2), "t", 2).is_admitted());
}

/// R4: a plan leaves nothing behind.
pub(crate) fn r4_a_probe_takes_nothing(open: Open<'_>) {
    let shop = Shop::new(open);
    let limiter = shop.open(3);
    for _ in 0..5 {
        assert!(charge(&*limiter, "t", 3, ChargeMode::Probe).is_admitted());
    }
    assert!(take(&*limiter, "t", 3).is_admitted());
    assert!(!charge(&*limiter, "t", 1, ChargeMode::Probe).is_admitted());
}

/// C5: a clock that is set back pays nothing back, and locks nobody out; one that is set forward pays back one burst at most.
pub(crate) fn c5_the_clock_may_step(open: Open<'_>) {
    let shop = Shop::new(open);
    assert!(take(&*shop.open(3), "t", 3).is_admitted());
    for step in [-1, -1_000, -3_600_000, -86_400_000] {
        shop.clock.step_wall(step);
        let refused = Allowance::Refused { retry_after_ns: Some(20_000_000_000) };
        assert_eq!(take(&*shop.open(3), "t", 1), refused, "{step}");
    }
    shop.clock.advance(Duration::from_secs(20));
    assert!(take(&*shop.open(3), "t", 1).is_admitted(), "what is owed is paid back on the new time");
    assert!(!take(&*shop.open(3), "t", 1).is_admitted());
    for step in [3_600_000, 315_576_000_000] {
        shop.clock.step_wall(step);
        assert!(take(&*shop.open(3), "t", 3).is_admitted(), "{step}");
        assert!(!take(&*shop.open(3), "t", 1).is_admitted(), "{step}: one burst, and no more");
    }
}

/// F5: a full limiter forgets nobody.
pub(crate) fn f5_a_full_limiter_forgets_nobody(open: Open<'_>) {
    let shop = Shop::new(open);
    let limiter = shop.open(100);
    let tools = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for tool in tools {
        assert!(take(&*limiter, tool, 1).is_admitted());
    }
    assert!(matches!(take(&*limiter, "i", 1), Allowance::Refused { retry_after_ns: Some(1..) }));
    assert!(take(&*limiter, "a", 1).is_admitted());
    shop.clock.advance(Duration::from_millis(600));
    assert!(take(&*limiter, "i", 1).is_admitted(), "the others are paid back");
}

/// R2: threads never spend more than there is.
pub(crate) fn r2_threads_never_spend_more_than_there_is(open: Open<'_>) {
    let shop = Shop::new(open);
    let (one, other) = (shop.open(10), shop.open(10));
    let admitted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = [&one, &other, &one, &other]
            .map(|limiter| scope.spawn(|| (0..5).filter(|_| take(&**limiter, "t", 1).is_admitted()).count()))
            .into();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    assert_eq!(admitted, 10);
}

/// R2, C5: charges, refunds, pauses and ends of the process: it answers as memory does.
pub(crate) fn r2_it_answers_as_memory_does(open: Open<'_>) {
    let steps = prop::collection::vec((0..4_u8, 1..4_u32, 0..30_000_u64), 1..12);
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) });
    let result = runner.run(&steps, |steps| {
        let shop = Shop::new(open);
        let mut kept = shop.open(5);
        let memory = MemoryLimiter::with(move |_| quota(5), shop.clock.shared(), KEYS);
        let mut receipts = Vec::new();
        for (kind, cost, pause) in steps {
            shop.clock.advance(Duration::from_millis(pause));
            if kind == 3 {
                kept = shop.open(5);
            }
            if kind == 2
                && let Some((one, other)) = receipts.pop()
            {
                kept.refund(&Refund { key: key("t"), receipt: one, units: cost }).expect("it answers");
                memory.refund(&Refund { key: key("t"), receipt: other, units: cost }).expect("it answers");
                continue;
            }
            match (take(&*kept, "t", cost), take(&memory, "t", cost)) {
                (
                    Allowance::Granted { receipt: one, remaining, .. },
                    Allowance::Granted { receipt: other, remaining: same, .. },
                ) => {
                    prop_assert_eq!(remaining, same);
                    receipts.push((one, other));
                }
                (one, other) => prop_assert_eq!(one, other),
            }
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// Makes a test of each function of this suite for a limiter: `name: function that opens it`.
macro_rules! every_shared_limiter {
    ($name:ident: $open:ident) => { $crate::suite::every_shared_limiter!(@ $name $open {
        c5_the_clock_may_step
        f5_a_full_limiter_forgets_nobody
        r2_a_budget_holds_over_processes
        r2_it_answers_as_memory_does
        r2_threads_never_spend_more_than_there_is
        r3_attempts_are_counted_apart
        r4_a_probe_takes_nothing
    }); };
    (@ $name:ident $open:ident { $($test:ident)+ }) => {
        mod $name {
            $(#[test] fn $test() { crate::suite::$test(&crate::$open); })+
        }
    };
}
pub(crate) use every_shared_limiter;
