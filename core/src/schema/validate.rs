//! The check: one pass over the events of a value, on a stack of fixed size.

use core::cmp::Ordering;
use core::fmt;

use super::reason::{Reason, concerns_members};
use super::{
    Additional, Choices, Limit, MAX_DEPTH, MAX_PROPERTIES, Property, SAFE_INTEGER, Schema, Types, Width, number,
};
use crate::args::Args;
use crate::fields::Segment;
use crate::json::{Event, Events, Number, Text, Value};
use crate::tool::Violation;

/// How deep most schemas nest at most. They are checked on a smaller stack, which costs less to lay out.
pub(crate) const SHALLOW: usize = 4;

impl Schema<'_> {
    /// Checks arguments and tells `report` of each violation, in the order in which they stand in the text; a missing
    /// property where its object ends.
    ///
    /// The cost is one step for each token, and one for each declared property until a key is found (invariant S5).
    /// Nothing is changed or coerced (invariant S9). Values are never part of a message; names that the caller chose are
    /// escaped and cut.
    pub fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
        self.validate_value(args.value(), report);
    }

    /// Checks any value; see [`Self::validate`].
    pub fn validate_value(&self, value: Value<'_>, report: &mut dyn FnMut(Violation<'_>)) {
        let events = value.events();
        // A frame is needed for each schema on the way down, and not for what no schema looks into.
        if self.is_shallow() || MAX_DEPTH as usize == SHALLOW {
            shallow(self, events, report);
        } else {
            deep(self, events, report);
        }
    }

    /// Whether a stack of [`SHALLOW`] frames suffices.
    pub(crate) fn is_shallow(&self) -> bool {
        usize::from(self.depth) <= SHALLOW
    }

    /// Whether arguments fit.
    #[must_use]
    pub fn accepts(&self, args: Args<'_>) -> bool {
        let mut fits = true;
        self.validate(args, &mut |_| fits = false);
        fits
    }
}

#[inline(never)]
fn shallow(root: &Schema<'_>, events: Events<'_>, report: &mut dyn FnMut(Violation<'_>)) {
    Walk::new(root, &mut [Frame::new(root); SHALLOW], report).all(events);
}

#[inline(never)]
fn deep(root: &Schema<'_>, events: Events<'_>, report: &mut dyn FnMut(Violation<'_>)) {
    Walk::new(root, &mut [Frame::new(root); MAX_DEPTH as usize], report).all(events);
}

/// A container that is open.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'w> {
    schema: &'w Schema<'w>,
    /// Which of the declared properties came, as bits.
    seen: u128,
    /// The member or item that is being looked at.
    at: Segment<'w>,
    /// The property after the one that came last: most callers keep to the order of the schema.
    next: usize,
}

impl<'w> Frame<'w> {
    pub(crate) const fn new(schema: &'w Schema<'w>) -> Self {
        // Counted from -1, so that the first item gets 0.
        Self { schema, seen: 0, at: Segment::Item(u32::MAX), next: 0 }
    }
}

/// A check on its way through the events of a value.
pub(crate) struct Walk<'w, 'f> {
    /// The frames; those in use come first.
    stack: &'f mut [Frame<'w>],
    used: usize,
    /// What the value that comes next must be; none for one that nobody looks into.
    expected: Option<&'w Schema<'w>>,
    /// How many containers are open within a value that nobody looks into.
    skipped: u32,
    report: &'f mut dyn FnMut(Violation<'_>),
}

