//! What a device keeps in memory of a fixed size: its log, its questions, its answers (that they follow core's rules is for the suites of
//! stores in `callgate-std` to show; here is what their bounds do).
#![cfg(test)]

use callgate_core::audit::chain::Head;
use callgate_core::audit::{Audit, AuditFault, Record};
use callgate_core::call::{Call, Finish, IssueFault, TurnAway};
use callgate_core::code::Effect;
use callgate_core::confirm::{
    Binding, By, CancelError, Decided, Presented, RECONCILE_SCOPE, Refusal, TicketState, Verdict, caller_digest,
    principal_digest,
};
use callgate_core::context::{CallContext, Scopes};
use callgate_core::digest::{Digest, DigestKey};
use callgate_core::entropy::{Entropy, EntropyError};
use callgate_core::fixed::{AuditRing, Buffer, Confirmations, DecideFault, Question, Tools, write_outcome};
use callgate_core::request::{Envelope, Request, Settings};
use callgate_core::step::Step;
use callgate_core::time::{Instant, Now, Timestamp};
use callgate_core::tool::{Tool, ToolSpec, Violation};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};

struct Probe(ToolSpec<'static>);

impl Tool for Probe {
    type Output = &'static str;
    type Failure = &'static str;

    fn spec(&self) -> &ToolSpec<'_> {
        &self.0
    }

    fn validate(&self, _: callgate_core::args::Args<'_>, _: &mut dyn FnMut(Violation<'_>)) {}
}

const fn at(ms: u64) -> Now {
    Now { monotonic: Instant::from_nanos(ms * 1_000_000), wall: Timestamp::from_unix_millis(1_000_000 + ms) }
}

/// The record of a call that was turned away; its length follows that of its names.
fn with_record<R>(id: &str, look: impl FnOnce(&Record<'_>) -> R) -> R {
    let key = DigestKey::new([1; 32]);
    let request = Request { tool: "probe", arguments: b"{}", token: None };
    let envelope = Envelope::new(CallContext::cli(id), request, Settings::new(&key), &mut []);
    look(&Call::request(envelope, at(0)).turn_away::<Probe>(TurnAway::Overloaded).close(at(0)).record())
}

fn dumped<const BYTES: usize>(ring: &AuditRing<BYTES>) -> String {
    let mut bytes = Vec::new();
    ring.dump(|piece| bytes.extend_from_slice(piece));
    String::from_utf8(bytes).expect("whole lines")
}

const RING: usize = 1_200;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// J6, X6: a ring holds as many of the latest lines of a log as there is room for, byte for byte; those before are counted, and the last of
    /// them is told. A line that is longer than half of it is refused, and the chain goes on from the one before.
    #[test]
    fn j6_a_ring_holds_the_latest_lines(lengths in prop::collection::vec(1_usize..250, 0..24)) {
        let mut ring = AuditRing::<RING>::new();
        let (mut head, mut lines, mut heads) = (Head::EMPTY, Vec::<String>::new(), vec![Head::EMPTY]);
        for length in lengths {
            let id = "r".repeat(length);
            let (line, next) = with_record(&id, |record| {
                let mut line = String::new();
                let next = head.append(record, &mut line).expect("a string takes all");
                (line + "\n", next)
            });
            let written = with_record(&id, |record| ring.record(record));
            prop_assert_eq!(written, if line.len() <= RING / 2 { Ok(()) } else { Err(AuditFault) });
            let mut kept = ring.lines() as usize;
            if written.is_ok() {
                head = next;
                lines.push(line);
                heads.push(head);
                // As many as there is room for.
                let longest = (1..=lines.len()).rev().find(|count| lines[lines.len() - count..].concat().len() <= RING);
                prop_assert_eq!(Some(kept), longest.map(|count| count.min(kept)));
                prop_assert!(kept >= 1);
            } else {
                kept = kept.min(lines.len());
            }
            let first = lines.len() - kept;
            prop_assert_eq!(dumped(&ring), lines[first..].concat());
            prop_assert_eq!((ring.overwritten(), ring.before(), ring.head()), (first as u64, heads[first], head));
        }
    }
}

/// X6: a line of exactly half of a ring is taken, and as many as fill it to the last byte.
#[test]
fn x6_a_ring_is_filled_to_the_last_byte() {
    let length = |id: &str| {
        with_record(id, |record| {
            let mut line = String::new();
            Head::EMPTY.append(record, &mut line).expect("a string takes all");
            line.len() + 1
        })
    };
    let id = "r".repeat(600 - length("r") + 1);
    assert_eq!(length(&id), 600);
    let mut ring = AuditRing::<RING>::new();
    assert_eq!((AuditRing::<RING>::LONGEST, ring.lines(), ring.overwritten()), (600, 0, 0));
    for written in 1..=3_u64 {
        assert_eq!(with_record(&id, |record| ring.record(record)), Ok(()));
        assert_eq!((ring.lines(), ring.overwritten()), (written.min(2), written.saturating_sub(2)));
        assert_eq!(dumped(&ring).len() as u64, 600 * written.min(2));
    }
    assert_eq!(with_record(&format!("{id}r"), |record| ring.record(record)), Err(AuditFault));
    let shared = RefCell::new(ring);
    let held = shared.borrow();
    assert_eq!(with_record("r", |record| shared.record(record)), Err(AuditFault), "while it is being read");
    drop(held);
    assert_eq!(with_record("r", |record| Audit::record(&shared, record)), Ok(()));
}

