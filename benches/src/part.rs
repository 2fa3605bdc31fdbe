//! What the parts of a call cost at least: each does what its stage is required to do, and nothing of the way from stage to stage.
//!
//! Their sum, with the bare work, is what a gate that meets the invariants can't get under by being written better; what a call costs
//! beyond it is the way between them, and what was not written well enough yet.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate_core::args::Args;
use callgate_core::call::{Charge, ChargeMode};
use callgate_core::context::CallContext;
use callgate_core::json::{KeySlot, Limits};
use callgate_core::limit::LimitKey;
use callgate_core::policy::Subject;
use callgate_core::time::{Clock, Now};
use callgate_core::tool::Tool as _;
use callgate_std::clock::SystemClock;
use callgate_std::contain::contain;
use callgate_std::limiter::{MemoryLimiter, Quota, RateLimiter};
use callgate_std::policy::Policy;

use crate::call::{ARGUMENTS, name, policy, tool};
use crate::subject::Turn;

/// The names of the parts.
pub const PARTS: [&str; 9] = [
    "part: eight readings of clocks",
    "part: a place among those in flight",
    "part: the tool of a name",
    "part: names held to their grammars",
    "part: arguments held to the strict reader",
    "part: a decision of the policy",
    "part: a charge to the limiter",
    "part: seven containments",
    "part: a call's memory",
];

/// How many bytes the envelope of a call has, more or less.
const ENVELOPE: usize = 700;

/// The part of this name.
#[must_use]
pub fn part(wanted: &str) -> Option<Turn> {
    let caller = CallContext::cli("request-1");
    Some(match wanted {
        // Receipt and end on both clocks, the limiter's, an interceptor's two, and the start of the run: three exact, and five of the
        // kernel's last tick.
        "part: eight readings of clocks" => Box::new(|| {
            let system = SystemClock::default();
            let clock: &dyn Clock = black_box(&system);
            black_box((clock.now(), clock.monotonic(), clock.now()));
            black_box([(); 3].map(|()| clock.monotonic_within(10_000_000)));
        }),
        "part: a place among those in flight" => {
            let taken = AtomicUsize::new(0);
            Box::new(move || {
                let one = black_box(&taken);
                let _ = one.fetch_add(1, Ordering::Acquire);
                let _ = one.fetch_sub(1, Ordering::Release);
            })
        }
        "part: the tool of a name" => {
            let tools: HashMap<String, Arc<u8>> = (0..10).map(|at| (name(at), Arc::new(0))).collect();
            let wanted = name(0);
            Box::new(move || drop(black_box(tools.get(black_box(wanted.as_str())).cloned())))
        }
        "part: names held to their grammars" => Box::new(move || {
            assert!(black_box(&caller).check().is_ok());
        }),
        "part: arguments held to the strict reader" => Box::new(|| {
            let mut keys = [KeySlot::default(); 2];
            black_box(Args::read(black_box(ARGUMENTS), &mut keys, &Limits::DEFAULT).expect("good arguments"));
        }),
        "part: a decision of the policy" => {
            let (policy, tool) = (policy(), tool("find"));
            Box::new(move || {
                let (spec, definition) = (tool.spec(), tool.definition());
                let now = Now::default().wall;
                let subject = Subject { caller, spec, definition, args: Args::EMPTY, arguments: None, now };
                assert!(policy.decide(black_box(&subject)).is_allowed());
            })
        }
        "part: a charge to the limiter" => {
            let quota = Quota::new(u32::MAX, 1, u32::MAX).expect("a quota");
            let limiter = MemoryLimiter::with(move |_| quota, Arc::new(Still), 1_000);
            Box::new(move || {
                let key = LimitKey::of_call(black_box(&caller), "find");
                let charge = Charge { key, cost: 1, mode: ChargeMode::Take };
                assert!(limiter.charge(&charge).is_ok());
            })
        }
        "part: seven containments" => Box::new(|| {
            for _ in 0..7 {
                assert_eq!(contain(|| black_box(1)), Ok(1));
            }
        }),
        "part: a call's memory" => Box::new(|| drop(black_box(Box::new([0_u8; ENVELOPE])))),
        _ => return None,
    })
}

/// A clock that costs nothing.
struct Still;

impl Clock for Still {
    fn now(&self) -> Now {
        Now::default()
    }
}
