//! Every journal passes one suite.
#![cfg(test)]

mod bench;
mod gate;
mod model;
mod suite;

use callgate_std::clock::ManualClock;
use callgate_std::journal::{Journal, JournalLimits, MemoryJournal};

use bench::Bench;
use callgate_std::confirmations::Guarantee;
use suite::every_journal;

fn memory(limits: JournalLimits) -> Bench {
    let clock = ManualClock::new();
    Bench::new(MemoryJournal::with(limits, clock.shared()), clock)
}

every_journal!(memory);

/// J3: what a journal in memory does not promise.
#[test]
fn j3_memory_vouches_for_its_claims_alone() {
    let guarantee = MemoryJournal::default().guarantee();
    assert_eq!(guarantee, Guarantee { atomic_claim: true, ..Guarantee::NONE });
}
