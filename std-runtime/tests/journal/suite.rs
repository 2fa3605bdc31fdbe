//! What every journal has to do.

use std::sync::Barrier;

use callgate_core::code::Effect;
use callgate_core::confirm::ReconcileError;
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_std::confirmations::Resolution;
use callgate_std::journal::{
    JournalAnswer, JournalLimits, KeptReply, OperationRefusal, OperationRequest, OperationState, Recalled, SettleError,
};

use crate::bench::{ALICE, BOB, Bench, CANARY, HOST, LEASE, attempt, end, request, result};

pub(crate) type Make = fn(JournalLimits) -> Bench;

/// Runs the suite on each of these journals.
macro_rules! every_journal {
    ($($make:ident)+) => {
        $crate::suite::every_journal!(@tests [$($make)+]
            j3_an_operation_is_claimed_once
            j4_an_attempt_that_comes_late_changes_nothing
            j4_what_is_lost_is_in_doubt_and_stays_so
            j5_what_is_in_doubt_is_settled_with_a_proof
            a4_an_operation_is_bound_to_its_call
            f5_a_full_journal_refuses
            c3_results_are_kept_for_their_time
            o2_results_that_are_too_large_are_not_kept
            p2_operations_are_told_to_those_who_may_know
            a5_one_claim_among_threads
            n2_it_refines_the_model
        );
    };
    (@tests $makes:tt $($test:ident)+) => { $($crate::suite::every_journal!(@test $test $makes);)+ };
    (@test $test:ident [$($make:ident)+]) => {
        mod $test {
            $(#[test]
            fn $make() {
                $crate::suite::$test($crate::$make);
            })+
        }
    };
}
pub(crate) use every_journal;

fn free(number: u32) -> JournalAnswer {
    Ok(Ok(Recalled::Free(attempt(number))))
}

fn refused(refusal: OperationRefusal) -> JournalAnswer {
    Ok(Err(refusal))
}

fn completed(result: KeptReply) -> JournalAnswer {
    Ok(Ok(Recalled::Completed(result)))
}

/// Claims it and has it completed.
fn complete(bench: &Bench, request: &OperationRequest<'_>, kept: &KeptReply) {
    assert_eq!(bench.journal.claim(request), free(1));
    assert_eq!(bench.journal.finish(&end(request, 1, Effect::Done), Some(kept)), Ok(Ok(())));
}

/// J3, A5: a claim excludes others until it is settled; what was completed is given again, byte for byte, to a question and to a claim.
pub(crate) fn j3_an_operation_is_claimed_once(make: Make) {
    let bench = make(JournalLimits::DEFAULT);
    let op = request(ALICE, "op", 1);
    assert_eq!(bench.journal.recall(&op.presented), free(1));
    assert_eq!(bench.journal.recall(&op.presented), free(1), "a question claims nothing");
    assert_eq!(bench.journal.claim(&op), free(1));
    assert_eq!(bench.journal.claim(&op), refused(OperationRefusal::InProgress));
    assert_eq!(bench.journal.recall(&op.presented), refused(OperationRefusal::InProgress));
    let kept = result("the result");
    assert_eq!(bench.journal.finish(&end(&op, 1, Effect::Done), Some(&kept)), Ok(Ok(())));
    assert_eq!(bench.journal.recall(&op.presented), completed(kept.clone()));
    assert_eq!(bench.journal.claim(&op), completed(kept));
    // One without an effect may be tried again, under the next number; its result is that of the attempt that had one.
    let other = request(ALICE, "other", 1);
    assert_eq!(bench.journal.claim(&other), free(1));
    assert_eq!(bench.journal.finish(&end(&other, 1, Effect::None), None), Ok(Ok(())));
    assert_eq!(bench.journal.recall(&other.presented), free(2));
    assert_eq!(bench.journal.claim(&other), free(2));
    let bare = KeptReply { data: "2".to_owned(), message: None, meta: None, meta_dropped: false, cut: None };
    assert_eq!(bench.journal.finish(&end(&other, 2, Effect::Done), Some(&bare)), Ok(Ok(())));
    assert_eq!(bench.journal.claim(&other), completed(bare));
}

