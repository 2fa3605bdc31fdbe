//! What every store must do. Each function takes the maker of a fresh store.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use callgate_core::context::{CallContext, Scopes};
use callgate_core::digest::Digest;
use callgate_std::confirmations::{
    Binding, By, CancelError, Capacity, DecideError, DecideFault, Decided, Effect, Finish, FinishError, IssueFault,
    PendingRequest, Presented, ReconcileError, Refusal, Resolution, TicketState, Token, Verdict,
};

use crate::bench::{ALICE, BOB, Bench, CANARY, LEASE, STEWARD, TTL, approval, binding, presented, request};

pub(crate) type Make<'a> = &'a dyn Fn(Capacity) -> Bench;

pub(crate) fn fresh(make: Make<'_>) -> Bench {
    make(Capacity::DEFAULT)
}

pub(crate) fn a1_only_issued_tokens_redeem(make: Make<'_>) {
    let bench = fresh(make);
    let issued = bench.store.issue(&request(1), TTL).expect("room");
    for i in 0..200_u8 {
        let made_up = Token::from_random([i; 16]).hash();
        assert!(bench.store.load(made_up).expect("answers").is_none());
        assert_eq!(bench.store.claim(made_up, &presented(1)), Ok(Err(Refusal::Unknown)));
    }
    // The token's own bytes are not its name either.
    let raw = issued.token.to_string();
    assert_eq!(bench.store.claim(Digest::of_bytes(raw.as_bytes()), &presented(1)), Ok(Err(Refusal::Unknown)));
    let loaded = bench.store.load(issued.token.hash()).expect("answers").expect("it was issued");
    assert_eq!((loaded.usable, loaded.binding, &*loaded.arguments), (Ok(()), binding(1), request(1).arguments));
    assert_eq!(bench.store.claim(issued.token.hash(), &presented(1)), Ok(Ok(By::Caller)));
}

pub(crate) fn a4_each_part_of_the_binding_counts(make: Make<'_>) {
    let bench = fresh(make);
    let other = Digest::of_bytes(b"other");
    let good = binding(1);
    let mutations = [
        (Binding { tool: other, ..good }, Refusal::OtherTool),
        (Binding { arguments: other, ..good }, Refusal::OtherArguments),
        (Binding { caller: other, ..good }, Refusal::OtherCaller),
        (Binding { principal: other, ..good }, Refusal::OtherCaller),
    ];
    for (presented, refusal) in mutations {
        let ticket = bench.store.issue(&request(1), TTL).expect("room").token.hash();
        assert_eq!(
            bench.store.claim(ticket, &Presented { binding: presented, ..self::presented(1) }),
            Ok(Err(refusal))
        );
    }
}

pub(crate) fn a5_one_claim_among_many_threads(make: Make<'_>) {
    let bench = fresh(make);
    for _ in 0..20 {
        let ticket = bench.store.issue(&request(1), TTL).expect("room").token.hash();
        let (start, claims) = (Barrier::new(4), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    match bench.store.claim(ticket, &presented(1)).expect("answers") {
                        Ok(_) => drop(claims.fetch_add(1, Ordering::Relaxed)),
                        Err(refusal) => assert_eq!(refusal, Refusal::Used),
                    }
                });
            }
        });
        assert_eq!(claims.into_inner(), 1);
    }
}

pub(crate) fn a5_a_claim_is_never_undone(make: Make<'_>) {
    let bench = fresh(make);
    let ticket = bench.store.issue(&request(1), TTL).expect("room").token.hash();
    assert_eq!(bench.store.claim(ticket, &presented(1)), Ok(Ok(By::Caller)));
    bench.store.withdraw(ticket).expect("answers");
    bench.store.withdraw(ticket).expect("answers");
    for _ in 0..3 {
        assert_eq!(bench.store.claim(ticket, &presented(1)), Ok(Err(Refusal::Used)));
    }
    let loaded = bench.store.load(ticket).expect("answers").expect("still known");
    assert_eq!((loaded.usable, loaded.arguments.len()), (Err(Refusal::Used), 0), "spent arguments are let go of");
}

