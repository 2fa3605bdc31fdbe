//! What every store does that keeps standing grants.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_std::confirmations::{
    By, Capacity, Effect, GrantArguments, GrantError, NewGrant, PendingRequest, Revoked, TicketState,
};

use crate::bench::{ALICE, BOB, GRANTER, LEASE, STEWARD, TTL, approval, binding, presented};
use crate::suite::{Make, finish, fresh};

/// A grant for Alice's calls of the tool of `binding(1)`.
fn new_grant(max_uses: u32) -> NewGrant {
    NewGrant {
        tool: "fs.write".to_owned(),
        definition: binding(1).tool,
        principal: "alice".to_owned(),
        arguments: GrantArguments::Including(r#"{"path":"notes.txt"}"#.to_owned()),
        lasts_ms: 2 * TTL,
        max_uses,
    }
}

pub(crate) fn a7_who_gives_which_grants(make: Make<'_>) {
    let bench = fresh(make);
    let give = |grant: NewGrant, by: &CallContext<'_>| bench.store.grant(grant, by);
    let including = |text: &str| GrantArguments::Including(text.to_owned());
    let fitting = |text: &str| GrantArguments::Fitting(text.to_owned());
    type Expected = fn(&GrantError) -> bool;
    let refused: [(NewGrant, CallContext<'_>, Expected); 9] = [
        (new_grant(1), BOB, |error| matches!(error, GrantError::MissingScope)),
        (new_grant(1), CallContext { principal: None, ..GRANTER }, |error| {
            matches!(error, GrantError::Unauthenticated)
        }),
        (new_grant(1), GRANTER.with_principal("alice"), |error| matches!(error, GrantError::OwnGrant)),
        (NewGrant { lasts_ms: 0, ..new_grant(1) }, GRANTER, |error| matches!(error, GrantError::Duration)),
        (NewGrant { lasts_ms: u64::MAX, ..new_grant(1) }, GRANTER, |error| matches!(error, GrantError::Duration)),
        (new_grant(0), GRANTER, |error| matches!(error, GrantError::Uses)),
        (NewGrant { arguments: including("{}"), ..new_grant(1) }, GRANTER, |error| {
            matches!(error, GrantError::Arguments)
        }),
        (NewGrant { arguments: including("[1]"), ..new_grant(1) }, GRANTER, |error| {
            matches!(error, GrantError::Arguments)
        }),
        (NewGrant { arguments: fitting(r#"{"typ":1}"#), ..new_grant(1) }, GRANTER, |error| {
            matches!(error, GrantError::Schema(_))
        }),
    ];
    for (grant, by, expected) in refused {
        let what = format!("{grant:?}");
        let error = give(grant, &by).expect_err("a grant that nobody may give");
        assert!(expected(&error), "{what}: {error:?}");
    }
    assert_eq!(bench.store.grants(&GRANTER, 9).expect("answers"), []);
    let given = give(new_grant(2), &GRANTER).expect("a good grant");
    assert_eq!((given.principal.as_str(), given.given_by.as_str(), given.used), ("alice", "granter", 0));
    bench.pass(1);
    let other = give(NewGrant { arguments: fitting(r#"{"type":"object"}"#), ..new_grant(1) }, &GRANTER);
    let other = other.expect("a good grant");
    for sees_all in [GRANTER, ALICE] {
        assert_eq!(bench.store.grants(&sees_all, 9).expect("answers"), [given.clone(), other.clone()]);
    }
    assert_eq!(bench.store.grants(&GRANTER, 1).expect("answers").len(), 1);
    for blind in [BOB, CallContext { tenant: Some("other"), ..GRANTER }, CallContext { principal: None, ..GRANTER }] {
        assert_eq!(bench.store.grants(&blind, 9).expect("answers"), [], "P2");
    }
    // What could cover a call: of this definition, by this principal of this tenant.
    let could =
        |caller: &CallContext<'_>, number| bench.store.grants_for(caller, binding(number).tool).expect("answers");
    assert_eq!(could(&ALICE, 1).len(), 2);
    assert_eq!(could(&ALICE, 2), []);
    assert_eq!(could(&BOB, 1), []);
    assert_eq!(could(&CallContext { tenant: Some("other"), ..ALICE }, 1), []);
}

pub(crate) fn p5_a_grant_covers_so_many_calls_and_none_after_its_end(make: Make<'_>) {
    let bench = fresh(make);
    let claim = |grant: Digest| bench.store.claim_grant(grant, &approval(1), &presented(1));
    let given = bench.store.grant(new_grant(2), &GRANTER).expect("a good grant").id;
    let first = claim(given).expect("a use");
    let seen = bench.store.tickets(&STEWARD, 9).expect("answers");
    let [view] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((view.ticket, view.grant, view.by), (first, Some(given), By::Approver));
    assert_eq!(view.approved_by, ["granter"]);
    assert!(matches!(view.state, TicketState::Reserved { call, .. } if call == presented(1).call), "J3: held at once");
    // J4: it is told, reaped and settled as any other ticket.
    assert_eq!(bench.store.finish(&finish(first, Effect::Done)), Ok(Ok(())));
    let second = claim(given).expect("another use");
    assert!(matches!(claim(given), Err(GrantError::Over)), "used up");
    assert_eq!(bench.store.grants_for(&ALICE, binding(1).tool).expect("answers"), []);
    bench.pass(LEASE);
    assert_eq!(bench.store.reap(9).expect("answers").iter().map(|view| view.ticket).collect::<Vec<_>>(), [second]);
    // Another's call, another tool, another tenant, no grant at all.
    let given = bench.store.grant(new_grant(9), &GRANTER).expect("a good grant").id;
    let by_bob = PendingRequest { caller: BOB, ..approval(1) };
    assert!(matches!(bench.store.claim_grant(given, &by_bob, &presented(1)), Err(GrantError::Unknown)));
    let elsewhere = PendingRequest { caller: CallContext { tenant: Some("other"), ..ALICE }, ..approval(1) };
    assert!(matches!(bench.store.claim_grant(given, &elsewhere, &presented(1)), Err(GrantError::Unknown)));
    assert!(matches!(bench.store.claim_grant(given, &approval(2), &presented(2)), Err(GrantError::Over)));
    assert!(matches!(claim(Digest::of_bytes(b"made up")), Err(GrantError::Unknown)));
    // P5: taken back, with one call under way.
    claim(given).expect("a use");
    assert!(matches!(bench.store.revoke(given, &BOB), Err(GrantError::MissingScope)));
    let stranger = CallContext { tenant: Some("other"), ..GRANTER };
    assert!(matches!(bench.store.revoke(given, &stranger), Err(GrantError::Unknown)), "P2");
    assert_eq!(bench.store.revoke(given, &GRANTER).expect("taken back"), Revoked { used: 1, under_way: 1 });
    assert!(matches!(claim(given), Err(GrantError::Over)));
    assert_eq!(bench.store.revoke(given, &GRANTER).expect("again").used, 1);
    // A10: over at the moment itself.
    let given = bench.store.grant(new_grant(9), &GRANTER).expect("a good grant").id;
    bench.pass(2 * TTL - 1);
    claim(given).expect("a use");
    bench.pass(1);
    assert!(matches!(claim(given), Err(GrantError::Over)));
    // C2: a clock that goes back revives nothing.
    bench.clock.step_wall(-3_600_000);
    assert!(claim(given).is_err());
    // F5: a store that is full covers nothing more, and takes no use for it.
    let bench = make(Capacity { entries: 3, ..Capacity::DEFAULT });
    let given = bench.store.grant(new_grant(9), &GRANTER).expect("a good grant").id;
    for _ in 0..3 {
        bench.store.claim_grant(given, &approval(1), &presented(1)).expect("a use");
    }
    assert!(matches!(bench.store.claim_grant(given, &approval(1), &presented(1)), Err(GrantError::Full)));
    assert_eq!(bench.store.grants(&GRANTER, 9).expect("answers")[0].used, 3);
}

pub(crate) fn p5_uses_and_revocation_among_many_threads(make: Make<'_>) {
    let bench = fresh(make);
    for uses in [1, 3] {
        let given = bench.store.grant(new_grant(uses), &GRANTER).expect("a good grant").id;
        let (start, taken) = (Barrier::new(4), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    if bench.store.claim_grant(given, &approval(1), &presented(1)).is_ok() {
                        taken.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(taken.into_inner(), uses as usize);
        // Whoever comes after the answer comes too late, whoever else comes.
        let given = bench.store.grant(new_grant(99), &GRANTER).expect("a good grant").id;
        let (start, taken) = (Barrier::new(4), AtomicUsize::new(0));
        let revoked = thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..5 {
                        if bench.store.claim_grant(given, &approval(1), &presented(1)).is_ok() {
                            taken.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
            start.wait();
            bench.store.revoke(given, &GRANTER).expect("taken back")
        });
        assert_eq!(revoked.used as usize, taken.into_inner(), "none after the answer");
        assert_eq!(revoked.under_way, revoked.used);
    }
}

/// Makes a test of each function that is about standing grants, for each store that keeps them.
macro_rules! every_store_of_grants {
    ($($store:ident)+) => { mod store_of_grants { $(mod $store {
        #[test]
        fn a7_who_gives_which_grants() {
            crate::grants::a7_who_gives_which_grants(&crate::$store);
        }
        #[test]
        fn p5_a_grant_covers_so_many_calls_and_none_after_its_end() {
            crate::grants::p5_a_grant_covers_so_many_calls_and_none_after_its_end(&crate::$store);
        }
        #[test]
        fn p5_uses_and_revocation_among_many_threads() {
            crate::grants::p5_uses_and_revocation_among_many_threads(&crate::$store);
        }
    })+ } };
}
pub(crate) use every_store_of_grants;
