//! What the checker says of each design.

use std::time::Instant;

use claim_model::{Bounds, Design, Redemption};
use stateright::{Checker, Model};

/// Within which bounds the good design is looked at: replicas/tokens/crashes/leases, `3/3/2/2` if nothing is said.
const BOUNDS: &str = "CALLGATE_CLAIM_BOUNDS";

fn bounds() -> Bounds {
    let said = std::env::var(BOUNDS).unwrap_or_else(|_| "3/3/2/2".to_owned());
    let numbers: Vec<u8> = said.split('/').map(|number| number.parse().expect("a small number")).collect();
    let [replicas, tokens, crashes, leases] = numbers[..] else { panic!("{BOUNDS} is four numbers") };
    Bounds { replicas, tokens, crashes, leases }
}

#[test]
fn a5_j1_j5_hold_where_a_lost_call_is_left_in_doubt() {
    let bounds = bounds();
    let begun = Instant::now();
    let checker = Redemption { design: Design::InDoubt, bounds }.checker().threads(2).spawn_bfs().join();
    println!("{bounds:?}: {} states in {:?}", checker.unique_state_count(), begun.elapsed());
    checker.assert_properties();
}

/// Designs that fail, and what they fail at: whoever changes the model so that they pass has blinded it.
#[test]
fn a5_j1_are_seen_to_fail() {
    let bounds = Bounds { replicas: 2, tokens: 1, crashes: 1, leases: 1 };
    for design in [Design::GetThenDelete, Design::Requeue] {
        let checker = Redemption { design, bounds }.checker().spawn_bfs().join();
        for rule in ["A5", "J1"] {
            assert!(checker.discovery(rule).is_some(), "{design:?} breaks {rule}, and the model does not see it");
        }
    }
}
