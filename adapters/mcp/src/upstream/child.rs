//! A server's program: started with what it is given and no more, and ended with all that it started.

use std::collections::VecDeque;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::reach::{Ends, Program};

/// How long a program may take to end once its standard input is closed.
const GRACE: Duration = Duration::from_secs(2);
/// How many lines of what a program complained of are kept.
const KEPT_LINES: usize = 20;
/// How many bytes of a line are kept.
const KEPT_BYTES: usize = 400;

/// A program that runs. Dropping it kills its whole process group.
pub(super) struct Child(Box<dyn ChildWrapper>);

impl Child {
    /// Starts the program. What it writes to its standard error goes to `complaints`.
    pub(super) fn start(program: &Program, complaints: &Complaints) -> io::Result<(Self, Ends)> {
        let mut command = CommandWrap::with_new(&program.program, |command| {
            command.args(&program.args).env_clear().envs(program.env.iter().map(|(name, value)| (name, value)));
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            if let Some(cwd) = &program.cwd {
                command.current_dir(cwd);
            }
        });
        // A group of its own: a Ctrl-C in the terminal is for the gate, which ends its servers itself.
        #[cfg(unix)]
        command.wrap(process_wrap::tokio::ProcessGroup::leader());
        command.wrap(KillOnDrop);
        let mut child = command.spawn()?;
        let gone = || io::Error::other("the program has no standard streams");
        let read = child.stdout().take().ok_or_else(gone)?;
        let write = child.stdin().take().ok_or_else(gone)?;
        if let Some(err) = child.stderr().take() {
            drop(tokio::spawn(complaints.clone().follow(err)));
        }
        Ok((Self(child), (Box::new(read), Box::new(write))))
    }

    /// Waits until the program, whose standard input was closed, has ended; kills it when it takes too long. Says how it ended.
    pub(super) async fn end(mut self) -> Option<String> {
        match tokio::time::timeout(GRACE, self.0.wait()).await {
            Ok(Ok(status)) => Some(status.to_string()),
            _ => None,
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Also when the leader has ended: what it started may still run.
        drop(self.0.start_kill());
    }
}

/// The last lines that a program wrote to its standard error, for whoever asks why it does not work.
#[derive(Clone, Default)]
pub(super) struct Complaints(Arc<Mutex<VecDeque<String>>>);

impl Complaints {
    async fn follow(self, mut from: impl AsyncRead + Unpin) {
        let mut chunk = [0; 4096];
        let mut line = Vec::new();
        while let Ok(read @ 1..) = from.read(&mut chunk).await {
            for byte in chunk.get(..read).unwrap_or_default() {
                match byte {
                    b'\n' => self.add(&std::mem::take(&mut line)),
                    _ if line.len() < KEPT_BYTES => line.push(*byte),
                    _ => {}
                }
            }
        }
        if !line.is_empty() {
            self.add(&line);
        }
    }

    fn add(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line).trim_end().to_owned();
        tracing::debug!(target: "callgate_mcp::upstream::stderr", "{}", text.escape_debug());
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= KEPT_LINES {
            drop(lines.pop_front());
        }
        lines.push_back(text);
    }

    /// The lines so far; they are forgotten.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).into()
    }
}