/// J4: what an attempt tells after another began, or after it was settled, changes nothing.
pub(crate) fn j4_an_attempt_that_comes_late_changes_nothing(make: Make) {
    let bench = make(JournalLimits::DEFAULT);
    let op = request(ALICE, "op", 1);
    let finish = |number, effect| bench.journal.finish(&end(&op, number, effect), Some(&result("late")));
    assert_eq!(finish(1, Effect::Done), Ok(Err(SettleError::Unknown)));
    assert_eq!(bench.journal.claim(&op), free(1));
    assert_eq!(finish(1, Effect::None), Ok(Ok(())));
    assert_eq!(finish(1, Effect::Done), Ok(Err(SettleError::Settled(OperationState::Open))));
    assert_eq!(bench.journal.claim(&op), free(2));
    for effect in [Effect::None, Effect::Done, Effect::Unknown] {
        assert_eq!(finish(1, effect), Ok(Err(SettleError::OtherAttempt)));
        assert_eq!(bench.journal.claim(&op), refused(OperationRefusal::InProgress));
    }
    assert_eq!(bench.journal.finish(&end(&op, 2, Effect::Done), Some(&result("in time"))), Ok(Ok(())));
    assert_eq!(finish(2, Effect::None), Ok(Err(SettleError::Settled(OperationState::Completed))));
    assert_eq!(bench.journal.claim(&op), completed(result("in time")));
}

/// J4: after its lease, at its moment, a claim is in doubt, also before anybody reaped it; nothing claims it again.
pub(crate) fn j4_what_is_lost_is_in_doubt_and_stays_so(make: Make) {
    let bench = make(JournalLimits::DEFAULT);
    let (op, other) = (request(ALICE, "op", 1), request(ALICE, "other", 1));
    assert_eq!(bench.journal.claim(&op), free(1));
    bench.pass(LEASE - 1);
    assert_eq!(bench.journal.claim(&other), free(1));
    assert_eq!(bench.journal.claim(&op), refused(OperationRefusal::InProgress));
    assert_eq!(bench.journal.reap(10), Ok(Vec::new()));
    bench.pass(1);
    assert_eq!(bench.journal.claim(&op), refused(OperationRefusal::InDoubt));
    let reaped = bench.journal.reap(10).expect("it works");
    assert_eq!(reaped.iter().map(|view| view.operation.as_str()).collect::<Vec<_>>(), ["op"]);
    assert_eq!((reaped[0].state, reaped[0].request_id.as_str()), (OperationState::InDoubt, "r1"));
    assert_eq!(bench.journal.reap(10), Ok(Vec::new()), "once");
    let late = bench.journal.finish(&end(&op, 1, Effect::Done), Some(&result("late")));
    assert_eq!(late, Ok(Err(SettleError::Settled(OperationState::InDoubt))));
    // A call that says itself that it does not know is in doubt at once.
    assert_eq!(bench.journal.finish(&end(&other, 1, Effect::Unknown), None), Ok(Ok(())));
    // C2: neither time nor a clock that is set back changes that.
    for step in 0..3 {
        assert_eq!(bench.journal.claim(&op), refused(OperationRefusal::InDoubt));
        assert_eq!(bench.journal.recall(&other.presented), refused(OperationRefusal::InDoubt));
        if step == 0 { bench.pass(1_000 * 86_400_000) } else { bench.clock.step_wall(-3_600_000) }
    }
}

/// J5: whoever finds out settles it, with a proof, and not otherwise.
pub(crate) fn j5_what_is_in_doubt_is_settled_with_a_proof(make: Make) {
    let bench = make(JournalLimits::DEFAULT);
    let (done, none) = (request(ALICE, "done", 1), request(ALICE, "none", 1));
    let settle = |op: &OperationRequest<'_>, effect, proof, by| {
        bench.journal.reconcile(op.presented.key, &Resolution { effect, proof, by }).expect("it works")
    };
    assert_eq!(settle(&done, Effect::Done, "seen", HOST).unwrap_err(), ReconcileError::Unknown);
    for op in [&done, &none] {
        assert_eq!(bench.journal.claim(op), free(1));
    }
    assert!(matches!(
        settle(&done, Effect::Done, "seen", HOST),
        Err(ReconcileError::OperationNotInDoubt(OperationState::Claimed { .. }))
    ));
    bench.pass(LEASE);
    assert_eq!(settle(&done, Effect::Done, " ", HOST).unwrap_err(), ReconcileError::NoProof);
    assert_eq!(settle(&done, Effect::Done, "seen", ALICE).unwrap_err(), ReconcileError::MissingScope);
    let elsewhere = CallContext { tenant: Some("t2"), ..HOST };
    assert_eq!(settle(&done, Effect::Done, "seen", elsewhere).unwrap_err(), ReconcileError::Unknown, "P2");
    let view = settle(&done, Effect::Done, "seen in the ledger", HOST).expect("settled");
    assert_eq!((view.state, view.proof.as_deref()), (OperationState::Completed, Some("seen in the ledger")));
    assert_eq!(bench.journal.claim(&done), refused(OperationRefusal::NotKept), "it took effect; nobody has its result");
    assert_eq!(
        settle(&done, Effect::None, "no", HOST).unwrap_err(),
        ReconcileError::OperationNotInDoubt(OperationState::Completed)
    );
    assert_eq!(settle(&none, Effect::None, "not in the ledger", HOST).expect("settled").state, OperationState::Open);
    assert_eq!(bench.journal.claim(&none), free(2));
    // The proof was that of the attempt before.
    let views = bench.journal.operations(&ALICE, 10).expect("it works");
    assert!(views.iter().any(|view| view.operation == "none" && view.proof.is_none() && view.attempt == 2));
}

