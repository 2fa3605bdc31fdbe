//! What both examples share: a tool, what surrounds it, and a clock that somebody has to turn.

use std::cell::{Cell, RefCell};

use callgate_core::audit::{AuditFault, Record};
use callgate_core::call::{Charge, Lookup, Permit, Ran};
use callgate_core::context::CallContext;
use callgate_core::digest::DigestKey;
use callgate_core::fixed::{AuditRing, Buffer, Limiter, Tools, write_outcome};
use callgate_core::json::KeySlot;
use callgate_core::limit::{Allowance, Quota};
use callgate_core::outcome::Outcome;
use callgate_core::policy::{ChannelTable, Decision, PolicyGate, Subject};
use callgate_core::request::{Context, Envelope, Request, Settings};
use callgate_core::schema::Schema;
use callgate_core::time::{Instant, Now, Timestamp};
use callgate_core::tool::ToolSpec;
use callgate_core::typed::{BareTool, Failed};

pub(crate) type Tool = BareTool<u32, &'static str>;
pub(crate) type Carried<'a> = Envelope<'a>;

/// Opens a lock, which takes its time.
pub(crate) static TOOLS: [Tool; 1] =
    [BareTool::new(ToolSpec::new("lock.open", "Opens the lock").mutating(), Schema::object(&[]), |_, args, _| {
        if args.is_empty() { Ok(7) } else { Err(Failed::Body("jammed")) }
    })];

/// How many ticks each wait takes: to ask the limiter, to write a record, to open the lock.
pub(crate) const LIMITER_TICKS: u64 = 2;
pub(crate) const RECORD_TICKS: u64 = 3;
pub(crate) const LOCK_TICKS: u64 = 20;

/// The gate's surroundings: stores of a fixed size, and a clock.
pub(crate) struct Place {
    key: DigestKey,
    limiter: RefCell<Limiter<4>>,
    pub(crate) ring: RefCell<AuditRing<4_096>>,
    ticks: Cell<u64>,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            key: DigestKey::new([7; 32]),
            limiter: RefCell::new(Limiter::new(Quota::per_window(10, 60_000).ok(), None)),
            ring: RefCell::new(AuditRing::new()),
            ticks: Cell::new(0),
        }
    }

    /// What the timer's interrupt does.
    pub(crate) fn tick(&self) {
        self.ticks.set(self.ticks.get() + 1);
    }

    pub(crate) fn ticks(&self) -> u64 {
        self.ticks.get()
    }

    pub(crate) fn now(&self) -> Now {
        let ms = self.ticks.get();
        Now { monotonic: Instant::from_nanos(ms * 1_000_000), wall: Timestamp::from_unix_millis(ms) }
    }

    pub(crate) fn envelope<'a>(&'a self, id: &'a str, tool: &'a str, keys: &'a mut [KeySlot]) -> Carried<'a> {
        let request = Request { tool, arguments: b"{}", token: None };
        Envelope::new(CallContext::cli(id), request, Settings::new(&self.key), keys)
    }

    pub(crate) fn find(&self, name: &str) -> Lookup<&'static Tool> {
        Tools::new(&TOOLS).map_or(Lookup::Unknown, |tools| tools.find(name))
    }

    pub(crate) fn decide(&self, subject: &Subject<'_>) -> Decision<&'static str> {
        PolicyGate::new(ChannelTable::DEFAULTS).decide(subject)
    }

    pub(crate) fn charge(&self, charge: &Charge<'_>) -> Allowance {
        self.limiter.borrow_mut().charge(charge, self.now().monotonic)
    }

    pub(crate) fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        self.ring.borrow_mut().record(record)
    }

    pub(crate) fn run(&self, permit: Permit<'_, Carried<'_>, &Tool>) -> Ran<u32, Failed<&'static str>, &'static str> {
        match Tool::run(permit, &mut [0; 16]) {
            Ok(turns) => Ran::Done(turns),
            Err(failure) => Ran::Failed(failure),
        }
    }
}

/// The outcome as the caller gets it.
pub(crate) fn told<C: Context>(outcome: &Outcome<C, &'static Tool>) -> Buffer<512> {
    let mut answer = Buffer::new();
    assert_eq!(write_outcome(outcome, &mut answer), Ok(true));
    answer
}

/// What has to be seen of two calls: the bytes, and that the lock was opened in between.
pub(crate) fn check(answers: [&str; 2], place: &Place) {
    assert!(answers[0].starts_with(r#"{"success":true,"data":7,"#), "{}", answers[0]);
    assert!(
        answers[0].contains(&format!(r#""took_ms":{}"#, LIMITER_TICKS + RECORD_TICKS + LOCK_TICKS)),
        "{}",
        answers[0]
    );
    assert!(answers[1].contains(r#""code":"TOOL_NOT_FOUND""#), "{}", answers[1]);
    // The intent and the end of the one, and the end of the other, which did not wait for it.
    let ring = place.ring.borrow();
    let mut log = String::new();
    ring.dump(|piece| log.push_str(str::from_utf8(piece).unwrap_or_default()));
    let kinds: Vec<_> = log.lines().map(|line| (line.contains(r#""kind":"intent""#), line.contains("r-2"))).collect();
    assert_eq!(kinds, [(false, true), (true, false), (false, false)]);
    assert!(place.ticks() < 2 * LOCK_TICKS, "they waited at the same time");
}
