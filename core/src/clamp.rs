//! Clamps: bounds that a value is brought into, and the record that it was.

use core::cmp::Ordering;
use core::fmt;

use crate::args::{Args, Edit, Edits, Replacement};
use crate::fields::{self, FieldFault, Matcher, Trail};
use crate::json::{Event, Number, Text};
use crate::schema::{has_chars, number};
use crate::tool::FieldRule;

/// A bound of a clamp.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Bound {
    /// An integer.
    Integer(i64),
    /// A finite floating-point number.
    Float(f64),
}

/// Bounds that a value of the fitting type is brought into (invariants K1 to K3).
///
/// ```
/// use callgate_core::clamp::Clamp;
/// const PAGE: Clamp = Clamp::range(1, 100);
/// assert_eq!(PAGE.check(), Ok(()));
/// assert!(Clamp::range(100, 1).check().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Clamp {
    /// The least number.
    pub min: Option<Bound>,
    /// The greatest number.
    pub max: Option<Bound>,
    /// The most characters (Unicode code points) of a string; the rest is cut off.
    pub max_length: Option<u32>,
}

/// Why a clamp can't be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClampFault {
    /// It has no bound.
    Idle,
    /// A bound is no finite number.
    NotFinite,
    /// The least number is greater than the greatest one.
    Empty,
}

impl fmt::Display for ClampFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "the clamp has no bound; give it `min`, `max` or `max_length`",
            Self::NotFinite => "a bound of the clamp is not finite; leave the bound out instead",
            Self::Empty => "the clamp's min is above its max; check whether they are swapped",
        })
    }
}

impl core::error::Error for ClampFault {}

/// Why the clamps of a call could not be applied. The call is refused (invariant F5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClampError {
    /// More than [`crate::args::MAX_CLAMPS`] values are out of bounds.
    TooMany,
    /// The rules that name one value leave no room, or could not have been registered.
    Unusable,
}

impl fmt::Display for ClampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => {
                write!(
                    f,
                    "More than {} values are out of bounds; bring them into their bounds",
                    crate::args::MAX_CLAMPS
                )
            }
            Self::Unusable => f.write_str("The tool's clamps can't be applied; its `fields::check` says why"),
        }
    }
}

impl core::error::Error for ClampError {}

impl Clamp {
    /// Numbers from `min` to `max`.
    #[must_use]
    pub const fn range(min: i64, max: i64) -> Self {
        Self { min: Some(Bound::Integer(min)), max: Some(Bound::Integer(max)), max_length: None }
    }

    /// Numbers up to `max`.
    #[must_use]
    pub const fn max(max: i64) -> Self {
        Self { min: None, max: Some(Bound::Integer(max)), max_length: None }
    }

    /// Numbers from `min` on.
    #[must_use]
    pub const fn min(min: i64) -> Self {
        Self { min: Some(Bound::Integer(min)), max: None, max_length: None }
    }

    /// Texts of at most so many characters (Unicode code points).
    #[must_use]
    pub const fn max_length(chars: u32) -> Self {
        Self { min: None, max: None, max_length: Some(chars) }
    }

    /// Whether the clamp can be used. [`crate::fields::check`] asks this for each rule of a tool.
    ///
    /// # Errors
    /// The first fault.
    pub const fn check(&self) -> Result<(), ClampFault> {
        if self.min.is_none() && self.max.is_none() && self.max_length.is_none() {
            return Err(ClampFault::Idle);
        }
        let (min, max) = (value_of(self.min), value_of(self.max));
        if let Some(min) = min
            && !number::is_finite(min)
        {
            return Err(ClampFault::NotFinite);
        }
        if let Some(max) = max
            && !number::is_finite(max)
        {
            return Err(ClampFault::NotFinite);
        }
        match (min, max) {
            (Some(min), Some(max)) if number::compare(min, max).is_gt() => Err(ClampFault::Empty),
            _ => Ok(()),
        }
    }
}

impl Clamp {
    /// Whether `value` is within the bounds for sure, so that nothing has to be made of them: the usual case.
    fn admits(&self, value: Number) -> bool {
        let holds = |bound: Option<Bound>, side: Ordering| match bound {
            Some(Bound::Integer(bound)) => number::compare(value, number::from_i64(bound)) != side,
            Some(Bound::Float(_)) => false,
            None => true,
        };
        holds(self.min, Ordering::Less) && holds(self.max, Ordering::Greater)
    }
}

const fn value_of(bound: Option<Bound>) -> Option<Number> {
    match bound {
        Some(Bound::Integer(value)) => Some(number::from_i64(value)),
        Some(Bound::Float(value)) => Some(number::canonical(Number::F64(value))),
        None => None,
    }
}

