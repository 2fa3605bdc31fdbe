//! `callgate audit tail`: the latest records.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use callgate_core::audit::chain::Head;
use callgate_sqlite::{Database, Lines};
use callgate_std::audit::Segments;
use callgate_std::audit::segment::{SegmentLines, begins_after};
use serde_json::Value;

use super::super::Setting;
use super::source::{Source, log_file, missing, unreadable};
use crate::command_line::TailArgs;
use crate::exit::Exit;
use crate::table::{Cell, Table};
use crate::terminal::{BAD, DIM, GOOD, NAME, Terminal, WARN, visible};
use crate::trouble::Trouble;

/// How often a followed log is looked at.
const PAUSE: Duration = Duration::from_millis(200);
/// How much is read at once from the end of a log.
const BLOCK: u64 = 64 << 10;
/// A longer line is none of the log's.
const LONGEST: u64 = 4 << 20;

pub(in crate::commands) fn tail(args: &TailArgs, setting: &Setting, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let file = log_file(args.file.as_deref(), setting)?;
    let unreadable = |error: io::Error| unreadable(&file, &error);
    let mut reader = match Source::of(&file)? {
        Source::Nothing if args.file.is_none() && !args.follow => {
            terminal.err.line("nothing was recorded here yet");
            return Ok(Exit::Success);
        }
        Source::Nothing if args.follow => Reader::Nothing,
        Source::Nothing => return Err(missing(&file)),
        Source::Text => Reader::Text(Follower::new(File::open(&file).map_err(unreadable)?)),
        Source::Database(database) => Reader::Database { database, read: 0 },
    };
    let lines = reader.last(&file, args.lines).map_err(unreadable)?;
    let mut printer = Printer { json: args.json, widths: Vec::new() };
    printer.print(&lines, terminal);
    // Ctrl-C ends it, as it ends every program that says nothing about it.
    while args.follow && !terminal.out.is_broken() {
        let lines = reader.next(&file)?;
        if lines.is_empty() {
            std::thread::sleep(PAUSE);
        }
        printer.print(&lines, terminal);
    }
    Ok(Exit::Success)
}

/// A log that grows, whatever it is kept as.
enum Reader {
    Nothing,
    Text(Follower),
    Database {
        database: Box<Database>,
        /// The number of the last line that was read.
        read: u64,
    },
}

impl Reader {
    /// The last lines of the log and its segments, as many as that.
    fn last(&mut self, file: &Path, count: usize) -> io::Result<Vec<String>> {
        match self {
            Self::Nothing => Ok(Vec::new()),
            Self::Text(follower) => follower.last(file, count),
            Self::Database { database, read } => {
                let head = Lines::after(database, u64::MAX)?.head();
                *read = head.seq.saturating_sub(count as u64);
                rows(database, read)
            }
        }
    }

    /// The whole lines that came since.
    fn next(&mut self, file: &Path) -> Result<Vec<String>, Trouble> {
        let lines = match self {
            Self::Nothing => {
                *self = match Source::of(file)? {
                    Source::Nothing => Self::Nothing,
                    Source::Text => Self::Text(Follower::waiting()),
                    Source::Database(database) => Self::Database { database, read: 0 },
                };
                return Ok(Vec::new());
            }
            Self::Text(follower) => follower.next(file),
            Self::Database { database, read } => rows(database, read),
        };
        lines.map_err(|error| unreadable(file, &error))
    }
}

/// The lines behind the one of this number, which moves on.
fn rows(database: &Database, read: &mut u64) -> io::Result<Vec<String>> {
    let lines = Lines::after(database, *read)?;
    *read = lines.last().max(*read);
    lines.lines().collect()
}

/// A log of text that grows.
struct Follower {
    handle: Option<File>,
    /// How far it was read.
    at: u64,
    /// The number of the last line that was read, as it says itself.
    number: Option<u64>,
}

impl Follower {
    const fn new(handle: File) -> Self {
        Self { handle: Some(handle), at: 0, number: None }
    }

