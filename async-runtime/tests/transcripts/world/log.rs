//! What the parts of a gate were asked, one line a question, with the answer that each gave; and the faults that are planted in
//! them.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How a question goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// It is not done, and the answer says so.
    Error,
    /// It is done, and the answer says that it was not.
    Lost,
    /// Whoever is asked panics.
    Panic,
    /// It takes longer than whoever is asked may take, and is not done.
    Hang,
}

pub(crate) const WAYS: [Way; 4] = [Way::Error, Way::Lost, Way::Panic, Way::Hang];

/// A record that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Kept {
    pub(crate) kind: &'static str,
    pub(crate) request_id: String,
    pub(crate) tool: String,
    pub(crate) end: String,
    pub(crate) effect: &'static str,
}

/// Shared by everything in a world.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<State>);

#[derive(Default)]
struct State {
    book: Mutex<Book>,
    /// A run in the background is over.
    completed: Condvar,
}

#[derive(Default)]
pub(crate) struct Book {
    /// Questions and what bodies do, in order.
    pub(crate) lines: Vec<String>,
    /// Outcomes and what else callers are told.
    pub(crate) answers: Vec<String>,
    /// What became of runs in the background.
    pub(crate) completions: Vec<String>,
    pub(crate) records: Vec<Kept>,
    /// How often a body was started, by the request id of its call.
    pub(crate) started: HashMap<String, usize>,
    /// How many questions there were.
    pub(crate) questions: usize,
    faults: HashMap<usize, Way>,
    /// How the next question begins that goes wrong.
    losing: Option<&'static str>,
    accepted: usize,
}

impl Log {
    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn line(&self, line: String) {
        self.book().lines.push(line);
    }

    pub(crate) fn answer(&self, answer: String) {
        self.book().answers.push(answer);
    }

    /// Plants a fault in the question after so many more.
    pub(crate) fn plant(&self, after: usize, way: Way) {
        let mut book = self.book();
        let at = book.questions + after;
        book.faults.insert(at, way);
    }

    /// Has the next question fail that begins like this.
    pub(crate) fn lose(&self, word: &'static str) {
        self.book().losing = Some(word);
    }

    /// Puts a question: has it done by `done`, unless a fault is due, for which `fault` gives the answer. `None` says that
    /// there is none, because it hangs.
    pub(crate) fn ask<R: Debug>(
        &self,
        question: &str,
        done: impl FnOnce() -> R,
        fault: impl FnOnce() -> R,
    ) -> Option<R> {
        let (way, lost) = {
            let mut book = self.book();
            let at = book.questions;
            book.questions += 1;
            let losing = book.losing.take_if(|word| question.starts_with(*word));
            let planted = book.faults.remove(&at);
            (planted.or(losing.map(|_| Way::Error)), losing.is_some() && planted.is_none())
        };
        let (answer, told) = match way {
            None => {
                let answer = done();
                let told = format!("{answer:?}");
                (Some(answer), told)
            }
            Some(way) => {
                if way == Way::Lost {
                    drop(callgate_std::contain::contain(done));
                }
                let answer = matches!(way, Way::Error | Way::Lost).then(fault);
                // What a script loses is a part of it.
                (answer, if lost { "lost".to_owned() } else { format!("planted {way:?}") })
            }
        };
        self.line(format!("{question} -> {told}"));
        assert!(way != Some(Way::Panic), "planted");
        answer
    }

    /// A body starts.
    pub(crate) fn started(&self, tool: &str, request_id: &str) {
        let mut book = self.book();
        *book.started.entry(request_id.to_owned()).or_default() += 1;
        book.lines.push(format!("body {tool} {request_id}"));
    }

    /// A record is written; `accepted` when it says that its call goes on in the background.
    pub(crate) fn keep(&self, record: Kept) {
        self.book().records.push(record);
    }

    /// A call goes on in the background.
    pub(crate) fn accepted(&self) {
        self.book().accepted += 1;
    }

    pub(crate) fn completed(&self, completion: String) {
        self.book().completions.push(completion);
        self.0.completed.notify_all();
    }

    /// Waits until whoever was accepted is completed.
    pub(crate) fn settle(&self) {
        let mut book = self.book();
        while book.completions.len() < book.accepted {
            book = self.0.completed.wait(book).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
