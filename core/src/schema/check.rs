//! Whether a schema can be used, told when it is declared and not when it is called (invariant S6).

use core::cmp::Ordering;
use core::fmt;

use super::{Additional, Choices, Literal, MAX_CHOICES, MAX_DEPTH, MAX_NODES, MAX_PROPERTIES, SAFE_INTEGER};
use super::{Property, Schema, Types, Width, number};
use crate::clamp::ClampFault;
use crate::fields;
use crate::json::Number;

/// Where a schema can't be used, and why. `Display` names the field and says how to mend it.
#[derive(Clone, Copy)]
pub struct SchemaError<'s> {
    root: &'s Schema<'s>,
    /// The faulty schema, counted from 0 in the order in which they are written down.
    node: u32,
    fault: SchemaFault<'s>,
}

/// Why a schema can't be used.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum SchemaFault<'s> {
    /// It nests deeper than [`MAX_DEPTH`].
    TooDeep,
    /// It holds more than [`MAX_NODES`] schemas.
    TooLarge,
    /// An object declares more than [`MAX_PROPERTIES`] properties.
    TooManyProperties,
    /// An enumeration lists more than [`MAX_CHOICES`] values.
    TooManyChoices,
    /// No type fits, so no value does.
    NoType,
    /// A property is declared twice.
    Duplicate(&'s str),
    /// A property's name is longer than any that the reader admits.
    LongName(&'s str),
    /// An enumeration lists no value.
    NoChoice,
    /// A value that is named (in an enumeration, as a constant or a default) is of none of the types.
    NamedValue(Literal<'s>),
    /// `null` is one of the types and not one of the values.
    NullNotListed,
    /// A keyword for values of a type that is not admitted.
    Idle {
        /// The keyword.
        keyword: &'static str,
        /// The type.
        kind: &'static str,
    },
    /// A bound is no finite number.
    NotFinite,
    /// No number lies within the bounds.
    EmptyRange,
    /// A bound lies beyond the integers that are admitted.
    BeyondWidth,
    /// The least length is greater than the greatest one.
    EmptyLength {
        /// `Length` or `Items`.
        of: &'static str,
    },
    /// The default is of a fitting type, and yet a value that the schema refuses or its clamp would change.
    Default(Literal<'s>),
    /// The clamp can't be used.
    Clamp(ClampFault),
}

impl<'a> Schema<'a> {
    /// Whether arguments can be checked against the schema. Hosts ask when a tool is registered; a constant can be asked when
    /// it is compiled: `const _: () = assert!(SCHEMA.check().is_ok());`.
    ///
    /// # Errors
    /// The first fault, in the order in which the parts are declared.
    pub const fn check<'s>(&'s self) -> Result<(), SchemaError<'s>>
    where
        'a: 's,
    {
        let mut node = 0;
        // Depth and size first: they bound the walk through the rest.
        let fault = if self.depth > MAX_DEPTH {
            Some(SchemaFault::TooDeep)
        } else if self.nodes > MAX_NODES {
            Some(SchemaFault::TooLarge)
        } else {
            first_fault(self, &mut node)
        };
        match fault {
            Some(fault) => Err(SchemaError { root: self, node, fault }),
            None => Ok(()),
        }
    }
}

impl<'s> SchemaError<'s> {
    /// What is wrong.
    #[must_use]
    pub const fn fault(&self) -> SchemaFault<'s> {
        self.fault
    }
}

/// The first fault in `schema` or its parts. `node` is the number of the schema looked at, and stays at the faulty one.
const fn first_fault<'s>(schema: &'s Schema<'s>, node: &mut u32) -> Option<SchemaFault<'s>> {
    let own = own_fault(schema);
    if own.is_some() {
        return own;
    }
    let mut rest = schema.properties;
    while let Some((property, others)) = rest.split_first() {
        *node = node.saturating_add(1);
        let fault = first_fault(&property.schema, node);
        if fault.is_some() {
            return fault;
        }
        rest = others;
    }
    if let Additional::Each(values) = schema.additional {
        *node = node.saturating_add(1);
        let fault = first_fault(values, node);
        if fault.is_some() {
            return fault;
        }
    }
    match schema.items {
        Some(items) => {
            *node = node.saturating_add(1);
            first_fault(items, node)
        }
        None => None,
    }
}

/// The first fault of a schema, its parts aside.
const fn own_fault<'s>(schema: &'s Schema<'s>) -> Option<SchemaFault<'s>> {
    if schema.types.is_empty() {
        return Some(SchemaFault::NoType);
    }
    if let Some(fault) = properties_fault(schema.properties) {
        return Some(fault);
    }
    if let Some(fault) = choices_fault(schema) {
        return Some(fault);
    }
    if let Some(default) = schema.default
        && !schema.types.contains(default.types())
    {
        return Some(SchemaFault::NamedValue(default));
    }
    if let Some(fault) = idle_keyword(schema) {
        return Some(fault);
    }
    if let Some(fault) = range_fault(schema) {
        return Some(fault);
    }
    if exceeds(schema.min_length, schema.max_length) {
        return Some(SchemaFault::EmptyLength { of: "Length" });
    }
    if exceeds(schema.min_items, schema.max_items) {
        return Some(SchemaFault::EmptyLength { of: "Items" });
    }
    if let Some(clamp) = schema.clamp
        && let Err(fault) = clamp.check()
    {
        return Some(SchemaFault::Clamp(fault));
    }
    match schema.default {
        Some(default) if !schema.takes(default) => Some(SchemaFault::Default(default)),
        _ => None,
    }
}

const fn properties_fault<'s>(properties: &'s [Property<'s>]) -> Option<SchemaFault<'s>> {
    if properties.len() > MAX_PROPERTIES {
        return Some(SchemaFault::TooManyProperties);
    }
    let mut rest = properties;
    while let Some((property, others)) = rest.split_first() {
        if property.name.len() > crate::json::Limits::DEFAULT.key_bytes as usize {
            return Some(SchemaFault::LongName(property.name));
        }
        let mut later = others;
        while let Some((other, more)) = later.split_first() {
            if same_text(property.name, other.name) {
                return Some(SchemaFault::Duplicate(property.name));
            }
            later = more;
        }
        rest = others;
    }
    None
}

const fn choices_fault<'s>(schema: &'s Schema<'s>) -> Option<SchemaFault<'s>> {
    match schema.choices {
        Choices::Texts([]) | Choices::Values([]) => Some(SchemaFault::NoChoice),
        Choices::Texts(texts) if texts.len() > MAX_CHOICES => Some(SchemaFault::TooManyChoices),
        Choices::Values(values) if values.len() > MAX_CHOICES => Some(SchemaFault::TooManyChoices),
        Choices::Texts(_) if !schema.tagged && !is_text(schema.types) => {
            Some(SchemaFault::Idle { keyword: "a choice of texts", kind: "string" })
        }
        Choices::Only(value) if unusable(value) => Some(SchemaFault::NotFinite),
        Choices::Only(value) if !schema.types.contains(value.types()) => Some(SchemaFault::NamedValue(value)),
        Choices::Free | Choices::Texts(_) | Choices::Only(_) => None,
        Choices::Values(values) => {
            let mut null = false;
            let mut rest = values;
            while let Some((value, others)) = rest.split_first() {
                if unusable(*value) {
                    return Some(SchemaFault::NotFinite);
                }
                if !schema.types.contains(value.types()) {
                    return Some(SchemaFault::NamedValue(*value));
                }
                null |= matches!(value, Literal::Null);
                rest = others;
            }
            let chosen = !schema.types.contains(Types::ANY) && schema.types.contains(Types::NULL);
            if chosen && !null { Some(SchemaFault::NullNotListed) } else { None }
        }
    }
}

/// Whether only texts fit, and perhaps null.
const fn is_text(types: Types) -> bool {
    types.contains(Types::STRING) && Types::STRING.or(Types::NULL).contains(types)
}

const fn unusable(value: Literal<'_>) -> bool {
    matches!(value, Literal::Number(value) if !number::is_finite(value))
}

/// A keyword which concerns no value that the types admit, and so hides a mistake.
const fn idle_keyword<'s>(schema: &Schema<'s>) -> Option<SchemaFault<'s>> {
    let types = schema.types;
    let (keyword, kind) = if !types.contains(Types::INTEGER) && (schema.minimum.is_some() || schema.maximum.is_some()) {
        ("a bound", "number")
    } else if let Some(clamp) = schema.clamp
        && (clamp.min.is_some() || clamp.max.is_some())
        && !types.contains(Types::INTEGER)
    {
        ("a clamp of numbers", "number")
    } else if let Some(clamp) = schema.clamp
        && clamp.max_length.is_some()
        && !types.contains(Types::STRING)
    {
        ("a clamp of lengths", "string")
    } else if !types.contains(Types::STRING) && (schema.min_length.is_some() || schema.max_length.is_some()) {
        ("a length", "string")
    } else if !types.contains(Types::ARRAY)
        && (schema.items.is_some() || schema.min_items.is_some() || schema.max_items.is_some())
    {
        ("a rule for items", "array")
    } else if !types.contains(Types::OBJECT)
        && (!schema.properties.is_empty() || !matches!(schema.additional, Additional::Allowed))
    {
        ("a rule for properties", "object")
    } else {
        return None;
    };
    Some(SchemaFault::Idle { keyword, kind })
}