/// O2, D2: an outcome is whole, or says what it did, that it is cut and how long it was; or nothing is written.
#[test]
fn o2_an_outcome_is_whole_or_says_that_it_is_cut() {
    fn written<const N: usize>() -> Result<(bool, Value), usize> {
        let key = DigestKey::new([1; 32]);
        let request = Request { tool: "probe", arguments: b"{}", token: None };
        let envelope = Envelope::new(CallContext::cli("r-1"), request, Settings::new(&key), &mut []);
        let ended = Call::request(envelope, at(0)).turn_away::<Probe>(TurnAway::Overloaded);
        let Step::Done(outcome) = ended.close(at(0)).recorded(Err(AuditFault)) else { panic!("it is over") };
        let mut buffer = Buffer::<N>::new();
        match write_outcome(&outcome, &mut buffer) {
            Ok(whole) => Ok((whole, serde_json::from_str(buffer.as_str()).expect("JSON"))),
            Err(error) => {
                assert!(buffer.is_empty());
                Err(error.bytes)
            }
        }
    }
    let (whole, outcome) = written::<2_000>().expect("there is room");
    assert!(whole && outcome["error"].is_string(), "{outcome}");
    let Err(bytes) = written::<10>() else { panic!("there is no room") };
    assert_eq!(bytes, outcome.to_string().len());
    let (whole, cut) = written::<260>().expect("there is room for the short form");
    assert!(!whole, "{cut}");
    assert_eq!(
        (&cut["success"], &cut["data"], &cut["message"], &cut["error"]),
        (&json!(false), &json!(null), &json!(null), &json!(null))
    );
    let meta = json!({
        "tool": "probe", "request_id": "r-1", "channel": "cli", "principal": "local-shell", "effect": "none",
        "code": "OVERLOADED", "type": "error", "audit_pending": true, "cut": true, "bytes": bytes,
    });
    assert_eq!(cut["meta"], meta);
}

/// Tokens that count up.
struct Counting(Cell<u8>);

impl Entropy for Counting {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        self.0.set(self.0.get() + 1);
        bytes.fill(self.0.get());
        Ok(())
    }
}

fn caller(principal: &'static str) -> CallContext<'static> {
    CallContext { tenant: Some("t"), ..CallContext::web("r-1", Some(principal), Scopes::new("ops")) }
}

fn binding(caller: &CallContext<'_>) -> Binding {
    Binding {
        tool: Digest::from_bytes([1; 32]),
        arguments: Digest::from_bytes([2; 32]),
        caller: caller_digest(caller),
        principal: principal_digest(caller),
    }
}

fn question(caller: CallContext<'static>, arguments: &'static [u8]) -> Question<'static> {
    Question {
        binding: binding(&caller),
        by: By::Approver,
        approver_scope: Some("ops"),
        approvals: 2,
        caller,
        tool: "probe",
        arguments,
        summary: &"move valve 7",
    }
}

type Store = Confirmations<3, 64>;

fn store() -> (Store, Counting) {
    let mut store = Store::new();
    store.attach_approvers(true);
    (store, Counting(Cell::new(0)))
}

