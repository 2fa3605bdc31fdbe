//! Runs a scenario in every order, and its acts one after the other in every order that each thread's own allows.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use loom::model::Builder;
use loom::thread::{self, JoinHandle};

/// The stack of a thread of a model, in words: a gate needs more than `loom` gives.
const STACK: usize = 1 << 16;

/// What threads do something with: a store under test, or the rules that it has to follow.
pub(crate) trait World: 'static {
    /// What a thread can do.
    type Act: Copy + Sync + 'static;
    /// What a thread keeps from one act to the next.
    type Hand: Default;

    /// Does one act, and says what came of it.
    fn act(&self, hand: &mut Self::Hand, act: Self::Act) -> String;

    /// What is left when all threads are through.
    fn end(&self) -> String;
}

/// What each thread does, one act after the other.
pub(crate) type Threads<A> = &'static [&'static [A]];

/// What the threads of one run got, thread by thread and act by act; and what was left.
pub(crate) type Answers = Vec<Vec<String>>;

/// What was seen of a scenario.
#[derive(Debug)]
pub(crate) struct Seen<O> {
    /// The different ends.
    pub(crate) ends: BTreeSet<O>,
    /// How many orders were run.
    pub(crate) runs: usize,
}

/// Which orders are run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Orders {
    /// Every one.
    All,
    /// Those in which at most so many times a thread is stopped that could go on. Most faults show with two.
    Interrupted(usize),
}

/// Runs `scenario` in these orders, whatever bounds the environment asks of `loom`.
pub(crate) fn explore<O: Ord + Send + 'static>(
    orders: Orders,
    scenario: impl Fn() -> O + Send + Sync + 'static,
) -> Seen<O> {
    let seen = Arc::new(Mutex::new(Seen { ends: BTreeSet::new(), runs: 0 }));
    let note = Arc::clone(&seen);
    let mut builder = Builder::new();
    builder.max_branches = 10_000;
    (builder.max_permutations, builder.max_duration) = (None, None);
    builder.preemption_bound = match orders {
        Orders::All => None,
        Orders::Interrupted(times) => Some(times),
    };
    builder.checkpoint_file = None;
    builder.check(move || {
        let end = scenario();
        let mut seen = note.lock().expect("one thread at a time");
        seen.ends.insert(end);
        seen.runs += 1;
    });
    Arc::into_inner(seen).expect("the runs are over").into_inner().expect("no run panicked")
}

/// A thread of a model.
pub(crate) fn spawn<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    thread::Builder::new().stack_size(STACK).spawn(body).expect("a model has room for some threads")
}

/// Runs each thread's acts in one order.
pub(crate) fn run<W: World + Send + Sync>(world: W, threads: Threads<W::Act>) -> Answers {
    let world = Arc::new(world);
    let started: Vec<_> = threads
        .iter()
        .map(|acts| {
            let world = Arc::clone(&world);
            spawn(move || {
                let mut hand = W::Hand::default();
                acts.iter().map(|act| world.act(&mut hand, *act)).collect()
            })
        })
        .collect();
    let mut answers: Answers = started.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    answers.push(vec![world.end()]);
    answers
}

/// All that the threads can get where each act is one step: in every order that keeps each thread's own.
fn one_after_the_other<R: World>(threads: Threads<R::Act>, rules: impl Fn() -> R) -> BTreeSet<Answers> {
    let mut ends = BTreeSet::new();
    let mut orders = vec![Vec::new()];
    while let Some(order) = orders.pop() {
        let done = |thread: usize| order.iter().filter(|other| **other == thread).count();
        let open: Vec<_> = (0..threads.len()).filter(|thread| done(*thread) < threads[*thread].len()).collect();
        for thread in &open {
            orders.push([order.as_slice(), &[*thread]].concat());
        }
        if open.is_empty() {
            let rules = rules();
            let mut hands: Vec<_> = threads.iter().map(|_| R::Hand::default()).collect();
            let mut answers: Answers = vec![Vec::new(); threads.len()];
            for thread in order {
                let act = threads[thread][answers[thread].len()];
                answers[thread].push(rules.act(&mut hands[thread], act));
            }
            answers.push(vec![rules.end()]);
            ends.insert(answers);
        }
    }
    ends
}

/// How what a store does differs from what the rules say.
#[derive(Debug)]
pub(crate) struct Difference {
    /// The answers that no order of whole acts gives.
    pub(crate) strays: BTreeSet<Answers>,
    /// The answers of an order of whole acts that were not seen.
    pub(crate) missed: BTreeSet<Answers>,
    /// Which orders of steps were run.
    orders: Orders,
    /// How many.
    runs: usize,
}

/// Compares what `threads` get of a store with what they get by the rules, act by act (invariant N2).
pub(crate) fn compare<R: World, W: World<Act = R::Act> + Send + Sync>(
    orders: Orders,
    threads: Threads<R::Act>,
    rules: impl Fn() -> R,
    world: impl Fn() -> W + Send + Sync + 'static,
) -> Difference {
    let Seen { ends, runs } = explore(orders, move || run(world(), threads));
    let expected = one_after_the_other(threads, rules);
    Difference { strays: &ends - &expected, missed: &expected - &ends, orders, runs }
}

impl Difference {
    /// Each of these orders of steps gives what some order of whole acts gives. All of them together reach every order of
    /// whole acts.
    pub(crate) fn none(&self) {
        let Self { strays, missed, orders, runs } = self;
        assert!(strays.is_empty(), "no order of whole acts gives {strays:?}");
        let all = matches!(orders, Orders::All);
        assert!(!all || missed.is_empty(), "{runs} runs did not reach {missed:?}");
        assert!(*runs > 1, "there is only one order of this");
        println!("{runs} runs");
    }

    /// Some order of steps gives what breaks a rule.
    pub(crate) fn shows(&self, break_the_rule: impl Fn(&Answers) -> bool) {
        let Self { strays, runs, .. } = self;
        assert!(strays.iter().any(break_the_rule), "{runs} runs did not show the fault: {strays:?}");
        println!("{runs} runs with the fault");
    }
}

/// Set for a process that is to end because all its threads wait.
const CHILD: &str = "CALLGATE_MODEL_WAITS_FOR_EVER";

/// Some order of `scenario` ends with all threads waiting. `loom` panics then, and once more when it clears up, which ends the
/// process: so the test of this name calls itself in one of its own.
pub(crate) fn waits_for_ever(test: &str, scenario: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        return scenario();
    }
    let program = std::env::current_exe().expect("this program");
    let mut child = std::process::Command::new(program);
    child.args(["--exact", test, "--nocapture"]).env(CHILD, "1").env("RUST_BACKTRACE", "0");
    let output = child.output().expect("a process");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("deadlock"), "no order waits for ever: {said}");
}