/// A4, P2: the same id is another operation for another principal or tenant, and none for another tool or other arguments.
pub(crate) fn a4_an_operation_is_bound_to_its_call(make: Make) {
    let bench = make(JournalLimits::DEFAULT);
    let op = request(ALICE, "op", 1);
    complete(&bench, &op, &result("alice's"));
    let mut other = op;
    other.presented.arguments = Digest::from_bytes([2; 32]);
    assert_eq!(bench.journal.claim(&other), refused(OperationRefusal::OtherArguments));
    other.presented.tool = Digest::from_bytes([2; 32]);
    assert_eq!(bench.journal.recall(&other.presented), refused(OperationRefusal::OtherTool));
    for caller in [BOB, CallContext { tenant: Some("t"), ..ALICE }] {
        let op = request(caller, "op", 9);
        assert_eq!(bench.journal.recall(&op.presented), free(1));
        complete(&bench, &op, &result("another's"));
    }
    assert_eq!(bench.journal.claim(&op), completed(result("alice's")));
}

/// F5, J5: each bound refuses, nothing that counts is dropped for it, and what is in doubt counts until it is settled.
pub(crate) fn f5_a_full_journal_refuses(make: Make) {
    let few = JournalLimits { operations: 3, ..JournalLimits::DEFAULT };
    let principal = JournalLimits { per_principal: 3, ..JournalLimits::DEFAULT };
    let tenant = JournalLimits { per_tenant: 3, ..JournalLimits::DEFAULT };
    let bytes = JournalLimits { bytes: 3 * (JournalLimits::OPERATION_BYTES + 50), ..JournalLimits::DEFAULT };
    let of_a_tenant = |caller: CallContext<'static>| CallContext { tenant: Some("t"), ..caller };
    for (limits, caller, another) in [
        (few, ALICE, None),
        (principal, ALICE, Some(BOB)),
        (tenant, of_a_tenant(ALICE), Some(ALICE)),
        (bytes, ALICE, None),
    ] {
        let bench = make(limits);
        let kept = KeptReply { data: "1".to_owned(), message: None, meta: None, meta_dropped: false, cut: None };
        complete(&bench, &request(caller, "a", 1), &kept);
        assert_eq!(bench.journal.claim(&request(caller, "b", 1)), free(1));
        assert_eq!(bench.journal.claim(&request(caller, "c", 1)), free(1));
        assert_eq!(bench.journal.finish(&end(&request(caller, "c", 1), 1, Effect::Unknown), None), Ok(Ok(())));
        assert_eq!(bench.journal.claim(&request(caller, "d", 1)), refused(OperationRefusal::Full), "{limits:?}");
        assert_eq!(bench.journal.claim(&request(caller, "a", 1)), completed(kept.clone()), "a replay takes no room");
        match another {
            Some(another) => assert_eq!(bench.journal.claim(&request(another, "d", 1)), free(1), "{limits:?}"),
            None => assert_eq!(bench.journal.claim(&request(BOB, "d", 1)), refused(OperationRefusal::Full)),
        }
        bench.pass(limits.retention_ms);
        assert_eq!(bench.journal.claim(&request(caller, "d", 1)), free(1), "what was settled gives its place up");
        assert_eq!(bench.journal.claim(&request(caller, "e", 1)), refused(OperationRefusal::Full), "{limits:?}");
        assert_eq!(bench.journal.claim(&request(caller, "b", 1)), refused(OperationRefusal::InDoubt));
        assert_eq!(bench.journal.claim(&request(caller, "c", 1)), refused(OperationRefusal::InDoubt));
    }
}

