//! What every store that outlives its process must do. Each function takes what opens the store at a path, as another process
//! would.

use std::path::Path;

use callgate_std::clock::ManualClock;
use callgate_std::confirmations::{By, ConfirmationStore, Guarantee, Refusal, Verdict};
use tempfile::TempDir;

use crate::bench::{BOB, TTL, approval, binding, presented, request};

/// The store at this path, by this clock, with tokens of this seed and approvers at hand.
pub(crate) type Open<'a> = &'a dyn Fn(&Path, &ManualClock, u64) -> Box<dyn ConfirmationStore>;

struct Shop<'a> {
    directory: TempDir,
    clock: ManualClock,
    open: Open<'a>,
}

impl<'a> Shop<'a> {
    fn new(open: Open<'a>) -> Self {
        Self { directory: tempfile::tempdir().expect("a directory"), clock: ManualClock::new(), open }
    }

    fn open(&self, seed: u64) -> Box<dyn ConfirmationStore> {
        (self.open)(&self.directory.path().join("confirmations"), &self.clock, seed)
    }
}

pub(crate) fn a_confirmation_survives_between_two_invocations(open: Open<'_>) {
    let shop = Shop::new(open);
    assert_eq!(shop.open(0).guarantee(), Guarantee::ALL);
    let token = shop.open(1).issue(&request(1), TTL).expect("room").token;
    let loaded = shop.open(2).load(token.hash()).expect("answers").expect("issued");
    assert_eq!((&*loaded.arguments, loaded.binding), (request(1).arguments, binding(1)));
    assert_eq!(shop.open(3).claim(token.hash(), &presented(1)), Ok(Ok(By::Caller)));
    assert_eq!(shop.open(4).claim(token.hash(), &presented(1)), Ok(Err(Refusal::Used)));

    let ticket = shop.open(5).issue(&approval(1), TTL).expect("room").token.hash();
    let seen = shop.open(6).pending(&BOB, 10).expect("answers");
    assert_eq!((seen.len(), seen[0].ticket, seen[0].summary.as_str()), (1, ticket, approval(1).summary.as_str()));
    shop.open(7).decide(ticket, Verdict::Deny, &BOB).expect("the first decision");
    assert_eq!(shop.open(8).claim(ticket, &presented(1)), Ok(Err(Refusal::Denied)));
}

/// C2: what one process saw expire, no other process finds alive under a clock that was set back.
pub(crate) fn c2_expiry_is_remembered_across_processes(open: Open<'_>) {
    let shop = Shop::new(open);
    let ticket = shop.open(1).issue(&request(1), TTL).expect("room").token.hash();
    shop.clock.step_wall(TTL.cast_signed());
    let seen = shop.open(2).load(ticket).expect("answers").expect("kept");
    assert_eq!(seen.usable, Err(Refusal::Expired));
    shop.clock.step_wall(-1_000);
    assert_eq!(shop.open(3).claim(ticket, &presented(1)), Ok(Err(Refusal::Expired)));
}

/// C4: under a clock that is behind the time of issue, a ticket is worth nothing.
pub(crate) fn c4_a_ticket_from_the_future_is_refused(open: Open<'_>) {
    let shop = Shop::new(open);
    for (back, good) in [(5_000, true), (5_001, false)] {
        let ticket = shop.open(1 + back).issue(&request(1), TTL).expect("room").token.hash();
        shop.clock.step_wall(-back.cast_signed());
        assert_eq!(shop.open(2).claim(ticket, &presented(1)).expect("answers").is_ok(), good, "{back}");
        shop.clock.step_wall(back.cast_signed());
        assert_ne!(shop.open(3).claim(ticket, &presented(1)), Ok(Ok(By::Caller)), "and stays so");
    }
}

/// Makes a test of each function of this suite for a store: `name: function that opens it`.
macro_rules! every_shared_store {
    ($name:ident: $open:ident) => { $crate::reopened::every_shared_store!(@ $name $open {
        a_confirmation_survives_between_two_invocations
        c2_expiry_is_remembered_across_processes
        c4_a_ticket_from_the_future_is_refused
    }); };
    (@ $name:ident $open:ident { $($test:ident)+ }) => {
        mod reopened_tests {
            mod $name {
                $(#[test] fn $test() { crate::reopened::$test(&crate::$open); })+
            }
        }
    };
}
pub(crate) use every_shared_store;
