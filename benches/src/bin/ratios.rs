//! Prints the rows of the table that compare times: `ratios [--quick]`; of the parts of a call, `ratios --parts`.

use std::time::Instant;

use callgate_benches::call::{ARGUMENTS, bare, bare_with, call, gate, name};
use callgate_benches::part::{PARTS, part};
use callgate_benches::ratio::{Effort, compare, row};
use callgate_benches::reader::{SIZES, check, check_bare, keys_of, read, read_bare, text_of};
use callgate_benches::scaling::{arguments_of, foreign_token, pending, present};
use callgate_benches::waiting;
use callgate_core::call::{Call, Facts, Resolved};
use callgate_std::gate::Gate;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    if std::env::args().any(|argument| argument == "--parts") {
        for name in PARTS {
            let part = part(name).expect("a part of this name");
            row(name, compare(effort, bare, part), "", "the same bare work");
        }
        return;
    }
    let (first, last) = (name(0), name(54_321));
    let ten = gate(10, false);
    let through = |gate: &Gate, name: &str| call(gate, name, ARGUMENTS);
    row(
        "a call, every stage on",
        compare(effort, bare, || through(&ten, &first)),
        "3x",
        "serde_json into a struct, call, serialize",
    );
    let digesting = gate(10, true);
    row(
        "the same, arguments digested for the record",
        compare(effort, bare, || through(&digesting, &first)),
        "",
        "the same bare work",
    );
    let waits = waiting::gate(waiting::NeverWaits);
    row(
        "the async gate, where nothing waits",
        compare(effort, bare, || waiting::call(&waits)),
        "",
        "the same bare work",
    );
    let many = gate(100_000, false);
    row(
        "a call among 100,000 tools",
        compare(effort, || through(&ten, &first), || through(&many, &last)),
        "1.2x",
        "the same among 10 tools",
    );
    for (size, bytes) in [("1 KiB", 1 << 10), ("64 KiB", 64 << 10)] {
        let arguments = arguments_of(bytes);
        row(
            &format!("a call with {size} of text"),
            compare(effort, || bare_with(&arguments), || call(&ten, &first, &arguments)),
            "",
            "the bare work on the same text",
        );
    }
    let (token, none, full) = (foreign_token(), pending(0), pending(100_000));
    row(
        "a token among 100,000 pending confirmations",
        compare(effort, || present(&none, &token), || present(&full, &token)),
        "",
        "the same among none",
    );
    for (size, bytes) in SIZES {
        let text = text_of(bytes);
        let mut keys = keys_of(&text);
        let pair = compare(effort, || read_bare(&text), || read(&text, &mut keys));
        row(&format!("read {size} into a value"), pair, "1.5x", "serde_json into the same value");
        let pair = compare(effort, || check_bare(&text), || check(&text, &mut keys));
        row(&format!("check {size} whole"), pair, "", "serde_json into IgnoredAny, which looks for less");
    }
    println!(
        "| bytes that a call carries beside its arguments | | {} | | 256 | (its facts and its stage) |",
        size_of::<Facts>() + size_of::<Call<&mut (), &(), Resolved>>()
    );
    println!(
        "| calls per second by two threads | 1 thread | 2 threads | {:.2}x | 1.8x | one thread |",
        threads(&ten, if quick { 20_000 } else { 200_000 })
    );
}

/// How many times the calls of one thread two threads make, each of a tool of its own.
fn threads(gate: &Gate, turns: u32) -> f64 {
    let run = |count: usize| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for at in 0..count {
                let name = name(at);
                scope.spawn(move || (0..turns).for_each(|_| call(gate, &name, ARGUMENTS)));
            }
        });
        f64::from(turns) * count as f64 / start.elapsed().as_secs_f64()
    };
    run(1);
    let mut ratios: Vec<_> = (0..9)
        .map(|_| {
            let one = run(1);
            run(2) / one
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}
