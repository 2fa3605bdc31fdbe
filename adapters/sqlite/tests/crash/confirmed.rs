//! Confirmed calls after a kill: the tokens that were given out are presented again.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use callgate_core::code::{Code, Effect};
use callgate_core::confirm::Token;
use callgate_core::digest::Digest;
use callgate_sqlite::{Database, SqliteConfirmations};
use callgate_std::clock::ManualClock;
use callgate_std::confirmations::{Capacity, ConfirmationStore as _, Resolution, TicketState};
use callgate_std::entropy::SeededEntropy;

use crate::records::Records;
use crate::victim::{Round, Word};
use crate::world::{World, receipts, steward};

/// What is known of them.
#[derive(Default)]
pub(crate) struct Confirmed {
    pub(crate) asked: HashMap<u64, String>,
    pub(crate) done: HashSet<u64>,
    /// How many were made only afterwards.
    pub(crate) redeemed: u64,
    /// What was left in doubt.
    pub(crate) doubts: HashMap<u64, Digest>,
}

impl Confirmed {
    /// A5, J5: nothing runs twice, and what had not begun can still be had.
    pub(crate) fn after_a_kill(&mut self, directory: &Path, world: &World, round: Round, said: &[Word]) {
        let mut asked = Vec::new();
        for word in said {
            match word {
                Word::Asked(n, token) => asked.push((*n, token)),
                Word::Done(n, _) => drop(self.done.insert(*n)),
                _ => {}
            }
        }
        let mut doubtful = Vec::new();
        for (n, token) in asked {
            self.asked.insert(n, token.clone());
            let before = receipts(directory, n).len();
            let (code, _) = world.call(&format!("again-{n}"), n, Some(token));
            let after = receipts(directory, n).len();
            match code {
                None => {
                    assert!((before, after) == (0, 1) && !self.done.contains(&n), "{round:?}: {n} ran twice");
                    self.redeemed += 1;
                }
                Some(code) => {
                    assert_eq!((code, before), (Code::ConfirmationInvalid, after), "{round:?}: {n}");
                    assert!(after <= 1, "{round:?}: {n} ran twice");
                    if self.done.contains(&n) {
                        assert_eq!(after, 1, "{round:?}: {n} was told to be done");
                    } else {
                        doubtful.push((n, Token::parse(token).expect("a token").hash()));
                    }
                }
            }
            let (code, _) = world.call(&format!("thrice-{n}"), n, Some(token));
            assert_eq!(code, Some(Code::ConfirmationInvalid), "{round:?}: {n} again");
        }
        let under_way = usize::try_from(round.callers()).expect("few");
        assert!(doubtful.len() <= under_way, "{round:?}: only calls under way are in doubt: {doubtful:?}");
        self.doubts.extend(doubtful);
    }

    /// J4, J5: when every lease is over, what was left open is in doubt, exactly that, and can be settled by what the ledger shows.
    /// A5: it is not run even then.
    pub(crate) fn settle(&self, directory: &Path, world: &World) {
        let database = Arc::new(Database::open(directory.join("gate.db")).expect("whole"));
        let clock = ManualClock::new();
        clock.step_wall(i64::from(i32::MAX) * 1_000);
        let store = SqliteConfirmations::with(database, Capacity::DEFAULT, clock.shared(), SeededEntropy::shared(7));
        let lost: HashSet<_> = store.reap(usize::MAX).expect("answers").iter().map(|view| view.ticket).collect();
        let by = steward("settles", None);
        for (n, ticket) in &self.doubts {
            // One whose call had been told to the store, and nobody else, is settled already.
            if !lost.contains(ticket) {
                continue;
            }
            let effect = if receipts(directory, *n).is_empty() { Effect::None } else { Effect::Done };
            let resolution = Resolution { effect, proof: "the ledger", by };
            let view = store.reconcile(*ticket, &resolution).expect("answers").expect("it is in doubt");
            assert_eq!(view.state, TicketState::Done(effect), "{n}");
        }
        let known: HashSet<_> = self.doubts.values().copied().collect();
        assert!(lost.is_subset(&known), "what was told to be done is not in doubt");
        assert_eq!(store.reap(usize::MAX).expect("answers"), []);
        for n in self.doubts.keys() {
            let before = receipts(directory, *n);
            let (code, _) = world.call(&format!("late-{n}"), *n, Some(&self.asked[n]));
            assert_eq!(code, Some(Code::ConfirmationInvalid), "A5: {n} is not run even then");
            assert_eq!(receipts(directory, *n), before, "A5: {n}");
        }
    }

    /// J1, J2: what was told is recorded, and an effect has its one intent.
    pub(crate) fn hold(&self, records: &Records, effects: &HashMap<u64, u32>, intents: &HashMap<u64, u32>) {
        for n in self.asked.keys().filter(|n| effects.contains_key(n)) {
            assert_eq!((effects[n], intents[n]), (1, 1), "J2: {n}");
        }
        for n in &self.done {
            assert_eq!(records.of(&format!("redeem-{n}")), (1, vec!["done"]), "J1");
        }
    }
}
