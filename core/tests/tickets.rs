//! A ticket at the very moments at which something changes, and presented with one thing wrong at a time.
#![cfg(test)]

use callgate_core::code::Effect;
use callgate_core::confirm::{
    Asked, Binding, By, CancelError, DecideError, Decided, FinishError, MAX_PROOF, MAX_SKEW_MS, Presented,
    ReconcileError, Refusal, Ticket, TicketState, Verdict, caller_digest, principal_digest,
};
use callgate_core::context::{CallContext, Scopes};
use callgate_core::digest::Digest;
use callgate_core::time::Timestamp;

const ISSUED: u64 = 1_000_000;
const TTL: u64 = 60_000;
const CALL: Digest = Digest::from_bytes([9; 32]);

const BINDING: Binding = Binding {
    tool: Digest::from_bytes([1; 32]),
    arguments: Digest::from_bytes([2; 32]),
    caller: Digest::from_bytes([3; 32]),
    principal: Digest::from_bytes([4; 32]),
};

fn at(ms: u64) -> Timestamp {
    Timestamp::from_unix_millis(ms)
}

fn issued(by: By) -> Ticket {
    Ticket::issue(BINDING, by, at(ISSUED), TTL)
}

fn presented(binding: Binding) -> Presented {
    Presented { binding, call: CALL, lease_ms: 1_000 }
}

/// C4: issued beyond the skew is refused, and at the skew it is not.
#[test]
fn c4_a_ticket_from_the_future_is_refused_beyond_the_skew() {
    let ticket = issued(By::Caller);
    for (now, expected) in [
        (ISSUED - MAX_SKEW_MS - 1, Err(Refusal::FromTheFuture)),
        (ISSUED - MAX_SKEW_MS, Ok(())),
        (ISSUED - MAX_SKEW_MS + 1, Ok(())),
        (ISSUED, Ok(())),
        (0, Err(Refusal::FromTheFuture)),
    ] {
        assert_eq!(ticket.usable(at(now)), expected, "{now}");
    }
}

/// A10: at the moment itself it is over; C3: and from then on forgotten, if nobody holds it.
#[test]
fn a10_a_ticket_is_over_at_its_moment() {
    let ticket = issued(By::Caller);
    for (now, over) in [(ISSUED + TTL - 1, false), (ISSUED + TTL, true), (ISSUED + TTL + 1, true)] {
        assert_eq!(ticket.usable(at(now)), if over { Err(Refusal::Expired) } else { Ok(()) }, "{now}");
        assert_eq!((ticket.is_expired(at(now)), ticket.is_forgettable(at(now))), (over, over), "{now}");
        let mut claimed = issued(By::Caller);
        assert_eq!(claimed.claim(&presented(BINDING), at(now)).is_ok(), !over, "{now}");
        assert!(!claimed.is_expired(at(now)) || over, "{now}");
    }
    let mut held = issued(By::Caller);
    held.claim(&presented(BINDING), at(ISSUED)).unwrap();
    assert!(!held.is_forgettable(at(u64::MAX)) && !held.is_expired(at(u64::MAX)));
}

/// A4, A6: each difference alone refuses, and withdraws.
#[test]
fn a4_each_difference_alone_withdraws_a_ticket() {
    let other = Digest::from_bytes([7; 32]);
    for (binding, refusal) in [
        (Binding { tool: other, ..BINDING }, Refusal::OtherTool),
        (Binding { arguments: other, ..BINDING }, Refusal::OtherArguments),
        (Binding { caller: other, ..BINDING }, Refusal::OtherCaller),
        (Binding { principal: other, ..BINDING }, Refusal::OtherCaller),
    ] {
        assert!(refusal.is_mismatch());
        let mut ticket = issued(By::Caller);
        assert_eq!(ticket.claim(&presented(binding), at(ISSUED)), Err(refusal));
        assert_eq!(ticket.state, TicketState::Cancelled);
        assert_eq!(ticket.claim(&presented(BINDING), at(ISSUED)), Err(Refusal::Cancelled), "{refusal}");
    }
    for refusal in [Refusal::Unknown, Refusal::Expired, Refusal::Used, Refusal::Undecided, Refusal::Denied] {
        assert!(!refusal.is_mismatch(), "{refusal}");
    }
}

