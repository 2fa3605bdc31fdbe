//! What the log says of each call, read on from round to round.

use std::collections::HashMap;
use std::io::Read as _;

use callgate_core::audit::chain::Head;
use callgate_sqlite::{Lines, SqliteAudit};
use callgate_std::audit::{Against, verify_after};
use serde_json::Value;

/// What the log says of one call.
#[derive(Default, Debug)]
pub(crate) struct Recorded {
    pub(crate) intents: u32,
    /// How it ended, as often as that is recorded.
    pub(crate) ends: Vec<String>,
}

/// The records of all calls up to the head that was verified.
#[derive(Debug)]
pub(crate) struct Records {
    verified: Head,
    calls: HashMap<String, Recorded>,
    /// How many of the lines tell that a log was begun anew.
    pub(crate) rotations: u64,
}

impl Records {
    pub(crate) fn new() -> Self {
        Self { verified: Head::EMPTY, calls: HashMap::new(), rotations: 0 }
    }

    /// J6: what was written since follows without a gap on what was verified before, through whatever was put aside.
    pub(crate) fn read_on(&mut self, audit: &SqliteAudit) {
        let mut lines = Lines::after(audit.database(), self.verified.seq).expect("readable");
        let head = lines.head();
        let mut text = String::new();
        lines.read_to_string(&mut text).expect("text");
        let report = verify_after(&mut text.as_bytes(), self.verified, Against::Head(head)).expect("readable");
        assert!(report.is_intact() && report.head == head, "from {} on: {report:?}", self.verified.seq);
        assert_eq!(report.lines, head.seq - self.verified.seq, "J6: a line is missing, or twice");
        for line in text.lines() {
            let record: Value = serde_json::from_str(line).expect("a record");
            let text = |name: &str| record[name].as_str().unwrap_or_default();
            let call = self.calls.entry(text("request_id").to_owned());
            match text("kind") {
                "intent" => call.or_default().intents += 1,
                "terminal" => call.or_default().ends.push(text("end").to_owned()),
                "note" => self.rotations += u64::from(text("note") == "segment_begins"),
                "decision" => {}
                other => panic!("nobody was late: {other}"),
            }
        }
        self.verified = head;
    }

    /// The same of the whole log, from its first line on.
    pub(crate) fn verify_whole(&self, audit: &SqliteAudit) {
        let report = audit.verify(None).expect("readable");
        assert!(report.is_intact(), "{report:?}");
        assert_eq!((report.lines, report.head), (self.verified.seq, self.verified), "J6");
    }

    /// What is said of this call.
    pub(crate) fn of(&self, id: &str) -> (u32, Vec<&str>) {
        let found = self.calls.get(id);
        found.map_or((0, Vec::new()), |call| (call.intents, call.ends.iter().map(String::as_str).collect()))
    }

    /// How many intents there are of the calls with this number.
    pub(crate) fn intents(&self) -> HashMap<u64, u32> {
        let mut intents = HashMap::new();
        for (id, call) in &self.calls {
            if let Some((_, n)) = id.rsplit_once('-') {
                *intents.entry(n.parse().expect("a number")).or_default() += call.intents;
            }
        }
        intents
    }

    /// J1: each call has one end, and those that were lost have that one.
    pub(crate) fn each_has_one_end(&self) {
        for (id, call) in &self.calls {
            assert!(call.ends.len() == 1 && call.intents <= 1, "J1: {id}: {call:?}");
        }
    }
}