pub(crate) fn a6_a_mismatch_burns_the_ticket(make: Make<'_>) {
    let bench = fresh(make);
    let ticket = bench.store.issue(&request(1), TTL).expect("room").token.hash();
    let refused = bench.store.claim(ticket, &presented(2)).expect("answers").expect_err("another call");
    assert!(refused.is_mismatch());
    assert_eq!(bench.store.claim(ticket, &presented(1)), Ok(Err(Refusal::Cancelled)), "the right call comes too late");
    // What the stage before the claim found out burns it, too.
    let ticket = bench.store.issue(&request(1), TTL).expect("room").token.hash();
    bench.store.withdraw(ticket).expect("answers");
    assert_eq!(bench.store.claim(ticket, &presented(1)), Ok(Err(Refusal::Cancelled)));
}

pub(crate) fn a9_the_first_decision_stands(make: Make<'_>) {
    let bench = fresh(make);
    for (first, second) in [(Verdict::Deny, Verdict::Approve), (Verdict::Approve, Verdict::Deny)] {
        let ticket = bench.store.issue(&approval(1), TTL).expect("room").token.hash();
        assert_eq!(bench.store.claim(ticket, &presented(1)), Ok(Err(Refusal::Undecided)), "asking early costs nothing");
        let counted = if first == Verdict::Approve { Decided::Approved } else { Decided::Denied };
        assert_eq!(bench.store.decide(ticket, first, &BOB), Ok(counted));
        let settled = match first {
            Verdict::Approve => TicketState::Approved,
            Verdict::Deny => TicketState::Denied,
        };
        assert_eq!(bench.store.decide(ticket, second, &BOB), Err(DecideFault::Refused(DecideError::Settled(settled))));
        let claimed = bench.store.claim(ticket, &presented(1)).expect("answers");
        assert_eq!(claimed, if first == Verdict::Approve { Ok(By::Approver) } else { Err(Refusal::Denied) });
    }
}