impl<'w, 'f> Walk<'w, 'f> {
    /// A check before the first event. `stack` has a frame for each schema on the way down.
    pub(crate) fn new(
        root: &'w Schema<'w>,
        stack: &'f mut [Frame<'w>],
        report: &'f mut dyn FnMut(Violation<'_>),
    ) -> Self {
        Self { stack, used: 0, expected: Some(root), skipped: 0, report }
    }

    fn all(mut self, events: Events<'w>) {
        for (_, event) in events {
            self.step(&event);
        }
    }

    /// Takes the next event.
    #[inline(always)]
    pub(crate) fn step(&mut self, event: &Event<'w>) {
        if self.skipped > 0 {
            match event {
                Event::StartArray | Event::StartObject => self.skipped = self.skipped.saturating_add(1),
                Event::EndArray | Event::EndObject => self.skipped = self.skipped.saturating_sub(1),
                _ => {}
            }
            return;
        }
        match event {
            Event::Key(name) => self.key(*name),
            Event::EndArray => self.end_array(),
            Event::EndObject => self.end_object(),
            value => self.value(value),
        }
    }

    fn top(&mut self) -> Option<&mut Frame<'w>> {
        self.stack.get_mut(self.used.checked_sub(1)?)
    }

    /// Finds out what the member `name` must be.
    fn key(&mut self, name: Text<'w>) {
        let Some(frame) = self.top() else { return };
        frame.at = Segment::Member(name);
        let object = frame.schema;
        if let Some((position, property)) = find(object.properties, frame.next, name) {
            frame.seen |= bit(position);
            frame.next = position.saturating_add(1);
            self.expected = Some(&property.schema);
            return;
        }
        self.expected = match object.additional {
            Additional::Allowed => None,
            Additional::Each(values) => Some(values),
            Additional::Refused => {
                self.tell_container(&Reason::Unknown { name, object });
                None
            }
        };
    }

    fn value(&mut self, event: &Event<'w>) {
        if let Some(Frame { schema, at: Segment::Item(item), .. }) = self.top() {
            *item = item.wrapping_add(1);
            self.expected = schema.items;
        }
        let fits = match self.expected.take() {
            Some(schema) => self.fits(schema, event).then_some(schema),
            None => None,
        };
        if !matches!(event, Event::StartArray | Event::StartObject) {
            return;
        }
        let enter = fits.filter(|schema| match event {
            Event::StartArray => schema.items.is_some() || schema.min_items.is_some() || schema.max_items.is_some(),
            _ => concerns_members(schema),
        });
        match enter {
            Some(schema) => self.enter(schema),
            None => self.skipped = 1,
        }
    }

    fn enter(&mut self, schema: &'w Schema<'w>) {
        match self.stack.get_mut(self.used) {
            Some(frame) if schema.properties.len() <= MAX_PROPERTIES => {
                *frame = Frame::new(schema);
                self.used = self.used.saturating_add(1);
            }
            // Nobody checked the schema. What can't be checked is refused (invariant F5).
            _ => {
                self.tell(&Reason::Unusable);
                self.skipped = 1;
            }
        }
    }

    fn end_array(&mut self) {
        let Some(frame) = self.top() else { return };
        let schema = frame.schema;
        let count = match frame.at {
            Segment::Item(last) => last.wrapping_add(1),
            Segment::Member(_) => 0,
        };
        self.used = self.used.saturating_sub(1);
        if let Some(least) = schema.min_items
            && count < least
        {
            self.tell(&Reason::FewItems(least));
        }
        if let Some(greatest) = schema.max_items
            && count > greatest
        {
            self.tell(&Reason::ManyItems(greatest));
        }
    }

    fn end_object(&mut self) {
        let Some(frame) = self.top() else { return };
        let (schema, seen) = (frame.schema, frame.seen);
        self.used = self.used.saturating_sub(1);
        if schema.tagged {
            if seen.count_ones() != 1 {
                self.tell(&Reason::Tag(schema));
            }
            return;
        }
        // Nothing is missing where all came.
        if seen == bit(schema.properties.len()).wrapping_sub(1) {
            return;
        }
        for (position, property) in schema.properties.iter().enumerate() {
            if property.required && seen & bit(position) == 0 {
                self.tell(&Reason::Missing(property.name));
            }
        }
    }

    /// Checks what can be told from the value's first event; tells whether what is within is worth a look.
    #[cfg_attr(not(callgate_small), inline(always))]
    fn fits(&mut self, schema: &Schema<'w>, event: &Event<'w>) -> bool {
        fits_plainly(schema, event) || self.fits_closely(schema, event)
    }

    fn fits_closely(&mut self, schema: &Schema<'w>, event: &Event<'w>) -> bool {
        let (kind, got) = kind(event);
        if !schema.types.contains(kind) {
            self.tell(&Reason::Type { expected: schema.types, got });
            return false;
        }
        if !is_chosen(schema, event) {
            self.tell(&Reason::Choice { types: schema.types, choices: schema.choices });
            return false;
        }
        match event {
            Event::Number(value) => self.number(schema, *value),
            Event::String(text) => self.text(schema, *text),
            _ => {}
        }
        true
    }

    fn number(&mut self, schema: &Schema<'w>, value: Number) {
        if !schema.types.contains(Types::NUMBER) {
            let (least, greatest) = schema.width.bounds();
            let beneath = least.is_some_and(|least| number::compare(value, least) == Ordering::Less);
            let beyond = greatest.is_some_and(|greatest| number::compare(value, greatest) == Ordering::Greater);
            if beneath || beyond {
                self.tell(&Reason::Width { least, greatest });
                return;
            }
            // A typed handler takes no integer from a decimal where neighbouring integers share one.
            if schema.width == Width::Full && matches!(value, Number::F64(_)) && number::is_beyond_53_bits(value) {
                self.tell(&Reason::Notation);
                return;
            }
        }
        if let Some(limit) = schema.minimum
            && !limit.admits(value, Ordering::Greater)
        {
            self.tell(&Reason::Below(limit));
        }
        if let Some(limit) = schema.maximum
            && !limit.admits(value, Ordering::Less)
        {
            self.tell(&Reason::Beyond(limit));
        }
    }

    fn text(&mut self, schema: &Schema<'w>, text: Text<'_>) {
        if let Some(least) = schema.min_length
            && !has_chars(text, least)
        {
            self.tell(&Reason::ShortText(least));
        }
        if let Some(greatest) = schema.max_length
            && greatest.checked_add(1).is_some_and(|more| has_chars(text, more))
        {
            self.tell(&Reason::LongText(greatest));
        }
    }

    /// Tells what is wrong with the value that is being looked at.
    fn tell(&mut self, reason: &Reason<'_>) {
        let path = Path(self.stack.get(..self.used).unwrap_or_default());
        (self.report)(Violation { field: &path, reason });
    }

    /// Tells what is wrong with the innermost open container.
    fn tell_container(&mut self, reason: &Reason<'_>) {
        let path = Path(self.stack.get(..self.used.saturating_sub(1)).unwrap_or_default());
        (self.report)(Violation { field: &path, reason });
    }
}

