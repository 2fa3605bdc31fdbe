//! Schemas of a world as schemas of core: objects of scalars, and of arrays of scalars.

use callgate_core::json::{Kind, Value};
use callgate_core::schema::{Literal, Property, Schema, Types};

use crate::Trouble::{self, Unsupported};
use crate::plain;
use crate::words::Words;

/// Properties of one object, schemas of items, and values to choose from, in one schema.
const PROPERTIES: usize = 8;
const ITEMS: usize = 4;
const LITERALS: usize = 16;

const TOO_DEEP: Trouble = Unsupported("a schema nests deeper than this subject takes");
const TOO_LARGE: Trouble = Unsupported("a schema is larger than this subject takes");

/// Shows the schema that `value` describes to `act`; none where there is none.
pub(crate) fn with<R>(value: Option<Value<'_>>, act: impl FnOnce(Option<&Schema<'_>>) -> R) -> Result<R, Trouble> {
    let Some(value) = value else { return Ok(act(None)) };
    let root = words(value)?;
    // From the inside out, so that each part can refer to what was laid out before it.
    let mut literals = heapless::Vec::<Literal<'_>, LITERALS>::new();
    for part in parts(root) {
        for choice in words(part)?.list("enum") {
            literals.push(literal(choice)?).map_err(|_| TOO_LARGE)?;
        }
    }
    let mut rest = literals.as_slice();
    let mut items = heapless::Vec::<Schema<'_>, ITEMS>::new();
    for owner in owners(root) {
        let owner = words(owner)?;
        if let Some(inner) = owner.get("items") {
            let inner = words(inner)?;
            if inner.get("items").is_some() || inner.get("properties").is_some() {
                return Err(TOO_DEEP);
            }
            items.push(leaf(inner, &mut rest)?).map_err(|_| TOO_LARGE)?;
        }
    }
    let mut inner = items.iter();
    let mut complete = |words: Words<'_>, schema| match words.get("items").and_then(|_| inner.next()) {
        Some(items) => Schema::items(schema, items),
        None => schema,
    };
    let whole = complete(root, leaf(root, &mut rest)?);
    let mut properties = heapless::Vec::<Property<'_>, PROPERTIES>::new();
    for (name, value) in members(root) {
        let name = name.as_plain().ok_or(Unsupported("the name of a property has escapes"))?;
        let property = words(value)?;
        if property.get("properties").is_some() || property.get("additionalProperties").is_some() {
            return Err(TOO_DEEP);
        }
        let required = root.list("required").any(|required| crate::words::text(required) == Some(name));
        let schema = complete(property, leaf(property, &mut rest)?);
        properties.push(Property::new(name, schema, required)).map_err(|_| TOO_LARGE)?;
    }
    for required in root.list("required") {
        let name = plain(required)?;
        if !properties.iter().any(|property| property.name() == name) {
            properties.push(Property::required(name, Schema::any())).map_err(|_| TOO_LARGE)?;
        }
    }
    let declared = members(root).count();
    let schema = whole.properties(&properties);
    let schema = match root.get("additionalProperties").map(Value::as_bool) {
        Some(Some(false)) if properties.len() > declared => return Err(TOO_DEEP),
        Some(Some(false)) => schema.closed(),
        Some(None) => return Err(TOO_DEEP),
        _ => schema.open(),
    };
    schema.check().map_err(|_| Unsupported("a schema can't be used"))?;
    Ok(act(Some(&schema)))
}

fn words(value: Value<'_>) -> Result<Words<'_>, Trouble> {
    if value.kind() != Kind::Object {
        return Err(TOO_DEEP);
    }
    let known = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
    ];
    Words::of(value, &known)
}

fn members<'w>(root: Words<'w>) -> impl Iterator<Item = (callgate_core::json::Text<'w>, Value<'w>)> {
    root.get("properties").into_iter().flat_map(Value::members)
}

/// What may have items: the root and its properties.
fn owners<'w>(root: Words<'w>) -> impl Iterator<Item = Value<'w>> {
    core::iter::once(root.value()).chain(members(root).map(|(_, value)| value))
}

/// Every schema within, in the order in which they are laid out.
fn parts<'w>(root: Words<'w>) -> impl Iterator<Item = Value<'w>> {
    owners(root).filter_map(|owner| owner.get("items")).chain(owners(root))
}

fn literal(value: Value<'_>) -> Result<Literal<'_>, Trouble> {
    Ok(match (value.as_number(), value.as_bool()) {
        (Some(number), _) => Literal::Number(number),
        (None, Some(truth)) => Literal::Bool(truth),
        (None, None) if value.is_null() => Literal::Null,
        (None, None) => Literal::Text(plain(value)?),
    })
}

/// What a schema says of a value itself, and not of what it holds. Takes its values to choose from off the front of `literals`.
fn leaf<'s>(words: Words<'_>, literals: &mut &'s [Literal<'s>]) -> Result<Schema<'s>, Trouble> {
    let mut schema = Schema::of(types(words)?).with_any_size();
    if let Some(choices) = words.get("enum") {
        let (these, rest) = literals.split_at_checked(choices.items().count()).ok_or(TOO_LARGE)?;
        *literals = rest;
        schema = schema.one_of(these);
    }
    if let Some(least) = words.number("minimum")? {
        schema = schema.lower(least, false);
    }
    if let Some(greatest) = words.number("maximum")? {
        schema = schema.upper(greatest, false);
    }
    let length = |name| words.count(name).map(|count| count.map(|count| u32::try_from(count).unwrap_or(u32::MAX)));
    if let Some(chars) = length("minLength")? {
        schema = schema.min_length(chars);
    }
    if let Some(chars) = length("maxLength")? {
        schema = schema.max_length(chars);
    }
    Ok(schema)
}

fn types(words: Words<'_>) -> Result<Types, Trouble> {
    let Some(wanted) = words.get("type") else { return Ok(Types::ANY) };
    if wanted.kind() == Kind::String {
        return type_of(wanted);
    }
    wanted.items().try_fold(Types::NONE, |types, wanted| Ok(types.or(type_of(wanted)?)))
}

fn type_of(name: Value<'_>) -> Result<Types, Trouble> {
    Ok(match plain(name)? {
        "null" => Types::NULL,
        "boolean" => Types::BOOLEAN,
        "integer" => Types::INTEGER,
        "number" => Types::NUMBER,
        "string" => Types::STRING,
        "array" => Types::ARRAY,
        "object" => Types::OBJECT,
        _ => return Err(Unsupported("a type is not known")),
    })
}
