//! Operations after a kill: the same call is made again under the same id, until it has an answer.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use callgate_core::code::{Code, Effect};
use callgate_core::digest::Digest;
use callgate_std::clock::ManualClock;
use callgate_std::confirmations::Resolution;
use callgate_std::journal::OperationState;

use crate::records::Records;
use crate::victim::{Round, Word, digest};
use crate::world::{Told, World, operation, receipts, steward, tenant};

/// Longer than any lease.
const A_WHILE: Duration = Duration::from_secs(3_600);

/// What is known of them.
pub(crate) struct Operated {
    /// The clock of every journal, also of those in the processes that are killed.
    pub(crate) clock: ManualClock,
    pub(crate) sent: Vec<u64>,
    /// What was told to be done, and with what.
    pub(crate) done: HashMap<u64, String>,
    /// Every call that was made again, and how it ended.
    again: Vec<(String, &'static str)>,
    pub(crate) replayed: u64,
    pub(crate) made: u64,
    pub(crate) in_doubt: u64,
    pub(crate) tried_again: u64,
    /// What is in doubt and left to be settled at the end.
    unsettled: Vec<u64>,
}

impl Operated {
    pub(crate) fn new() -> Self {
        Self {
            clock: ManualClock::new(),
            sent: Vec::new(),
            done: HashMap::new(),
            again: Vec::new(),
            replayed: 0,
            made: 0,
            in_doubt: 0,
            tried_again: 0,
            unsettled: Vec::new(),
        }
    }

    fn ask(&mut self, world: &World, n: u64) -> Told {
        let id = format!("again{}-{n}", self.again.len());
        let told = world.operate(&id, n);
        let end = match (told.code, told.replayed) {
            (None, true) => "replayed",
            (None, false) => "done",
            (Some(_), _) => "refused",
        };
        self.again.push((id, end));
        told
    }

    /// A5, J3, J4: whatever was killed when, an operation has one effect at most; what was told is told again, and what nobody knows of
    /// is told to be unknown until somebody settles it.
    pub(crate) fn after_a_kill(&mut self, directory: &Path, world: &World, round: Round, said: &[Word]) {
        let mut sent = Vec::new();
        for word in said {
            match word {
                Word::Sent(n) => sent.push(*n),
                Word::Done(n, delivered) => drop(self.done.insert(*n, delivered.clone())),
                _ => {}
            }
        }
        let mut claimed = Vec::new();
        for n in sent.iter().copied() {
            let before = receipts(directory, n);
            let told = self.ask(world, n);
            let after = receipts(directory, n);
            let what = format!("{round:?}: {n}: {told:?}");
            assert!(after.len() <= 1, "A5: {what}");
            match told.code {
                None if told.replayed => {
                    assert_eq!(before, after, "A5: {what}");
                    self.is_replayed(n, &told, &after);
                    self.replayed += 1;
                }
                None => {
                    assert!(before.is_empty() && after.len() == 1 && told.attempt == Some(1), "A5: {what}");
                    assert!(!self.done.contains_key(&n), "J3: it was told to be done: {what}");
                    self.made += 1;
                }
                Some(code) => {
                    assert_eq!((code, told.effect), (Code::OperationInProgress, Effect::Unknown), "{what}");
                    assert_eq!(before, after, "A5: {what}");
                    assert!(!self.done.contains_key(&n), "J3: it was told to be done: {what}");
                    claimed.push(n);
                }
            }
        }
        let under_way = usize::try_from(round.callers()).expect("few");
        assert!(claimed.len() <= under_way, "{round:?}: only calls under way are in doubt: {claimed:?}");
        self.in_doubt += claimed.len() as u64;
        self.sent.extend(sent);
        // Their leases end.
        self.clock.advance(A_WHILE);
        for n in claimed {
            self.is_unknown(directory, world, n);
            // Every other one is left in doubt, whatever is killed meanwhile.
            if self.again.len().is_multiple_of(2) { self.settle(directory, world, n) } else { self.unsettled.push(n) }
        }
    }

