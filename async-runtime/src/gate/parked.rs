//! A call between two polls: whatever happens to it, it ends and is recorded once (invariants J1, X4).

use std::sync::Arc;

use callgate_core::call::{Asking, Call, Confirm, Executing, Load, Loading, Operate, Operating, Redeeming, Requested};
use callgate_core::request::Request;
use callgate_core::time::{Instant, Now};
use callgate_std::cancellation::Cancellation;
use callgate_std::captured::CapturedContext;
use callgate_std::contain::contain;
use callgate_std::envelope::OwnedEnvelope;
use callgate_std::slots::Slot;
use callgate_std::tool::Tool;
use callgate_std::update::Update;

use super::Gate;
use super::background::Accepted;

/// What a call carries.
pub(super) type Carried = Box<OwnedEnvelope>;
/// A call that ended.
pub(super) type Ended = callgate_core::call::Ended<Carried, Arc<Tool>>;
/// A call that was received.
pub(super) type Received = Call<Carried, (), Requested>;

/// What accompanies a call through its stages.
pub(super) struct Passage {
    pub(super) gate: Gate,
    /// The places that the call takes: one of the gate's, and one of its tool's if it has a bound of its own. A body that blocks
    /// takes them along and keeps them beyond its call.
    pub(super) places: [Option<Slot>; 2],
    /// The same while a body that blocks holds them as well: whoever is done last, the body or the record, gives them back.
    pub(super) shared: Option<Arc<[Option<Slot>; 2]>>,
    pub(super) updates: Option<async_channel::Sender<Update>>,
    pub(super) cancellation: Cancellation,
    caller: CapturedContext,
    tool: Arc<str>,
    /// In a box, which calls that are of none do without.
    operation: Option<Box<Operation>>,
    received: Now,
}

/// The id of the operation that a call is of.
#[derive(Clone)]
struct Operation(Arc<str>);

impl Passage {
    pub(super) fn new(gate: Gate, caller: CapturedContext, call: &OwnedEnvelope, received: Now) -> Self {
        let tool = Arc::clone(call.tool());
        let operation = call.operation_id().map(|id| Box::new(Operation(Arc::clone(id))));
        let cancellation = gate.0.common.stop.child();
        Self {
            gate,
            places: [None, None],
            shared: None,
            updates: None,
            cancellation,
            caller,
            tool,
            operation,
            received,
        }
    }

    /// What accompanies the part of a call that goes on in the background: its places, and a cancellation of its own.
    pub(super) fn for_background(&mut self) -> Self {
        Self {
            gate: self.gate.clone(),
            places: std::mem::take(&mut self.places),
            shared: None,
            updates: None,
            cancellation: self.gate.0.common.stop.child(),
            caller: self.caller.clone(),
            tool: Arc::clone(&self.tool),
            operation: self.operation.clone(),
            received: self.received,
        }
    }

    /// The end of a call whose value is gone, because something panicked that had it.
    fn lost(&self) -> Ended {
        let request = Request { tool: &self.tool, arguments: b"", token: None };
        let settings = Arc::clone(&self.gate.0.common.settings);
        let operation = self.operation.as_ref().map(|operation| Arc::clone(&operation.0));
        let envelope = OwnedEnvelope::new(&self.caller.borrow(), request, settings, false).of_operation(operation);
        Call::request(Box::new(envelope), self.received).lost(true)
    }
}

/// A stage that can be given up: its future was dropped.
pub(super) trait GiveUp: Send {
    fn give_up(self, now: Now) -> Ended;
}

impl GiveUp for Received {
    fn give_up(self, _: Now) -> Ended {
        self.lost(false)
    }
}

impl<S: Send> GiveUp for Call<Carried, Arc<Tool>, S> {
    fn give_up(self, _: Now) -> Ended {
        self.cancel()
    }
}

impl GiveUp for Loading<Carried, Arc<Tool>> {
    fn give_up(self, _: Now) -> Ended {
        self.cancel()
    }
}

impl GiveUp for Asking<Carried, Arc<Tool>> {
    fn give_up(self, _: Now) -> Ended {
        self.cancel()
    }
}

impl GiveUp for Redeeming<Carried, Arc<Tool>> {
    fn give_up(self, _: Now) -> Ended {
        self.cancel()
    }
}

impl<S: Send> GiveUp for Operating<Carried, Arc<Tool>, S> {
    fn give_up(self, _: Now) -> Ended {
        self.cancel()
    }
}

/// A call whose tool was started.
pub(super) struct Started {
    pub(super) run: Executing<Carried, Arc<Tool>>,
    pub(super) at: Instant,
}

/// A call at a stage. Dropped, it is given up, recorded and settled.
pub(super) struct Parked<S: GiveUp> {
    stage: Option<S>,
    passage: Option<Passage>,
}

/// A stage that is one of several, on its way to being parked as the one that it is.
pub(super) struct Fork<S>(pub(super) S);

impl GiveUp for Fork<Load<Carried, Arc<Tool>>> {
    fn give_up(self, now: Now) -> Ended {
        match self.0 {
            Load::Fresh(call) => call.give_up(now),
            Load::Stored(loading) => loading.give_up(now),
        }
    }
}

impl GiveUp for Fork<Confirm<Carried, Arc<Tool>>> {
    fn give_up(self, now: Now) -> Ended {
        match self.0 {
            Confirm::NotNeeded(call) => call.give_up(now),
            Confirm::Ask(asking) => asking.give_up(now),
            Confirm::Redeem(redeeming) => redeeming.give_up(now),
        }
    }
}