const fn range_fault<'s>(schema: &Schema<'s>) -> Option<SchemaFault<'s>> {
    let (least, greatest) = schema.width.bounds();
    let whole = !schema.types.contains(Types::NUMBER);
    if let Some(limit) = schema.minimum {
        if !number::is_finite(limit.at) {
            return Some(SchemaFault::NotFinite);
        }
        if whole && outside(limit.at, least, greatest) {
            return Some(SchemaFault::BeyondWidth);
        }
    }
    if let Some(limit) = schema.maximum {
        if !number::is_finite(limit.at) {
            return Some(SchemaFault::NotFinite);
        }
        if whole && outside(limit.at, least, greatest) {
            return Some(SchemaFault::BeyondWidth);
        }
    }
    let (Some(lower), Some(upper)) = (schema.minimum, schema.maximum) else { return None };
    let (lowest, highest) = if whole {
        // A bound that is excluded leaves the next integer at the least, unless it is no integer itself.
        (number::ceil(lower.at), number::floor(upper.at))
    } else {
        (lower.at, upper.at)
    };
    match number::compare(lowest, highest) {
        Ordering::Less => None,
        Ordering::Equal if !(lower.excludes(lowest) || upper.excludes(highest)) => None,
        Ordering::Equal | Ordering::Greater => Some(SchemaFault::EmptyRange),
    }
}

