//! How often a call allocates: exactly so often (design 5: at most twice more than the bare work).

use callgate_benches::subject::subject;

fn allocations(name: &str) -> u64 {
    let mut turn = subject(name).expect("a subject of this name");
    // What is allocated once and kept, such as a bucket of the limiter, is not what a call costs.
    turn();
    allocation_counter::measure(turn).count_total
}

#[test]
fn a_call_allocates_twice_more_than_its_bare_work() {
    // The path of the arguments and the text of the result.
    assert_eq!(allocations("bare"), 2);
    // The envelope, and the text of the data beside that of the result.
    for call in ["call", "call, digested"] {
        assert_eq!(allocations(call), 2 + 2, "{call}");
    }
    // A call that is clamped notes where.
    assert_eq!(allocations("call, clamped"), 2 + 3);
}

#[test]
fn a_call_that_is_refused_allocates_no_more_than_its_envelope() {
    // And the text that the caller reads the answer into.
    for call in ["call, refused by its schema", "call, no such tool"] {
        assert_eq!(allocations(call), 2, "{call}");
    }
}

#[test]
fn checking_a_text_allocates_nothing() {
    assert_eq!(allocations("check 256 KiB"), 0);
}
