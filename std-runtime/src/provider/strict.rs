//! `OpenAI`'s Structured Outputs: what a schema has to be so that a model can't send anything else.
//!
//! Every object is closed and every property required; one that may be left out is nullable instead, and
//! [`restore`](super::restore) takes the null back.

use super::tree::Tree;
use super::words::Words;
use super::{Fault, MAX_DEPTH, Unsayable, pointer, types};

/// The limits that the provider documents for one schema.
const MAX_PROPERTIES: usize = 5_000;
const MAX_NESTING: usize = 10;
const MAX_VALUES: usize = 1_000;
const MAX_TEXT: usize = 120_000;

/// The schema of the arguments.
pub(super) fn parameters(schema: &Tree) -> Result<Tree, Fault> {
    if types(schema) != ["object"] || schema.get("anyOf").is_some() {
        return Err((String::new(), Unsayable::Root));
    }
    let mut used = Used::default();
    let strict = used.lower(schema, "", 0, 0)?;
    for (what, count, max) in [
        ("properties", used.properties, MAX_PROPERTIES),
        ("nested objects", used.nesting, MAX_NESTING),
        ("values to choose from", used.values, MAX_VALUES),
        ("characters in names and values", used.text, MAX_TEXT),
    ] {
        if count > max {
            return Err((String::new(), Unsayable::TooMuch { what, max }));
        }
    }
    Ok(strict)
}

/// How much of the provider's limits a schema takes.
#[derive(Default)]
struct Used {
    properties: usize,
    nesting: usize,
    values: usize,
    text: usize,
}

impl Used {
    /// `objects` is how many objects are around.
    fn lower(&mut self, schema: &Tree, at: &str, depth: usize, objects: usize) -> Result<Tree, Fault> {
        if depth > MAX_DEPTH {
            return Err((at.to_owned(), Unsayable::Reference));
        }
        let kinds = types(schema);
        if kinds.is_empty() && !["anyOf", "$ref", "enum", "const"].iter().any(|word| schema.get(word).is_some()) {
            return Err((at.to_owned(), Unsayable::Untyped));
        }
        let mut lowered = Vec::new();
        let mut words = Words::default();
        for (keyword, value) in schema.members() {
            let here = pointer(at, keyword);
            let value = match keyword.as_str() {
                "properties" => self.properties(schema, value, &here, depth, objects + 1)?,
                "items" => self.lower(value, &here, depth + 1, objects)?,
                "anyOf" => {
                    let mut list = Vec::new();
                    for (nth, part) in value.items().iter().enumerate() {
                        list.push(self.lower(part, &format!("{here}/{nth}"), depth + 1, objects)?);
                    }
                    Tree::List(list)
                }
                "$defs" => {
                    let mut list = Vec::new();
                    for (name, part) in value.members() {
                        self.text += name.len();
                        list.push((name.clone(), self.lower(part, &pointer(&here, name), depth + 1, objects)?));
                    }
                    Tree::Object(list)
                }
                "enum" => {
                    self.values += value.items().len();
                    self.text += value.items().iter().filter_map(Tree::as_text).map(str::len).sum::<usize>();
                    value.clone()
                }
                "const" => {
                    self.text += value.as_text().map_or(0, str::len);
                    value.clone()
                }
                "type" | "$ref" | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf"
                | "minItems" | "maxItems" | "pattern" => value.clone(),
                "description"
                | "required"
                | "additionalProperties"
                | "title"
                | "$comment"
                | "$schema"
                | "examples"
                | "deprecated"
                | "readOnly"
                | "writeOnly" => continue,
                word if words.say(word, value) => continue,
                other => return Err((here, Unsayable::Keyword(other.to_owned()))),
            };
            lowered.push((keyword.clone(), value));
        }
        if kinds.contains(&"object") {
            self.close(schema, at, &mut lowered)?;
        }
        if let Some(text) = words.behind(schema.get("description").and_then(Tree::as_text)) {
            lowered.push(("description".to_owned(), Tree::Text(text)));
        }
        Ok(Tree::Object(lowered))
    }

    fn properties(
        &mut self,
        object: &Tree,
        properties: &Tree,
        at: &str,
        depth: usize,
        objects: usize,
    ) -> Result<Tree, Fault> {
        self.nesting = self.nesting.max(objects);
        let required = |name: &str| {
            object.get("required").is_some_and(|list| list.items().iter().any(|item| item.as_text() == Some(name)))
        };
        let mut list = Vec::new();
        for (name, property) in properties.members() {
            self.properties += 1;
            self.text += name.len();
            let lowered = self.lower(property, &pointer(at, name), depth + 1, objects)?;
            list.push((name.clone(), if required(name) { lowered } else { nullable(lowered) }));
        }
        Ok(Tree::Object(list))
    }

    /// Says that an object has its properties, all of them and no others.
    fn close(&self, schema: &Tree, at: &str, lowered: &mut Vec<(String, Tree)>) -> Result<(), Fault> {
        let properties = schema.get("properties").map_or(&[][..], Tree::members);
        let closed = schema.get("additionalProperties") == Some(&Tree::Bool(false));
        // An object with properties that may have others is told as one without others. One of others alone would be told as
        // one that is always empty.
        if !closed
            && (properties.is_empty() || schema.get("additionalProperties").is_some_and(|it| *it != Tree::Bool(true)))
        {
            return Err((at.to_owned(), Unsayable::Open));
        }
        if schema.get("properties").is_none() {
            lowered.push(("properties".to_owned(), Tree::Object(Vec::new())));
        }
        let all = properties.iter().map(|(name, _)| Tree::text(name.as_str())).collect();
        lowered.push(("required".to_owned(), Tree::List(all)));
        lowered.push(("additionalProperties".to_owned(), Tree::Bool(false)));
        Ok(())
    }
}

/// The schema, or null.
fn nullable(schema: Tree) -> Tree {
    let null = || Tree::text("null");
    let alternatives = schema.get("anyOf").is_some();
    let wrapped = schema.get("$ref").is_some() || schema.get("const").is_some() || schema.get("type").is_none();
    if wrapped && !alternatives {
        return Tree::object([("anyOf", Tree::List(vec![schema, Tree::object([("type", null())])]))]);
    }
    let Tree::Object(mut members) = schema else { return schema };
    for (keyword, value) in &mut members {
        match (keyword.as_str(), &mut *value) {
            ("type", Tree::Text(name)) if name != "null" => {
                *value = Tree::List(vec![Tree::text(name.as_str()), null()]);
            }
            ("type", Tree::List(names)) if !names.contains(&null()) => names.push(null()),
            ("enum", Tree::List(values)) if !values.contains(&Tree::Null) => values.push(Tree::Null),
            ("anyOf", Tree::List(parts)) => {
                let only_null = Tree::object([("type", null())]);
                if !parts.contains(&only_null) {
                    parts.push(only_null);
                }
            }
            _ => {}
        }
    }
    Tree::Object(members)
}