const fn outside(value: Number, least: Option<Number>, greatest: Option<Number>) -> bool {
    (match least {
        Some(least) => matches!(number::compare(value, least), Ordering::Less),
        None => false,
    }) || (match greatest {
        Some(greatest) => matches!(number::compare(value, greatest), Ordering::Greater),
        None => false,
    })
}

const fn exceeds(least: Option<u32>, greatest: Option<u32>) -> bool {
    matches!((least, greatest), (Some(least), Some(greatest)) if least > greatest)
}

pub(super) const fn same_text(a: &str, b: &str) -> bool {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        match (a.split_first(), b.split_first()) {
            (Some((x, rest_a)), Some((y, rest_b))) if *x == *y => (a, b) = (rest_a, rest_b),
            (None, None) => return true,
            _ => return false,
        }
    }
}

impl Width {
    /// The least and the greatest integer.
    pub(super) const fn bounds(self) -> (Option<Number>, Option<Number>) {
        match self {
            Self::Safe => (Some(number::from_i64(-SAFE_INTEGER)), Some(number::from_i64(SAFE_INTEGER))),
            Self::Full => (Some(Number::I64(i64::MIN)), Some(Number::U64(u64::MAX))),
            Self::Any => (None, None),
        }
    }
}

impl fmt::Debug for SchemaError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SchemaError({self})")
    }
}

impl core::error::Error for SchemaError<'_> {}

/// `filter.limit: no number is within the bounds: ...`, with the way to mend it.
impl fmt::Display for SchemaError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.node > 0 {
            write_path(f, self.root, self.node, true)?;
            f.write_str(": ")?;
        }
        write!(f, "{}", self.fault)
    }
}

