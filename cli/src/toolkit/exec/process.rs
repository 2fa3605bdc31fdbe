//! Running a program to its end, or to its deadline.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use process_wrap::std::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::stream::{Captured, Keep};
use crate::toolkit::deadline::Deadline;
use crate::toolkit::error::ToolError;

/// How much is read or written at once.
const CHUNK_BYTES: usize = 65_536;
/// How many chunks of one stream are moved before the deadline is looked at again.
const CHUNKS_PER_ROUND: usize = 16;
/// How much of standard error is kept for the record, from its end.
const STDERR_BYTES: usize = 4_096;
/// A round waits no longer than this when nothing moves...
const LONGEST_ROUND: Duration = Duration::from_millis(10);
/// ...and this at first, so that a short program is not held up.
const SHORTEST_ROUND: Duration = Duration::from_micros(250);
/// Rounds from `SIGTERM` to `SIGKILL`. Counted, not timed: no clock has a say in how long a program outlives its deadline.
const ROUNDS_TO_KILL: u32 = 25;
/// Rounds from `SIGTERM` to giving up on a process that not even `SIGKILL` ends, as one that waits for a dead disk.
const ROUNDS_TO_GIVE_UP: u32 = 500;

/// One run of a program.
pub(super) struct Invocation<'a> {
    pub program: &'a Path,
    pub args: &'a [String],
    /// All that it sees of an environment.
    pub env: &'a [(OsString, OsString)],
    pub directory: &'a Path,
    /// Its standard input; empty when `None`.
    pub stdin: Option<&'a [u8]>,
    /// How many bytes of standard output are kept.
    pub max_output: usize,
}

/// A run that came to its own end.
pub(super) struct Finished {
    pub status: ExitStatus,
    pub stdout: Captured,
    pub stderr: Captured,
}

/// Runs a program until it ends; at the deadline, ends it.
pub(super) fn run(invocation: &Invocation<'_>, deadline: Deadline<'_>) -> Result<Finished, ToolError> {
    let mut running = Running::start(invocation)?;
    let stopped = running.attend(deadline);
    let status = running.end();
    let Running { stdout, stderr, .. } = &mut running;
    let (stdout, stderr) = (stdout.take_captured(), stderr.take_captured());
    match (stopped, status) {
        (Some(error), _) => Err(with_stderr(error, stderr)),
        (None, Ok(status)) => Ok(Finished { status, stdout, stderr }),
        (None, Err(error)) => {
            Err(ToolError::failed("how the program ended is not known").with_detail(error.to_string()))
        }
    }
}

/// `error` with what the program last wrote to standard error, for the record.
pub(super) fn with_stderr(error: ToolError, stderr: Captured) -> ToolError {
    let total = stderr.total();
    let (last, _) = stderr.into_parts();
    if last.is_empty() {
        return error;
    }
    error.with_detail(format!("the end of standard error ({total} bytes in all): {}", String::from_utf8_lossy(&last)))
}

/// A program that was started. Dropping it ends the program, whatever happened.
struct Running<'a> {
    child: Box<dyn ChildWrapper>,
    /// The program's number, and that of its session and process group.
    pid: Option<Pid>,
    stdin: Option<(File, &'a [u8])>,
    stdout: Stream,
    stderr: Stream,
    chunk: Vec<u8>,
}

/// One of its output streams; `pipe` is `None` after its end.
struct Stream {
    pipe: Option<File>,
    captured: Captured,
}

