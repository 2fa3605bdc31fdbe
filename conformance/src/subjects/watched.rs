//! What a gate is seen to do, and what goes wrong on the way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callgate_core::args::Args;
use serde_json::Value;

use crate::event::{Fault, How, Mark, Point, Seen};

/// Shared by everything that surrounds a gate.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    seen: Seen,
    faults: Vec<Fault>,
}

impl Watch {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plants a fault.
    pub(super) fn plant(&self, fault: Fault) {
        self.book().faults.push(fault);
    }

    /// What was seen since it was asked for last.
    pub(super) fn take(&self) -> Seen {
        std::mem::take(&mut self.book().seen)
    }

    /// The gate came to a point.
    pub(super) fn mark(&self, mark: Mark) {
        self.book().seen.marks.push(mark);
    }

    /// A body is started.
    pub(super) fn started(&self, args: Args<'_>) {
        let mut book = self.book();
        book.seen.marks.push(Mark::with(Point::Execute, value(args)));
        book.seen.effects = book.seen.effects.saturating_add(1);
    }

    /// A record is written.
    pub(super) fn recorded(&self, record: Value) {
        self.book().seen.records.push(record);
    }

    /// The gate asks somebody, who answers by `done`; unless a fault is due.
    pub(super) fn ask<R>(&self, mark: Mark, done: impl FnOnce() -> R, fault: impl FnOnce() -> R) -> R {
        let how = {
            let mut book = self.book();
            let due = book.faults.iter().position(|fault| fault.at == mark.at);
            book.seen.marks.push(mark);
            due.map(|due| book.faults.remove(due).how)
        };
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
