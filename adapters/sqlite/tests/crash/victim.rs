//! The process that is killed: both ends of it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;

use callgate_core::digest::Digest;
use callgate_core::time::{Now, Timestamp};
use callgate_std::clock::{Clock as _, ManualClock};

use crate::points::{Ends, Passes};
use crate::steps::Steps;
use crate::world::{OF_A_ROUND, World};

/// How many calls each would make if it were not killed.
pub(crate) const CALLS: u64 = 10;
/// Set for a process that is a child of this test: its directory, its round, what it passes, and where it is to be killed.
const CHILD: &str = "CALLGATE_TEST_CRASH";
const ROUND: &str = "CALLGATE_TEST_CRASH_ROUND";
const PASSES: &str = "CALLGATE_TEST_CRASH_PASSES";
const ENDS: &str = "CALLGATE_TEST_CRASH_ENDS";
/// The time of its journal, in milliseconds.
const TIME: &str = "CALLGATE_TEST_CRASH_TIME";

/// What a process does, which follows from its number and from the place at which it is to be killed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    number: u64,
    passes: Passes,
}

impl Round {
    /// One that has to pass some place.
    pub(crate) const fn new(number: u64, passes: Passes) -> Self {
        Self { number, passes }
    }

    const fn bit(self, bit: u32) -> bool {
        self.number >> bit & 1 == 1
    }

    /// The number of its first call.
    pub(crate) const fn first(self) -> u64 {
        self.number * OF_A_ROUND
    }

    /// Whether another process has the file open all the time, so that nobody has to recover it.
    pub(crate) const fn is_witnessed(self) -> bool {
        self.bit(0)
    }

    /// How many call at once: in every other round so many that they share transactions.
    pub(crate) const fn callers(self) -> u64 {
        if self.bit(1) { 3 } else { 1 }
    }

    /// Whether its calls are operations, and not confirmed.
    pub(crate) const fn operates(self) -> bool {
        match self.passes {
            Passes::Confirmed => false,
            Passes::Operations => true,
            Passes::Calls | Passes::Rotations => self.bit(2),
        }
    }

    /// Whether the log is rotated meanwhile, as often as a call is over.
    pub(crate) const fn rotates(self) -> bool {
        matches!(self.passes, Passes::Rotations) || self.bit(3)
    }

    /// The request ids of its calls.
    fn id(what: &str, n: u64) -> String {
        format!("{what}-{n}")
    }
}

/// In one piece, so that a kill leaves a whole line or none.
pub(crate) fn say(what: &str, n: u64, more: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n@{what} {n} {more}\n").as_bytes()).and_then(|()| out.flush()).expect("the parent reads");
}

/// What was told `done`, in a word.
pub(crate) fn digest(delivered: &str) -> String {
    Digest::of_bytes(delivered.as_bytes()).to_string()
}

/// The part of a child. Does nothing when run as a test.
#[test]
fn child() {
    let (Some(directory), Ok(number)) = (std::env::var_os(CHILD), std::env::var(ROUND)) else { return };
    let passes = match std::env::var(PASSES).as_deref() {
        Ok("confirmed") => Passes::Confirmed,
        Ok("operations") => Passes::Operations,
        Ok("rotations") => Passes::Rotations,
        _ => Passes::Calls,
    };
    let round = Round::new(number.parse().expect("a number"), passes);
    let ends = Ends::told(std::env::var(ENDS).ok());
    let at = Arc::clone(&ends);
    tracing::subscriber::set_global_default(Steps(move |step: &str| at.at(step))).expect("nobody else listens");
    let wall = std::env::var(TIME).expect("told").parse().expect("a number");
    let clock = ManualClock::at(Now { wall: Timestamp::from_unix_millis(wall), ..ManualClock::new().now() });
    let world = World::with(directory.as_ref(), &ends, clock.shared());
    let (over, finished) = channel();
    std::thread::scope(|scope| {
        let callers = round.callers();
        for caller in 0..callers {
            let (world, over) = (&world, over.clone());
            scope.spawn(move || {
                for n in (round.first()..round.first() + CALLS).filter(|n| n % callers == caller) {
                    if round.operates() {
                        operate(world, n);
                    } else {
                        pay(world, n);
                    }
                    over.send(n).expect("it is heard");
                }
            });
        }
        let (world, ends) = (&world, &ends);
        scope.spawn(move || {
            for n in finished.iter().take(usize::try_from(CALLS).expect("few")).filter(|_| round.rotates()) {
                world.look(&Round::id("look", n));
                ends.around("rotation", || world.rotate());
            }
        });
    });
    say("over", 0, "-");
    // Until it is killed.
    drop(std::io::stdin().read(&mut [0]));
}

fn pay(world: &World, n: u64) {
    let (code, token) = world.call(&Round::id("ask", n), n, None);
    let token = token.unwrap_or_else(|| panic!("it asks: {code:?}"));
    say("asked", n, &token);
    let (code, _) = world.call(&Round::id("redeem", n), n, Some(&token));
    assert_eq!(code, None);
    say("done", n, "-");
}

fn operate(world: &World, n: u64) {
    say("sent", n, "-");
    let told = world.operate(&Round::id("order", n), n);
    assert!(told.code.is_none() && !told.replayed, "{told:?}");
    say("done", n, &digest(&told.delivered));
}

/// What a child says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    /// It asked for a yes to call `n`, and has a token.
    Asked(u64, String),
    /// It is about to make operation `n`.
    Sent(u64),
    /// Call `n` was told to be done, with this.
    Done(u64, String),
    /// It is where it is to be killed.
    At,
    /// It has nothing more to do.
    Over,
}

pub(crate) struct Victim {
    child: Child,
    _stdin: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Victim {
    pub(crate) fn start(directory: &Path, round: Round, ends: Option<&str>, now: Now) -> Self {
        let passes = match round.passes {
            Passes::Calls => "calls",
            Passes::Confirmed => "confirmed",
            Passes::Operations => "operations",
            Passes::Rotations => "rotations",
        };
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "victim::child", "--nocapture", "--test-threads=1"])
            .env(CHILD, directory)
            .env(ROUND, round.number.to_string())
            .env(PASSES, passes)
            .env(TIME, now.wall.as_unix_millis().to_string())
            .envs(ends.map(|ends| (ENDS, ends)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { _stdin: child.stdin.take(), child, lines }
    }

    /// The next thing that it says; `None` when it is gone.
    pub(crate) fn next(&mut self) -> Option<Word> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).expect("text") == 0 {
                return None;
            }
            let mut words = line.strip_prefix('@').unwrap_or_default().split_whitespace();
            let (Some(what), Some(n), Some(more)) = (words.next(), words.next(), words.next()) else { continue };
            let (n, more) = (n.parse().expect("a number"), more.to_owned());
            return Some(match what {
                "asked" => Word::Asked(n, more),
                "sent" => Word::Sent(n),
                "done" => Word::Done(n, more),
                "at" => Word::At,
                "over" => Word::Over,
                _ => panic!("it says {line}"),
            });
        }
    }

    /// Kills it, and gives what it had said by then. It was alive until then.
    pub(crate) fn kill(mut self, mut said: Vec<Word>) -> Vec<Word> {
        use std::os::unix::process::ExitStatusExt as _;
        self.child.kill().expect("it is ours");
        while let Some(word) = self.next() {
            said.push(word);
        }
        let ended = self.child.wait().expect("it is ours");
        assert_eq!(ended.signal(), Some(9), "it failed: {ended}, having said {said:?}");
        said
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
