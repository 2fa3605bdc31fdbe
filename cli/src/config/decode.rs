//! Strict reading of a parsed TOML document: every key is known, every value has its type, and everything that is wrong is
//! collected, so that a user mends a file once.
//!
//! A reader that reports a problem still returns something to go on with. None of it escapes: [`super::Config`] is made only
//! when nothing was reported (invariant F7).

use std::cell::RefCell;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use callgate_core::json::Number;
use callgate_core::name::NameError;
use callgate_core::nearest::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Problem, quoted};
use super::source::{Location, Source};
use super::{Note, duration, size};

/// The longest string that a configuration may hold, in bytes.
pub(super) const MAX_TEXT: usize = 4096;
/// The most entries of one list or one table of named entries.
pub(super) const MAX_ENTRIES: usize = 1000;

/// A key of a table: its name, what it takes, and how that looks.
#[derive(Debug)]
pub struct Key {
    /// The name.
    pub name: &'static str,
    /// What it takes, for a message that says `takes ...`.
    pub takes: &'static str,
    /// A value that is right, as TOML.
    pub example: &'static str,
}

/// The keys of one kind of table.
#[derive(Debug)]
pub struct Keys {
    /// The table as the reference names it: `audit`, `channels.NAME`, `rules`; empty for the top of the file.
    pub table: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

impl Keys {
    fn find(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name)
    }
}

/// Where problems and notes go while one file is read.
#[derive(Debug)]
pub(super) struct Sink<'d> {
    source: &'d Source,
    problems: RefCell<Vec<Problem>>,
    notes: RefCell<Vec<Note>>,
}

impl<'d> Sink<'d> {
    pub(super) fn new(source: &'d Source) -> Self {
        Self { source, problems: RefCell::default(), notes: RefCell::default() }
    }

    pub(super) fn report(&self, span: &Range<usize>, entry: &str, message: impl Into<String>, help: Option<String>) {
        self.problems.borrow_mut().push(Problem::at(self.source, span, entry, message, help));
    }

    /// The notes, in the order of the file, if there was no problem; else the problems.
    pub(super) fn finish(self) -> Result<Vec<Note>, Vec<Problem>> {
        let problems = self.problems.into_inner();
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut notes = self.notes.into_inner();
        notes.sort_by_key(|note| note.location);
        Ok(notes)
    }
}

/// A table whose keys are all known.
#[derive(Clone, Debug)]
pub(super) struct Table<'d> {
    table: &'d DeTable<'d>,
    span: Range<usize>,
    path: String,
    keys: &'static Keys,
    sink: &'d Sink<'d>,
}

impl<'d> Table<'d> {
    /// Takes `table` for one of the kind `keys`. Nothing is looked at yet.
    pub(super) fn new(
        table: &'d DeTable<'d>,
        span: Range<usize>,
        path: String,
        keys: &'static Keys,
        sink: &'d Sink<'d>,
    ) -> Self {
        Self { table, span, path, keys, sink }
    }

    /// Reports each key that is not known.
    pub(super) fn refuse_unknown_keys(&self) {
        for key in self.table.keys() {
            let name = key.get_ref();
            if self.keys.find(name).is_none() {
                let place = if self.path.is_empty() { "here".into() } else { format!("in `{}`", self.path) };
                let message = format!("unknown key {} {place}", quoted(name));
                let known = self.keys.names().collect::<Vec<_>>().join(", ");
                let help = match nearest(name.chars(), self.keys.names()) {
                    Some(near) => format!("did you mean `{near}`? The keys here are: {known}"),
                    None => format!("the keys here are: {known}"),
                };
                self.sink.report(&key.span(), &join(&self.path, name), message, Some(help));
            }
        }
    }

    /// The entry with this key, if the file has it.
    pub(super) fn get(&self, name: &'static str) -> Option<Entry<'d>> {
        let key = self.keys.find(name);
        debug_assert!(key.is_some(), "`{name}` is missing from the keys of `{}`", self.keys.table);
        let (written, value) = self.table.get_key_value(name)?;
        Some(Entry { value, key_span: written.span(), path: join(&self.path, name), key: key?, sink: self.sink })
    }

    /// The entry with this key; reports when the file doesn't have it.
    pub(super) fn require(&self, name: &'static str) -> Option<Entry<'d>> {
        let entry = self.get(name);
        if entry.is_none() {
            let place = if self.path.is_empty() { "the file".into() } else { format!("`{}`", self.path) };
            let example = self.keys.find(name).map(|key| format!("add it, for example: {name} = {}", key.example));
            self.sink.report(&self.span, &self.path, format!("{place} has no `{name}`"), example);
        }
        entry
    }

    /// Reports something about the table as a whole.
    pub(super) fn report(&self, message: impl Into<String>, help: Option<String>) {
        self.sink.report(&self.span, &self.path, message, help);
    }

    /// Notes something that is right but worth knowing.
    pub(super) fn note(&self, message: impl Into<String>) {
        self.sink.notes.borrow_mut().push(Note { location: self.location(), message: message.into() });
    }

    pub(super) fn location(&self) -> Location {
        self.sink.source.locate(self.span.start)
    }

    pub(super) fn boolean(&self, name: &'static str, default: bool) -> bool {
        self.get(name).and_then(|entry| entry.boolean()).unwrap_or(default)
    }
}

/// One value, with the key that it stands under.
#[derive(Clone, Debug)]
pub(super) struct Entry<'d> {
    value: &'d Spanned<DeValue<'d>>,
    key_span: Range<usize>,
    path: String,
    key: &'static Key,
    sink: &'d Sink<'d>,
}

impl<'d> Entry<'d> {
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn location(&self) -> Location {
        self.sink.source.locate(self.key_span.start)
    }