/// The way to a value, `filter.limit` or `rows[3].price`; nothing for the root.
struct Path<'p, 'w>(&'p [Frame<'w>]);

impl fmt::Display for Path<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, frame) in self.0.iter().enumerate() {
            frame.at.write(f, nth == 0)?;
        }
        Ok(())
    }
}

/// The declared property of this name, and its position. The search starts at `from` and goes round.
#[cfg_attr(not(callgate_small), inline)]
fn find<'w>(properties: &'w [Property<'w>], from: usize, name: Text<'_>) -> Option<(usize, &'w Property<'w>)> {
    match (properties.get(from), name.as_plain()) {
        (Some(next), Some(plain)) if next.name == plain => Some((from, next)),
        _ => search(properties, from, name),
    }
}

fn search<'w>(properties: &'w [Property<'w>], from: usize, name: Text<'_>) -> Option<(usize, &'w Property<'w>)> {
    let (before, after) = properties.split_at_checked(from).unwrap_or((properties, &[]));
    let late = after.iter().zip(from..).map(|(property, position)| (position, property));
    let early = before.iter().enumerate();
    let mut all = late.chain(early);
    match name.as_plain() {
        Some(plain) => all.find(|(_, property)| property.name == plain),
        None => all.find(|(_, property)| name.eq_str(property.name)),
    }
}

/// The bit of a property. None beyond what [`Schema::check`] admits; such an object is not entered.
fn bit(position: usize) -> u128 {
    u32::try_from(position).ok().and_then(|position| 1u128.checked_shl(position)).unwrap_or(0)
}

/// Whether a value fits for sure, told at the first look: it is of one of the types, and whatever else is asked of it is as simple as
/// it usually is. The answer no says nothing.
#[cfg_attr(not(callgate_small), inline(always))]
fn fits_plainly(schema: &Schema<'_>, event: &Event<'_>) -> bool {
    let lower = |value: u64| match schema.minimum {
        None | Some(Limit { at: Number::I64(_), .. }) => true,
        Some(Limit { at: Number::U64(least), exclusive: false }) => least <= value,
        Some(_) => false,
    };
    let upper = |value: u64| match schema.maximum {
        None => true,
        Some(Limit { at: Number::U64(greatest), exclusive: false }) => value <= greatest,
        Some(_) => false,
    };
    matches!(schema.choices, Choices::Free)
        && match event {
            // Within 53 bits, so that no width leaves it out.
            Event::Number(Number::U64(value)) => {
                schema.types.contains(Types::INTEGER)
                    && *value <= SAFE_INTEGER.unsigned_abs()
                    && lower(*value)
                    && upper(*value)
            }
            Event::String(_) => {
                schema.types.contains(Types::STRING) && schema.min_length.is_none() && schema.max_length.is_none()
            }
            Event::StartObject => schema.types.contains(Types::OBJECT),
            Event::StartArray => schema.types.contains(Types::ARRAY),
            Event::Bool(_) => schema.types.contains(Types::BOOLEAN),
            Event::Null => schema.types.contains(Types::NULL),
            _ => false,
        }
}

