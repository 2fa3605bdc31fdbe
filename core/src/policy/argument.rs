//! Tests of a call's clamped arguments, for rules and grants.

use crate::args::Args;
use crate::digest::DigestBuilder;
use crate::json::{Event, Number, Text, Value};

/// The most members a grant may name; a grant that names more covers nothing (invariant F5).
pub(super) const MAX_GRANTED: usize = 64;

/// One test of one top-level argument. `S` is how a host keeps texts.
///
/// The tests of a rule must all hold. A test made with [`ArgTest::or`] is an alternative to the one before it: of such a
/// group, one must hold.
///
/// A value of another kind than the test is about (a number, where a prefix is asked for) leaves the test open. An open test
/// is taken against the caller: an allow does not match, a deny does (invariant F1). An argument that is absent or `null`
/// just fails every test that asks for something else.
///
/// ```
/// use callgate_core::json::Number;
/// use callgate_core::policy::ArgTest;
/// // unit is "C" or "F", and max is at most 50
/// const TESTS: &[ArgTest<&str>] = &[
///     ArgTest::text("unit", "C"),
///     ArgTest::text("unit", "F").or(),
///     ArgTest::max("max", Number::U64(50)),
/// ];
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ArgTest<S> {
    /// The argument's key, compared exactly.
    pub key: S,
    /// What is asked of its value.
    pub check: ArgCheck<S>,
    /// Whether this is an alternative to the test before it.
    pub alternative: bool,
}

/// What is asked of one value.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum ArgCheck<S> {
    /// The argument is there, be it `null`.
    Present,
    /// The argument is not there.
    Absent,
    /// It is this value. Numbers compare by value: `1` is `1.0`.
    Equals(ArgValue<S>),
    /// It is a number and not less than this.
    Min(Number),
    /// It is a number and not greater than this.
    Max(Number),
    /// It is a string that starts with this text, byte for byte. Says nothing about where a path or a URL leads once it is
    /// resolved: that is for the tool to confine (invariant S7).
    Prefix(S),
}

/// A value without parts.
#[derive(Clone, Copy, PartialEq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "these are the kinds of JSON values without parts")]
pub enum ArgValue<S> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number; finite.
    Number(Number),
    /// A string.
    Text(S),
}

impl<'a> ArgTest<&'a str> {
    /// `key` is the text `value`.
    #[must_use]
    pub const fn text(key: &'a str, value: &'a str) -> Self {
        Self { key, check: ArgCheck::Equals(ArgValue::Text(value)), alternative: false }
    }

    /// `key` is `value`.
    #[must_use]
    pub const fn bool(key: &'a str, value: bool) -> Self {
        Self { key, check: ArgCheck::Equals(ArgValue::Bool(value)), alternative: false }
    }

    /// `key` is the number `value`.
    #[must_use]
    pub const fn number(key: &'a str, value: Number) -> Self {
        Self { key, check: ArgCheck::Equals(ArgValue::Number(value)), alternative: false }
    }

    /// `key` is a number and at least `least`.
    #[must_use]
    pub const fn min(key: &'a str, least: Number) -> Self {
        Self { key, check: ArgCheck::Min(least), alternative: false }
    }

    /// `key` is a number and at most `most`.
    #[must_use]
    pub const fn max(key: &'a str, most: Number) -> Self {
        Self { key, check: ArgCheck::Max(most), alternative: false }
    }

    /// `key` is a string that starts with `prefix`.
    #[must_use]
    pub const fn prefix(key: &'a str, prefix: &'a str) -> Self {
        Self { key, check: ArgCheck::Prefix(prefix), alternative: false }
    }

    /// `key` is there.
    #[must_use]
    pub const fn present(key: &'a str) -> Self {
        Self { key, check: ArgCheck::Present, alternative: false }
    }

    /// `key` is not there.
    #[must_use]
    pub const fn absent(key: &'a str) -> Self {
        Self { key, check: ArgCheck::Absent, alternative: false }
    }

    /// The same test as an alternative to the one before it.
    #[must_use]
    pub const fn or(mut self) -> Self {
        self.alternative = true;
        self
    }
}

/// The result of a test. "And" is the lesser of two, "or" the greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Holds {
    /// It fails.
    No,
    /// The value is of a kind that the test says nothing about.
    Open,
    /// It holds.
    Yes,
}