/// Finds the values out of bounds, and puts what to replace them by into `edits`, which is emptied first.
///
/// A value is concerned when a rule with a clamp names it and it is of the fitting type: numbers for `min` and `max`, texts
/// for `max_length`; others stay as they are. A number without a fraction stays one where the bounds hold any: bounds in
/// floating point are rounded inwards. Several rules for one value all hold. Apply it to arguments as they were read;
/// applying it to what it leaves changes nothing (invariant K2).
///
/// # Errors
/// [`ClampError`]: the call must be refused.
pub fn apply(args: Args<'_>, rules: &[FieldRule<'_>], edits: &mut Edits) -> Result<(), ClampError> {
    edits.clear();
    if rules.iter().all(|rule| rule.clamp.is_none()) {
        return Ok(());
    }
    if rules.len() > fields::MAX_RULES {
        return Err(ClampError::Unusable);
    }
    let mut finder = Finder::new(rules, edits);
    if finder.looks() {
        return args.events().try_for_each(|(at, event)| finder.step(at, &event));
    }
    let mut matcher = Matcher::new(rules).map_err(|_: FieldFault| ClampError::Unusable)?;
    for (at, event) in args.events() {
        let matches = matcher.step(&event);
        if !matches.is_empty() {
            clamp(at, event, matches.iter().filter_map(|rule| rule.clamp), edits)?;
        }
    }
    Ok(())
}

/// Finds the values out of bounds while their text is read, where all clamps name members of the root: the usual case, and the
/// one in which nothing within the members is looked at.
pub(crate) struct Finder<'r, 'e> {
    rules: &'r [FieldRule<'r>],
    edits: &'e mut Edits,
    looks: bool,
    /// How many containers are open.
    depth: u32,
    /// The key of the member that comes next, and the rules from the first on that names it, if one does.
    named: Option<(Text<'r>, &'r [FieldRule<'r>])>,
}

impl<'r, 'e> Finder<'r, 'e> {
    /// Before the first event. Without clamps, and with those that it does not look for, it finds nothing.
    pub(crate) fn new(rules: &'r [FieldRule<'r>], edits: &'e mut Edits) -> Self {
        let mut clamped = rules.iter().filter(|rule| rule.clamp.is_some());
        let looks = rules.len() <= fields::MAX_RULES && clamped.all(|rule| fields::is_top_level(rule.path));
        let rules = if looks { rules } else { &[] };
        Self { rules, edits, looks, depth: 0, named: None }
    }

    /// Whether all clamps are found here; else [`apply`] has to look.
    pub(crate) const fn looks(&self) -> bool {
        self.looks
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// The call must be refused.
    #[inline(always)]
    pub(crate) fn step(&mut self, at: u32, event: &Event<'r>) -> Result<(), ClampError> {
        match event {
            Event::Key(key) if self.depth == 1 => {
                let first = self.rules.iter().position(|rule| clamps_member(rule, *key));
                self.named = first.and_then(|first| self.rules.get(first..)).map(|rules| (*key, rules));
            }
            Event::StartArray | Event::StartObject => self.depth = self.depth.saturating_add(1),
            Event::EndArray | Event::EndObject => self.depth = self.depth.saturating_sub(1),
            Event::Number(_) | Event::String(_) if self.depth == 1 => {
                if let Some((key, [first, others @ ..])) = self.named.take() {
                    let others = others.iter().filter(move |rule| clamps_member(rule, key));
                    return clamp(
                        at,
                        *event,
                        first.clamp.into_iter().chain(others.filter_map(|rule| rule.clamp)),
                        self.edits,
                    );
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Whether the rule clamps this member of the root.
fn clamps_member(rule: &FieldRule<'_>, key: Text<'_>) -> bool {
    rule.clamp.is_some() && fields::names_top_level(rule.path, key)
}

/// Clamps one value.
fn clamp(
    at: u32,
    event: Event<'_>,
    clamps: impl Iterator<Item = Clamp> + Clone,
    edits: &mut Edits,
) -> Result<(), ClampError> {
    let to = match event {
        Event::Number(value) if clamps.clone().all(|clamp| clamp.admits(value)) => None,
        Event::Number(value) => Range::of(clamps)?.replace(value)?.map(Replacement::Number),
        Event::String(text) => cut(text, clamps),
        _ => None,
    };
    match to {
        Some(to) => edits.push(Edit { at, to }).map_err(|_| ClampError::TooMany),
        None => Ok(()),
    }
}

/// What several clamps leave room for, together.
#[derive(Clone, Copy, Default)]
struct Range {
    min: Option<Number>,
    max: Option<Number>,
}

impl Range {
    fn of(clamps: impl Iterator<Item = Clamp>) -> Result<Self, ClampError> {
        let mut range = Self::default();
        for clamp in clamps {
            for bound in [value_of(clamp.min), value_of(clamp.max)].into_iter().flatten() {
                if !number::is_finite(bound) {
                    return Err(ClampError::Unusable);
                }
            }
            range.min = tighter(range.min, value_of(clamp.min), Ordering::Greater);
            range.max = tighter(range.max, value_of(clamp.max), Ordering::Less);
        }
        if range.is_empty() { Err(ClampError::Unusable) } else { Ok(range) }
    }

    fn is_empty(self) -> bool {
        matches!((self.min, self.max), (Some(min), Some(max)) if number::compare(min, max).is_gt())
    }

    /// The number to replace `value` by; none when it is within the range.
    fn replace(self, value: Number) -> Result<Option<Number>, ClampError> {
        let whole = Self { min: self.min.map(number::ceil), max: self.max.map(number::floor) };
        let range = if number::is_integral(value) && !whole.is_empty() { whole } else { self };
        let nearest = match range {
            Self { min: Some(min), .. } if number::compare(value, min).is_lt() => min,
            Self { max: Some(max), .. } if number::compare(value, max).is_gt() => max,
            _ => return Ok(None),
        };
        Ok(Some(nearest))
    }
}

/// The one of two bounds that is on the side `side` of the other.
fn tighter(a: Option<Number>, b: Option<Number>, side: Ordering) -> Option<Number> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if number::compare(b, a) == side { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// How to cut the text; none when it is short enough.
fn cut(text: Text<'_>, clamps: impl Iterator<Item = Clamp>) -> Option<Replacement> {
    let chars = clamps.filter_map(|clamp| clamp.max_length).min()?;
    let more = chars.checked_add(1).is_some_and(|more| has_chars(text, more));
    more.then_some(Replacement::Cut { chars })
}

/// One clamp that was applied, for people and for the record (invariant K3). `Display` writes `max: 5000 -> 100`.
#[derive(Clone, Copy)]
pub struct Change<'c> {
    /// The field, as a path such as `filter.limit` or `rows[3].price`.
    pub field: &'c dyn fmt::Display,
    /// What was sent.
    pub from: Measure,
    /// What stands there now.
    pub to: Measure,
}

/// As much of a clamped value as the clamp is about.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Measure {
    /// A number.
    Number(Number),
    /// The length of a text, in Unicode code points.
    Chars(u64),
    /// What a rule marks as secret, and so nobody is told.
    Secret,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => write!(f, "{value}"),
            Self::Chars(chars) => write!(f, "{chars} characters"),
            Self::Secret => f.write_str("(secret)"),
        }
    }
}

impl fmt::Display for Change<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} -> {}", self.field, self.from, self.to)
    }
}