impl<S: Send> GiveUp for Fork<Operate<Carried, Arc<Tool>, S>> {
    fn give_up(self, now: Now) -> Ended {
        match self.0 {
            Operate::NotNeeded(call) => call.give_up(now),
            Operate::Ask(operating) => operating.give_up(now),
        }
    }
}

impl<S> Parked<Fork<S>>
where
    Fork<S>: GiveUp,
{
    /// The stage by itself; both are to be parked again at once.
    #[expect(clippy::expect_used, reason = "both are there until `step` or `end` take them, which use the call up")]
    pub(super) fn fork(mut self) -> (S, Passage) {
        let Fork(stage) = self.stage.take().expect("a stage");
        (stage, self.passage.take().expect("a passage"))
    }
}

/// A call that ended and is not recorded yet.
pub(super) struct Over {
    pub(super) ended: Ended,
    pub(super) passage: Passage,
    /// What goes on once the call is recorded and its outcome is delivered; given up, after the record, if it is not.
    pub(super) then: Option<Box<Accepted>>,
}

impl<S: GiveUp> Parked<S> {
    pub(super) const fn new(stage: S, passage: Passage) -> Self {
        Self { stage: Some(stage), passage: Some(passage) }
    }

    #[expect(clippy::expect_used, reason = "both are there until `step` or `end` take them, which use the call up")]
    pub(super) const fn stage(&self) -> &S {
        self.stage.as_ref().expect("a stage")
    }

    #[expect(clippy::expect_used, reason = "both are there until `step` or `end` take them, which use the call up")]
    pub(super) const fn stage_mut(&mut self) -> &mut S {
        self.stage.as_mut().expect("a stage")
    }

    #[expect(clippy::expect_used, reason = "both are there until `step` or `end` take them, which use the call up")]
    pub(super) const fn passage(&self) -> &Passage {
        self.passage.as_ref().expect("a passage")
    }

    #[expect(clippy::expect_used, reason = "both are there until `step` or `end` take them, which use the call up")]
    pub(super) const fn passage_mut(&mut self) -> &mut Passage {
        self.passage.as_mut().expect("a passage")
    }

    /// Takes the stage to the next one, or to its end. Should `transition` panic, the call counts as lost.
    #[expect(clippy::result_large_err, reason = "an ended call is a value of the pipeline, moved once")]
    #[expect(clippy::expect_used, reason = "both are there until `step` or `end` take them, which use the call up")]
    pub(super) fn step<N: GiveUp>(mut self, transition: impl FnOnce(S) -> Result<N, Ended>) -> Result<Parked<N>, Over> {
        let next = transition(self.stage.take().expect("a stage"));
        let passage = self.passage.take().expect("a passage");
        match next {
            Ok(stage) => Ok(Parked::new(stage, passage)),
            Err(ended) => Err(Over { ended, passage, then: None }),
        }
    }

    /// Takes the stage to another that it cannot fail to reach.
    #[expect(clippy::expect_used, reason = "both are there until `step` or `end` take them, which use the call up")]
    pub(super) fn map<N: GiveUp>(mut self, transition: impl FnOnce(S) -> N) -> Parked<N> {
        let next = transition(self.stage.take().expect("a stage"));
        Parked::new(next, self.passage.take().expect("a passage"))
    }

    /// Ends the call.
    #[expect(clippy::expect_used, reason = "both are there until `step` or `end` take them, which use the call up")]
    pub(super) fn end(mut self, end: impl FnOnce(S) -> Ended) -> Over {
        let ended = end(self.stage.take().expect("a stage"));
        Over { ended, passage: self.passage.take().expect("a passage"), then: None }
    }
}

impl<S: GiveUp> Drop for Parked<S> {
    fn drop(&mut self) {
        let Some(passage) = self.passage.take() else { return };
        passage.cancellation.cancel();
        let now = passage.gate.0.common.now();
        let stage = self.stage.take();
        let given_up = stage.and_then(|stage| contain(|| stage.give_up(now)).ok());
        let ended = given_up.unwrap_or_else(|| passage.lost());
        Over { ended, passage, then: None }.finish_alone();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    use callgate_core::context::CallContext;
    use callgate_std::audit::MemoryAudit;
    use callgate_std::future::BoxFuture;
    use callgate_std::registry::Registry;

    use super::*;
    use crate::gate::CallOptions;
    use crate::runtime::Runtime;
    use crate::seam::Immediate;

    /// Nothing of these tests waits.
    struct Never;

    impl Runtime for Never {
        fn now(&self) -> Now {
            Now::default()
        }

        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            Box::pin(std::future::pending())
        }

        fn spawn(&self, future: BoxFuture<'static, ()>) {
            drop(future);
        }

        fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
            drop(work);
        }
    }

    /// J1, J7: the record of a call whose value a panic took names all that is known of it.
    #[test]
    fn j1_a_call_that_is_lost_to_a_panic_is_recorded_with_its_operation() {
        let audit = MemoryAudit::new();
        let sink = Immediate(audit.clone());
        let gate = Gate::builder(Registry::builder().build().unwrap(), Never).audit(sink).build().unwrap();
        let (caller, options) = (CallContext::cli("r1"), CallOptions::new().of_operation("op-1"));
        let request = Request { tool: "pay", arguments: b"{}", token: None };
        let call = gate.receive(&caller, request, options);
        let planted = |_: Received| -> Result<Received, Ended> { panic!("planted") };
        assert!(catch_unwind(AssertUnwindSafe(|| call.step(planted).is_ok())).is_err());
        let [record] = &audit.lines()[..] else { panic!("one record") };
        for part in [r#""request_id":"r1""#, r#""tool":"pay""#, r#""operation":"op-1""#, r#""effect":"unknown""#] {
            assert!(record.contains(part), "{part} in {record}");
        }
    }
}