pub(crate) fn a9_no_interleaving_executes_what_was_denied(make: Make<'_>) {
    let bench = fresh(make);
    for _ in 0..20 {
        let ticket = bench.store.issue(&approval(1), TTL).expect("room").token.hash();
        let (start, denied, claimed) = (Barrier::new(4), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for verdict in [Verdict::Approve, Verdict::Deny] {
                let (start, denied, bench) = (&start, &denied, &bench);
                scope.spawn(move || {
                    start.wait();
                    if bench.store.decide(ticket, verdict, &BOB).is_ok() && verdict == Verdict::Deny {
                        denied.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    start.wait();
                    if bench.store.claim(ticket, &presented(1)).expect("answers").is_ok() {
                        claimed.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let late = usize::from(bench.store.claim(ticket, &presented(1)).expect("answers").is_ok());
        let (denied, claimed) = (denied.into_inner(), claimed.into_inner() + late);
        assert_eq!(denied + claimed, 1, "one decision, and one claim only if it was a yes");
    }
}

pub(crate) fn a10_expiry_is_exact(make: Make<'_>) {
    for (wait, usable) in [(TTL - 1, true), (TTL, false), (TTL + 1, false)] {
        let bench = fresh(make);
        let start = callgate_std::clock::Clock::now(&bench.clock).wall;
        let issued = bench.store.issue(&request(1), TTL).expect("room");
        assert_eq!(issued.expires_at, start.saturating_add_millis(TTL));
        bench.pass(wait);
        let ticket = issued.token.hash();
        if let Some(loaded) = bench.store.load(ticket).expect("answers") {
            assert_eq!(loaded.usable.is_ok(), usable, "after {wait} ms");
        }
        let claimed = bench.store.claim(ticket, &presented(1)).expect("answers");
        assert_eq!(claimed.is_ok(), usable, "after {wait} ms: {claimed:?}");
    }
}

pub(crate) fn a2_who_may_decide(make: Make<'_>) {
    let bench = fresh(make);
    let ticket = bench.store.issue(&approval(1), TTL).expect("room").token.hash();
    let decide = |who: &CallContext<'_>| bench.store.decide(ticket, Verdict::Approve, who);
    let all = Scopes::ALL;
    let refused = |error| Err(DecideFault::Refused(error));
    assert_eq!(decide(&ALICE.with_scopes(all)), refused(DecideError::OwnRequest));
    assert_eq!(decide(&CallContext::new("web", "r").with_scopes(all)), refused(DecideError::Unauthenticated));
    assert_eq!(decide(&BOB.with_scopes(Scopes::NONE)), refused(DecideError::MissingScope));
    assert_eq!(decide(&BOB.with_scopes(Scopes::new("Approve approve2"))), refused(DecideError::MissingScope));
    // P2: another tenant does not even learn that the request exists.
    let mut stranger = BOB.with_scopes(all);
    stranger.tenant = Some("other");
    assert_eq!(decide(&stranger), Err(DecideFault::Unknown));
    assert_eq!(bench.store.decide(Digest::of_bytes(b"made up"), Verdict::Approve, &BOB), Err(DecideFault::Unknown));
    let own = bench.store.issue(&request(2), TTL).expect("room").token.hash();
    assert_eq!(bench.store.decide(own, Verdict::Approve, &BOB), refused(DecideError::NotAsked));
    assert_eq!(decide(&BOB), Ok(Decided::Approved));
    assert_eq!(bench.store.claim(ticket, &presented(1)), Ok(Ok(By::Approver)));
}

pub(crate) fn a2_what_an_approver_sees(make: Make<'_>) {
    let bench = fresh(make);
    let pending = |who: &CallContext<'_>, max| bench.store.pending(who, max).expect("answers");
    bench.store.issue(&request(1), TTL).expect("room");
    assert!(pending(&BOB, 10).is_empty(), "what its caller confirms is nobody else's");
    let tickets: Vec<_> = (0..3)
        .map(|i| {
            bench.pass(10);
            bench.store.issue(&approval(i), TTL).expect("room").token.hash()
        })
        .collect();
    let seen = pending(&BOB, 10);
    assert_eq!(seen.iter().map(|item| item.ticket).collect::<Vec<_>>(), tickets, "the oldest first");
    assert_eq!(pending(&BOB, 2).len(), 2);
    let first = &seen[0];
    assert_eq!((first.tool.as_str(), first.scope.as_str(), first.channel.as_str()), ("fs.write", "approve", "web"));
    assert_eq!((first.principal.as_deref(), first.summary.as_str()), (Some("alice"), request(1).summary.as_str()));
    assert!(!format!("{seen:?}").contains(CANARY), "L1: an approver sees the summary, never the arguments as sent");
    // Nobody sees what it could not decide.
    let mut stranger = BOB;
    stranger.tenant = Some("other");
    for blind in [ALICE.with_scopes(Scopes::ALL), BOB.with_scopes(Scopes::NONE), stranger] {
        assert!(pending(&blind, 10).is_empty());
    }
    bench.store.decide(tickets[0], Verdict::Deny, &BOB).expect("it counts");
    bench.store.withdraw(tickets[1]).expect("answers");
    assert_eq!(pending(&BOB, 10).len(), 1);
    bench.pass(TTL);
    assert!(pending(&BOB, 10).is_empty());
}

pub(crate) fn a11_nothing_shows_a_token_or_an_argument(make: Make<'_>) {
    let bench = fresh(make);
    let issued = bench.store.issue(&request(1), TTL).expect("room");
    let token = issued.token.to_string();
    for shown in [(bench.debug)(), format!("{:?}", request(1)), format!("{issued:?}")] {
        assert!(!shown.contains(&token) && !shown.contains(CANARY), "{shown}");
    }
}

pub(crate) fn c2_a_backward_jump_revives_nothing(make: Make<'_>) {
    for back in [1, 4_000, 3_600_000, i64::MAX] {
        let bench = fresh(make);
        let ticket = bench.store.issue(&request(1), TTL).expect("room").token.hash();
        bench.pass(TTL);
        // Somebody saw that it had expired.
        let seen = bench.store.load(ticket).expect("answers");
        assert!(seen.is_none_or(|loaded| loaded.usable == Err(Refusal::Expired)));
        bench.clock.step_wall(-back);
        if let Some(loaded) = bench.store.load(ticket).expect("answers") {
            assert!(loaded.usable.is_err(), "{back} ms back");
        }
        assert!(bench.store.claim(ticket, &presented(1)).expect("answers").is_err(), "{back} ms back");
        // And a store whose clock went back goes on working.
        let next = bench.store.issue(&request(1), TTL).expect("room").token.hash();
        assert_eq!(bench.store.claim(next, &presented(1)), Ok(Ok(By::Caller)), "{back} ms back");
    }
}

pub(crate) fn c3_sweeping_removes_nothing_alive(make: Make<'_>) {
    let bench = fresh(make);
    let long = bench.store.issue(&request(1), 100 * TTL).expect("room").token.hash();
    let spent = bench.store.issue(&request(1), 100 * TTL).expect("room").token.hash();
    assert_eq!(bench.store.claim(spent, &presented(1)), Ok(Ok(By::Caller)));
    for _ in 0..50 {
        bench.store.issue(&request(1), TTL).expect("room");
        bench.pass(TTL + 1);
    }
    assert_eq!(bench.store.claim(spent, &presented(1)), Ok(Err(Refusal::Used)), "a claim outlives the sweep");
    assert_eq!(bench.store.claim(long, &presented(1)), Ok(Ok(By::Caller)));
}

pub(crate) fn f3_no_answer_counts_after_the_deadline(make: Make<'_>) {
    let bench = fresh(make);
    let ticket = bench.store.issue(&approval(1), TTL).expect("room").token.hash();
    bench.pass(TTL);
    assert!(bench.store.decide(ticket, Verdict::Approve, &BOB).is_err());
    assert!(bench.store.claim(ticket, &presented(1)).expect("answers").is_err());
    // An approval that came in time does not extend the deadline.
    let ticket = bench.store.issue(&approval(1), TTL).expect("room").token.hash();
    bench.pass(TTL - 1);
    bench.store.decide(ticket, Verdict::Approve, &BOB).expect("in time");
    bench.pass(1);
    assert_eq!(bench.store.claim(ticket, &presented(1)), Ok(Err(Refusal::Expired)));
}

pub(crate) fn f5_bounds_refuse_and_recover(make: Make<'_>) {
    let fill = |capacity: Capacity| {
        let bench = make(capacity);
        let count = (0..100).take_while(|_| bench.store.issue(&request(1), TTL).is_ok()).count();
        assert_eq!(bench.store.issue(&request(1), TTL), Err(IssueFault::Full));
        (bench, count)
    };
    let (bench, count) = fill(Capacity { entries: 3, ..Capacity::DEFAULT });
    assert_eq!(count, 3);
    // A settled ticket keeps its place until it expires: its token is still to be refused as used.
    bench.pass(TTL - 1);
    assert_eq!(bench.store.issue(&request(1), TTL), Err(IssueFault::Full));
    bench.pass(1);
    assert!(bench.store.issue(&request(1), TTL).is_ok());

    let (bench, count) = fill(Capacity { per_principal: 2, ..Capacity::DEFAULT });
    assert_eq!(count, 2);
    let mut other = request(1);
    other.binding.principal = Digest::of_bytes(b"somebody else");
    assert!(bench.store.issue(&other, TTL).is_ok(), "one principal does not fill the store for the others");

    let (_bench, count) = fill(Capacity { bytes: 4_096, ..Capacity::DEFAULT });
    assert!((1..=8).contains(&count), "{count} tickets in 4 KiB");
}

pub(crate) fn a18_no_approver_is_a_refusal(make: Make<'_>) {
    let bench = fresh(make);
    (bench.attach)(false);
    assert_eq!(bench.store.issue(&approval(1), TTL), Err(IssueFault::NoApprover));
    assert!(bench.store.issue(&request(1), TTL).is_ok(), "a caller that confirms itself needs nobody");
    (bench.attach)(true);
    assert!(bench.store.issue(&approval(1), TTL).is_ok());
}

pub(crate) fn withdrawing_is_final(make: Make<'_>) {
    // A19: a late answer to a withdrawn request does not count.
    let bench = fresh(make);
    let ticket = bench.store.issue(&approval(1), TTL).expect("room").token.hash();
    bench.store.withdraw(ticket).expect("answers");
    let late = bench.store.decide(ticket, Verdict::Approve, &BOB);
    assert_eq!(late, Err(DecideFault::Refused(DecideError::Settled(TicketState::Cancelled))));
    assert_eq!(bench.store.claim(ticket, &presented(1)), Ok(Err(Refusal::Cancelled)));
    bench.store.withdraw(Digest::of_bytes(b"made up")).expect("nothing to do");
}

/// A ticket that Alice's call has claimed.
fn claimed(bench: &Bench) -> Digest {
    let ticket = bench.store.issue(&request(1), TTL).expect("room").token.hash();
    assert_eq!(bench.store.claim(ticket, &presented(1)), Ok(Ok(By::Caller)));
    ticket
}

pub(crate) fn finish(ticket: Digest, effect: Effect) -> Finish {
    Finish { ticket, call: presented(1).call, effect }
}

/// Where a ticket stands, as one sees who may see all of its tenant.
fn state(bench: &Bench, ticket: Digest) -> Option<TicketState> {
    let seen = bench.store.tickets(&STEWARD, 1_000).expect("answers");
    seen.iter().find(|view| view.ticket == ticket).map(|view| view.state)
}

pub(crate) fn j3_a_claim_is_held_by_its_call(make: Make<'_>) {
    let bench = fresh(make);
    let ticket = claimed(&bench);
    let held = state(&bench, ticket).expect("it is there");
    assert!(matches!(held, TicketState::Reserved { call, .. } if call == presented(1).call), "{held:?}");
    // J4: another call settles nothing.
    let other = Finish { call: Digest::of_bytes(b"another call"), ..finish(ticket, Effect::Done) };
    assert_eq!(bench.store.finish(&other), Ok(Err(FinishError::OtherCall)));
    assert_eq!(state(&bench, ticket), Some(held));
    for (effect, settled) in [
        (Effect::Done, TicketState::Done(Effect::Done)),
        (Effect::None, TicketState::Done(Effect::None)),
        (Effect::Unknown, TicketState::InDoubt),
    ] {
        let ticket = claimed(&bench);
        assert_eq!(bench.store.finish(&finish(ticket, effect)), Ok(Ok(())));
        assert_eq!(state(&bench, ticket), Some(settled));
        assert_eq!(bench.store.finish(&finish(ticket, Effect::Done)), Ok(Err(FinishError::Settled(settled))), "once");
        assert_eq!(bench.store.claim(ticket, &presented(1)), Ok(Err(Refusal::Used)), "A5");
    }
    // What nobody claimed is nobody's to finish.
    let open = bench.store.issue(&request(1), TTL).expect("room").token.hash();
    assert_eq!(bench.store.finish(&finish(open, Effect::Done)), Ok(Err(FinishError::OtherCall)));
    let made_up = Digest::of_bytes(b"made up");
    assert_eq!(bench.store.finish(&finish(made_up, Effect::Done)), Ok(Err(FinishError::Unknown)));
    assert_eq!(bench.store.claim(open, &presented(1)), Ok(Ok(By::Caller)));
}

pub(crate) fn j4_what_a_lost_call_held_is_in_doubt(make: Make<'_>) {
    let bench = fresh(make);
    let (lost, told) = (claimed(&bench), claimed(&bench));
    assert_eq!(bench.store.finish(&finish(told, Effect::Done)), Ok(Ok(())));
    bench.pass(LEASE - 1);
    assert_eq!(bench.store.reap(9).expect("answers"), [], "its time is not over");
    bench.pass(1);
    let reaped = bench.store.reap(9).expect("answers");
    assert_eq!(reaped.iter().map(|view| (view.ticket, view.state)).collect::<Vec<_>>(), [(lost, TicketState::InDoubt)]);
    assert_eq!(bench.store.reap(9).expect("answers"), [], "once");
    // A late finisher changes nothing, and nothing runs again.
    let late = bench.store.finish(&finish(lost, Effect::Done));
    assert_eq!(late, Ok(Err(FinishError::Settled(TicketState::InDoubt))));
    assert_eq!(bench.store.claim(lost, &presented(1)), Ok(Err(Refusal::Used)));
    bench.store.withdraw(lost).expect("answers");
    assert_eq!(state(&bench, lost), Some(TicketState::InDoubt));
    // Whoever comes late, and before the reaper, still completes its own record.
    let slow = claimed(&bench);
    bench.pass(2 * LEASE);
    assert_eq!(bench.store.finish(&finish(slow, Effect::Done)), Ok(Ok(())));
    assert_eq!(bench.store.reap(9).expect("answers"), []);
    // So many at a time.
    let all: Vec<_> = (0..3).map(|_| claimed(&bench)).collect();
    bench.pass(LEASE);
    let counts: Vec<_> = (0..3).map(|_| bench.store.reap(2).expect("answers").len()).collect();
    assert_eq!(counts, [2, 1, 0]);
    assert!(all.into_iter().all(|ticket| state(&bench, ticket) == Some(TicketState::InDoubt)));
}

pub(crate) fn j5_what_is_in_doubt_is_never_forgotten(make: Make<'_>) {
    let bench = make(Capacity { entries: 3, ..Capacity::DEFAULT });
    let (held, doubtful) = (claimed(&bench), claimed(&bench));
    assert_eq!(bench.store.finish(&finish(doubtful, Effect::Unknown)), Ok(Ok(())));
    // Time passes, others come and go, the clock steps.
    for _ in 0..5 {
        bench.store.issue(&request(2), TTL).expect("room for one");
        bench.pass(100 * TTL);
    }
    bench.clock.step_wall(-3_600_000);
    bench.store.issue(&request(2), TTL).expect("room for one");
    assert!(matches!(state(&bench, held), Some(TicketState::Reserved { .. })));
    assert_eq!(state(&bench, doubtful), Some(TicketState::InDoubt));
    assert_eq!(bench.store.issue(&request(2), TTL), Err(IssueFault::Full), "F5: nothing is dropped for it");
    // What is settled makes room.
    assert_eq!(bench.store.finish(&finish(held, Effect::Done)), Ok(Ok(())));
    bench.pass(100 * TTL);
    for _ in 0..2 {
        bench.store.issue(&request(2), TTL).expect("room for two");
    }
    assert_eq!((state(&bench, held), state(&bench, doubtful)), (None, Some(TicketState::InDoubt)));
}

pub(crate) fn j4_only_a_host_with_a_proof_settles_a_doubt(make: Make<'_>) {
    let bench = fresh(make);
    let ticket = claimed(&bench);
    let good = Resolution { effect: Effect::Done, proof: "the bank has it: payment 7", by: STEWARD };
    let reconcile = |resolution: &Resolution<'_>| bench.store.reconcile(ticket, resolution).expect("answers").map(drop);
    let held = state(&bench, ticket).expect("it is there");
    assert_eq!(reconcile(&good), Err(ReconcileError::NotInDoubt(held)), "its call may still be under way");
    bench.pass(LEASE);
    assert_eq!(bench.store.reap(9).expect("answers").len(), 1);
    let (mut nobody, mut stranger) = (STEWARD, STEWARD);
    (nobody.principal, stranger.tenant) = (None, Some("other"));
    let long = "x".repeat(1_025);
    for (resolution, error) in [
        (Resolution { by: BOB, ..good }, ReconcileError::MissingScope),
        (Resolution { by: nobody, ..good }, ReconcileError::Unauthenticated),
        (Resolution { by: stranger, ..good }, ReconcileError::Unknown),
        (Resolution { proof: " ", ..good }, ReconcileError::NoProof),
        (Resolution { proof: &long, ..good }, ReconcileError::NoProof),
        (Resolution { effect: Effect::Unknown, ..good }, ReconcileError::StillUnknown),
    ] {
        assert_eq!(reconcile(&resolution), Err(error));
        assert_eq!(state(&bench, ticket), Some(TicketState::InDoubt));
    }
    let view = bench.store.reconcile(ticket, &good).expect("answers").expect("it is settled");
    assert_eq!((view.state, view.proof.as_deref()), (TicketState::Done(Effect::Done), Some(good.proof)));
    let again = Resolution { effect: Effect::None, ..good };
    assert_eq!(reconcile(&again), Err(ReconcileError::NotInDoubt(TicketState::Done(Effect::Done))), "the first stands");
    assert_eq!(bench.store.claim(ticket, &presented(1)), Ok(Err(Refusal::Used)), "A5: not even then");
    assert_eq!(
        bench.store.reconcile(Digest::of_bytes(b"made up"), &good).expect("answers"),
        Err(ReconcileError::Unknown)
    );
}

pub(crate) fn a2_a_quorum_is_of_distinct_approvers(make: Make<'_>) {
    let bench = fresh(make);
    let asks = |approvals| PendingRequest { approvals, ..approval(1) };
    let named = |name: &'static str| BOB.with_principal(name);
    for needs in [1, 2, 3, 5] {
        let ticket = bench.store.issue(&asks(needs), TTL).expect("room").token.hash();
        for (i, name) in ["a", "b", "c", "d", "e"].into_iter().take(usize::from(needs)).enumerate() {
            assert_eq!(bench.store.claim(ticket, &presented(1)), Ok(Err(Refusal::Undecided)), "{i} of {needs}");
            let missing = needs - 1 - u8::try_from(i).expect("few");
            let decided = if missing == 0 { Decided::Approved } else { Decided::Counted { missing } };
            assert_eq!(bench.store.decide(ticket, Verdict::Approve, &named(name)), Ok(decided), "{i} of {needs}");
            let again = bench.store.decide(ticket, Verdict::Approve, &named(name));
            assert!(matches!(again, Err(DecideFault::Refused(_))), "nobody counts twice: {again:?}");
            let could = bench.store.pending(&named(name), 9).expect("answers");
            assert!(could.is_empty(), "who said yes is not asked again");
        }
        // A name that looks like two counts as one.
        assert_eq!(bench.store.claim(ticket, &presented(1)), Ok(Ok(By::Approver)));
    }
    let ticket = bench.store.issue(&asks(3), TTL).expect("room").token.hash();
    let forged = bench.store.decide(ticket, Verdict::Approve, &named("a\nb"));
    assert_eq!(forged, Ok(Decided::Counted { missing: 2 }));
    let view = bench.store.tickets(&STEWARD, 99).expect("answers");
    let view = view.iter().find(|view| view.ticket == ticket).expect("it is there");
    assert_eq!((view.needs, view.approved_by.len()), (3, 1));
    // A9: one no is enough, whoever said yes before, and whoever says yes afterwards.
    assert_eq!(bench.store.decide(ticket, Verdict::Deny, &named("b")), Ok(Decided::Denied));
    let late = bench.store.decide(ticket, Verdict::Approve, &named("c"));
    assert_eq!(late, Err(DecideFault::Refused(DecideError::Settled(TicketState::Denied))));
    assert_eq!(bench.store.claim(ticket, &presented(1)), Ok(Err(Refusal::Denied)));
    // A2: the requester is none of them.
    let ticket = bench.store.issue(&asks(2), TTL).expect("room").token.hash();
    let own = bench.store.decide(ticket, Verdict::Approve, &ALICE.with_scopes(Scopes::ALL));
    assert_eq!(own, Err(DecideFault::Refused(DecideError::OwnRequest)));
}

pub(crate) fn a19_a_requester_cancels_its_own(make: Make<'_>) {
    let bench = fresh(make);
    let ticket = bench.store.issue(&approval(1), TTL).expect("room").token.hash();
    let cancel = |ticket, who: &CallContext<'_>| bench.store.cancel(ticket, who).expect("answers");
    for other in [BOB, STEWARD, CallContext::new("web", "r"), CallContext { tenant: Some("other"), ..ALICE }] {
        assert_eq!(cancel(ticket, &other), Err(CancelError::Unknown), "P2: it is not theirs");
    }
    assert_eq!(bench.store.decide(ticket, Verdict::Approve, &BOB), Ok(Decided::Approved));
    assert_eq!(cancel(ticket, &ALICE), Ok(()), "approved and not used");
    assert_eq!(cancel(ticket, &ALICE), Err(CancelError::Settled(TicketState::Cancelled)));
    assert_eq!(bench.store.claim(ticket, &presented(1)), Ok(Err(Refusal::Cancelled)));
    let held = claimed(&bench);
    assert!(matches!(cancel(held, &ALICE), Err(CancelError::Settled(TicketState::Reserved { .. }))));
}

pub(crate) fn p2_who_is_told_of_a_ticket(make: Make<'_>) {
    let bench = fresh(make);
    let own = bench.store.issue(&request(1), TTL).expect("room").token.hash();
    bench.pass(1);
    let asked = bench.store.issue(&approval(1), TTL).expect("room").token.hash();
    let seen = |who: &CallContext<'_>| -> Vec<Digest> {
        bench.store.tickets(who, 9).expect("answers").iter().map(|view| view.ticket).collect()
    };
    assert_eq!(seen(&ALICE), [own, asked], "the oldest first");
    assert_eq!(seen(&STEWARD), [own, asked]);
    assert_eq!(seen(&BOB), [asked], "what he could decide");
    let stranger = CallContext { tenant: Some("other"), ..STEWARD };
    for blind in [BOB.with_scopes(Scopes::NONE), stranger, CallContext::new("web", "r").with_scopes(Scopes::ALL)] {
        assert_eq!(seen(&blind), []);
    }
    assert_eq!(bench.store.tickets(&STEWARD, 1).expect("answers").len(), 1);
    bench.pass(TTL);
    let views = bench.store.tickets(&ALICE, 9).expect("answers");
    assert!(views.iter().all(|view| view.expired && view.state == TicketState::Pending));
    assert!(!format!("{views:?}").contains(CANARY), "L1: no argument as it was sent");
}

/// Makes a test of each function of this suite for each store: for each function that makes a fresh one.
macro_rules! every_store {
    ($($store:ident)+) => { $($crate::suite::every_store!(@ $store {
        a1_only_issued_tokens_redeem
        a4_each_part_of_the_binding_counts
        a5_one_claim_among_many_threads
        a5_a_claim_is_never_undone
        a6_a_mismatch_burns_the_ticket
        a9_the_first_decision_stands
        a9_no_interleaving_executes_what_was_denied
        a10_expiry_is_exact
        a2_who_may_decide
        a2_what_an_approver_sees
        a11_nothing_shows_a_token_or_an_argument
        c2_a_backward_jump_revives_nothing
        c3_sweeping_removes_nothing_alive
        f3_no_answer_counts_after_the_deadline
        f5_bounds_refuse_and_recover
        a18_no_approver_is_a_refusal
        withdrawing_is_final
        j3_a_claim_is_held_by_its_call
        j4_what_a_lost_call_held_is_in_doubt
        j5_what_is_in_doubt_is_never_forgotten
        j4_only_a_host_with_a_proof_settles_a_doubt
        a2_a_quorum_is_of_distinct_approvers
        a19_a_requester_cancels_its_own
        p2_who_is_told_of_a_ticket
    });)+ };
    (@ $store:ident { $($name:ident)+ }) => {
        mod $store {
            $(#[test] fn $name() { crate::suite::$name(&super::$store); })+
        }
    };
}
pub(crate) use every_store;
