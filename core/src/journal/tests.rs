use core::num::NonZeroU32;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::context::Scopes;

const LEASE: u64 = 1_000;
const RETENTION: u64 = 10_000;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_unix_millis(ms)
}

fn presented(arguments: u8) -> PresentedOperation {
    let digest = |byte| Digest::from_bytes([byte; 32]);
    PresentedOperation {
        key: digest(1),
        principal: digest(2),
        tool: digest(3),
        arguments: digest(arguments),
        lease_ms: LEASE,
    }
}

fn claimed(now: u64) -> Operation {
    Operation::claim(None, &presented(9), at(now)).unwrap().unwrap()
}

fn attempt(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

/// J4: at the moment itself the lease is over.
#[test]
fn j4_a_lease_ends_at_its_moment() {
    for (now, told) in [(999, OperationRefusal::InProgress), (1_000, OperationRefusal::InDoubt)] {
        let mut operation = claimed(0);
        assert_eq!(Operation::claim(Some(&operation), &presented(9), at(now)), Err(told));
        assert_eq!(operation.reap(at(now)), told == OperationRefusal::InDoubt);
        assert!(!operation.reap(at(now)) || now == 1_000);
    }
}

/// J4: an attempt that comes late changes nothing, whatever it tells.
#[test]
fn j4_a_late_attempt_changes_nothing() {
    let mut operation = claimed(0);
    assert_eq!(operation.settle(attempt(1), Effect::None, at(1)), Ok(()));
    operation = Operation::claim(Some(&operation), &presented(9), at(2)).unwrap().unwrap();
    assert_eq!(operation.attempt, attempt(2));
    for effect in [Effect::None, Effect::Done, Effect::Unknown] {
        let before = operation;
        assert_eq!(operation.settle(attempt(1), effect, at(3)), Err(SettleError::OtherAttempt));
        assert_eq!(operation, before);
    }
    assert!(operation.reap(at(5_000)));
    let in_doubt = operation;
    assert_eq!(
        operation.settle(attempt(2), Effect::Done, at(5_001)),
        Err(SettleError::Settled(OperationState::InDoubt))
    );
    assert_eq!(operation, in_doubt);
    // The numbers are not begun anew: the last one is the end of it.
    let last = Operation { attempt: NonZeroU32::MAX, state: OperationState::Open, ..claimed(0) };
    assert_eq!(Operation::claim(Some(&last), &presented(9), at(1)), Err(OperationRefusal::InDoubt));
}

/// Only what is in doubt is settled, only by who may, and only with a proof.
#[test]
fn j5_what_is_in_doubt_is_settled_with_a_proof() {
    let by = CallContext::new("cli", "r").with_principal("op").with_scopes(Scopes::new(RECONCILE_SCOPE));
    let mut operation = claimed(0);
    let not_in_doubt = operation.reconcile(Effect::Done, "seen", &by, None, at(1));
    assert_eq!(not_in_doubt, Err(ReconcileError::OperationNotInDoubt(operation.state)));
    assert!(operation.reap(at(LEASE)));
    for (effect, proof, by, tenant, error) in [
        (Effect::Done, "seen", by, Some("t"), ReconcileError::Unknown),
        (Effect::Done, "seen", CallContext { principal: None, ..by }, None, ReconcileError::Unauthenticated),
        (Effect::Done, "seen", by.with_scopes(Scopes::new("approve")), None, ReconcileError::MissingScope),
        (Effect::Done, "  ", by, None, ReconcileError::NoProof),
        (Effect::Unknown, "seen", by, None, ReconcileError::StillUnknown),
    ] {
        let before = operation;
        assert_eq!(operation.reconcile(effect, proof, &by, tenant, at(2_000)), Err(error));
        assert_eq!(operation, before);
    }
    let mut open = operation;
    assert_eq!(open.reconcile(Effect::None, "seen", &by, None, at(2_000)), Ok(()));
    assert_eq!(Operation::claim(Some(&open), &presented(9), at(2_001)).unwrap().unwrap().attempt, attempt(2));
    assert_eq!(operation.reconcile(Effect::Done, "seen", &by, None, at(2_000)), Ok(()));
    assert_eq!(Operation::claim(Some(&operation), &presented(9), at(2_001)), Ok(None));
}

/// C3, J5: what is settled is kept for its time, at its moment forgotten, and what is not settled never.
#[test]
fn c3_an_operation_is_kept_for_its_time() {
    let open = claimed(0);
    for state in [OperationState::InDoubt, OperationState::Claimed { until: at(1) }] {
        assert!(!Operation { state, ..open }.is_forgettable(at(u64::MAX), RETENTION));
    }
    for state in [OperationState::Open, OperationState::Completed] {
        let operation = Operation { state, since: at(5), ..open };
        assert!(!operation.is_forgettable(at(RETENTION + 4), RETENTION));
        assert!(operation.is_forgettable(at(RETENTION + 5), RETENTION));
    }
}

/// P2: names are injective, and nobody has one.
#[test]
fn p2_names_are_of_one_tenant_principal_and_id() {
    let caller = |tenant, principal| CallContext { tenant, principal, ..CallContext::new("cli", "r") };
    let mut keys: Vec<Digest> = Vec::new();
    for (tenant, principal, operation) in [
        (None, "a", "b"),
        (Some("a"), "a", "b"),
        (Some("a"), "b", "b"),
        (None, "ab", ""),
        (None, "", "ab"),
        (None, "a", "bb"),
    ] {
        match operation_key(&caller(tenant, Some(principal)), operation) {
            Some(key) => {
                assert!(!keys.contains(&key));
                keys.push(key);
            }
            None => assert_eq!(principal, ""),
        }
    }
    assert_eq!(operation_key(&caller(Some("t"), None), "x"), None);
    let me = caller(Some("t"), Some("me"));
    let own = principal_digest(&me);
    assert!(is_visible_to(&me, Some("t"), own) && !is_visible_to(&me, None, own));
    assert!(!is_visible_to(&caller(Some("t"), Some("you")), Some("t"), own));
    assert!(is_visible_to(&caller(Some("t"), Some("you")).with_scopes(Scopes::new("reconcile")), Some("t"), own));
    assert!(!is_visible_to(&caller(Some("t"), None).with_scopes(Scopes::ALL), Some("t"), own));
}

/// What callers, the reaper and hosts may do to one operation.
#[derive(Clone, Copy, Debug)]
enum Act {
    Claim {
        arguments: u8,
    },
    /// The call of this attempt runs its tool, if it did not before.
    Run {
        attempt: usize,
    },
    /// The call of this attempt tells what it did; it may have been lost with its process before.
    Tell {
        attempt: usize,
        knows: bool,
    },
    Reap,
    /// A host settles by what really happened.
    Settle,
    Pass {
        ms: u64,
    },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (8_u8..10).prop_map(|arguments| Act::Claim { arguments }),
        3 => (0_usize..4).prop_map(|attempt| Act::Run { attempt }),
        3 => (0_usize..4, any::<bool>()).prop_map(|(attempt, knows)| Act::Tell { attempt, knows }),
        1 => Just(Act::Reap),
        1 => Just(Act::Settle),
        2 => (0_u64..1_500).prop_map(|ms| Act::Pass { ms }),
    ];
    proptest::collection::vec(act, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever callers do, in whatever order, and whoever is lost on the way: an attempt that is fenced off runs late at worst, and no
    /// second one ever begins before it is known, to a host that tells the truth, that the one before had no effect. So there is at most
    /// one effect, as long as calls keep their leases; completed stays completed; the binding never changes; attempts count up.
    #[test]
    fn a5_at_most_one_effect_for_an_operation(acts in acts()) {
        let host = CallContext::new("cli", "r").with_principal("op").with_scopes(Scopes::new(RECONCILE_SCOPE));
        let (mut kept, mut now): (Option<Operation>, u64) = (None, 0);
        // Each attempt: until when it may run, and whether it did.
        let mut attempts: Vec<(u64, bool)> = vec![];
        for act in acts {
            let before = kept;
            match act {
                Act::Pass { ms } => now += ms,
                Act::Claim { arguments } => match Operation::claim(kept.as_ref(), &presented(arguments), at(now)) {
                    Ok(Some(operation)) => {
                        prop_assert!(attempts.iter().all(|(_, ran)| !ran), "a second attempt after an effect");
                        prop_assert_eq!(usize::try_from(operation.attempt.get()).unwrap(), attempts.len() + 1);
                        attempts.push((now + LEASE, false));
                        kept = Some(operation);
                    }
                    Ok(None) => prop_assert_eq!(kept.unwrap().state, OperationState::Completed),
                    Err(OperationRefusal::OtherArguments) => {
                        prop_assert!(kept.unwrap().arguments != presented(arguments).arguments);
                    }
                    Err(refusal) => prop_assert!(
                        matches!(refusal, OperationRefusal::InProgress | OperationRefusal::InDoubt),
                        "{refusal:?}"
                    ),
                },
                Act::Run { attempt } => {
                    if let (Some((until, ran)), Some(operation)) = (attempts.get_mut(attempt), &kept)
                        && now < *until
                        // A call that told that it had no effect is over.
                        && operation.attempt.get() as usize == attempt + 1
                        && matches!(operation.state, OperationState::Claimed { .. })
                    {
                        *ran = true;
                    }
                }
                Act::Tell { attempt, knows } => {
                    if let (Some((_, ran)), Some(operation)) = (attempts.get(attempt), &mut kept) {
                        let effect = match (knows, ran) {
                            (true, true) => Effect::Done,
                            (true, false) => Effect::None,
                            (false, _) => Effect::Unknown,
                        };
                        let number = NonZeroU32::new(u32::try_from(attempt + 1).unwrap()).unwrap();
                        let open = operation.attempt == number && matches!(operation.state, OperationState::Claimed { .. });
                        let told = operation.settle(number, effect, at(now));
                        prop_assert_eq!(told.is_ok(), open);
                        prop_assert!(open || Some(*operation) == before, "a late attempt changed something");
                    }
                }
                Act::Reap => {
                    if let Some(operation) = &mut kept {
                        operation.reap(at(now));
                    }
                }
                Act::Settle => {
                    if let Some(operation) = &mut kept {
                        let ran = attempts.last().is_some_and(|(_, ran)| *ran);
                        let effect = if ran { Effect::Done } else { Effect::None };
                        let _ = operation.reconcile(effect, "the ledger", &host, None, at(now));
                    }
                }
            }
            if let Some(before) = before {
                let after = kept.unwrap();
                prop_assert_eq!((before.tool, before.arguments), (after.tool, after.arguments));
                prop_assert!(after.attempt >= before.attempt);
                prop_assert!(before.state != OperationState::Completed || after == before);
            }
            prop_assert!(attempts.iter().filter(|(_, ran)| *ran).count() <= 1);
        }
    }
}