impl From<bool> for Holds {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// Whether all of `tests` hold for `args`.
pub(super) fn hold<S: AsRef<str>>(tests: &[ArgTest<S>], args: Args<'_>) -> Holds {
    let mut all = Holds::Yes;
    let mut group = Holds::Yes;
    let mut grouped = false;
    for test in tests {
        let result = test.holds(args);
        group = if test.alternative && grouped {
            group.max(result)
        } else {
            all = all.min(group);
            result
        };
        grouped = true;
    }
    all.min(group)
}

impl<S: AsRef<str>> ArgTest<S> {
    fn holds(&self, args: Args<'_>) -> Holds {
        let value = args.get(self.key.as_ref());
        let value = match (&self.check, value) {
            (ArgCheck::Present, value) => return value.is_some().into(),
            (ArgCheck::Absent, value) => return value.is_none().into(),
            (_, None) => return Holds::No,
            (ArgCheck::Equals(ArgValue::Null), Some(value)) => return value.is_null().into(),
            (_, Some(value)) if value.is_null() => return Holds::No,
            (_, Some(value)) => value,
        };
        let holds = match &self.check {
            ArgCheck::Equals(ArgValue::Bool(wanted)) => value.as_bool().map(|is| is == *wanted),
            ArgCheck::Equals(ArgValue::Number(wanted)) => against(value, *wanted, core::cmp::Ordering::is_eq),
            ArgCheck::Equals(ArgValue::Text(wanted)) => value.as_text().map(|is| is.eq_str(wanted.as_ref())),
            ArgCheck::Min(least) => against(value, *least, core::cmp::Ordering::is_ge),
            ArgCheck::Max(most) => against(value, *most, core::cmp::Ordering::is_le),
            // An empty prefix would hold for everything; it is refused by `RuleSet::check` and decides nothing here (F2).
            ArgCheck::Prefix(prefix) => {
                value.as_text().filter(|_| !prefix.as_ref().is_empty()).map(|is| starts_with(is, prefix.as_ref()))
            }
            ArgCheck::Present | ArgCheck::Absent | ArgCheck::Equals(ArgValue::Null) => None,
        };
        holds.map_or(Holds::Open, Holds::from)
    }

    /// Adds every field to `digest`.
    pub(super) fn add_to(&self, digest: &mut DigestBuilder) {
        let Self { key, check, alternative } = self;
        digest.str(key.as_ref()).bool(*alternative);
        match check {
            ArgCheck::Present => digest.u64(0),
            ArgCheck::Absent => digest.u64(1),
            ArgCheck::Equals(ArgValue::Null) => digest.u64(2),
            ArgCheck::Equals(ArgValue::Bool(value)) => digest.u64(3).bool(*value),
            ArgCheck::Equals(ArgValue::Number(value)) => digest.u64(4).number(*value),
            ArgCheck::Equals(ArgValue::Text(value)) => digest.u64(5).str(value.as_ref()),
            ArgCheck::Min(least) => digest.u64(6).number(*least),
            ArgCheck::Max(most) => digest.u64(7).number(*most),
            ArgCheck::Prefix(prefix) => digest.u64(8).str(prefix.as_ref()),
        };
    }

    /// Whether the test can ever be decided; what a configuration is checked for.
    pub(super) fn is_sound(&self) -> bool {
        match &self.check {
            ArgCheck::Present
            | ArgCheck::Absent
            | ArgCheck::Equals(ArgValue::Null | ArgValue::Bool(_) | ArgValue::Text(_)) => true,
            ArgCheck::Equals(ArgValue::Number(number)) | ArgCheck::Min(number) | ArgCheck::Max(number) => {
                is_finite(*number)
            }
            ArgCheck::Prefix(prefix) => !prefix.as_ref().is_empty(),
        }
    }
}

/// Compares a number exactly, whatever its kind; `None` when `value` is no number or `bound` is not finite.
fn against(value: Value<'_>, bound: Number, holds: fn(core::cmp::Ordering) -> bool) -> Option<bool> {
    value.as_number().filter(|_| is_finite(bound)).map(|number| holds(number.cmp_value(bound)))
}

fn starts_with(text: Text<'_>, prefix: &str) -> bool {
    match text.as_plain() {
        Some(plain) => plain.starts_with(prefix),
        None => {
            let mut bytes = text.bytes();
            prefix.bytes().all(|wanted| bytes.next() == Some(wanted))
        }
    }
}

const fn is_finite(number: Number) -> bool {
    match number {
        Number::F64(float) => float.is_finite(),
        Number::U64(_) | Number::I64(_) => true,
    }
}

/// Whether `args` has every member of `granted`, with the same value: the same kinds, numbers spelled as the same number and
/// of the same kind (`1` is not `1.0`), and the members of nested objects in the same order. Whatever is in doubt is not
/// included.
pub(super) fn includes(args: Args<'_>, granted: Args<'_>) -> bool {
    let mut members = granted.members();
    let mut any = false;
    for (key, wanted) in members.by_ref().take(MAX_GRANTED) {
        any = true;
        let Some((_, value)) = args.members().find(|(name, _)| *name == key) else { return false };
        if !events(value).eq(events(wanted)) {
            return false;
        }
    }
    any && members.next().is_none()
}

fn events(value: Value<'_>) -> impl Iterator<Item = Event<'_>> {
    value.events().map(|(_, event)| event)
}