    /// There is no log yet.
    const fn waiting() -> Self {
        Self { handle: None, at: 0, number: Some(0) }
    }

    /// The last lines of the log and its segments, as many as that; reads no more of them than it has to.
    fn last(&mut self, file: &Path, count: usize) -> io::Result<Vec<String>> {
        let begin = self.handle.as_ref().map(begins_after).transpose()?.flatten();
        // One at least, for its number.
        let mut lines = self.last_here(count.max(1))?;
        self.number = lines.last().map_or_else(|| begin.map(|begin| begin.seq), |line| number(line));
        lines.drain(..lines.len().saturating_sub(count));
        let begin = begin.unwrap_or(Head::EMPTY);
        for segment in Segments::of(file).before(begin.seq.saturating_add(1))?.into_iter().rev() {
            if lines.len() >= count {
                break;
            }
            let before = Self::new(File::open(segment.path)?).last_here(count.saturating_sub(lines.len()))?;
            lines.splice(0..0, before);
        }
        Ok(lines)
    }

    fn last_here(&mut self, count: usize) -> io::Result<Vec<String>> {
        let Some(handle) = &mut self.handle else { return Ok(Vec::new()) };
        let end = handle.metadata()?.len();
        let mut from = end;
        let mut bytes = Vec::new();
        // One more than asked for, because the last line has a break at its end.
        while from > 0 && bytes.iter().filter(|byte| **byte == b'\n').count() <= count {
            let start = from.saturating_sub(BLOCK);
            let mut block = Vec::new();
            handle.seek(SeekFrom::Start(start))?;
            Read::take(&mut *handle, from.saturating_sub(start)).read_to_end(&mut block)?;
            block.append(&mut bytes);
            bytes = block;
            from = start;
        }
        let text = String::from_utf8_lossy(&bytes);
        let complete = text.rfind('\n').map_or("", |at| text.get(..at).unwrap_or_default());
        self.at = from.saturating_add(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at as u64 + 1));
        let lines: Vec<&str> = complete.lines().collect();
        Ok(lines.iter().skip(lines.len().saturating_sub(count)).map(|line| (*line).to_owned()).collect())
    }

    /// The whole lines that came since. When the log was put aside, be it several times, what stands in its segments comes before what
    /// stands in the new one.
    fn next(&mut self, file: &Path) -> io::Result<Vec<String>> {
        // Looked at first: nobody writes to a log that was put aside, so what is read of it then is all of it.
        let moved = self.is_moved(file)?;
        let mut lines = self.rest()?;
        if moved {
            let handle = File::open(file)?;
            if let (Some(read), Some(begin)) = (self.number, begins_after(&handle)?) {
                let mut between = Segments::of(file).before(begin.seq.saturating_add(1))?;
                between.retain(|segment| segment.first > read);
                for line in SegmentLines::of(between).split(b'\n') {
                    lines.push(String::from_utf8_lossy(&line?).into_owned());
                }
            }
            *self = Self { number: self.number, ..Self::new(handle) };
            lines.append(&mut self.rest()?);
        }
        Ok(lines)
    }

    /// The whole lines behind those that were read of the file that is open.
    fn rest(&mut self) -> io::Result<Vec<String>> {
        let Some(handle) = &mut self.handle else { return Ok(Vec::new()) };
        handle.seek(SeekFrom::Start(self.at))?;
        let mut reader = BufReader::new(handle);
        let mut lines: Vec<String> = Vec::new();
        loop {
            let mut line = Vec::new();
            let read = Read::take(&mut reader, LONGEST).read_until(b'\n', &mut line)?;
            if line.pop() != Some(b'\n') {
                self.number = lines.last().map_or(self.number, |line| number(line));
                return Ok(lines);
            }
            self.at = self.at.saturating_add(read as u64);
            lines.push(String::from_utf8_lossy(&line).into_owned());
        }
    }

    /// Whether the log is another file now: it was put aside, or cut off, or there was none.
    fn is_moved(&self, file: &Path) -> io::Result<bool> {
        match (&self.handle, fs::metadata(file)) {
            (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            (_, Err(error)) => Err(error),
            (None, Ok(_)) => Ok(true),
            (Some(handle), Ok(there)) => Ok(!same(&handle.metadata()?, &there) || there.len() < self.at),
        }
    }
}