/// D2, F5: what does not fit is not asked; what fits to the last byte is, and is shown in full.
#[test]
fn d2_a_question_is_kept_whole_or_not_at_all() {
    let (mut store, entropy) = store();
    // "t", "u", "web", "r-1", "ops", "probe", and what is shown.
    let taken = 1 + 1 + 3 + 3 + 3 + 5 + 12;
    let most: &'static [u8] = Box::leak(vec![b'x'; 64 - taken].into_boxed_slice());
    let more: &'static [u8] = Box::leak(vec![b'x'; 65 - taken].into_boxed_slice());
    assert!(store.is_empty());
    assert_eq!(store.issue(&question(caller("u"), more), 1_000, &entropy, at(0)).map(|_| ()), Err(IssueFault::Full));
    assert_eq!((store.len(), store.is_empty()), (0, true));
    let issued = store.issue(&question(caller("u"), most), 1_000, &entropy, at(0)).expect("there is room");
    assert_eq!((store.len(), store.is_empty()), (1, false));
    let ticket = issued.token.hash();
    let approver = caller("a");
    let pending: Vec<_> = store.pending(&approver, at(1)).collect();
    assert_eq!(pending.len(), 1);
    let shown = pending[0];
    assert_eq!((shown.ticket, shown.tool, shown.principal), (ticket, "probe", Some("u")));
    assert_eq!((shown.channel, shown.request_id, shown.summary), ("web", "r-1", "move valve 7"));
    assert_eq!(shown.expires_at.as_unix_millis() - shown.issued_at.as_unix_millis(), 1_000);
    // P2, A2: neither who asked, nor another tenant, nor somebody without the scope.
    for other in [caller("u"), CallContext { tenant: Some("s"), ..approver }, approver.with_scopes(Scopes::NONE)] {
        assert_eq!(store.pending(&other, at(1)).count(), 0);
    }
    let other = CallContext { tenant: Some("s"), ..approver };
    assert_eq!(store.decide(ticket, Verdict::Approve, &other, at(1)), Err(DecideFault::Unknown));
    // The arguments come back as they were, if there is room for them.
    let mut room = [0; 64];
    let loaded = store.load(ticket, &mut room, at(1)).expect("there is room").expect("it is there");
    assert_eq!(
        (loaded.arguments, loaded.usable, loaded.binding),
        (most, Err(Refusal::Undecided), binding(&caller("u")))
    );
    assert!(store.load(ticket, &mut room[..most.len() - 1], at(1)).is_err());
    assert!(store.load(Digest::from_bytes([0; 32]), &mut room, at(1)).expect("no fault").is_none());
    // A yes that is not the last one needs room for its name.
    assert_eq!(store.decide(ticket, Verdict::Approve, &approver, at(1)), Err(DecideFault::Full));
    let shown = format!("{:?}", question(caller("u"), most));
    assert!(shown.contains("probe") && !shown.contains("xx") && !shown.contains("valve"), "L1: {shown}");
}

/// A2, A8, L1: as many distinct approvers as are asked for; then one claim, and the arguments are let go of.
#[test]
fn a2_distinct_approvers_are_counted_and_one_claim_is_taken() {
    let (mut store, entropy) = store();
    let asked = Question { approvals: 3, ..question(caller("u"), b"{}") };
    let ticket = store.issue(&asked, 1_000, &entropy, at(0)).expect("there is room").token.hash();
    let seen = |store: &mut Store| {
        store.tickets(&caller("u"), at(1)).map(|seen| (seen.state, seen.approvals, seen.needs)).collect::<Vec<_>>()
    };
    assert_eq!(seen(&mut store), [(TicketState::Pending, 0, 3)]);
    assert!(matches!(store.decide(ticket, Verdict::Approve, &caller("ann"), at(1)), Ok(Decided::Counted { .. })));
    assert!(matches!(
        store.decide(ticket, Verdict::Approve, &caller("ann"), at(1)),
        Err(DecideFault::Refused(_)) | Ok(Decided::Counted { .. })
    ));
    assert_eq!(seen(&mut store), [(TicketState::Pending, 1, 3)], "one yes of one approver");
    assert!(matches!(store.decide(ticket, Verdict::Approve, &caller("b"), at(1)), Ok(Decided::Counted { .. })));
    assert_eq!(seen(&mut store), [(TicketState::Pending, 2, 3)]);
    let presented = Presented { binding: binding(&caller("u")), call: Digest::from_bytes([9; 32]), lease_ms: 5 };
    assert_eq!(store.claim(ticket, &presented, at(1)), Err(Refusal::Undecided));
    assert!(store.decide(ticket, Verdict::Approve, &caller("c"), at(1)).is_ok());
    assert_eq!(store.claim(ticket, &presented, at(1)), Ok(By::Approver));
    assert_eq!(store.claim(ticket, &presented, at(1)), Err(Refusal::Used));
    let mut room = [0; 64];
    let loaded = store.load(ticket, &mut room, at(1)).expect("there is room").expect("it is there");
    assert_eq!(loaded.arguments, b"");
    assert_eq!(store.reap(at(5)).map(|seen| seen.ticket), None);
    // J4: a finisher that claims to be another call completes nothing; one in doubt is settled by whoever may, once.
    let finish = Finish { ticket, call: Digest::from_bytes([8; 32]), effect: Effect::Done };
    assert!(
        store.finish(&finish).is_err()
            && store.finish(&Finish { ticket: Digest::from_bytes([0; 32]), ..finish }).is_err()
    );
    assert_eq!(store.reap(at(100_000)).map(|seen| (seen.ticket, seen.tool)), Some((ticket, "probe")));
    let settler = CallContext { scopes: Scopes::new(RECONCILE_SCOPE), ..caller("s") };
    let reconcile =
        |store: &mut Store, by: &CallContext<'_>| store.reconcile(ticket, Effect::Done, "the valve is open", by);
    assert!(
        reconcile(&mut store, &caller("s")).is_err()
            && reconcile(&mut store, &CallContext { tenant: None, ..settler }).is_err()
    );
    assert_eq!(reconcile(&mut store, &settler), Ok(()));
    assert!(reconcile(&mut store, &settler).is_err());
    let states: Vec<_> = store.tickets(&caller("u"), at(100_000)).map(|seen| seen.state).collect();
    assert_eq!(states, [TicketState::Done(Effect::Done)]);
}

