//! Counts the allocations of one turn of each subject, exactly, and prints them as rows of a table.

use callgate_benches::subject::{NAMES, subject};

fn main() {
    for name in NAMES {
        let mut turn = subject(name).expect("a subject of this name");
        // What is allocated once and kept, such as a bucket of the limiter, is not what a call costs.
        turn();
        println!("| {name} | {} |", allocation_counter::measure(turn).count_total);
    }
}