/// The number of a line, as it says itself.
fn number(line: &str) -> Option<u64> {
    line.strip_prefix("{\"seq\":")?.split_once(',')?.0.parse().ok()
}

#[cfg(unix)]
fn same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn same(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
}

struct Printer {
    json: bool,
    /// The widths of the columns so far, so that what follows lines up.
    widths: Vec<usize>,
}

impl Printer {
    fn print(&mut self, lines: &[String], terminal: &mut Terminal) {
        if self.json {
            lines.iter().for_each(|line| terminal.out.line(line));
            return;
        }
        if lines.is_empty() {
            return;
        }
        let heads = ["SEQ", "TIME", "CALLER", "TOOL", "END", "EFFECT", "DETAILS"];
        let heads = if self.widths.is_empty() { heads } else { [""; 7] };
        let mut table = Table::new(heads).at_least(&self.widths).cut();
        for line in lines {
            table.row(row(line, terminal.out.view_width()));
        }
        self.widths = table.widths();
        let text = table.render(terminal.out.view_width(), terminal.out.brush());
        terminal.out.print(&text);
    }
}

fn row(line: &str, width: usize) -> [Cell; 7] {
    let Ok(record) = serde_json::from_str::<Value>(line) else {
        let empty = || Cell::from("");
        return [
            Cell::painted(BAD, "?"),
            empty(),
            empty(),
            empty(),
            empty(),
            empty(),
            Cell::painted(BAD, "no record: `callgate audit verify` says more"),
        ];
    };
    let text = |name: &str| record.get(name).and_then(Value::as_str).map(visible).unwrap_or_default();
    let caller = match text("principal") {
        principal if principal.is_empty() => text("channel"),
        principal => format!("{}:{principal}", text("channel")),
    };
    let (kind, effect) = (text("kind"), text("effect"));
    let end = match kind.as_str() {
        "terminal" | "completion" | "decision" => text("end"),
        _ => kind.clone(),
    };
    let style = match (record.get("code"), end.as_str()) {
        (Some(_), _) => BAD,
        (None, "done" | "answered" | "approve") => GOOD,
        (None, "asked" | "intent" | "accepted" | "deny") => WARN,
        _ => DIM,
    };
    let details = match kind.as_str() {
        "note" => text("note"),
        "decision" => {
            let ticket = text("ticket");
            let about = format!("about the request {}", ticket.get(..12).unwrap_or(&ticket));
            [about, text("code"), text("check"), text("detail")]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("; ")
        }
        _ => [text("code"), text("detail"), clamps(&record), took(&record)]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("; "),
    };
    [
        Cell::painted(DIM, record.get("seq").map(ToString::to_string).unwrap_or_default()),
        Cell::painted(DIM, time(text("at"), width)),
        caller.into(),
        Cell::painted(NAME, text("tool")),
        Cell::painted(style, end),
        match (kind.as_str(), effect.as_str()) {
            ("terminal" | "completion", "unknown") => Cell::painted(WARN, effect),
            ("terminal" | "completion", _) => effect.into(),
            _ => "".into(),
        },
        details.into(),
    ]
}

/// The time; on a narrow screen without the year and the parts of a second, so that the rest has room.
fn time(at: String, width: usize) -> String {
    const NARROW: usize = 110;
    match at.get(5..19) {
        Some(short) if width < NARROW => short.replace('T', " "),
        _ => at,
    }
}

pub(super) fn clamps(record: &Value) -> String {
    let clamps = record.get("clamped").and_then(Value::as_array).into_iter().flatten();
    let part = |clamp: &Value, name| clamp.get(name).and_then(Value::as_str).map(visible).unwrap_or_default();
    let texts: Vec<String> = clamps
        .map(|clamp| format!("{} {} -> {}", part(clamp, "field"), part(clamp, "from"), part(clamp, "to")))
        .collect();
    texts.join(", ")
}

