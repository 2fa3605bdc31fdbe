//! Where in a schema the value is described that a path names.

use std::collections::HashSet;

use callgate_core::nearest::nearest;
use serde_json::Value;

/// The most subschemas that are looked at on the way to one place.
const MAX_LOOKED_AT: usize = 4_096;

/// What a schema says about the place that a path names.
#[derive(Debug)]
pub(super) enum Place<'s> {
    /// The schemas that the value there has to fit, one for each way in which it can be reached.
    Described(Vec<&'s Value>),
    /// Nothing: any value can be there.
    Free,
    /// No such place is declared.
    Missing {
        /// What was looked for in the innermost place that is.
        name: String,
        /// What most likely was meant.
        nearest: Option<String>,
    },
}

/// Finds the place that `path` (a JSON Pointer in which `*` stands for every item and member) names in a value of `root`.
pub(super) fn find<'s>(root: &'s Value, path: &str) -> Place<'s> {
    let mut nodes = vec![root];
    for segment in path.split('/').skip(1) {
        let name = segment.replace("~1", "/").replace("~0", "~");
        let mut step =
            Step { name: &name, every: segment == "*", found: Vec::new(), free: false, declared: Vec::new() };
        for node in spread(root, &nodes, Parts::All) {
            step.enter(node);
        }
        if step.found.is_empty() {
            if step.free {
                return Place::Free;
            }
            let nearest = nearest(name.chars(), step.declared.iter().copied()).map(str::to_owned);
            return Place::Missing { name, nearest };
        }
        nodes = step.found;
    }
    Place::Described(nodes)
}

/// Which parts of a schema count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parts {
    /// Those that every value has to fit.
    Required,
    /// Those that some value has to fit, too.
    All,
}

/// The schemas that apply to the same value as `nodes`: these, what they refer to, and their parts.
pub(super) fn spread<'s>(root: &'s Value, nodes: &[&'s Value], parts: Parts) -> Vec<&'s Value> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let mut rest: Vec<&Value> = nodes.iter().rev().copied().collect();
    while let Some(node) = rest.pop() {
        if found.len() >= MAX_LOOKED_AT || !seen.insert(std::ptr::from_ref(node)) {
            continue;
        }
        found.push(node);
        rest.extend(node.get("$ref").and_then(Value::as_str).and_then(|to| resolve(root, to)));
        let lists: &[&str] = if parts == Parts::All { &["allOf", "anyOf", "oneOf"] } else { &["allOf"] };
        rest.extend(lists.iter().filter_map(|list| node.get(list)?.as_array()).flatten());
        if parts == Parts::All {
            rest.extend(["if", "then", "else"].iter().filter_map(|part| node.get(part)));
            rest.extend(
                node.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(|all| all.values()),
            );
        }
    }
    found
}

