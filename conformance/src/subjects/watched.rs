//! What a gate is seen to do, and what goes wrong on the way.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use callgate_core::args::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{Fault, How, Kill, Mark, Point, Seen};

/// Shared by everything that surrounds a gate.
///
/// A gate in this process that is to be killed in the middle of a call cannot be; so it goes on, and nothing that it does is done any
/// more: nobody answers it, nothing is kept, nothing is seen. What it tells its caller is thrown away, and so is the gate.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<Mutex<Book>>, Arc<OnceLock<Death>>);

/// What a gate does that is really killed: it gets what was seen and what is still planted, and does not come back.
struct Death(Box<dyn Fn(Seen, Planted) + Send + Sync>);

impl fmt::Debug for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Death")
    }
}

/// What is planted and has not come to pass.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Planted {
    faults: Vec<Fault>,
    kills: Vec<Kill>,
}

#[derive(Debug, Default)]
struct Book {
    seen: Seen,
    planted: Planted,
}

impl Book {
    /// The gate comes to a point, and maybe to its end there.
    fn come_to(&mut self, mark: Mark) -> Option<Kill> {
        let due = self.planted.kills.iter().position(|kill| kill.at == Some(mark.at));
        self.seen.marks.push(mark);
        let kill = due.map(|due| self.planted.kills.remove(due));
        self.seen.killed = kill.is_some_and(|kill| !kill.done);
        kill
    }
}

impl Watch {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plants a fault.
    pub(super) fn plant(&self, fault: Fault) {
        self.book().planted.faults.push(fault);
    }

    /// Plants the end of the gate.
    pub(super) fn plant_kill(&self, kill: Kill) {
        self.book().planted.kills.push(kill);
    }

    /// Has the gate killed for good, by this.
    pub(super) fn when_killed(&self, dies: impl Fn(Seen, Planted) + Send + Sync + 'static) {
        drop(self.1.set(Death(Box::new(dies))));
    }

    /// What is planted.
    pub(super) fn planted(&self) -> Planted {
        self.book().planted.clone()
    }

    /// Plants what was planted before.
    pub(super) fn plant_again(&self, planted: Planted) {
        self.book().planted = planted;
    }

    /// The gate is killed.
    fn die(&self) {
        let (seen, planted) = {
            let mut book = self.book();
            book.seen.killed = true;
            (book.seen.clone(), book.planted.clone())
        };
        if let Some(Death(dies)) = self.1.get() {
            dies(seen, planted);
        }
    }

    /// Whether the gate was killed.
    pub(super) fn is_dead(&self) -> bool {
        self.book().seen.killed
    }

    /// Something that is done without being seen, unless the gate was killed.
    pub(super) fn unseen<R>(&self, done: impl FnOnce() -> R, fault: impl FnOnce() -> R) -> R {
        if self.is_dead() { fault() } else { done() }
    }

    /// What was seen since it was asked for last.
    pub(super) fn take(&self) -> Seen {
        std::mem::take(&mut self.book().seen)
    }

    /// The gate came to a point at which nothing is asked. Says whether it goes on.
    pub(super) fn mark(&self, mark: Mark) -> bool {
        self.come_to(mark, |_| ())
    }

    /// A body is started. Says whether it goes on.
    pub(super) fn started(&self, args: Args<'_>) -> bool {
        self.come_to(Mark::with(Point::Execute, value(args)), |seen| seen.effects = seen.effects.saturating_add(1))
    }

    fn come_to(&self, mark: Mark, done: impl FnOnce(&mut Seen)) -> bool {
        let mut book = self.book();
        if book.seen.killed {
            return false;
        }
        let kill = book.come_to(mark);
        if !book.seen.killed {
            done(&mut book.seen);
        }
        drop(book);
        if kill.is_some() {
            self.die();
        }
        kill.is_none()
    }

    /// A listener is told of something.
    pub(super) fn told(&self, event: Value) {
        let mut book = self.book();
        if !book.seen.killed {
            book.seen.told.push(event);
        }
    }

    /// A record is written.
    pub(super) fn recorded(&self, record: Value) {
        self.book().seen.records.push(record);
    }

    /// The gate asks somebody, who answers by `done`; unless a fault is due.
    pub(super) fn ask<R>(&self, mark: Mark, done: impl FnOnce() -> R, fault: impl FnOnce() -> R) -> R {
        let (kill, how) = {
            let mut book = self.book();
            if book.seen.killed {
                return fault();
            }
            let due = book.planted.faults.iter().position(|fault| fault.at == mark.at);
            let kill = book.come_to(mark);
            // What is planted for a gate that is killed here waits for the one that is started again.
            let how = due.filter(|_| kill.is_none()).map(|due| book.planted.faults.remove(due).how);
            (kill, how)
        };
        if let Some(kill) = kill {
            if kill.done {
                drop(done());
            }
            self.die();
            return fault();
        }
        match how {
            None => done(),
            Some(How::Error) => fault(),
            Some(How::Lost) => {
                drop(done());
                fault()
            }
            Some(How::Panic) => panics("a planted fault"),
        }
    }
}

/// The arguments as a value.
pub(super) fn value(args: Args<'_>) -> Value {
    let mut text = String::new();
    let written = args.write_json(&mut text);
    written.ok().and_then(|()| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Panics with this text, without a word to the standard error stream.
pub(super) fn panics(text: &str) -> ! {
    std::panic::resume_unwind(Box::new(text.to_owned()))
}