fn took(record: &Value) -> String {
    match record.get("took_us").and_then(Value::as_u64) {
        Some(us) if us >= 1_000_000 => format!("{:.1} s", us as f64 / 1e6),
        Some(us) if us >= 1_000 => format!("{} ms", us / 1_000),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use callgate_core::context::CallContext;
    use callgate_core::request::Request;
    use callgate_std::audit::JsonlAudit;
    use callgate_std::gate::Gate;
    use callgate_std::registry::Registry;

    use super::*;

    #[test]
    fn the_last_lines_are_found_from_the_end() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let long = "x".repeat(100_000);
        write!(file, "one\n{long}\nthree\nfour\nhalf").unwrap();
        let last = |count| Follower::new(File::open(file.path()).unwrap()).last(file.path(), count).unwrap();
        assert_eq!(last(2), ["three", "four"]);
        assert_eq!(last(3).first().map(String::len), Some(100_000));
        assert_eq!(last(9).len(), 4);
        assert_eq!(last(0), [""; 0]);
    }

    #[test]
    fn a_followed_log_may_grow_and_be_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let (path, aside) = (dir.path().join("log"), dir.path().join("old"));
        fs::write(&path, "one\ntw").unwrap();
        let mut follower = Follower::new(File::open(&path).unwrap());
        assert_eq!(follower.last(&path, 5).unwrap(), ["one"]);
        assert_eq!(follower.next(&path).unwrap(), [""; 0]);
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"o\nthree\n").unwrap();
        assert_eq!(follower.next(&path).unwrap(), ["two", "three"]);
        fs::rename(&path, &aside).unwrap();
        assert_eq!(follower.next(&path).unwrap(), [""; 0]);
        fs::write(&path, "new\n").unwrap();
        assert_eq!(follower.next(&path).unwrap(), ["new"]);
    }

    /// J6: whoever follows a log misses no line of it and gets none twice, however often it is put aside between two looks.
    #[test]
    fn j6_a_followed_log_is_read_through_its_segments() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let log = JsonlAudit::open(&path).unwrap();
        let gate = Gate::builder(Registry::builder().build().unwrap()).audit(Arc::new(log)).build().unwrap();
        let rotate = || JsonlAudit::open(&path).unwrap().rotate().unwrap();
        let call = || drop(gate.call(&CallContext::cli("r"), Request { tool: "none", arguments: b"{}", token: None }));
        let numbers = |lines: &[String]| lines.iter().map(|line| number(line).unwrap()).collect::<Vec<_>>();
        let follower = || Follower::new(File::open(&path).unwrap());
        call();
        call();
        let mut followed = follower();
        assert_eq!(numbers(&followed.last(&path, 1).unwrap()), [2]);
        call();
        rotate();
        call();
        assert_eq!(numbers(&followed.next(&path).unwrap()), [3, 4, 5]);
        for _ in 0..3 {
            call();
            rotate();
        }
        call();
        assert_eq!(numbers(&followed.next(&path).unwrap()), [6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(followed.next(&path).unwrap(), [""; 0]);
        // One that there was not when it was looked for, and one that is looked at from its end on.
        assert_eq!(numbers(&Follower::waiting().next(&path).unwrap()), (1..=12).collect::<Vec<_>>());
        let mut quiet = follower();
        assert_eq!(quiet.last(&path, 0).unwrap(), [""; 0]);
        // The last lines, too, are looked for before the last rotation, as far as there are any.
        for (count, first) in [(2, 11), (3, 10), (8, 5), (12, 1), (99, 1)] {
            assert_eq!(numbers(&follower().last(&path, count).unwrap()), (first..=12).collect::<Vec<_>>());
        }
        for _ in 0..2 {
            call();
            rotate();
        }
        assert_eq!(numbers(&quiet.next(&path).unwrap()), [13, 14, 15, 16]);
    }
}