    /// J3: byte for byte what was told.
    fn is_replayed(&self, n: u64, told: &Told, receipts: &[String]) {
        let [receipt] = receipts else { panic!("{n}: replayed without an effect: {receipts:?}") };
        assert!(told.delivered.contains(&format!("\"{receipt}\"")), "{n}: {receipt}: {told:?}");
        if let Some(done) = self.done.get(&n) {
            assert_eq!(*done, digest(&told.delivered), "{n}: {told:?}");
        }
    }

    fn is_unknown(&mut self, directory: &Path, world: &World, n: u64) {
        let before = receipts(directory, n);
        let told = self.ask(world, n);
        assert_eq!((told.code, told.effect), (Some(Code::UnknownOutcome), Effect::Unknown), "J4: {n}");
        assert_eq!(receipts(directory, n), before, "J4: {n} runs again by itself");
    }

    /// J5: a host settles it by the ledger; then whoever asks gets to an end.
    fn settle(&mut self, directory: &Path, world: &World, n: u64) {
        let took_effect = !receipts(directory, n).is_empty();
        let (id, tenant) = (format!("settles-{n}"), tenant(n));
        let by = steward(&id, Some(&tenant));
        let effect = if took_effect { Effect::Done } else { Effect::None };
        let resolution = Resolution { effect, proof: "the ledger", by };
        let view = world.gate.operations().resolve(key(world, n), &resolution).expect("it is in doubt");
        let settled = if took_effect { OperationState::Completed } else { OperationState::Open };
        assert_eq!((view.state, view.attempt), (settled, 1), "J5: {n}");
        if took_effect {
            let told = self.ask(world, n);
            assert_eq!((told.code, told.effect), (Some(Code::ResultNotKept), Effect::Done), "J5: {n}");
        } else {
            let told = self.ask(world, n);
            assert_eq!((told.code, told.replayed, told.attempt), (None, false, Some(2)), "J5: {n}");
            self.done.insert(n, digest(&told.delivered));
            self.tried_again += 1;
            let told = self.ask(world, n);
            assert!(told.replayed, "{n}: {told:?}");
            self.is_replayed(n, &told, &receipts(directory, n));
        }
        assert_eq!(receipts(directory, n).len(), 1, "A5: {n}");
    }

    /// What was left in doubt is so still, and is settled.
    pub(crate) fn settle_the_rest(&mut self, directory: &Path, world: &World) {
        for n in std::mem::take(&mut self.unsettled) {
            self.is_unknown(directory, world, n);
            self.settle(directory, world, n);
        }
    }

    /// J1, J2: every call has its one end, replays and refusals as well, and every operation its one effect, after an intent. J5: none
    /// is under way or in doubt.
    pub(crate) fn hold(
        &self,
        directory: &Path,
        records: &Records,
        effects: &HashMap<u64, u32>,
        intents: &HashMap<u64, u32>,
    ) {
        for n in &self.sent {
            assert_eq!(effects.get(n), Some(&1), "A5: {n}");
            assert!(intents[n] >= 1, "J2: {n}");
        }
        for (id, end) in &self.again {
            let (_, ends) = records.of(id);
            let [recorded] = ends[..] else { panic!("J1: {id}: {ends:?}") };
            // How a refusal is named says the log.
            let is_known = recorded == *end || *end == "refused" && !["done", "replayed"].contains(&recorded);
            assert!(is_known, "{id} was {end}, and is recorded as {recorded}");
        }
        let database = rusqlite::Connection::open(directory.join("gate.db")).expect("whole");
        let mut states = database.prepare("SELECT DISTINCT state FROM operations").expect("a table");
        let states: Vec<String> =
            states.query_map([], |row| row.get(0)).expect("rows").collect::<Result<_, _>>().expect("rows");
        assert_eq!(states, ["completed"], "J5");
    }
}

/// The name of operation `n` in the journal.
fn key(world: &World, n: u64) -> Digest {
    let tenant = tenant(n);
    let views = world.gate.operations().list(&steward("lists", Some(&tenant)), 1_000).expect("answers");
    views.iter().find(|view| view.operation == operation(n)).unwrap_or_else(|| panic!("{n} is listed: {views:?}")).key
}