/// C3: a result is there for its time, whatever else is kept or forgotten, and at its moment it is unknown.
pub(crate) fn c3_results_are_kept_for_their_time(make: Make) {
    let limits = JournalLimits { retention_ms: 10_000, ..JournalLimits::DEFAULT };
    let bench = make(limits);
    let op = request(ALICE, "op", 1);
    complete(&bench, &op, &result("x"));
    bench.pass(9_999);
    complete(&bench, &request(BOB, "new", 1), &result("y"));
    assert_eq!(bench.journal.recall(&op.presented), completed(result("x")));
    bench.pass(1);
    assert_eq!(bench.journal.recall(&op.presented), free(1));
    assert_eq!(bench.journal.operations(&ALICE, 10), Ok(Vec::new()));
    // Its id is unknown, so it is no other call's either.
    assert_eq!(bench.journal.claim(&request(ALICE, "op", 2)), free(1));
    assert_eq!(bench.journal.recall(&request(BOB, "new", 1).presented), completed(result("y")));
}

/// O2: a result over the bounds is not kept, and that it took effect is.
pub(crate) fn o2_results_that_are_too_large_are_not_kept(make: Make) {
    let size = result("x").bytes();
    let (fits, larger) = (request(ALICE, "fits", 1), request(ALICE, "larger", 1));
    for limits in [
        JournalLimits { result_bytes: size, ..JournalLimits::DEFAULT },
        JournalLimits { bytes: fits.bytes() + larger.bytes() + 2 * size, ..JournalLimits::DEFAULT },
    ] {
        let bench = make(limits);
        complete(&bench, &fits, &result("x"));
        complete(&bench, &larger, &result("xx"));
        assert_eq!(bench.journal.claim(&fits), completed(result("x")));
        assert_eq!(bench.journal.claim(&larger), refused(OperationRefusal::NotKept));
        let views = bench.journal.operations(&ALICE, 10).expect("it works");
        let told: Vec<_> = views.iter().map(|view| (view.operation.as_str(), view.has_result)).collect();
        assert!(told.contains(&("fits", true)) && told.contains(&("larger", false)), "{told:?}");
    }
}

/// P2, L1: its caller and whoever may settle it are told of an operation, nobody else, and nobody of its result.
pub(crate) fn p2_operations_are_told_to_those_who_may_know(make: Make) {
    let bench = make(JournalLimits::DEFAULT);
    complete(&bench, &request(ALICE, "a", 1), &result(CANARY));
    bench.pass(1);
    assert_eq!(bench.journal.claim(&request(BOB, "b", 1)), free(1));
    assert_eq!(bench.journal.finish(&end(&request(BOB, "b", 1), 1, Effect::Unknown), None), Ok(Ok(())));
    let of_t = CallContext { tenant: Some("t"), ..ALICE };
    complete(&bench, &request(of_t, "c", 1), &result(CANARY));
    let seen = |viewer: CallContext<'_>, max| {
        let views = bench.journal.operations(&viewer, max).expect("it works");
        assert!(!format!("{views:?}").contains(CANARY), "L1");
        views.into_iter().map(|view| view.operation).collect::<Vec<_>>()
    };
    assert_eq!(seen(ALICE, 10), ["a"]);
    assert_eq!(seen(BOB, 10), ["b"]);
    assert_eq!(seen(HOST, 10), ["b", "a"], "what is in doubt comes first");
    assert_eq!(seen(HOST, 1), ["b"]);
    assert_eq!(seen(of_t, 10), ["c"]);
    assert_eq!(seen(CallContext { principal: None, ..HOST }, 10), [""; 0]);
    assert!(!(bench.debug)().contains(CANARY), "L1");
    assert!(!format!("{:?}", bench.journal.recall(&request(ALICE, "a", 1).presented)).contains(CANARY), "L1");
}

/// A5: of all who claim at once, one does.
pub(crate) fn a5_one_claim_among_threads(make: Make) {
    const THREADS: usize = 6;
    let bench = make(JournalLimits::DEFAULT);
    for round in 0..10 {
        let id = format!("op{round}");
        let barrier = Barrier::new(THREADS);
        let claims = || {
            barrier.wait();
            bench.journal.claim(&request(ALICE, &id, 1))
        };
        let answers: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(claims)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!(answers.iter().filter(|answer| **answer == free(1)).count(), 1, "{answers:?}");
        assert!(answers.iter().all(|a| *a == free(1) || *a == refused(OperationRefusal::InProgress)), "{answers:?}");
    }
}

pub(crate) fn n2_it_refines_the_model(make: Make) {
    crate::model::refines(make);
}