/// What a local reference refers to. Others are refused when a schema is admitted.
fn resolve<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let pointer = reference.strip_prefix('#')?;
    root.pointer(&percent_decoded(pointer)?)
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (hex, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(hex, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// One step of a path, taken in every schema that applies.
struct Step<'s, 'n> {
    name: &'n str,
    every: bool,
    found: Vec<&'s Value>,
    /// Whether some schema leaves open what is within.
    free: bool,
    declared: Vec<&'s str>,
}

impl<'s> Step<'s, '_> {
    fn enter(&mut self, node: &'s Value) {
        let Value::Object(keywords) = node else {
            self.free |= node == &Value::Bool(true);
            return;
        };
        let before = self.found.len();
        let mut says = false;
        if let Some(properties) = keywords.get("properties").and_then(Value::as_object) {
            says = true;
            self.declared.extend(properties.keys().map(String::as_str));
            if self.every {
                self.found.extend(properties.values());
            } else {
                self.found.extend(properties.get(self.name));
            }
        }
        if let Some(patterns) = keywords.get("patternProperties").and_then(Value::as_object) {
            says = true;
            // Any of them may be meant: whether a name matches is for the checker of values to say.
            self.found.extend(patterns.values());
        }
        says |= self.items(keywords);
        if self.every || self.found.len() == before {
            for others in ["additionalProperties", "unevaluatedProperties", "unevaluatedItems"] {
                match keywords.get(others) {
                    Some(schema @ Value::Object(_)) => {
                        says = true;
                        self.found.push(schema);
                    }
                    Some(Value::Bool(false)) => says = true,
                    _ => {}
                }
            }
        }
        let parts = ["$ref", "allOf", "anyOf", "oneOf", "if"];
        self.free |= !says && !parts.iter().any(|part| keywords.contains_key(*part)) && may_contain(node);
    }

    /// Items of an array; tells whether the schema says anything about them.
    fn items(&mut self, keywords: &'s serde_json::Map<String, Value>) -> bool {
        let index: Option<usize> = self.name.parse().ok();
        let lists = [keywords.get("prefixItems"), keywords.get("items")];
        let first = lists.into_iter().flatten().find_map(Value::as_array);
        if let Some(first) = first {
            match index {
                _ if self.every => self.found.extend(first),
                Some(index) => self.found.extend(first.get(index)),
                None => {}
            }
        }
        // What comes after the list: `items` beside `prefixItems`, and `additionalItems` in older drafts.
        let behind = index.is_some_and(|index| first.is_none_or(|first| index >= first.len()));
        let rest =
            ["items", "additionalItems"].iter().filter_map(|word| keywords.get(*word)).find(|rest| rest.is_object());
        if self.every || behind {
            self.found.extend(rest);
        }
        first.is_some() || rest.is_some()
    }
}

/// Whether a value that fits can have members or items, as far as its type says.
fn may_contain(node: &Value) -> bool {
    ["object", "array"].iter().any(|kind| may_be(node, kind))
}

/// Whether a value that fits can be of the type `kind`, as far as `node` itself says.
pub(super) fn may_be(node: &Value, kind: &str) -> bool {
    match node.get("type") {
        None => true,
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(some)) => some.iter().any(|one| one == kind),
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn look(schema: &Value, path: &str) -> String {
        match find(schema, path) {
            Place::Described(nodes) => nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Place::Free => "free".to_owned(),
            Place::Missing { name, nearest } => format!("no {name}, {nearest:?}"),
        }
    }

    #[test]
    fn paths_lead_through_every_way_of_nesting() {
        let schema = json!({
            "type": "object",
            "properties": {
                "plain": {"const": 1},
                "a/b~c": {"const": 2},
                "list": {"items": {"properties": {"n": {"const": 3}}}},
                "pair": {"prefixItems": [{"const": 4}, {"const": 5}], "items": {"const": 6}},
                "map": {"additionalProperties": {"const": 7}, "properties": {"own": {"const": 8}}},
                "ref": {"$ref": "#/$defs/a%20b"},
                "some": {"anyOf": [{"properties": {"x": {"const": 10}}}, {"allOf": [{"properties": {"x": {"const": 11}}}]}]},
                "patterns": {"patternProperties": {"^x": {"const": 12}}, "additionalProperties": false},
                "any": {"type": ["object", "null"]},
                "text": {"type": "string"},
            },
            "$defs": {"a b": {"properties": {"y": {"const": 9}, "again": {"$ref": "#/$defs/a%20b"}}}},
        });
        for (path, found) in [
            ("/plain", r#"{"const":1}"#),
            ("/a~1b~0c", r#"{"const":2}"#),
            ("/list/*/n", r#"{"const":3}"#),
            ("/list/0/n", r#"{"const":3}"#),
            ("/pair/*", r#"{"const":4} {"const":5} {"const":6}"#),
            ("/pair/1", r#"{"const":5}"#),
            ("/pair/2", r#"{"const":6}"#),
            ("/map/other", r#"{"const":7}"#),
            ("/map/own", r#"{"const":8}"#),
            ("/map/*", r#"{"const":8} {"const":7}"#),
            ("/ref/y", r#"{"const":9}"#),
            ("/ref/again/again/y", r#"{"const":9}"#),
            ("/some/x", r#"{"const":11} {"const":10}"#),
            ("/patterns/xy", r#"{"const":12}"#),
            ("/any/whatever/there/is", "free"),
            ("/plian", r#"no plian, Some("plain")"#),
            ("/list/n", "no n, None"),
            ("/text/x", "no x, None"),
        ] {
            let found_here = look(&schema, path);
            let sorted = |text: &str| {
                let mut parts: Vec<_> = text.split(' ').map(str::to_owned).collect();
                parts.sort();
                parts
            };
            assert_eq!(sorted(&found_here), sorted(found), "{path}");
        }
        assert_eq!(look(&json!(true), "/x"), "free");
        assert_eq!(look(&json!({"type": "object"}), "/x"), "free");
        assert_eq!(look(&json!({"type": "object", "additionalProperties": false}), "/x"), "no x, None");
    }

    #[test]
    fn references_that_lead_round_end() {
        let schema = json!({"properties": {"a": {"$ref": "#/properties/b"}, "b": {"$ref": "#/properties/a"}}});
        assert_eq!(look(&schema, "/a/x"), "no x, None");
        assert_eq!(spread(&schema, &[&schema["properties"]["a"]], Parts::Required).len(), 2);
    }
}