impl fmt::Debug for Change<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Change({self})")
    }
}

/// Tells of each clamp that `args` carries, in the order of the text. `rules` are the tool's; what they mark as secret, and
/// what is within it, is not shown. Where the rules can't be used, nothing is.
pub fn changes(args: Args<'_>, rules: &[FieldRule<'_>], report: &mut dyn FnMut(Change<'_>)) {
    let mut clamps = args.clamps();
    let Some(mut next) = clamps.next() else { return };
    let mut matcher = Matcher::new(rules).ok();
    let mut trail = Trail::default();
    // How many containers are open within a secret one, itself counted.
    let mut hidden = 0u32;
    for (at, event) in args.events() {
        trail.step(&event);
        let secret = matcher.as_mut().is_none_or(|matcher| matcher.step(&event).secret());
        match event {
            Event::StartArray | Event::StartObject if secret || hidden > 0 => hidden = hidden.saturating_add(1),
            Event::EndArray | Event::EndObject => hidden = hidden.saturating_sub(1),
            _ => {}
        }
        if at != next.at {
            continue;
        }
        let measure = |event| if secret || hidden > 0 { Measure::Secret } else { Measure::of(event) };
        report(Change { field: &trail, from: measure(next.from), to: measure(next.to) });
        match clamps.next() {
            Some(clamp) => next = clamp,
            None => return,
        }
    }
}

impl Measure {
    fn of(event: Event<'_>) -> Self {
        match event {
            Event::Number(value) => Self::Number(value),
            Event::String(text) => Self::Chars(text.char_count() as u64),
            // Nothing else is clamped.
            _ => Self::Secret,
        }
    }
}

#[cfg(test)]
mod tests;
