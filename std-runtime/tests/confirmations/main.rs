//! Every store of confirmations passes one suite.
#![cfg(test)]

mod bench;
mod clocks;
mod fixed;
mod grants;
mod model;
mod on_disk;
mod races;
mod reopened;
mod suite;

use std::path::Path;

use callgate_std::confirmations::{
    Capacity, ConfirmationStore, FileConfirmations, Guarantee, MemoryConfirmations, Presented,
};
use callgate_std::entropy::SeededEntropy;

use bench::Bench;
use callgate_std::clock::ManualClock;
use fixed::device;
use grants::every_store_of_grants;
use reopened::every_shared_store;
use suite::every_store;

fn memory(capacity: Capacity) -> Bench {
    let clock = ManualClock::new();
    let store = MemoryConfirmations::with(capacity, clock.shared(), SeededEntropy::shared(7));
    Bench::new(store, clock, MemoryConfirmations::attach_approvers)
}

fn file(capacity: Capacity) -> Bench {
    let clock = ManualClock::new();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("confirmations");
    let store =
        FileConfirmations::open_with(path, capacity, clock.shared(), SeededEntropy::shared(7)).expect("a new file");
    Bench { _keep: Some(directory), ..Bench::new(store, clock, FileConfirmations::attach_approvers) }
}

/// The store that the processes of [`races`] meet at.
fn shared(path: &Path) -> Box<dyn ConfirmationStore> {
    Box::new(FileConfirmations::open(path).expect("new, or whole"))
}

fn at(path: &Path, clock: &ManualClock, seed: u64) -> Box<dyn ConfirmationStore> {
    let store = FileConfirmations::open_with(path, Capacity::DEFAULT, clock.shared(), SeededEntropy::shared(seed));
    let store = store.expect("new, or whole");
    store.attach_approvers(true);
    Box::new(store)
}

every_store!(memory file device);
every_store_of_grants!(memory file);
every_shared_store!(file: at);

mod clock {
    crate::clocks::every_clock!(memory: memory);
    crate::clocks::every_clock!(file: file, at);
    crate::clocks::every_clock!(device: device);
}

#[test]
fn a5_one_claim_among_processes() {
    races::a5_one_claim_among_processes(3, 100);
}

#[test]
fn j3_a_killed_process_loses_and_doubles_nothing() {
    races::j3_a_killed_process_loses_and_doubles_nothing();
}

/// J3: what a store in memory does not promise.
#[test]
fn j3_memory_vouches_for_its_claims_alone() {
    let guarantee = MemoryConfirmations::default().guarantee();
    assert_eq!(guarantee, Guarantee { atomic_claim: true, ..Guarantee::NONE });
}

#[test]
fn n2_memory_refines_the_model() {
    model::refines(&memory, 256, false, model::SetBack::GoesOn);
}

#[test]
fn c2_memory_refines_the_model_while_the_clock_steps() {
    model::refines(&memory, 512, true, model::SetBack::GoesOn);
}

#[test]
fn n2_the_store_of_a_device_refines_the_model() {
    model::refines(&device, 128, false, model::SetBack::GoesOn);
}

#[test]
fn c2_the_store_of_a_device_refines_the_model_while_the_clock_steps() {
    model::refines(&device, 256, true, model::SetBack::GoesOn);
}

#[test]
fn n2_files_refine_the_model() {
    model::refines(&file, 12, false, model::SetBack::GivesUp);
}

#[test]
fn c2_files_refine_the_model_while_the_clock_steps() {
    model::refines(&file, 12, true, model::SetBack::GivesUp);
}

/// A1, A11: a source of randomness that repeats itself issues nothing twice, and takes nobody's ticket away.
#[test]
fn a11_a_token_that_was_given_out_is_not_given_out_again() {
    use callgate_std::confirmations::IssueFault;
    use callgate_std::entropy::{Entropy, EntropyError};
    struct Stuck;
    impl Entropy for Stuck {
        fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
            bytes.fill(7);
            Ok(())
        }
    }
    let (clock, directory) = (ManualClock::new(), tempfile::tempdir().expect("a directory"));
    let stuck = || std::sync::Arc::new(Stuck);
    let path = directory.path().join("confirmations");
    let memory = MemoryConfirmations::with(Capacity::DEFAULT, clock.shared(), stuck());
    let file = FileConfirmations::open_with(path, Capacity::DEFAULT, clock.shared(), stuck()).expect("a new file");
    for store in [&memory as &dyn ConfirmationStore, &file] {
        let first = store.issue(&bench::request(1), bench::TTL).expect("room").token.hash();
        assert_eq!(store.issue(&bench::request(2), bench::TTL), Err(IssueFault::Store));
        assert!(store.claim(first, &bench::presented(1)).expect("answers").is_ok(), "the first one is untouched");
    }
}

/// C3, X6: many pending tickets are kept, found, claimed and swept.
#[test]
fn c3_a_hundred_thousand_pending() {
    use bench::TTL;
    let request = bench::request(1);
    let bench = memory(Capacity { per_principal: 100_000, ..Capacity::DEFAULT });
    let tickets: Vec<_> = (0..100_000)
        .map(|i| {
            if i == 50_000 {
                bench.pass(TTL / 2);
            }
            bench.store.issue(&request, TTL).expect("there is room").token.hash()
        })
        .collect();
    assert!(bench.store.issue(&request, TTL).is_err(), "F5: full");
    bench.pass(TTL / 2);
    // The older half has expired, so there is room again, and the younger half is untouched.
    for (i, ticket) in tickets.iter().enumerate() {
        let claimed = bench
            .store
            .claim(*ticket, &Presented { binding: request.binding, ..bench::presented(1) })
            .expect("memory answers");
        assert_eq!(claimed.is_ok(), i >= 50_000, "ticket {i}");
    }
    assert!(bench.store.issue(&request, TTL).is_ok());
}
