//! Gemini's `Schema`: a subset of `OpenAPI` 3.0, in which one unknown word refuses the whole request.

use super::tree::Tree;
use super::words::Words;
use super::{Fault, MAX_DEPTH, Unsayable, pointer, referred, types};

/// The schema of the arguments; none for a function without parameters, because an object without properties is refused.
pub(super) fn parameters(schema: &Tree) -> Result<Option<Tree>, Fault> {
    if types(schema) != ["object"] || schema.get("anyOf").is_some() {
        return Err((String::new(), Unsayable::Root));
    }
    if schema.get("properties").is_none_or(|properties| properties.members().is_empty()) {
        return if schema.get("additionalProperties") == Some(&Tree::Bool(false)) {
            Ok(None)
        } else {
            Err((String::new(), Unsayable::Open))
        };
    }
    Lowering { root: schema }.lower(schema, "", 0).map(Some)
}

struct Lowering<'s> {
    root: &'s Tree,
}

impl Lowering<'_> {
    fn lower(&self, schema: &Tree, at: &str, depth: usize) -> Result<Tree, Fault> {
        if depth > MAX_DEPTH {
            return Err((at.to_owned(), Unsayable::Reference));
        }
        if let Some(reference) = schema.get("$ref").and_then(Tree::as_text) {
            let target = referred(self.root, reference).ok_or_else(|| (at.to_owned(), Unsayable::Reference))?;
            let mut lowered = self.lower(target, at, depth + 1)?;
            if let (Tree::Object(members), Some(description)) = (&mut lowered, schema.get("description")) {
                members.retain(|(name, _)| name != "description");
                members.push(("description".to_owned(), description.clone()));
            }
            return Ok(lowered);
        }
        let mut kinds = types(schema);
        let mut nullable = kinds.len() > 1 && kinds.contains(&"null");
        if nullable {
            kinds.retain(|kind| *kind != "null");
        }
        if kinds.len() > 1 {
            return self.one_of_types(schema, &kinds, nullable, at, depth);
        }
        let mut lowered = Vec::new();
        let mut words = Words::default();
        if let Some(kind) = kinds.first() {
            lowered.push(("type".to_owned(), Tree::text(kind.to_ascii_uppercase())));
        } else if !["anyOf", "oneOf"].iter().any(|word| schema.get(word).is_some()) {
            let listed = schema
                .get("const")
                .map_or_else(|| schema.get("enum").map_or(&[][..], Tree::items), std::slice::from_ref);
            let kind = one_type(listed).ok_or_else(|| (at.to_owned(), Unsayable::Untyped))?;
            lowered.push(("type".to_owned(), Tree::text(kind)));
        }
        let whole = kinds == ["integer"];
        for (keyword, value) in schema.members() {
            let here = pointer(at, keyword);
            match keyword.as_str() {
                "type" | "description" | "$defs" | "$schema" | "$comment" | "title" | "examples" | "deprecated"
                | "readOnly" | "writeOnly" => {}
                "properties" => {
                    let mut list = Vec::new();
                    for (name, property) in value.members() {
                        let here = pointer(&here, name);
                        check_name(name, &here)?;
                        list.push((name.clone(), self.lower(property, &here, depth + 1)?));
                    }
                    let order = list.iter().map(|(name, _)| Tree::text(name.as_str())).collect();
                    lowered.push(("properties".to_owned(), Tree::Object(list)));
                    lowered.push(("propertyOrdering".to_owned(), Tree::List(order)));
                }
                "items" => lowered.push(("items".to_owned(), self.lower(value, &here, depth + 1)?)),
                "anyOf" | "oneOf" => {
                    let mut list = Vec::new();
                    for (nth, part) in value.items().iter().enumerate() {
                        if types(part) == ["null"] {
                            nullable = true;
                        } else {
                            list.push(self.lower(part, &format!("{here}/{nth}"), depth + 1)?);
                        }
                    }
                    lowered.push(("anyOf".to_owned(), Tree::List(list)));
                }
                "enum" => nullable |= choices(value, &mut lowered, &mut words),
                "const" => {
                    let one = Tree::List(vec![value.clone()]);
                    nullable |= choices(&one, &mut lowered, &mut words);
                }
                "required" if value.items().is_empty() => {}
                "required" | "minimum" | "maximum" | "minItems" | "maxItems" | "minLength" | "maxLength"
                | "pattern" => {
                    lowered.push((keyword.clone(), value.clone()));
                }
                "exclusiveMinimum" | "exclusiveMaximum" if whole && next_integer(keyword, value).is_some() => {
                    let name = if keyword == "exclusiveMinimum" { "minimum" } else { "maximum" };
                    lowered.extend(next_integer(keyword, value).map(|bound| (name.to_owned(), bound)));
                }
                "additionalProperties" => match value {
                    Tree::Bool(_) => {}
                    part => words.push(format!("Members of any name, each of which fits {part}.")),
                },
                word if words.say(word, value) => {}
                other => return Err((here, Unsayable::Keyword(other.to_owned()))),
            }
        }
        if nullable {
            lowered.push(("nullable".to_owned(), Tree::Bool(true)));
        }
        if let Some(text) = words.behind(schema.get("description").and_then(Tree::as_text)) {
            lowered.push(("description".to_owned(), Tree::Text(text)));
        }
        Ok(Tree::Object(lowered))
    }

    /// One alternative for each of several types.
    fn one_of_types(
        &self,
        schema: &Tree,
        kinds: &[&str],
        nullable: bool,
        at: &str,
        depth: usize,
    ) -> Result<Tree, Fault> {
        let mut parts = Vec::new();
        for kind in kinds {
            let members = schema.members().iter().map(|(name, value)| {
                let value = if name == "type" { Tree::text(*kind) } else { value.clone() };
                (name.clone(), value)
            });
            let concerns = |name: &str| name != "description" && concerns(name, kind);
            let one = Tree::Object(members.filter(|(name, _)| concerns(name)).collect());
            parts.push(self.lower(&one, at, depth + 1)?);
        }
        let mut lowered = vec![("anyOf".to_owned(), Tree::List(parts))];
        if nullable {
            lowered.push(("nullable".to_owned(), Tree::Bool(true)));
        }
        lowered.extend(schema.get("description").map(|text| ("description".to_owned(), text.clone())));
        Ok(Tree::Object(lowered))
    }
}