/// A2, A9: what an approver has to say is not usable before, and stays no when it was no.
#[test]
fn a9_only_a_yes_makes_an_approvers_ticket_usable() {
    for (by, state, expected) in [
        (By::Caller, TicketState::Pending, Ok(())),
        (By::Approver, TicketState::Pending, Err(Refusal::Undecided)),
        (By::Approver, TicketState::Approved, Ok(())),
        (By::Approver, TicketState::Denied, Err(Refusal::Denied)),
        (By::Caller, TicketState::Denied, Err(Refusal::Denied)),
        (By::Caller, TicketState::Cancelled, Err(Refusal::Cancelled)),
        (By::Caller, TicketState::InDoubt, Err(Refusal::Used)),
        (By::Approver, TicketState::Done(Effect::Done), Err(Refusal::Used)),
        (By::Caller, TicketState::Reserved { call: CALL, until: at(ISSUED + 1_000) }, Err(Refusal::Used)),
    ] {
        assert_eq!(Ticket { state, ..issued(by) }.usable(at(ISSUED)), expected, "{by} {state:?}");
    }
}

/// J4: at the end of its lease a call counts as lost, and not before; whoever comes late changes nothing.
#[test]
fn j4_a_lease_ends_at_its_moment() {
    let mut ticket = issued(By::Caller);
    ticket.claim(&presented(BINDING), at(ISSUED)).unwrap();
    assert_eq!(ticket.state, TicketState::Reserved { call: CALL, until: at(ISSUED + 1_000) });
    assert!(!ticket.reap(at(ISSUED + 999)));
    assert!(ticket.finish(Digest::from_bytes([8; 32]), Effect::Done).is_err(), "another call's");
    let mut in_time = ticket;
    assert!(in_time.finish(CALL, Effect::Done).is_ok() && in_time.state == TicketState::Done(Effect::Done));
    assert!(ticket.reap(at(ISSUED + 1_000)));
    assert_eq!(ticket.state, TicketState::InDoubt);
    assert!(ticket.finish(CALL, Effect::Done).is_err() && ticket.state == TicketState::InDoubt);
    assert!(!ticket.reap(at(u64::MAX)), "it is in doubt already");
}

const ASKER: CallContext<'static> = CallContext::web("r-1", Some("alice"), Scopes::NONE);

/// A ticket that waits for `needs` approvers of what `ASKER` asked for.
fn asked_for(needs: u8) -> Ticket {
    let binding = Binding { caller: caller_digest(&ASKER), principal: principal_digest(&ASKER), ..BINDING };
    Ticket::issue(binding, By::Approver, at(ISSUED), TTL).needing(needs)
}

fn person(name: &'static str, scopes: &'static str) -> CallContext<'static> {
    CallContext::web("r-2", Some(name), Scopes::new(scopes))
}

fn decide(
    ticket: &mut Ticket,
    verdict: Verdict,
    who: &CallContext<'_>,
    before: &[&str],
    now: u64,
) -> Result<Decided, DecideError> {
    let asked = Asked { tenant: None, scope: "approve", approved_by: before.iter().copied() };
    ticket.decide(verdict, who, &asked, at(now))
}

/// A2, A9: a quorum is of distinct approvers, counted down; one no is enough, whoever said yes before.
#[test]
fn a2_a_quorum_is_of_distinct_approvers() {
    let yes = Verdict::Approve;
    let mut ticket = asked_for(3);
    for (name, before, expected, state) in [
        ("bob", &[][..], Ok(Decided::Counted { missing: 2 }), TicketState::Pending),
        ("bob", &["bob"], Err(DecideError::AlreadyApproved), TicketState::Pending),
        ("carol", &["bob"], Ok(Decided::Counted { missing: 1 }), TicketState::Pending),
        ("bob", &["carol", "bob"], Err(DecideError::AlreadyApproved), TicketState::Pending),
        ("dave", &["bob", "carol"], Ok(Decided::Approved), TicketState::Approved),
        ("erin", &["bob", "carol", "dave"], Err(DecideError::Settled(TicketState::Approved)), TicketState::Approved),
    ] {
        let decided = decide(&mut ticket, yes, &person(name, "approve"), before, ISSUED);
        assert_eq!((decided, ticket.state), (expected, state), "{name} after {before:?}");
    }
    for needs in [0, 1] {
        let mut ticket = asked_for(needs);
        assert_eq!(ticket.needs, 1, "none counts as one");
        assert_eq!(decide(&mut ticket, yes, &person("bob", "approve"), &[], ISSUED), Ok(Decided::Approved));
    }
    let mut ticket = asked_for(2);
    assert_eq!(decide(&mut ticket, Verdict::Deny, &person("bob", "approve"), &["bob"], ISSUED), Ok(Decided::Denied));
    assert_eq!(ticket.state, TicketState::Denied);
    assert!(Decided::Approved.is_yes() && Decided::Counted { missing: 1 }.is_yes() && !Decided::Denied.is_yes());
    // More than can be counted is enough.
    let many = vec!["x"; 300];
    assert_eq!(decide(&mut asked_for(u8::MAX), yes, &person("bob", "approve"), &many, ISSUED), Ok(Decided::Approved));
}