impl<'a> Running<'a> {
    fn start(invocation: &Invocation<'a>) -> Result<Self, ToolError> {
        let mut command = CommandWrap::with_new(invocation.program, |command| {
            command
                .args(invocation.args)
                .env_clear()
                .envs(invocation.env.iter().map(|(name, value)| (name, value)))
                .current_dir(invocation.directory)
                .stdin(if invocation.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
        });
        // A session of its own has no terminal: the program can neither ask the user who sits there nor type for them.
        command.wrap(ProcessSession);
        let refused =
            |error: io::Error| ToolError::refused("the program could not be started").with_detail(error.to_string());
        let mut child = command.spawn().map_err(refused)?;
        let stdin = child.stdin().take().map(OwnedFd::from);
        let stdout = child.stdout().take().map(OwnedFd::from);
        let stderr = child.stderr().take().map(OwnedFd::from);
        let mut running = Self {
            pid: i32::try_from(child.id()).ok().and_then(Pid::from_raw),
            child,
            stdin: None,
            stdout: Stream { pipe: None, captured: Captured::new(Keep::First, invocation.max_output) },
            stderr: Stream { pipe: None, captured: Captured::new(Keep::Last, STDERR_BYTES) },
            chunk: vec![0; CHUNK_BYTES],
        };
        let failed = |error: io::Error| {
            ToolError::failed("the program's output could not be read").with_detail(error.to_string())
        };
        running.stdin = stdin.map(never_waiting).transpose().map_err(failed)?.zip(invocation.stdin);
        running.stdout.pipe = stdout.map(never_waiting).transpose().map_err(failed)?;
        running.stderr.pipe = stderr.map(never_waiting).transpose().map_err(failed)?;
        Ok(running)
    }

    /// Moves what the program reads and writes until it has ended. Gives the reason when it was not by its own will.
    fn attend(&mut self, deadline: Deadline<'_>) -> Option<ToolError> {
        let mut stopped = None;
        let mut rounds_since = 0_u32;
        let mut pause = SHORTEST_ROUND;
        loop {
            let moved = self.pump(CHUNKS_PER_ROUND);
            if self.has_ended() {
                return stopped;
            }
            if stopped.is_some() {
                rounds_since = rounds_since.saturating_add(1);
                match rounds_since {
                    ROUNDS_TO_KILL => self.signal(Signal::KILL),
                    ROUNDS_TO_GIVE_UP => return stopped,
                    _ => {}
                }
            } else if let Err(error) = deadline.check() {
                self.signal(Signal::TERM);
                stopped = Some(error);
            }
            pause = if moved { SHORTEST_ROUND } else { pause.saturating_mul(2).min(LONGEST_ROUND) };
            self.wait(pause);
        }
    }

    /// Ends what is left of the program's process group, takes what is left in the pipes, and gives the program's status.
    fn end(&mut self) -> io::Result<ExitStatus> {
        // The program has ended and was not waited for, so its number still is its own: this reaches nobody else.
        self.signal(Signal::KILL);
        // What was written before is in the pipes. Whoever left the group and still writes is not waited for.
        self.pump(CHUNKS_PER_ROUND);
        self.stdin = None;
        self.stdout.pipe = None;
        self.stderr.pipe = None;
        self.pid = None;
        let status = self.child.try_wait()?;
        status.ok_or_else(|| io::Error::other("the program does not end"))
    }

    /// Whether the program itself has ended. It is not waited for, so that its number stays its own until [`Running::end`].
    fn has_ended(&mut self) -> bool {
        let Some(pid) = self.pid else { return true };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(pid), options) {
            Ok(status) => status.is_some(),
            Err(rustix::io::Errno::INTR) => false,
            Err(_) => {
                // Somebody else has waited for it. The number may be another's by now, and is not to be used.
                self.pid = None;
                true
            }
        }
    }

    /// Sends `signal` to the program and all that it started and that did not leave its group.
    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid {
            // Fails when nobody is left, which is what is wanted.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Moves what can be moved at once, at most `chunks` in each direction. Tells whether anything was.
    fn pump(&mut self, chunks: usize) -> bool {
        let mut moved = self.stdout.pump(&mut self.chunk, chunks);
        moved |= self.stderr.pump(&mut self.chunk, chunks);
        moved | self.feed(chunks)
    }

    fn feed(&mut self, chunks: usize) -> bool {
        let mut moved = false;
        for _ in 0..chunks {
            let Some((pipe, rest)) = &mut self.stdin else { break };
            let chunk = rest.get(..CHUNK_BYTES).unwrap_or(rest);
            match pipe.write(chunk) {
                _ if rest.is_empty() => self.stdin = None,
                Ok(written) => {
                    moved = true;
                    *rest = rest.get(written..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The program reads no further. That is its own affair.
                Err(_) => self.stdin = None,
            }
        }
        moved
    }

    /// Waits until something can be moved, at most for `pause`.
    fn wait(&self, pause: Duration) {
        let readable =
            [&self.stdout.pipe, &self.stderr.pipe].into_iter().flatten().map(|pipe| PollFd::new(pipe, PollFlags::IN));
        let writable = self.stdin.iter().map(|(pipe, _)| PollFd::new(pipe, PollFlags::OUT));
        let mut all: Vec<PollFd<'_>> = readable.chain(writable).collect();
        let pause = Timespec { tv_sec: 0, tv_nsec: i64::from(pause.subsec_nanos()) };
        // Interrupted or not: the next round looks again.
        let _ = poll(&mut all, Some(&pause));
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.pid.is_some() {
            self.signal(Signal::KILL);
            drop(self.child.try_wait());
        }
    }
}

impl Stream {
    fn pump(&mut self, chunk: &mut [u8], chunks: usize) -> bool {
        let mut moved = false;
        for _ in 0..chunks {
            let Some(pipe) = &mut self.pipe else { break };
            match pipe.read(chunk) {
                Ok(0) => self.pipe = None,
                Ok(length) => {
                    moved = true;
                    self.captured.push(chunk.get(..length).unwrap_or_default());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.pipe = None,
            }
        }
        moved
    }

    fn take_captured(&mut self) -> Captured {
        std::mem::replace(&mut self.captured, Captured::new(Keep::First, 0))
    }
}

/// A pipe whose reads and writes say that there is nothing to do instead of waiting.
fn never_waiting(pipe: OwnedFd) -> io::Result<File> {
    let flags = rustix::fs::fcntl_getfl(&pipe)?;
    rustix::fs::fcntl_setfl(&pipe, flags | rustix::fs::OFlags::NONBLOCK)?;
    Ok(File::from(pipe))
}

/// How a program ended, when it was not with status 0. Safe to show.
pub(super) fn failure(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("the program ended with status {code}")),
        (None, Some(signal)) => Some(format!("the program was ended by signal {signal}")),
        (None, None) => Some("the program did not end by itself".to_owned()),
    }
}
