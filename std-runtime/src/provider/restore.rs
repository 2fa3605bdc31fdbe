//! Taking back what only a provider's rules put into the arguments.

use std::borrow::Cow;
use std::fmt;

use callgate_core::args::Args;
use callgate_core::json::write::Writer;
use callgate_core::json::{KeySlot, Kind, Limits, Value, key_capacity};

use super::tree::Tree;
use super::{MAX_DEPTH, referred, types};
use crate::tool::Tool;

/// The arguments that a model meant, of those that it sent under [`Provider::OpenAiStrict`](super::Provider::OpenAiStrict).
///
/// There every property is required, so that a model sends `null` for what it would leave out. Such a null is left out again
/// where the tool's own schema says that the property may be left out and is not null. Nothing else is changed, and arguments
/// that can't be read are given back as they are, for the gate to refuse.
///
/// ```
/// # use callgate_macros::tool;
/// # use callgate_std::provider::restore;
/// /// Lists
/// #[tool]
/// fn list(#[param(default = 10)] max: u32, after: Option<u32>) {}
///
/// let list = list::tool().build()?;
/// assert_eq!(&*restore(&list, br#"{"max":null,"after":null}"#), br#"{"after":null}"#);
/// # Ok::<(), callgate_std::tool::ToolError>(())
/// ```
#[must_use]
pub fn restore<'a>(tool: &Tool, arguments: &'a [u8]) -> Cow<'a, [u8]> {
    if !arguments.windows(4).any(|part| part == b"null") {
        return Cow::Borrowed(arguments);
    }
    let mut keys = vec![KeySlot::default(); key_capacity(arguments)];
    let (Ok(args), Some(schema)) =
        (Args::read(arguments, &mut keys, &Limits::DEFAULT), tool.spec().input_schema.and_then(Tree::parse))
    else {
        return Cow::Borrowed(arguments);
    };
    let mut text = String::new();
    match (Restoring { root: &schema }).write(args.value(), &[&schema], &mut Writer::new(&mut text)) {
        Ok(()) => Cow::Owned(text.into_bytes()),
        Err(fmt::Error) => Cow::Borrowed(arguments),
    }
}

struct Restoring<'s> {
    root: &'s Tree,
}

impl<'s> Restoring<'s> {
    /// Writes a value of which `schemas` say something: one, or the alternatives.
    fn write(&self, value: Value<'_>, schemas: &[&'s Tree], json: &mut Writer<'_>) -> fmt::Result {
        let schemas = self.spread(schemas);
        match value.kind() {
            Kind::Object => {
                json.start_object()?;
                for (name, member) in value.members() {
                    let name = name.to_string();
                    let of_member: Vec<_> = schemas.iter().filter_map(|it| it.get("properties")?.get(&name)).collect();
                    if member.is_null() && !of_member.is_empty() && self.may_be_left_out(&schemas, &name) {
                        continue;
                    }
                    json.key(&name)?;
                    self.write(member, &of_member, json)?;
                }
                json.end_object()
            }
            Kind::Array => {
                let of_items: Vec<_> = schemas.iter().filter_map(|it| it.get("items")).collect();
                json.start_array()?;
                value.items().try_for_each(|item| self.write(item, &of_items, json))?;
                json.end_array()
            }
            _ => json.events(value.events()),
        }
    }

    /// Whether every alternative with this property lets it be left out and none lets it be null.
    fn may_be_left_out(&self, schemas: &[&'s Tree], name: &str) -> bool {
        schemas.iter().filter_map(|it| Some((*it, it.get("properties")?.get(name)?))).all(|(object, property)| {
            let required =
                object.get("required").is_some_and(|list| list.items().iter().any(|item| item.as_text() == Some(name)));
            !required && !self.spread(&[property]).iter().any(|part| may_be_null(part))
        })
    }

    /// The schemas with references followed, and with the alternatives of those that have some.
    fn spread(&self, schemas: &[&'s Tree]) -> Vec<&'s Tree> {
        let mut all: Vec<&'s Tree> = Vec::new();
        let mut left: Vec<(&'s Tree, usize)> = schemas.iter().rev().map(|schema| (*schema, 0)).collect();
        while let Some((schema, depth)) = left.pop() {
            if depth > MAX_DEPTH {
                continue;
            }
            let referred = schema.get("$ref").and_then(Tree::as_text).and_then(|text| referred(self.root, text));
            left.extend(referred.map(|target| (target, depth + 1)));
            match schema.get("anyOf") {
                Some(parts) => left.extend(parts.items().iter().rev().map(|part| (part, depth + 1))),
                None if referred.is_none() => all.push(schema),
                None => {}
            }
        }
        all
    }
}

fn may_be_null(schema: &Tree) -> bool {
    let typed = schema.get("type").is_none() || types(schema).contains(&"null");
    let listed = schema.get("enum").is_none_or(|values| values.items().contains(&Tree::Null));
    typed && listed && schema.get("const").is_none_or(|value| *value == Tree::Null)
}