/// A2, F3: why a decision does not count; the ticket is as it was then.
#[test]
fn a2_a_decision_that_does_not_count_changes_nothing() {
    let nobody = CallContext { principal: None, ..person("bob", "approve") };
    let others = CallContext { tenant: Some("t2"), ..person("bob", "approve") };
    for (who, now, expected) in [
        (others, ISSUED, DecideError::OtherTenant),
        (nobody, ISSUED, DecideError::Unauthenticated),
        (person("alice", "approve"), ISSUED, DecideError::OwnRequest),
        (person("bob", "read"), ISSUED, DecideError::MissingScope),
        (person("bob", "approve"), ISSUED + TTL, DecideError::Expired),
    ] {
        for verdict in [Verdict::Approve, Verdict::Deny] {
            let mut ticket = asked_for(1);
            assert_eq!(decide(&mut ticket, verdict, &who, &[], now), Err(expected), "{expected}");
            assert_eq!(ticket, asked_for(1), "{expected}");
        }
    }
    let mut own = Ticket { by: By::Caller, ..asked_for(1) };
    assert_eq!(decide(&mut own, Verdict::Approve, &person("bob", "approve"), &[], ISSUED), Err(DecideError::NotAsked));
    assert!(decide(&mut asked_for(1), Verdict::Approve, &person("bob", "approve"), &[], ISSUED + TTL - 1).is_ok());
}

/// J4, J5: what is in doubt is settled by somebody known with the scope, who says how it is known; by nobody else and nothing else.
#[test]
fn j5_a_ticket_in_doubt_is_settled_by_who_may_and_knows() {
    let doubtful = Ticket { state: TicketState::InDoubt, ..asked_for(1) };
    let keeper = person("keeper", "reconcile");
    let nobody = CallContext { principal: None, ..keeper };
    let others = CallContext { tenant: Some("t2"), ..keeper };
    let (long, longest) = ("x".repeat(MAX_PROOF + 1), "x".repeat(MAX_PROOF));
    for (who, proof, effect, expected) in [
        (keeper, "the log of the bank", Effect::Done, Ok(())),
        (keeper, "the log of the bank", Effect::None, Ok(())),
        (keeper, longest.as_str(), Effect::Done, Ok(())),
        (others, "the log", Effect::Done, Err(ReconcileError::Unknown)),
        (nobody, "the log", Effect::Done, Err(ReconcileError::Unauthenticated)),
        (person("bob", "approve"), "the log", Effect::Done, Err(ReconcileError::MissingScope)),
        (keeper, "", Effect::Done, Err(ReconcileError::NoProof)),
        (keeper, " \n ", Effect::Done, Err(ReconcileError::NoProof)),
        (keeper, long.as_str(), Effect::Done, Err(ReconcileError::NoProof)),
        (keeper, "the log", Effect::Unknown, Err(ReconcileError::StillUnknown)),
    ] {
        let mut ticket = doubtful;
        assert_eq!(ticket.reconcile(effect, proof, &who, None), expected);
        let state = if expected.is_ok() { TicketState::Done(effect) } else { TicketState::InDoubt };
        assert_eq!(ticket, Ticket { state, ..doubtful });
    }
    for state in [TicketState::Pending, TicketState::Done(Effect::None), TicketState::Denied] {
        let mut ticket = Ticket { state, ..doubtful };
        let settled = ticket.reconcile(Effect::Done, "the log", &keeper, None);
        assert_eq!((settled, ticket.state), (Err(ReconcileError::NotInDoubt(state)), state));
    }
}