/// Whether a keyword says something of values of this type.
fn concerns(keyword: &str, kind: &str) -> bool {
    match keyword {
        "minLength" | "maxLength" | "pattern" | "format" => kind == "string",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            matches!(kind, "integer" | "number")
        }
        "items" | "minItems" | "maxItems" | "uniqueItems" => kind == "array",
        "properties" | "required" | "additionalProperties" => kind == "object",
        _ => true,
    }
}

/// The type that all of these values have, null aside.
fn one_type(values: &[Tree]) -> Option<&'static str> {
    let mut kinds = values.iter().filter_map(|value| match value {
        Tree::Null => None,
        Tree::Bool(_) => Some("BOOLEAN"),
        Tree::Number(number) if number.is_whole() => Some("INTEGER"),
        Tree::Number(_) => Some("NUMBER"),
        Tree::Text(_) => Some("STRING"),
        // Those would have to be described, too.
        Tree::List(_) | Tree::Object(_) => Some(""),
    });
    let first = kinds.next()?;
    (!first.is_empty() && kinds.all(|kind| kind == first)).then_some(first)
}

/// Texts to choose from as an enumeration, other values in words. Tells whether null is one of them.
fn choices(values: &Tree, lowered: &mut Vec<(String, Tree)>, words: &mut Words) -> bool {
    let null = values.items().contains(&Tree::Null);
    let others: Vec<_> = values.items().iter().filter(|value| **value != Tree::Null).cloned().collect();
    if others.iter().all(|value| value.as_text().is_some_and(|text| !text.is_empty())) && !others.is_empty() {
        lowered.push(("enum".to_owned(), Tree::List(others)));
    } else {
        words.say("enum", &Tree::List(others));
    }
    null
}

/// The integer next to a bound that is itself left out.
fn next_integer(keyword: &str, bound: &Tree) -> Option<Tree> {
    let Tree::Number(bound) = bound else { return None };
    let step = if keyword == "exclusiveMinimum" { 1 } else { -1 };
    let next = i64::try_from(bound.as_i128()?).ok()?.checked_add(step)?;
    Some(Tree::Number(if next < 0 {
        callgate_core::json::Number::I64(next)
    } else {
        callgate_core::json::Number::U64(next.unsigned_abs())
    }))
}

/// A parameter's name: a letter or `_`, then letters, digits and `_`, 64 at most.
fn check_name(name: &str, at: &str) -> Result<(), Fault> {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if starts && name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        Ok(())
    } else {
        Err((at.to_owned(), Unsayable::PropertyName))
    }
}