    pub(super) fn value(&self) -> &'d DeValue<'d> {
        self.value.get_ref()
    }

    /// Reports that the value is wrong, and shows one that is right.
    pub(super) fn report(&self, message: impl Into<String>) {
        let help = format!("for example: {} = {}", self.key.name, self.key.example);
        self.report_with(message, Some(help));
    }

    /// Reports that the value is wrong, with its own advice.
    pub(super) fn report_with(&self, message: impl Into<String>, help: Option<String>) {
        self.sink.report(&self.value.span(), &self.path, message, help);
    }

    fn ill_typed(&self) {
        let found = match self.value() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(array) if array.iter().any(|item| item.get_ref().is_table()) => "a list of tables",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.report(format!("`{}` is {found}; `{}` takes {}", self.path, self.key.name, self.key.takes));
    }

    /// A string without NUL and of at most [`MAX_TEXT`] bytes.
    pub(super) fn text(&self) -> Option<&'d str> {
        let DeValue::String(text) = self.value() else {
            self.ill_typed();
            return None;
        };
        if text.len() > MAX_TEXT {
            self.report_with(format!("`{}` is longer than {MAX_TEXT} bytes", self.path), None);
            return None;
        }
        if text.contains('\0') {
            self.report_with(format!("`{}` has a NUL character", self.path), None);
            return None;
        }
        Some(text)
    }

