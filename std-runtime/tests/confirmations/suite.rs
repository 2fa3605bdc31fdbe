//! What every store must do. Each function takes the maker of a fresh store.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use callgate_core::context::{CallContext, Scopes};
use callgate_core::digest::Digest;
use callgate_std::confirmations::{
    Binding, By, Capacity, DecideError, DecideFault, IssueFault, Refusal, TicketState, Token, Verdict,
};

use crate::bench::{ALICE, BOB, Bench, CANARY, TTL, approval, binding, request};

type Make<'a> = &'a dyn Fn(Capacity) -> Bench;

fn fresh(make: Make<'_>) -> Bench {
    make(Capacity::DEFAULT)
}

pub(crate) fn a1_only_issued_tokens_redeem(make: Make<'_>) {
    let bench = fresh(make);
    let issued = bench.store.issue(&request(1), TTL).expect("room");
    for i in 0..200_u8 {
        let made_up = Token::from_random([i; 16]).hash();
        assert!(bench.store.load(made_up).expect("answers").is_none());
        assert_eq!(bench.store.claim(made_up, &binding(1)), Ok(Err(Refusal::Unknown)));
    }
    // The token's own bytes are not its name either.
    let raw = issued.token.to_string();
    assert_eq!(bench.store.claim(Digest::of_bytes(raw.as_bytes()), &binding(1)), Ok(Err(Refusal::Unknown)));
    let loaded = bench.store.load(issued.token.hash()).expect("answers").expect("it was issued");
    assert_eq!((loaded.usable, loaded.binding, &*loaded.arguments), (Ok(()), binding(1), request(1).arguments));
    assert_eq!(bench.store.claim(issued.token.hash(), &binding(1)), Ok(Ok(By::Caller)));
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
        assert_eq!(bench.store.claim(ticket, &presented), Ok(Err(refusal)));
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
                    match bench.store.claim(ticket, &binding(1)).expect("answers") {
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
    assert_eq!(bench.store.claim(ticket, &binding(1)), Ok(Ok(By::Caller)));
    bench.store.withdraw(ticket).expect("answers");
    bench.store.withdraw(ticket).expect("answers");
    for _ in 0..3 {
        assert_eq!(bench.store.claim(ticket, &binding(1)), Ok(Err(Refusal::Used)));
    }
    let loaded = bench.store.load(ticket).expect("answers").expect("still known");
    assert_eq!((loaded.usable, loaded.arguments.len()), (Err(Refusal::Used), 0), "spent arguments are let go of");
}

pub(crate) fn a6_a_mismatch_burns_the_ticket(make: Make<'_>) {
    let bench = fresh(make);
    let ticket = bench.store.issue(&request(1), TTL).expect("room").token.hash();
    let refused = bench.store.claim(ticket, &binding(2)).expect("answers").expect_err("another call");
    assert!(refused.is_mismatch());
    assert_eq!(bench.store.claim(ticket, &binding(1)), Ok(Err(Refusal::Cancelled)), "the right call comes too late");
    // What the stage before the claim found out burns it, too.
    let ticket = bench.store.issue(&request(1), TTL).expect("room").token.hash();
    bench.store.withdraw(ticket).expect("answers");
    assert_eq!(bench.store.claim(ticket, &binding(1)), Ok(Err(Refusal::Cancelled)));
}

pub(crate) fn a9_the_first_decision_stands(make: Make<'_>) {
    let bench = fresh(make);
    for (first, second) in [(Verdict::Deny, Verdict::Approve), (Verdict::Approve, Verdict::Deny)] {
        let ticket = bench.store.issue(&approval(1), TTL).expect("room").token.hash();
        assert_eq!(bench.store.claim(ticket, &binding(1)), Ok(Err(Refusal::Undecided)), "asking early costs nothing");
        assert_eq!(bench.store.decide(ticket, first, &BOB), Ok(()));
        let settled = match first {
            Verdict::Approve => TicketState::Approved,
            Verdict::Deny => TicketState::Denied,
        };
        assert_eq!(bench.store.decide(ticket, second, &BOB), Err(DecideFault::Refused(DecideError::Settled(settled))));
        let claimed = bench.store.claim(ticket, &binding(1)).expect("answers");
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
                    if bench.store.claim(ticket, &binding(1)).expect("answers").is_ok() {
                        claimed.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let late = usize::from(bench.store.claim(ticket, &binding(1)).expect("answers").is_ok());
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
        let claimed = bench.store.claim(ticket, &binding(1)).expect("answers");
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
    assert_eq!(decide(&BOB), Ok(()));
    assert_eq!(bench.store.claim(ticket, &binding(1)), Ok(Ok(By::Approver)));
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
        assert!(bench.store.claim(ticket, &binding(1)).expect("answers").is_err(), "{back} ms back");
        // And a store whose clock went back goes on working.
        let next = bench.store.issue(&request(1), TTL).expect("room").token.hash();
        assert_eq!(bench.store.claim(next, &binding(1)), Ok(Ok(By::Caller)), "{back} ms back");
    }
}

pub(crate) fn c3_sweeping_removes_nothing_alive(make: Make<'_>) {
    let bench = fresh(make);
    let long = bench.store.issue(&request(1), 100 * TTL).expect("room").token.hash();
    let spent = bench.store.issue(&request(1), 100 * TTL).expect("room").token.hash();
    assert_eq!(bench.store.claim(spent, &binding(1)), Ok(Ok(By::Caller)));
    for _ in 0..50 {
        bench.store.issue(&request(1), TTL).expect("room");
        bench.pass(TTL + 1);
    }
    assert_eq!(bench.store.claim(spent, &binding(1)), Ok(Err(Refusal::Used)), "a claim outlives the sweep");
    assert_eq!(bench.store.claim(long, &binding(1)), Ok(Ok(By::Caller)));
}

pub(crate) fn f3_no_answer_counts_after_the_deadline(make: Make<'_>) {
    let bench = fresh(make);
    let ticket = bench.store.issue(&approval(1), TTL).expect("room").token.hash();
    bench.pass(TTL);
    assert!(bench.store.decide(ticket, Verdict::Approve, &BOB).is_err());
    assert!(bench.store.claim(ticket, &binding(1)).expect("answers").is_err());
    // An approval that came in time does not extend the deadline.
    let ticket = bench.store.issue(&approval(1), TTL).expect("room").token.hash();
    bench.pass(TTL - 1);
    bench.store.decide(ticket, Verdict::Approve, &BOB).expect("in time");
    bench.pass(1);
    assert_eq!(bench.store.claim(ticket, &binding(1)), Ok(Err(Refusal::Expired)));
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
    assert_eq!(bench.store.claim(ticket, &binding(1)), Ok(Err(Refusal::Cancelled)));
    bench.store.withdraw(Digest::of_bytes(b"made up")).expect("nothing to do");
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
    });)+ };
    (@ $store:ident { $($name:ident)+ }) => {
        mod $store {
            $(#[test] fn $name() { crate::suite::$name(&super::$store); })+
        }
    };
}
pub(crate) use every_store;
