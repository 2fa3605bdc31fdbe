//! A journal beside core's rules over a map, through scripts of chance in which callers, hosts and the process are lost anywhere.

use std::collections::HashMap;

use callgate_core::code::Effect;
use callgate_core::confirm::ReconcileError;
use callgate_core::digest::Digest;
use callgate_core::time::{Clock, Timestamp};
use callgate_std::confirmations::Resolution;
use callgate_std::journal::{
    JournalAnswer, JournalLimits, KeptReply, Operation, OperationRefusal, OperationRequest, OperationState, Recalled,
    SettleError,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::bench::{ALICE, BOB, HOST, LEASE, attempt, end, request, result};
use crate::suite::Make;

const RETENTION: u64 = 3 * LEASE;

#[derive(Clone, Copy, Debug)]
enum Act {
    Recall(u8),
    Claim(u8),
    /// What an attempt tells; many never do.
    Finish(u8, u32, Effect, bool),
    Reap,
    Settle(u8, Effect),
    Pass(u64),
    /// The process dies, and another opens the journal.
    Crash,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let effect = || prop_oneof![Just(Effect::None), Just(Effect::Done), Just(Effect::Unknown)];
    let act = prop_oneof![
        2 => (0_u8..8).prop_map(Act::Recall),
        5 => (0_u8..8).prop_map(Act::Claim),
        5 => (0_u8..8, 1_u32..4, effect(), any::<bool>()).prop_map(|(op, number, effect, has)| Act::Finish(op, number, effect, has)),
        1 => Just(Act::Reap),
        2 => (0_u8..8, effect()).prop_map(|(op, effect)| Act::Settle(op, effect)),
        3 => prop_oneof![Just(1), Just(LEASE - 1), Just(LEASE), Just(RETENTION)].prop_map(Act::Pass),
        1 => Just(Act::Crash),
    ];
    prop::collection::vec(act, 1..40)
}

/// The operation of a number: of two principals, two ids, two kinds of arguments.
fn operation(number: u8) -> OperationRequest<'static> {
    let caller = if number & 1 == 0 { ALICE } else { BOB };
    request(caller, if number & 2 == 0 { "a" } else { "b" }, number & 4)
}

/// What the rules alone say.
#[derive(Default)]
struct Model {
    kept: HashMap<[u8; 32], (Operation, Option<KeptReply>)>,
}

impl Model {
    fn forget(&mut self, now: Timestamp) {
        self.kept.retain(|_, (operation, _)| !operation.is_forgettable(now, RETENTION));
    }

    fn ask(&mut self, request: &OperationRequest<'_>, now: Timestamp, claims: bool) -> JournalAnswer {
        self.forget(now);
        let key = *request.presented.key.as_bytes();
        let kept = self.kept.get(&key);
        let claimed = match Operation::claim(kept.map(|(operation, _)| operation), &request.presented, now) {
            Err(refusal) => return Ok(Err(refusal)),
            Ok(Some(claimed)) => claimed,
            Ok(None) => {
                let result = kept.and_then(|(_, result)| result.clone());
                return Ok(result.map(Recalled::Completed).ok_or(OperationRefusal::NotKept));
            }
        };
        if claims {
            self.kept.insert(key, (claimed, None));
        }
        Ok(Ok(Recalled::Free(claimed.attempt)))
    }

    fn finish(
        &mut self,
        key: Digest,
        number: u32,
        effect: Effect,
        result: Option<&KeptReply>,
        now: Timestamp,
    ) -> Result<(), SettleError> {
        self.forget(now);
        let (operation, kept) = self.kept.get_mut(key.as_bytes()).ok_or(SettleError::Unknown)?;
        operation.settle(attempt(number), effect, now)?;
        *kept = result.filter(|_| operation.state == OperationState::Completed).cloned();
        Ok(())
    }

    fn settle(&mut self, key: Digest, effect: Effect, now: Timestamp) -> Result<OperationState, ReconcileError> {
        self.forget(now);
        let (operation, _) = self.kept.get_mut(key.as_bytes()).ok_or(ReconcileError::Unknown)?;
        operation.reap(now);
        operation.reconcile(effect, "found out", &HOST, None, now)?;
        Ok(operation.state)
    }

    fn reap(&mut self, now: Timestamp) -> usize {
        self.kept.values_mut().filter_map(|(operation, _)| operation.reap(now).then_some(())).count()
    }
}

/// N2: the journal answers as the rules do, through all of it, and no operation is claimed again before it is known that the attempt
/// before had no effect.
pub(crate) fn refines(make: Make) {
    let limits = JournalLimits { retention_ms: RETENTION, ..JournalLimits::DEFAULT };
    let cases = make(limits).cases;
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let ran = runner.run(&acts(), |acts| {
        let mut bench = make(limits);
        let mut model = Model::default();
        for act in acts {
            let now = bench.clock.now().wall;
            match act {
                Act::Pass(ms) => bench.pass(ms),
                Act::Crash => {
                    if let Some(reopen) = &bench.reopen {
                        bench.journal = reopen();
                    }
                }
                Act::Recall(op) => {
                    let op = operation(op);
                    prop_assert_eq!(bench.journal.recall(&op.presented), model.ask(&op, now, false));
                }
                Act::Claim(op) => {
                    let op = operation(op);
                    prop_assert_eq!(bench.journal.claim(&op), model.ask(&op, now, true));
                }
                Act::Finish(op, number, effect, has) => {
                    let op = operation(op);
                    let kept = result("r");
                    let kept = has.then_some(&kept);
                    let told = bench.journal.finish(&end(&op, number, effect), kept).expect("it works");
                    // What is over may be there until it is swept: it is settled before, or unknown, and neither changes anything.
                    let expected = model.finish(op.presented.key, number, effect, kept, now);
                    prop_assert_eq!(told.is_ok(), expected.is_ok(), "{:?} {:?}", told, expected);
                }
                Act::Reap => {
                    let reaped = bench.journal.reap(100).expect("it works").len();
                    prop_assert_eq!(reaped, model.reap(now));
                }
                Act::Settle(op, effect) => {
                    let key = operation(op).presented.key;
                    let resolution = Resolution { effect, proof: "found out", by: HOST };
                    let settled = bench.journal.reconcile(key, &resolution).expect("it works");
                    let expected = model.settle(key, effect, now);
                    prop_assert_eq!(settled.map(|view| view.state).ok(), expected.ok());
                }
            }
        }
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
}
