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

/// It owns what it carries, because its future may outlive whoever asked.
#[test]
fn an_async_call_that_never_waits_allocates_what_it_owns() {
    let waits = || {
        let mut turn = subject("call, async").expect("a subject of this name");
        // The gate keeps whom to tell when it goes down, and makes room for them now and then.
        (0..20).map(|_| allocation_counter::measure(&mut turn).count_total).min().unwrap_or_default()
    };
    // Beside what a blocking call allocates: the caller (2), the name, the arguments, the keys, the cancellation, and the parts of its
    // way and of its body's (6).
    assert_eq!(waits(), 2 + 2 + 12);
}

#[test]
fn checking_a_text_allocates_nothing() {
    assert_eq!(allocations("check 256 KiB"), 0);
}
