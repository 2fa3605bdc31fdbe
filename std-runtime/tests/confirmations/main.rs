//! Every store of confirmations passes one suite.
#![cfg(test)]

mod bench;
mod model;
mod on_disk;
mod races;
mod suite;

use callgate_std::confirmations::{Capacity, FileConfirmations, MemoryConfirmations};
use callgate_std::entropy::SeededEntropy;

use bench::Bench;
use callgate_std::clock::ManualClock;

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

/// Makes a test of each function of the suite for each store.
macro_rules! suite {
    ([$($store:ident)+] $names:tt) => { $(suite!(@ $store $names);)+ };
    (@ $store:ident { $($name:ident)+ }) => {
        mod $store {
            $(#[test] fn $name() { crate::suite::$name(&super::$store); })+
        }
    };
}

suite!([memory file] {
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
});

#[test]
fn n2_memory_refines_the_model() {
    model::refines(&memory, 256, false, model::Time::Steady);
}

#[test]
fn c2_memory_refines_the_model_while_the_clock_steps() {
    model::refines(&memory, 512, true, model::Time::Steady);
}

#[test]
fn n2_files_refine_the_model() {
    model::refines(&file, 12, false, model::Time::Latest);
}

#[test]
fn c2_files_refine_the_model_while_the_clock_steps() {
    model::refines(&file, 12, true, model::Time::Latest);
}

/// A1, A11: a source of randomness that repeats itself issues nothing twice, and takes nobody's ticket away.
#[test]
fn a11_a_token_that_was_given_out_is_not_given_out_again() {
    use callgate_std::confirmations::{ConfirmationStore, IssueFault};
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
        assert!(store.claim(first, &bench::binding(1)).expect("answers").is_ok(), "the first one is untouched");
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
        let claimed = bench.store.claim(*ticket, &request.binding).expect("memory answers");
        assert_eq!(claimed.is_ok(), i >= 50_000, "ticket {i}");
    }
    assert!(bench.store.issue(&request, TTL).is_ok());
}