/// P2: a ticket is told of to its requester, to who could decide it and to who could settle it, and to nobody of another tenant.
#[test]
fn p2_a_ticket_is_told_of_to_those_whom_it_concerns() {
    let asked = Asked { tenant: None, scope: "approve", approved_by: () };
    let ticket = asked_for(1);
    let own = Ticket { by: By::Caller, ..ticket };
    let others = |who: CallContext<'static>| CallContext { tenant: Some("t2"), ..who };
    let nameless = |who: CallContext<'static>| CallContext { principal: None, ..who };
    for (who, seen, seen_where_its_caller_answers) in [
        (ASKER, true, true),
        (person("bob", "approve"), true, false),
        (person("keeper", "reconcile"), true, true),
        (person("bob", "read"), false, false),
        (others(ASKER), false, false),
        (others(person("bob", "approve reconcile")), false, false),
        (nameless(person("bob", "approve reconcile")), false, false),
    ] {
        assert_eq!(ticket.is_visible_to(&who, &asked), seen, "{who:?}");
        assert_eq!(own.is_visible_to(&who, &asked), seen_where_its_caller_answers, "{who:?}");
    }
}

/// P2, A9: a requester withdraws what is its own and still open.
#[test]
fn a9_a_requester_withdraws_what_is_open() {
    for state in [TicketState::Pending, TicketState::Approved] {
        let mut ticket = Ticket { state, ..asked_for(1) };
        assert_eq!((ticket.cancel_by(&ASKER), ticket.state), (Ok(()), TicketState::Cancelled));
        let mut ticket = Ticket { state, ..asked_for(1) };
        ticket.cancel();
        assert_eq!(ticket.state, TicketState::Cancelled);
        for stranger in [person("bob", "approve"), CallContext { tenant: Some("t2"), ..ASKER }] {
            let mut ticket = Ticket { state, ..asked_for(1) };
            assert_eq!((ticket.cancel_by(&stranger), ticket.state), (Err(CancelError::Unknown), state));
        }
    }
    // Nobody is nobody's requester, even where the request was nobody's.
    let nobody = CallContext { principal: None, ..ASKER };
    let mut ticket = asked_for(1);
    ticket.binding.principal = principal_digest(&nobody);
    assert_eq!(ticket.cancel_by(&nobody), Err(CancelError::Unknown));
    for state in [TicketState::Denied, TicketState::Cancelled, TicketState::InDoubt, TicketState::Done(Effect::Done)] {
        let mut ticket = Ticket { state, ..asked_for(1) };
        assert_eq!((ticket.cancel_by(&ASKER), ticket.state), (Err(CancelError::Settled(state)), state));
        ticket.cancel();
        assert_eq!(ticket.state, state);
    }
}

/// J4: whoever settles a claim has to be the call that holds it; what it does not know stays in doubt; each state has its name.
#[test]
fn j4_a_claim_is_settled_once_by_its_call() {
    let held = TicketState::Reserved { call: CALL, until: at(ISSUED + 1_000) };
    let other = Digest::from_bytes([8; 32]);
    let done = TicketState::Done(Effect::None);
    for (state, call, effect, expected, after) in [
        (held, CALL, Effect::None, Ok(()), done),
        (held, CALL, Effect::Unknown, Ok(()), TicketState::InDoubt),
        (held, other, Effect::None, Err(FinishError::OtherCall), held),
        (
            TicketState::InDoubt,
            CALL,
            Effect::None,
            Err(FinishError::Settled(TicketState::InDoubt)),
            TicketState::InDoubt,
        ),
        (done, CALL, Effect::Done, Err(FinishError::Settled(done)), done),
        (TicketState::Pending, CALL, Effect::Done, Err(FinishError::OtherCall), TicketState::Pending),
        (TicketState::Cancelled, CALL, Effect::Done, Err(FinishError::OtherCall), TicketState::Cancelled),
    ] {
        let mut ticket = Ticket { state, ..asked_for(1) };
        assert_eq!((ticket.finish(call, effect), ticket.state), (expected, after));
    }
    let states = [
        (TicketState::Pending, true, false),
        (TicketState::Approved, true, false),
        (TicketState::Denied, false, false),
        (TicketState::Cancelled, false, false),
        (held, false, true),
        (TicketState::InDoubt, false, true),
        (done, false, false),
    ];
    for (state, open, unsettled) in states {
        assert_eq!((state.is_open(), state.is_unsettled()), (open, unsettled), "{state:?}");
    }
    let names: std::collections::BTreeSet<_> = states.iter().map(|(state, ..)| state.as_str()).collect();
    assert_eq!(names.len(), states.len());
    assert!(names.iter().all(|name| name.len() > 3), "{names:?}");
}