/// J4: the call that claimed a ticket finishes it.
#[test]
fn j4_the_call_that_claimed_a_ticket_finishes_it() {
    let (mut store, entropy) = store();
    let asked = Question { by: By::Caller, approver_scope: None, ..question(caller("u"), b"{}") };
    let ticket = store.issue(&asked, 1_000, &entropy, at(0)).expect("there is room").token.hash();
    let call = Digest::from_bytes([9; 32]);
    assert_eq!(
        store.claim(ticket, &Presented { binding: binding(&caller("u")), call, lease_ms: 5 }, at(1)),
        Ok(By::Caller)
    );
    assert_eq!(store.finish(&Finish { ticket, call, effect: Effect::Done }), Ok(()));
    let states: Vec<_> = store.tickets(&caller("u"), at(1)).map(|seen| seen.state).collect();
    assert_eq!(states, [TicketState::Done(Effect::Done)]);
    assert!(store.reap(at(100_000)).is_none());
}

/// C3, X6: a place is free again when its ticket can be forgotten, and not before; one principal has no more than its part.
#[test]
fn c3_a_place_is_given_away_when_its_ticket_can_be_forgotten() {
    let (store, entropy) = store();
    let mut store = store.with_at_most_per_principal(2);
    let issue = |store: &mut Store, principal, ms| {
        store.issue(&question(caller(principal), b"{}"), 1_000, &entropy, at(ms)).map(|issued| issued.token.hash())
    };
    let first = issue(&mut store, "u", 0).expect("there is room");
    let second = issue(&mut store, "u", 1).expect("there is room");
    assert_eq!(issue(&mut store, "u", 2), Err(IssueFault::Full), "its part");
    assert!(issue(&mut store, "v", 3).is_ok());
    assert_eq!(issue(&mut store, "w", 4), Err(IssueFault::Full), "all places");
    // J5: neither a cancelled nor a withdrawn one gives its place away before its time.
    assert_eq!(store.cancel(first, &caller("v")).map_err(|error| matches!(error, CancelError::Unknown)), Err(true));
    assert_eq!(store.cancel(first, &caller("u")), Ok(()));
    store.withdraw(second);
    store.withdraw(Digest::from_bytes([0; 32]));
    let viewer = caller("u").with_scopes(Scopes::NONE);
    let states: Vec<_> = store.tickets(&viewer, at(5)).map(|seen| seen.state).collect();
    assert_eq!(states, [TicketState::Cancelled; 2]);
    assert_eq!(issue(&mut store, "w", 999), Err(IssueFault::Full));
    assert!(issue(&mut store, "w", 1_000).is_ok() && store.len() == 3);
    assert_eq!(store.tickets(&viewer, at(1_000)).count(), 1);
    assert!(issue(&mut store, "u", 1_001).is_ok(), "its own expired ones do not count");
}

/// F3: nobody to ask, and no randomness, are told and issue nothing.
#[test]
fn f3_without_an_approver_nothing_is_asked() {
    struct Broken;
    impl Entropy for Broken {
        fn fill(&self, _: &mut [u8]) -> Result<(), EntropyError> {
            Err(EntropyError)
        }
    }
    let mut store = Store::default();
    let asked = question(caller("u"), b"{}");
    let issue = |store: &mut Store, question: &Question<'_>| {
        store.issue(question, 1, &Counting(Cell::new(7)), at(0)).map(|_| ())
    };
    assert_eq!(issue(&mut store, &asked), Err(IssueFault::NoApprover));
    let own = Question { by: By::Caller, approver_scope: None, ..asked };
    assert_eq!(issue(&mut store, &own), Ok(()));
    assert_eq!(issue(&mut store, &own), Err(IssueFault::Store), "A11: the same token twice");
    assert_eq!(store.issue(&own, 1, &Broken, at(0)).map(|_| ()), Err(IssueFault::Store));
    assert_eq!(store.len(), 1);
}

#[test]
fn a_table_of_tools_shows_their_names() {
    let tools = [Probe(ToolSpec::new("a.b", "")), Probe(ToolSpec::new("c", ""))];
    let table = Tools::new(&tools).expect("they differ");
    assert_eq!(format!("{table:?}"), r#"["a.b", "c"]"#);
}
