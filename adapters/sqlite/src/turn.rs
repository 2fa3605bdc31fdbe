//! Who is next at the connection: one after the other, in the order in which they came. A transaction goes from hand to hand, so that all
//! who wait share one commit.

use std::collections::VecDeque;
use std::mem;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rusqlite::Connection;

use crate::database::lock;

/// The most steps of one transaction: whoever came first waits for the others no longer than that takes.
pub(crate) const MAX_STEPS: usize = 128;

/// What became of a transaction: an error is for all that had a part in it.
pub(crate) type Outcome = Result<(), Arc<str>>;

/// Those who wait for the connection of one process, and the connection while nobody does.
#[derive(Default)]
pub(crate) struct Line(Mutex<State>);

#[derive(Default)]
struct State {
    /// Whether it is somebody's turn.
    held: bool,
    resting: Option<Connection>,
    waiting: VecDeque<Sender<Word>>,
}

/// What goes from hand to hand.
#[derive(Default)]
struct Hand {
    /// None when the file has to be opened again.
    connection: Option<Connection>,
    /// Those with a part in the transaction that is open. Where their senders are dropped, they are told that it failed.
    members: Vec<Sender<Word>>,
}

/// What somebody who waits is told.
enum Word {
    /// It is its turn. It gets back what it is told by.
    Turn(Hand, Sender<Word>),
    /// The transaction in which it had a part is over.
    Over(Outcome),
}

/// The turn of one caller. When it is dropped it is the next one's, without a transaction.
pub(crate) struct Turn<'l> {
    /// None when it was passed on.
    line: Option<&'l Line>,
    hand: Hand,
    ear: Option<(Sender<Word>, Receiver<Word>)>,
    /// When it came.
    pub(crate) since: Instant,
}

/// Whether a transaction was passed on.
pub(crate) enum Passed<T> {
    /// It was.
    On(Option<Later>),
    /// Nobody waits, or the transaction has enough steps: it is to be ended.
    Not(T),
}

/// What tells of the end of a transaction that was passed on.
pub(crate) struct Later(Receiver<Word>);

impl Line {
    /// Waits for one's turn. `None` only where whoever had it is gone without a word, which nothing here does.
    pub(crate) fn turn(&self) -> Option<Turn<'_>> {
        let since = Instant::now();
        let mut state = lock(&self.0);
        if !mem::replace(&mut state.held, true) {
            let hand = Hand { connection: state.resting.take(), members: Vec::new() };
            return Some(Turn { line: Some(self), hand, ear: None, since });
        }
        let (sender, receiver) = channel();
        state.waiting.push_back(sender);
        drop(state);
        let Ok(Word::Turn(hand, own)) = receiver.recv() else { return None };
        Some(Turn { line: Some(self), hand, ear: Some((own, receiver)), since })
    }

    /// The next in line gets this. Where nobody waits it is given back, or with `rest` kept for whoever comes.
    fn pass(&self, mut hand: Hand, rest: bool) -> Option<Hand> {
        loop {
            let mut state = lock(&self.0);
            let Some(next) = state.waiting.pop_front() else {
                if !rest {
                    return Some(hand);
                }
                state.held = false;
                state.resting = hand.connection.take();
                return None;
            };
            drop(state);
            match next.send(Word::Turn(hand, next.clone())).map_err(|refused| refused.0) {
                // Whoever waited is gone, which nobody here ever is.
                Err(Word::Turn(back, _)) => hand = back,
                Ok(()) | Err(Word::Over(_)) => return None,
            }
        }
    }

    /// How many wait, and whose turn it is.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let state = lock(&self.0);
        state.waiting.len() + usize::from(state.held)
    }
}

impl Turn<'_> {
    /// The connection, to be put back when it is as it should be.
    pub(crate) const fn take_connection(&mut self) -> Option<Connection> {
        self.hand.connection.take()
    }

    pub(crate) fn put_back(&mut self, connection: Connection) {
        self.hand.connection = Some(connection);
    }

    /// Whether a transaction is open in which others have a part.
    pub(crate) const fn is_shared(&self) -> bool {
        !self.hand.members.is_empty()
    }

    /// Leaves the transaction to the next in line, who adds a step to it or ends it. With a `part` in it, gives what tells of its
    /// end.
    pub(crate) fn pass_on(mut self, part: bool) -> Passed<Self> {
        let Some(line) = self.line.filter(|_| self.hand.members.len() < MAX_STEPS) else { return Passed::Not(self) };
        let (own, receiver) = self.ear.take().unwrap_or_else(channel);
        let mut hand = mem::take(&mut self.hand);
        if part {
            hand.members.push(own.clone());
        }
        if let Some(mut hand) = line.pass(hand, false) {
            if part {
                hand.members.pop();
            }
            self.hand = hand;
            self.ear = Some((own, receiver));
            return Passed::Not(self);
        }
        self.line = None;
        Passed::On(part.then_some(Later(receiver)))
    }

    /// Tells everybody else with a part in the transaction what became of it.
    pub(crate) fn tell(&mut self, outcome: &Outcome) {
        for member in self.hand.members.drain(..) {
            // Each of them waits for it.
            drop(member.send(Word::Over(outcome.clone())));
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let Some(line) = self.line else { return };
        self.hand.members.clear();
        // One that was left in a transaction is rolled back by being closed.
        let connection = self.hand.connection.take().filter(Connection::is_autocommit);
        drop(line.pass(Hand { connection, members: Vec::new() }, true));
    }
}

impl Later {
    /// Waits for the end of the transaction.
    pub(crate) fn wait(self) -> Outcome {
        match self.0.recv() {
            Ok(Word::Over(outcome)) => outcome,
            Ok(Word::Turn(..)) | Err(_) => Err("whoever was to end the transaction was gone".into()),
        }
    }
}
