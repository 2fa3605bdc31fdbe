//! Times beside their baseline.
//!
//! Not criterion: it measures one function after the other, and on a machine that is shared the seconds between the two decide more
//! than the functions do. Here baseline and subject take turns within each round. A side of a round is shorter than a time slice of
//! the system, the quotient is taken within the round, and the median of all rounds counts.

use std::time::Instant;

/// Nanoseconds per turn.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Of the baseline.
    pub baseline: f64,
    /// Of what is measured.
    pub subject: f64,
}

impl Pair {
    /// How many times the baseline the subject takes: the median of the rounds' quotients.
    #[must_use]
    pub fn ratio(self) -> f64 {
        self.subject / self.baseline
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How many rounds, of which the median counts.
    pub rounds: usize,
    /// How long one side of a round takes, in nanoseconds, more or less.
    pub side_ns: f64,
}

impl Effort {
    /// For a first impression.
    pub const QUICK: Self = Self { rounds: 101, side_ns: 1e5 };
    /// For a number that is written down.
    pub const FULL: Self = Self { rounds: 1_001, side_ns: 1e5 };
}

/// Lets both take turns.
pub fn compare(effort: Effort, mut baseline: impl FnMut(), mut subject: impl FnMut()) -> Pair {
    let time = |work: &mut dyn FnMut(), turns: u32| {
        let start = Instant::now();
        for _ in 0..turns {
            work();
        }
        start.elapsed().as_nanos() as f64 / f64::from(turns)
    };
    let turns = |work: &mut dyn FnMut()| {
        time(work, 3);
        let once = time(work, 10).max(1.0);
        (effort.side_ns / once).clamp(1.0, 1e7) as u32
    };
    let (of_baseline, of_subject) = (turns(&mut baseline), turns(&mut subject));
    let mut rounds: Vec<_> = (0..effort.rounds)
        .map(|_| Pair { baseline: time(&mut baseline, of_baseline), subject: time(&mut subject, of_subject) })
        .collect();
    rounds.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    rounds[rounds.len() / 2]
}

/// Prints a row of the table.
pub fn row(what: &str, pair: Pair, goal: &str, baseline: &str) {
    let Pair { baseline: base, subject } = pair;
    println!("| {what} | {base:.0} ns | {subject:.0} ns | {:.2}x | {goal} | {baseline} |", pair.ratio());
}
