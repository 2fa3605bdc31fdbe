//! A ticket at the very moments at which something changes, and presented with one thing wrong at a time.
#![cfg(test)]

use callgate_core::code::Effect;
use callgate_core::confirm::{Binding, By, MAX_SKEW_MS, Presented, Refusal, Ticket, TicketState};
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
