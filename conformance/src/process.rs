//! A subject in a process of its own, spoken to by the protocol.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use crate::event::{Event, Seen};
use crate::stop::Stop;
use crate::subject::{Begun, Declaration, PROTOCOL, Subject, SubjectFault};
use crate::wire::{Answer, Begin, Hello, MAX_LINE, Request};
use crate::world::World;

/// How long a subject may take for one answer where nobody says otherwise.
pub const DEFAULT_PATIENCE: Duration = Duration::from_secs(10);

/// How long an answer is waited for before it is asked whether to stop.
const ROUND: Duration = Duration::from_millis(100);
/// How much of a line that can't be read is told.
const TOLD: usize = 200;

/// A subject process. It is started anew after it failed, so that one vector that breaks it does not take the others along.
#[derive(Debug)]
pub struct Process {
    program: OsString,
    arguments: Vec<OsString>,
    patience: Duration,
    stop: Stop,
    declaration: Declaration,
    line: Option<Line>,
}

/// A running process.
#[derive(Debug)]
struct Line {
    child: Child,
    input: ChildStdin,
    answers: Receiver<Result<String, SubjectFault>>,
}

impl Process {
    /// Starts the program and hears what it says of itself. Its standard error goes where that of this process goes.
    ///
    /// # Errors
    /// It could not be started, or does not speak the protocol.
    pub fn start(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
        patience: Duration,
    ) -> Result<Self, SubjectFault> {
        let (program, arguments) = (program.into(), arguments.into_iter().map(Into::into).collect());
        let declaration = Declaration::full("");
        let mut process = Self { program, arguments, patience, stop: Stop::default(), declaration, line: None };
        process.declaration = process.greet()?;
        Ok(process)
    }

    /// The same, not waited for any longer than until somebody asks to stop.
    #[must_use]
    pub fn until(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Kills the process, as `SIGKILL` does. It is started again with the next world.
    pub fn kill(&mut self) {
        self.stop();
    }

    fn greet(&mut self) -> Result<Declaration, SubjectFault> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| SubjectFault::Start(error.to_string()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(SubjectFault::Start("it has no streams".to_owned()));
        };
        let (sender, answers) = sync_channel(1);
        // Ends with the process, whose output it then finds closed, or with the receiver.
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            while sender.send(read_line(&mut output)).is_ok() {}
        });
        self.line = Some(Line { child, input, answers });
        match self.ask(&Request::Hello(Hello { protocol: PROTOCOL }))? {
            Answer::Declare(declaration) if declaration.protocol == PROTOCOL => Ok(*declaration),
            Answer::Declare(other) => Err(self.broken(format!("it speaks version {}, not {PROTOCOL}", other.protocol))),
            other => Err(self.unexpected("declare", &other)),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Answer, SubjectFault> {
        let answer = self.ask_line(request);
        if answer.is_err() {
            self.stop();
        }
        answer
    }

    fn ask_line(&mut self, request: &Request) -> Result<Answer, SubjectFault> {
        let Some(line) = &mut self.line else { return Err(SubjectFault::Ended("it is not running".to_owned())) };
        let mut text = serde_json::to_string(request).map_err(|error| SubjectFault::Protocol(error.to_string()))?;
        text.push('\n');
        let ended = |error: io::Error| SubjectFault::Ended(error.to_string());
        line.input.write_all(text.as_bytes()).and_then(|()| line.input.flush()).map_err(ended)?;
        let mut left = self.patience;
        let answer = loop {
            let round = left.min(ROUND);
            left = left.saturating_sub(round);
            match line.answers.recv_timeout(round) {
                Ok(answer) => break answer?,
                Err(RecvTimeoutError::Timeout) if self.stop.asked() => return Err(SubjectFault::Stopped),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    return Err(SubjectFault::TimedOut(self.patience.as_millis()));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(SubjectFault::Ended("it closed its output".to_owned()));
                }
            }
        };
        let unreadable = |error| {
            let mut told: String = answer.trim_end().chars().take(TOLD).collect();
            if told.len() < answer.trim_end().len() {
                told.push_str("...");
            }
            SubjectFault::Protocol(format!("{error} in `{told}`"))
        };
        match serde_json::from_str(&answer).map_err(unreadable)? {
            Answer::Error(text) => Err(SubjectFault::GaveUp(text)),
            answer => Ok(answer),
        }
    }

    fn unexpected(&mut self, expected: &str, answer: &Answer) -> SubjectFault {
        let answer = serde_json::to_string(answer).unwrap_or_default();
        self.broken(format!("`{expected}` was to come, and `{answer}` came"))
    }

    fn broken(&mut self, why: String) -> SubjectFault {
        self.stop();
        SubjectFault::Protocol(why)
    }

    fn stop(&mut self) {
        if let Some(Line { mut child, input, answers }) = self.line.take() {
            drop((input, answers));
            // It may be gone already, which is what is wanted.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// The next line: whole, of text, and not longer than a line may be.
fn read_line(output: &mut impl BufRead) -> Result<String, SubjectFault> {
    let ended = |error: io::Error| SubjectFault::Ended(error.to_string());
    let broken = |why: String| Err(SubjectFault::Protocol(why));
    let mut line = Vec::new();
    let most = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
    let read = output.by_ref().take(most).read_until(b'\n', &mut line).map_err(ended)?;
    match line.pop() {
        None => Err(SubjectFault::Ended("it closed its output".to_owned())),
        Some(b'\n') => String::from_utf8(line).or_else(|_| broken("a line is not UTF-8".to_owned())),
        Some(_) if read >= MAX_LINE => broken(format!("a line is longer than {MAX_LINE} bytes")),
        Some(_) => Err(SubjectFault::Ended("it closed its output in the middle of a line".to_owned())),
    }
}

impl Subject for Process {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn begin(&mut self, world: &World, seed: u64) -> Result<Begun, SubjectFault> {
        if self.line.is_none() {
            self.greet()?;
        }
        match self.ask(&Request::World(Box::new(Begin { seed, world: world.clone() })))? {
            Answer::Ready {} => Ok(Begun::Ready),
            Answer::Unsupported(why) => Ok(Begun::Unsupported(why)),
            Answer::Refused(why) => Ok(Begun::Refused(why)),
            other => Err(self.unexpected("ready", &other)),
        }
    }

    fn event(&mut self, event: &Event) -> Result<Seen, SubjectFault> {
        match self.ask(&Request::Event(Box::new(event.clone())))? {
            Answer::Seen(seen) => Ok(*seen),
            Answer::Unsupported(why) => Err(SubjectFault::Unsupported(why)),
            other => Err(self.unexpected("seen", &other)),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(line) = &mut self.line {
            // One that does not listen is killed.
            drop(line.input.write_all(b"{\"bye\":{}}\n"));
        }
        self.stop();
    }
}