/// The type of the value that starts with `event`, as a set and as a message names it.
fn kind(event: &Event<'_>) -> (Types, &'static str) {
    match event {
        Event::Null => (Types::NULL, "null"),
        Event::Bool(_) => (Types::BOOLEAN, "boolean"),
        Event::Number(value) if number::is_integral(*value) => (Types::INTEGER, "integer"),
        Event::Number(_) => (Types::NUMBER, "number"),
        Event::String(_) => (Types::STRING, "string"),
        Event::StartArray | Event::EndArray => (Types::ARRAY, "array"),
        Event::Key(_) | Event::StartObject | Event::EndObject => (Types::OBJECT, "object"),
    }
}

/// Whether the value is one of those to choose from.
fn is_chosen(schema: &Schema<'_>, event: &Event<'_>) -> bool {
    match (schema.choices, event) {
        (Choices::Free, _) => true,
        (Choices::Texts(texts), Event::String(text)) => texts.iter().any(|choice| text.eq_str(choice)),
        // Null is there when it is one of the types, and so it is here. The variants of a tagged one are looked at later.
        (Choices::Texts(_), event) => schema.tagged || matches!(event, Event::Null),
        (Choices::Values(values), event) => values.iter().any(|value| value.matches(event)),
        (Choices::Only(value), event) => value.matches(event),
    }
}

/// Whether the text has at least so many code points. Counts no further than it must.
pub(crate) fn has_chars(text: Text<'_>, least: u32) -> bool {
    let (Some(last), Ok(least)) = (least.checked_sub(1), usize::try_from(least)) else { return least == 0 };
    match text.as_plain() {
        // A code point has one to four bytes.
        Some(plain) if plain.len() < least => false,
        Some(plain) if plain.len() / 4 >= least => true,
        _ => usize::try_from(last).is_ok_and(|last| text.chars().nth(last).is_some()),
    }
}

impl Limit {
    /// Whether `value` is on the side `side` of the bound, or on an inclusive bound.
    fn admits(self, value: Number, side: Ordering) -> bool {
        match number::compare(value, self.at) {
            Ordering::Equal => !self.exclusive && number::is_finite(self.at),
            order => order == side,
        }
    }

    /// Whether the bound leaves out this very number.
    pub(super) const fn excludes(self, value: Number) -> bool {
        self.exclusive && matches!(number::compare(value, self.at), Ordering::Equal)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Literal;
    use super::*;

    /// What is taken at the first look is taken at the closer one, too.
    #[test]
    fn s4_nothing_fits_at_first_sight_alone() {
        const NUMBERS: [Number; 9] = [
            Number::U64(0),
            Number::U64(4),
            Number::U64(5),
            Number::U64((1 << 53) - 1),
            Number::U64(1 << 53),
            Number::U64(u64::MAX),
            Number::I64(-5),
            Number::F64(4.5),
            Number::F64(5.0),
        ];
        const FIVE: &[Literal<'_>] = &[Literal::integer(5)];
        let events = NUMBERS.map(Event::Number).into_iter().chain([
            Event::Null,
            Event::Bool(true),
            Event::String(Text::from("abc")),
            Event::StartArray,
            Event::StartObject,
        ]);
        let types =
            [Types::INTEGER, Types::NUMBER, Types::STRING, Types::ARRAY.or(Types::NULL), Types::OBJECT, Types::ANY];
        let narrowed = |schema: Schema<'static>| {
            [
                schema,
                schema.with_64_bits(),
                schema.with_any_size(),
                schema.minimum(5),
                schema.minimum(-5),
                schema.above(4),
                schema.minimum_f64(4.25),
                schema.maximum(4),
                schema.maximum(-1),
                schema.below(5),
                schema.maximum_f64(4.75),
                schema.min_length(4),
                schema.max_length(2),
                schema.one_of(FIVE),
                schema.texts(&["ab"]),
                schema.constant(Literal::Null),
            ]
        };
        let mut plain = 0;
        for event in events {
            for schema in types.map(Schema::of).into_iter().flat_map(narrowed) {
                if !fits_plainly(&schema, &event) {
                    continue;
                }
                plain += 1;
                let mut fits = true;
                let mut report = |_: Violation<'_>| fits = false;
                let mut stack = [Frame::new(&schema)];
                let worth_a_look = Walk::new(&schema, &mut stack, &mut report).fits_closely(&schema, &event);
                assert!(worth_a_look && fits, "{schema:?} {event:?}");
            }
        }
        assert!(plain > 100, "{plain} were looked at");
    }
}
