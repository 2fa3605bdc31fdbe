//! Real processes at one store: who claims, and what a killed one leaves. The program that includes this says which store, with a
//! function `shared`.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use callgate_core::digest::Digest;
use callgate_std::confirmations::Refusal;

use crate::bench::{presented, request};
use crate::shared;

const TTL: u64 = 3_600_000;
/// Set for a process that is a child of one of these tests: the file that it claims from.
const CHILD: &str = "CALLGATE_TEST_CONFIRMATIONS";

/// The part of a child: claims each ticket that is named on its standard input, and says what came of it. Does nothing when
/// run as a test.
#[test]
fn child() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let store = shared(path.as_ref());
    let mut out = std::io::stdout();
    for line in std::io::stdin().lines() {
        let ticket: Digest = line.expect("text").parse().expect("a ticket");
        let claimed = store.claim(ticket, &presented(1)).expect("the store answers");
        let answer = claimed.map_or_else(Refusal::as_str, |_| "claimed");
        // In one piece, so that a kill leaves a whole line or none.
        out.write_all(format!("\n@{ticket} {answer}\n").as_bytes()).expect("the parent reads");
        out.flush().expect("the parent reads");
    }
}

struct Claimer {
    child: Child,
    tickets: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Claimer {
    fn start(path: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "races::child", "--nocapture", "--test-threads=1"])
            .env(CHILD, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let tickets = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, tickets, answers }
    }

    /// Names a ticket; false when the process is gone.
    fn name(&mut self, ticket: Digest) -> bool {
        self.tickets.as_mut().is_some_and(|pipe| pipe.write_all(format!("{ticket}\n").as_bytes()).is_ok())
    }

    /// The next answer; `None` when the process is gone.
    fn answer(&mut self) -> Option<(Digest, String)> {
        loop {
            let mut line = String::new();
            if self.answers.read_line(&mut line).expect("text") == 0 {
                return None;
            }
            if let Some((ticket, answer)) = line.strip_prefix('@').and_then(|line| line.trim_end().split_once(' ')) {
                return Some((ticket.parse().expect("a ticket"), answer.to_owned()));
            }
        }
    }
}

impl Drop for Claimer {
    fn drop(&mut self) {
        self.tickets = None;
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Says another number of tickets, as `1000`.
const TICKETS: &str = "CALLGATE_RACE_TICKETS";

/// A5: so many processes race for each of so many tickets.
pub(crate) fn a5_one_claim_among_processes(processes: usize, tickets: usize) {
    let said = std::env::var(TICKETS).ok();
    let tickets = said.map_or(tickets, |said| said.parse().expect("a number"));
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("confirmations");
    let store = shared(&path);
    let mut claimers: Vec<_> = (0..processes).map(|_| Claimer::start(&path)).collect();
    for round in 0..tickets {
        let ticket = store.issue(&request(1), TTL).expect("room").token.hash();
        for claimer in &mut claimers {
            assert!(claimer.name(ticket));
        }
        let answers: Vec<_> = claimers.iter_mut().map(|one| one.answer().expect("it lives").1).collect();
        let claims = answers.iter().filter(|answer| *answer == "claimed").count();
        assert_eq!(claims, 1, "round {round}: {answers:?}");
        assert!(answers.iter().all(|answer| answer == "claimed" || answer == "used"), "round {round}: {answers:?}");
    }
}

/// A5, J3: a process is killed while it claims, at whatever point. What it was told to have claimed stays claimed, the file
/// stays whole, and nothing is claimed twice.
pub(crate) fn j3_a_killed_process_loses_and_doubles_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("confirmations");
    let store = shared(&path);
    for round in 0..20 {
        let tickets: Vec<_> = (0..8).map(|_| store.issue(&request(1), TTL).expect("room").token.hash()).collect();
        let mut victim = Claimer::start(&path);
        for ticket in &tickets {
            assert!(victim.name(*ticket));
        }
        let mut told = HashSet::new();
        for _ in 0..round % 5 {
            told.extend(victim.answer().map(|(ticket, _)| ticket));
        }
        victim.child.kill().expect("it is ours");
        while let Some((ticket, answer)) = victim.answer() {
            assert_eq!(answer, "claimed");
            told.insert(ticket);
        }
        drop(victim);
        // A process that opens the file next finds it whole.
        let next = shared(&path);
        let mut unanswered = 0;
        for ticket in &tickets {
            match next.claim(*ticket, &presented(1)).expect("answers") {
                Ok(_) => assert!(!told.contains(ticket), "round {round}: claimed twice"),
                Err(refusal) => {
                    assert_eq!(refusal, Refusal::Used);
                    unanswered += usize::from(!told.contains(ticket));
                }
            }
            assert_eq!(next.claim(*ticket, &presented(1)), Ok(Err(Refusal::Used)));
        }
        assert!(unanswered <= 1, "round {round}: only the claim under way can be kept without an answer");
    }
}
