//! What a gate is seen to do, and what goes wrong on the way.

use core::cell::RefCell;
use core::fmt::{self, Write};

use callgate_core::args::Args;
use callgate_core::audit::Record;
use callgate_core::fixed::Buffer;
use callgate_core::json::Object;

use crate::Trouble::{self, Error};

/// Where a gate can be watched.
pub(crate) use crate::event::Point;

/// How something goes wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// It is not done, and the answer says so.
    Error,
    /// It is done, and the answer says that it was not.
    Lost,
}

/// What was seen during one event, and the faults that are to come.
pub(crate) struct Book {
    /// Parts of a JSON list each.
    marks: Buffer<2_048>,
    records: Buffer<4_096>,
    effects: u64,
    /// More was seen than there is room for.
    over: bool,
    faults: heapless::Vec<(Point, How), 8>,
}

impl Book {
    pub(crate) const fn new() -> Self {
        Self { marks: Buffer::new(), records: Buffer::new(), effects: 0, over: false, faults: heapless::Vec::new() }
    }

    pub(crate) fn plant(&mut self, at: Point, how: How) -> Result<(), Trouble> {
        self.faults.push((at, how)).map_err(|_| Trouble::Unsupported("more faults than there is room for"))
    }

    /// The fault that is due at a point.
    fn due(&mut self, at: Point) -> Option<How> {
        let due = self.faults.iter().position(|fault| fault.0 == at)?;
        Some(self.faults.remove(due).1)
    }

    /// The gate came to a point.
    pub(crate) fn mark(&mut self, at: Point, more: impl FnOnce(&mut Object<'_>) -> fmt::Result) {
        let write = || {
            separate(&mut self.marks)?;
            let mut mark = Object::begin(&mut self.marks)?;
            mark.text("at", at.as_str())?;
            more(&mut mark)?;
            mark.end()
        };
        self.over |= write().is_err();
    }

    /// A body is started.
    pub(crate) fn started(&mut self, args: Args<'_>) {
        self.mark(Point::Execute, shows(args));
        self.effects = self.effects.saturating_add(1);
    }

    fn recorded(&mut self, record: &Record<'_>) {
        let mut write = || {
            separate(&mut self.records)?;
            record.write_json(&mut self.records)
        };
        self.over |= write().is_err();
    }

    /// Forgets what was seen.
    pub(crate) fn next(&mut self) {
        self.marks.clear();
        self.records.clear();
        (self.effects, self.over) = (0, false);
    }

    pub(crate) fn fits(&self) -> Result<(), Trouble> {
        if self.over { Err(Error("more was seen than there is room for")) } else { Ok(()) }
    }

    /// Writes what was seen into the object of an answer.
    pub(crate) fn show(&self, seen: &mut Object<'_>) -> fmt::Result {
        seen.raw("marks", |out| write!(out, "[{}]", self.marks.as_str()))?;
        seen.number("effects", self.effects)?;
        seen.raw("records", |out| write!(out, "[{}]", self.records.as_str()))
    }
}

fn separate<const N: usize>(list: &mut Buffer<N>) -> fmt::Result {
    if list.is_empty() { Ok(()) } else { list.write_str(",") }
}

/// The arguments, as a member of a mark.
pub(crate) fn shows(args: Args<'_>) -> impl FnOnce(&mut Object<'_>) -> fmt::Result {
    move |mark| mark.raw("args", |out| args.write_json(out))
}

/// The gate asks somebody, who answers by `done`; unless a fault is due. Nobody holds the book while `done` runs.
pub(crate) fn ask<R>(
    book: &RefCell<Book>,
    at: Point,
    more: impl FnOnce(&mut Object<'_>) -> fmt::Result,
    done: impl FnOnce() -> R,
    fault: impl FnOnce() -> R,
) -> R {
    let how = with(book, |book| {
        book.mark(at, more);
        book.due(at)
    });
    match how.flatten() {
        None => done(),
        Some(How::Error) => fault(),
        Some(How::Lost) => {
            drop(done());
            fault()
        }
    }
}

/// A record is written.
pub(crate) fn recorded(book: &RefCell<Book>, record: &Record<'_>) {
    with(book, |book| book.recorded(record));
}

/// What `act` gives, which nobody else is in the middle of.
pub(crate) fn with<R>(book: &RefCell<Book>, act: impl FnOnce(&mut Book) -> R) -> Option<R> {
    book.try_borrow_mut().ok().map(|mut book| act(&mut book))
}