    /// A string that isn't empty.
    pub(super) fn filled_text(&self) -> Option<&'d str> {
        let text = self.text()?;
        if text.trim().is_empty() {
            self.report(format!("`{}` is empty", self.path));
            return None;
        }
        Some(text)
    }

    /// A string in a grammar of [`callgate_core::name`] (invariant S3).
    pub(super) fn name(&self, check: fn(&str) -> Result<(), NameError>) -> Option<String> {
        let name = self.text()?;
        match check(name) {
            Ok(()) => Some(name.to_owned()),
            Err(reason) => {
                self.report(format!("{} {reason}", quoted(name)));
                None
            }
        }
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        let boolean = self.value().as_bool();
        if boolean.is_none() {
            self.ill_typed();
        }
        boolean
    }

    /// A whole number in `range`. One written with a fraction isn't taken, not even `1.0`.
    pub(super) fn integer(&self, range: RangeInclusive<i64>) -> Option<i64> {
        let number = self.number()?;
        if let Number::F64(_) = number {
            self.ill_typed();
            return None;
        }
        let fitting = number.as_i64().filter(|number| range.contains(number));
        if fitting.is_none() {
            let (min, max) = range.into_inner();
            let takes = if max == i64::MAX { format!("at least {min}") } else { format!("{min} to {max}") };
            self.report(format!("`{}` is out of range: it takes {takes}", self.path));
        }
        fitting
    }

    /// A whole number in `range` that fits `u32`.
    pub(super) fn natural(&self, range: RangeInclusive<u32>) -> Option<u32> {
        let (min, max) = range.into_inner();
        self.integer(i64::from(min)..=i64::from(max)).and_then(|number| u32::try_from(number).ok())
    }

    /// A number, kept exactly or refused (invariant S4).
    pub(super) fn number(&self) -> Option<Number> {
        match self.value() {
            DeValue::Integer(integer) => {
                let Ok(number) = i64::from_str_radix(integer.as_str(), integer.radix()) else {
                    self.report(format!("`{}` is a number that doesn't fit 64 bits", self.path));
                    return None;
                };
                Some(u64::try_from(number).map_or(Number::I64(number), Number::U64))
            }
            DeValue::Float(float) => {
                let number = float.as_str().parse().ok().and_then(Number::from_f64);
                if number.is_none() {
                    self.report(format!("`{}` is not a finite number", self.path));
                }
                number
            }
            _ => {
                self.ill_typed();
                None
            }
        }
    }

    pub(super) fn duration(&self, range: RangeInclusive<Duration>) -> Option<Duration> {
        self.quantity(duration::parse, duration::write, range)
    }

    pub(super) fn size(&self, range: RangeInclusive<u64>) -> Option<u64> {
        self.quantity(size::parse, size::write, range)
    }

    fn quantity<T: PartialOrd>(
        &self,
        parse: fn(&str) -> Result<T, String>,
        write: fn(T) -> String,
        range: RangeInclusive<T>,
    ) -> Option<T> {
        match parse(self.text()?) {
            Ok(quantity) if range.contains(&quantity) => Some(quantity),
            Ok(_) => {
                let (min, max) = range.into_inner();
                let (min, max) = (write(min), write(max));
                self.report(format!("`{}` is out of range: it takes {min} to {max}", self.path));
                None
            }
            Err(reason) => {
                self.report(format!("`{}` {reason}", self.path));
                None
            }
        }
    }

    /// One of a few words.
    pub(super) fn one_of<T: Copy>(&self, words: &[(&'static str, T)]) -> Option<T> {
        let text = self.text()?;
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*meaning);
        }
        let listed = words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        let help =
            nearest(text.chars(), words.iter().map(|(word, _)| *word)).map(|near| format!("did you mean \"{near}\"?"));
        self.report_with(format!("`{}` is one of {listed}, not {}", self.path, quoted(text)), help);
        None
    }

    /// The items of a list. An empty list is refused: written down it says nothing, and it reads as if it did
    /// (invariant F2).
    pub(super) fn filled_list(&self, empty_means: &str) -> Vec<Self> {
        let items = self.list();
        if items.is_empty() && self.value().as_array().is_some_and(|array| array.is_empty()) {
            self.report_with(format!("`{}` is an empty list", self.path), Some(empty_means.to_owned()));
        }
        items
    }

    /// The items of a list.
    pub(super) fn list(&self) -> Vec<Self> {
        let DeValue::Array(array) = self.value() else {
            self.ill_typed();
            return Vec::new();
        };
        if array.len() > MAX_ENTRIES {
            self.report_with(format!("`{}` has more than {MAX_ENTRIES} entries", self.path), None);
            return Vec::new();
        }
        let item = |(index, value): (usize, &'d Spanned<DeValue<'d>>)| Self {
            value,
            key_span: value.span(),
            path: format!("{}[{index}]", self.path),
            key: self.key,
            sink: self.sink,
        };
        array.iter().enumerate().map(item).collect()
    }

    /// Each item of a list read by `read`; an item given twice is reported.
    pub(super) fn set<T: PartialEq>(&self, items: &[Self], read: impl Fn(&Self) -> Option<T>) -> Vec<T> {
        let mut set: Vec<T> = Vec::with_capacity(items.len());
        for item in items {
            if let Some(value) = read(item) {
                if set.contains(&value) {
                    item.report_with(format!("`{}` is given twice", item.path), Some("say it once".into()));
                } else {
                    set.push(value);
                }
            }
        }
        set
    }

    /// The value as a table of the kind `keys`.
    pub(super) fn table(&self, keys: &'static Keys) -> Option<Table<'d>> {
        let DeValue::Table(table) = self.value() else {
            self.ill_typed();
            return None;
        };
        let table = Table::new(table, self.value.span(), self.path.clone(), keys, self.sink);
        table.refuse_unknown_keys();
        Some(table)
    }

    /// The value as a table in which the user chooses the keys, in the order of the file.
    pub(super) fn named(&self) -> Vec<(&'d str, Self)> {
        let DeValue::Table(table) = self.value() else {
            self.ill_typed();
            return Vec::new();
        };
        if table.len() > MAX_ENTRIES {
            self.report_with(format!("`{}` has more than {MAX_ENTRIES} entries", self.path), None);
            return Vec::new();
        }
        let entry = |(name, value): (&'d Spanned<std::borrow::Cow<'d, str>>, &'d Spanned<DeValue<'d>>)| {
            let path = join(&self.path, name.get_ref());
            let named = Self { value, key_span: name.span(), path, key: self.key, sink: self.sink };
            (&**name.get_ref(), named)
        };
        let mut entries: Vec<_> = table.iter().map(entry).collect();
        entries.sort_by_key(|(_, entry)| entry.key_span.start);
        entries
    }

    /// Reports something about the key rather than the value.
    pub(super) fn report_key(&self, message: impl Into<String>, help: Option<String>) {
        self.sink.report(&self.key_span, &self.path, message, help);
    }

    /// Checks the key of a [`Entry::named`] entry against a grammar (invariant S3).
    pub(super) fn check_key(&self, name: &str, check: fn(&str) -> Result<(), NameError>, help: &str) -> bool {
        let checked = check(name);
        if let Err(reason) = checked {
            self.report_key(format!("the name {} {reason}", quoted(name)), Some(help.to_owned()));
        }
        checked.is_ok()
    }
}

/// The path of `name` below `path`, quoted where TOML would quote it.
fn join(path: &str, name: &str) -> String {
    let bare = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    let name = if bare { name.to_owned() } else { format!("\"{}\"", quoted(name).trim_matches('`')) };
    if path.is_empty() { name } else { format!("{path}.{name}") }
}