/// Writes the path to the `node`th schema within `schema`, which holds it.
fn write_path(f: &mut fmt::Formatter<'_>, schema: &Schema<'_>, node: u32, first: bool) -> fmt::Result {
    let mut before = 1u32;
    for property in schema.properties {
        let within = node.checked_sub(before).filter(|within| *within < property.schema.nodes);
        if let Some(within) = within {
            fields::write_key(f, property.name.chars(), first)?;
            return if within > 0 { write_path(f, &property.schema, within, false) } else { Ok(()) };
        }
        before = before.saturating_add(property.schema.nodes);
    }
    if let Additional::Each(values) = schema.additional {
        if let Some(within) = node.checked_sub(before).filter(|within| *within < values.nodes) {
            f.write_str("[*]")?;
            return if within > 0 { write_path(f, values, within, false) } else { Ok(()) };
        }
        before = before.saturating_add(values.nodes);
    }
    if let (Some(items), Some(within)) = (schema.items, node.checked_sub(before)) {
        f.write_str("[]")?;
        return if within > 0 { write_path(f, items, within, false) } else { Ok(()) };
    }
    Ok(())
}

impl fmt::Display for SchemaFault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooDeep => {
                write!(f, "nests deeper than {MAX_DEPTH} levels; make it flatter, or leave the inner part open")
            }
            Self::TooLarge => write!(f, "holds more than {MAX_NODES} schemas; make it smaller, or leave a part open"),
            Self::TooManyProperties => {
                write!(f, "declares more than {MAX_PROPERTIES} properties; group them into nested objects")
            }
            Self::TooManyChoices => write!(f, "lists more than {MAX_CHOICES} values; check longer lists in the tool"),
            Self::NoType => f.write_str("admits no type, so no value fits; name a type"),
            Self::Duplicate(name) => {
                f.write_str("declares property ")?;
                fields::write_name(f, name.chars())?;
                f.write_str(" twice; remove one")
            }
            Self::LongName(name) => {
                f.write_str("declares property ")?;
                fields::write_name(f, name.chars())?;
                write!(
                    f,
                    ", whose name of {} bytes the reader would refuse; use at most {}",
                    name.len(),
                    crate::json::Limits::DEFAULT.key_bytes
                )
            }
            Self::NoChoice => f.write_str("lists no value to choose from; list one, or drop the enumeration"),
            Self::NamedValue(value) => {
                write!(f, "names {value}, which is of none of its types; name another value, or admit its type")
            }
            Self::NullNotListed => f.write_str("is nullable but does not list null; list it, or drop `nullable`"),
            Self::Idle { keyword, kind } => {
                write!(f, "has {keyword}, but admits no {kind}; drop the one or admit the other")
            }
            Self::NotFinite => f.write_str("names a number that is not finite; JSON has no such number"),
            Self::EmptyRange => f.write_str("has bounds that no number lies within; check whether they are swapped"),
            Self::BeyondWidth => f.write_str(
                "has a bound beyond the integers that it admits; bring it within 2^53 - 1, or declare `integer64`",
            ),
            Self::EmptyLength { of } => write!(f, "has a min{of} above its max{of}; check whether they are swapped"),
            Self::Default(value) => {
                write!(f, "has the default {value}, which it refuses or clamps; name a default within the bounds")
            }
            Self::Clamp(fault) => write!(f, "can't be clamped: {fault}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clamp::Clamp;
    use std::format;
    use std::string::ToString;
    use std::vec::Vec;

    /// The message of a schema's first fault.
    #[track_caller]
    fn refused(schema: &Schema<'_>) -> std::string::String {
        schema.check().unwrap_err().to_string()
    }

    const NODE: Schema<'static> = Schema::object(&[
        Property::required("id", Schema::integer().minimum(1)),
        Property::optional("tags", Schema::array(&Schema::string().max_length(20)).max_items(8)),
        Property::optional("unit", Schema::choice(&["C", "F"]).nullable().default_value(Literal::Text("C"))),
        Property::optional("meta", Schema::map(&Schema::boolean())),
        Property::optional("big", Schema::integer64().minimum(i64::MIN)),
        Property::optional("any", Schema::any().above_f64(0.5)),
    ]);
    const _: () = assert!(NODE.check().is_ok(), "a schema can be checked when it is compiled");

    #[test]
    fn s6_the_message_names_the_field_and_the_way_to_mend() {
        let price = [Property::optional("price", Schema::number().minimum(5).maximum(3))];
        let row = Schema::object(&price);
        let top = [Property::optional("id", Schema::integer()), Property::optional("rows", Schema::array(&row))];
        assert_eq!(
            refused(&Schema::object(&top)),
            "rows[].price: has bounds that no number lies within; check whether they are swapped"
        );
        let twice = [Property::optional("a b", Schema::any()), Property::required("a b", Schema::any())];
        assert_eq!(refused(&Schema::object(&twice)), "declares property \"a b\" twice; remove one");
        let inner = Schema::object(&twice);
        assert!(refused(&Schema::map(&inner)).starts_with("[*]: declares"));
        let outer = [Property::optional("x y", Schema::array(&inner))];
        assert!(refused(&Schema::object(&outer)).starts_with("[\"x y\"][]: declares"));
    }

    #[test]
    fn s6_what_can_not_be_checked_is_refused() {
        const ANY: Schema<'static> = Schema::any();
        const INFINITE: Literal<'static> = Literal::Number(Number::F64(f64::INFINITY));
        const PART: [Property<'static>; 1] = [Property::optional("a", ANY)];
        const LOW: Clamp = Clamp::min(1);
        const HIGH: Clamp = Clamp::max(1);
        const SHORT: Clamp = Clamp::max_length(1);
        let faults = [
            (Schema::of(Types::NONE), SchemaFault::NoType),
            (Schema::choice(&[]), SchemaFault::NoChoice),
            (Schema::any().one_of(&[]), SchemaFault::NoChoice),
            (Schema::string().one_of(&[Literal::Null]), SchemaFault::NamedValue(Literal::Null)),
            (Schema::integer().constant(Literal::float(1.5)), SchemaFault::NamedValue(Literal::float(1.5))),
            (Schema::boolean().default_value(Literal::Text("x")), SchemaFault::NamedValue(Literal::Text("x"))),
            (Schema::string().one_of(&[Literal::Text("x")]).nullable(), SchemaFault::NullNotListed),
            (Schema::string().minimum(1), SchemaFault::Idle { keyword: "a bound", kind: "number" }),
            (Schema::integer().max_length(1), SchemaFault::Idle { keyword: "a length", kind: "string" }),
            (Schema::object(&[]).max_items(1), SchemaFault::Idle { keyword: "a rule for items", kind: "array" }),
            (Schema::integer().texts(&["a"]), SchemaFault::Idle { keyword: "a choice of texts", kind: "string" }),
            (Schema::string().closed(), SchemaFault::Idle { keyword: "a rule for properties", kind: "object" }),
            (Schema::number().minimum_f64(f64::NEG_INFINITY), SchemaFault::NotFinite),
            (Schema::integer().below_f64(f64::INFINITY), SchemaFault::NotFinite),
            (Schema::number().above(1).maximum(1), SchemaFault::EmptyRange),
            (Schema::integer().minimum_f64(0.2).maximum_f64(0.8), SchemaFault::EmptyRange),
            (Schema::integer().maximum(1 << 53), SchemaFault::BeyondWidth),
            (Schema::string().min_length(2).max_length(1), SchemaFault::EmptyLength { of: "Length" }),
            (Schema::array(&ANY).min_items(2).max_items(1), SchemaFault::EmptyLength { of: "Items" }),
            (Schema::any().constant(INFINITE), SchemaFault::NotFinite),
            (Schema::any().one_of(&[Literal::Null, INFINITE]), SchemaFault::NotFinite),
            (Schema::any().texts(&["a"]), SchemaFault::Idle { keyword: "a choice of texts", kind: "string" }),
            (Schema::null().texts(&["a"]), SchemaFault::Idle { keyword: "a choice of texts", kind: "string" }),
            (Schema::string().maximum(1), SchemaFault::Idle { keyword: "a bound", kind: "number" }),
            (Schema::integer().min_length(1), SchemaFault::Idle { keyword: "a length", kind: "string" }),
            (Schema::object(&[]).min_items(1), SchemaFault::Idle { keyword: "a rule for items", kind: "array" }),
            (Schema::object(&[]).items(&ANY), SchemaFault::Idle { keyword: "a rule for items", kind: "array" }),
            (Schema::string().open_to(&ANY), SchemaFault::Idle { keyword: "a rule for properties", kind: "object" }),
            (
                Schema::string().properties(&PART),
                SchemaFault::Idle { keyword: "a rule for properties", kind: "object" },
            ),
            (Schema::string().clamped(&LOW), SchemaFault::Idle { keyword: "a clamp of numbers", kind: "number" }),
            (Schema::string().clamped(&HIGH), SchemaFault::Idle { keyword: "a clamp of numbers", kind: "number" }),
            (Schema::integer().clamped(&SHORT), SchemaFault::Idle { keyword: "a clamp of lengths", kind: "string" }),
            (Schema::integer().minimum(-(1 << 53)), SchemaFault::BeyondWidth),
            (
                Schema::integer().default_value(Literal::integer(1)).minimum(2),
                SchemaFault::Default(Literal::integer(1)),
            ),
        ];
        for (schema, fault) in faults {
            assert_eq!(schema.check().unwrap_err().fault(), fault);
        }
        let nan = Schema::number().minimum_f64(f64::NAN);
        assert_eq!(nan.check().unwrap_err().fault(), SchemaFault::NotFinite);
        for good in [
            Schema::integer().above_f64(0.2).below_f64(1.8),
            Schema::number().minimum(1).maximum_f64(1.0),
            Schema::integer64().maximum(1 << 53),
            Schema::any().one_of(&[Literal::Text("x")]),
            Schema::choice(&["a"]).nullable(),
            Schema::integer().minimum(1 - (1 << 53)).maximum((1 << 53) - 1),
            Schema::string().min_length(1).max_length(1),
            Schema::array(&ANY).min_items(1).max_items(1),
            Schema::any().clamped(&LOW).minimum(1).max_length(1).items(&ANY).properties(&PART).closed(),
        ] {
            assert!(good.check().is_ok());
        }
    }

    /// S5: the bounds themselves are admitted, one more is not.
    #[test]
    fn s5_size_and_depth_are_bounded() {
        let names: Vec<_> = (0..=MAX_PROPERTIES).map(|n| format!("p{n}")).collect();
        let properties: Vec<_> = names.iter().map(|name| Property::optional(name, Schema::any())).collect();
        assert!(Schema::object(&properties[1..]).check().is_ok());
        assert_eq!(Schema::object(&properties).check().unwrap_err().fault(), SchemaFault::TooManyProperties);

        let texts: Vec<_> = names.iter().chain(&names).map(std::string::String::as_str).collect();
        assert!(Schema::choice(&texts[2..]).check().is_ok());
        assert_eq!(Schema::choice(&texts).check().unwrap_err().fault(), SchemaFault::TooManyChoices);
        let values: Vec<_> = (0..=MAX_CHOICES as i64).map(Literal::integer).collect();
        assert!(Schema::integer().one_of(&values[1..]).check().is_ok());
        assert_eq!(Schema::integer().one_of(&values).check().unwrap_err().fault(), SchemaFault::TooManyChoices);

        let mut schema: &Schema<'_> = &Schema::any();
        for _ in 1..MAX_DEPTH {
            schema = std::boxed::Box::leak(std::boxed::Box::new(Schema::array(schema)));
        }
        assert!(schema.check().is_ok());
        assert_eq!(Schema::array(schema).check().unwrap_err().fault(), SchemaFault::TooDeep);

        // Eight times as many nodes at each level: counted, not walked.
        let mut node = Schema::any();
        for level in 0..12 {
            let parts: Vec<_> = names[..8].iter().map(|name| Property::optional(name, node)).collect();
            node = Schema::object(Vec::leak(parts));
            assert_eq!(node.check().is_ok(), level < 3);
        }
        // As many schemas as there may be, and one more.
        let leaves: Vec<_> = names[1..].iter().map(|name| Property::optional(name, Schema::any())).collect();
        let branches: Vec<_> =
            names[..7].iter().map(|name| Property::optional(name, Schema::object(&leaves))).collect();
        let rest = MAX_NODES as usize - 1 - 7 * 129 - 1;
        for (more, fits) in [(0, true), (1, false)] {
            let last = Schema::object(&leaves[..rest + more]);
            let parts: Vec<_> = branches.iter().copied().chain([Property::optional("last", last)]).collect();
            let whole = Schema::object(&parts);
            assert_eq!((whole.nodes(), whole.check().is_ok()), (MAX_NODES + more as u32, fits));
        }
        let fits = "x".repeat(256);
        assert!(Schema::object(&[Property::optional(&fits, Schema::any())]).check().is_ok());
        let long = "x".repeat(257);
        let property = [Property::optional(&long, Schema::any())];
        assert_eq!(Schema::object(&property).check().unwrap_err().fault(), SchemaFault::LongName(&long));
    }
}
