//! Admission: one walk through a schema that refuses what can't be checked in bounded time, or at all (invariant S6).

use std::collections::HashMap;

use callgate_core::nearest::nearest;
use serde_json::{Map, Value};

use super::cost::{Edge, Graph, Node, NodeId, Unbounded};
use super::fault::{SchemaError, SchemaFault};
use super::keywords::{Role, advice, is_format, names, role};
use super::{Dialect, MAX_DEPTH, MAX_SUBSCHEMAS, MAX_UNIQUE_ITEMS, Profile};

/// How deep a value can be: what the reader admits, and a scalar.
const DEPTHS: usize = callgate_core::json::MAX_DEPTH as usize + 1;
/// How deep a value must be able to be, for a schema to be of use.
const LEAST_DEPTH: usize = 8;

/// A schema that may be used, as far as its text tells.
pub(super) struct Admitted {
    pub(super) dialect: Dialect,
    /// The steps that a check takes, for values of each depth.
    pub(super) steps: Vec<u64>,
    /// The same for an account of all that is wrong.
    pub(super) account: Vec<u64>,
}

/// Walks through `document`.
pub(super) fn admit(document: &Value, profile: Profile) -> Result<Admitted, SchemaError> {
    let dialect = Dialect::of(document).ok_or_else(|| SchemaError::new("", SchemaFault::Dialect))?;
    let mut walk = Walk {
        dialect,
        profile,
        nodes: Vec::new(),
        by_pointer: HashMap::new(),
        references: Vec::new(),
        pointer: String::new(),
        faults: Vec::new(),
        complete: true,
    };
    walk.schema(document, 1);
    // Where the walk ended early, what was not seen is not missing.
    if walk.complete {
        walk.resolve();
    }
    if profile.object_root {
        walk.check_root(document);
    }
    if !walk.faults.is_empty() {
        return Err(SchemaError { faults: walk.faults });
    }
    let graph = Graph::new(walk.nodes);
    let counted = graph.steps(DEPTHS, false).and_then(|steps| Ok((steps, graph.steps(DEPTHS, true)?)));
    match counted {
        Ok((steps, account)) if steps.len() > LEAST_DEPTH => Ok(Admitted { dialect, steps, account }),
        Ok(_) => Err(SchemaError::new("", SchemaFault::TooCostly)),
        Err(Unbounded::Loop(id)) => {
            let at = walk.by_pointer.iter().find(|(_, node)| **node == id).map_or("", |(pointer, _)| pointer);
            Err(SchemaError::new(at, SchemaFault::Loop))
        }
    }
}

struct Walk<'d> {
    dialect: Dialect,
    profile: Profile,
    nodes: Vec<Node>,
    by_pointer: HashMap<String, NodeId>,
    /// Who refers to what.
    references: Vec<(NodeId, String, &'d str)>,
    /// Where the walk is.
    pointer: String,
    faults: Vec<(String, SchemaFault)>,
    /// Whether nothing was left out.
    complete: bool,
}

impl<'d> Walk<'d> {
    fn tell(&mut self, fault: SchemaFault) {
        if self.faults.len() < SchemaError::MOST {
            self.faults.push((format!("#{}", self.pointer), fault));
        }
    }

    /// Goes on at the member `name`, and comes back.
    fn within<T>(&mut self, name: &str, go: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        self.pointer.push('/');
        for c in name.chars() {
            match c {
                '~' => self.pointer.push_str("~0"),
                '/' => self.pointer.push_str("~1"),
                other => self.pointer.push(other),
            }
        }
        let result = go(self);
        self.pointer.truncate(length);
        result
    }

    /// Takes in one schema and its parts. `None` where the walk must not go on.
    fn schema(&mut self, value: &'d Value, depth: u8) -> Option<NodeId> {
        let fault = if depth > MAX_DEPTH {
            SchemaFault::TooDeep
        } else if self.nodes.len() >= MAX_SUBSCHEMAS {
            SchemaFault::TooMany
        } else {
            return Some(self.admitted_schema(value, depth));
        };
        self.complete = false;
        // Once is enough.
        if !self.faults.iter().any(|(_, told)| *told == fault) {
            self.tell(fault);
        }
        None
    }

    fn admitted_schema(&mut self, value: &'d Value, depth: u8) -> NodeId {
        let id = self.nodes.len();
        self.nodes.push(Node::default());
        self.by_pointer.insert(self.pointer.clone(), id);
        match value {
            Value::Bool(_) => {}
            Value::Object(object) => self.keywords(id, object, depth),
            _ => self.tell(SchemaFault::NotASchema),
        }
        id
    }

    fn keywords(&mut self, id: NodeId, object: &'d Map<String, Value>, depth: u8) {
        for (keyword, value) in object {
            match role(self.dialect, keyword) {
                Some(role) => self.within(keyword, |walk| walk.keyword(id, keyword, role, value, depth)),
                None => {
                    let advice = advice(self.dialect, keyword);
                    let meant = nearest(keyword.chars(), names(self.dialect));
                    self.tell(SchemaFault::Keyword { name: keyword.clone(), meant, advice });
                }
            }
        }
        self.check_unique(object);
        if self.dialect == Dialect::Draft07 && object.contains_key("$ref") {
            let beside = object.keys().find(|keyword| {
                !matches!(
                    role(self.dialect, keyword),
                    None | Some(Role::Note | Role::Definitions | Role::Reference | Role::DialectName)
                )
            });
            if let Some(keyword) = beside {
                self.tell(SchemaFault::BesideReference(keyword.clone()));
            }
        }
        if self.profile.strict {
            self.check_strict(object);
        }
        if let Some(node) = self.nodes.get_mut(id) {
            node.repeats = object.contains_key("unevaluatedProperties") || object.contains_key("unevaluatedItems");
            node.no_object = no_object(object);
            node.tags = tags(object);
        }
    }

    /// Takes in the value of one keyword.
    fn keyword(&mut self, id: NodeId, keyword: &str, role: Role, value: &'d Value, depth: u8) {
        let deeper = depth.saturating_add(1);
        match role {
            Role::Assertion => self.assertion(keyword, value),
            Role::Here => self.part(id, value, deeper, |_| Edge::Here),
            Role::HereList => self.list(id, value, deeper, |_, _| Edge::Here),
            Role::Alternatives => {
                let group = self.nodes.get(id).map_or(0, |node| node.groups);
                if let Some(node) = self.nodes.get_mut(id) {
                    node.groups += 1;
                }
                self.list(id, value, deeper, |_, _| Edge::Alternative(group));
            }
            Role::HereByName => self.map(id, value, deeper, |_| Edge::Here),
            Role::Definitions => self.map(id, value, deeper, |_| Edge::Definition),
            Role::Properties => self.map(id, value, deeper, |name| Edge::Member(name.to_owned())),
            Role::PatternProperties => self.map(id, value, deeper, |_| Edge::AnyMember),
            Role::OtherProperties => self.part(id, value, deeper, |_| Edge::OtherMember),
            Role::PropertyNames => self.part(id, value, deeper, |_| Edge::Name),
            Role::Items => self.part(id, value, deeper, |_| Edge::OtherItem),
            Role::FirstItems => self.list(id, value, deeper, |nth, _| Edge::Item(nth)),
            Role::Contains => self.part(id, value, deeper, |_| Edge::AnyItem),
            Role::ItemsOrList if value.is_array() => self.list(id, value, deeper, |nth, _| Edge::Item(nth)),
            Role::ItemsOrList => self.part(id, value, deeper, |_| Edge::OtherItem),
            Role::Dependencies => self.dependencies(id, value, deeper),
            Role::Reference => match value.as_str() {
                Some(target) => self.references.push((id, self.pointer.clone(), target)),
                None => self.tell(SchemaFault::Reference),
            },
            Role::Identifier => {
                let absolute = value.as_str().is_some_and(|id| id.contains(':') && !id.contains('#'));
                if depth > 1 || !absolute {
                    self.tell(SchemaFault::Identifier);
                }
            }
            Role::DialectName if depth > 1 => self.tell(SchemaFault::Dialect),
            Role::Note | Role::DialectName => {}
        }
    }

    fn part(&mut self, id: NodeId, value: &'d Value, depth: u8, edge: impl Fn(&str) -> Edge) {
        if let Some(part) = self.schema(value, depth) {
            self.link(id, edge(""), part);
        }
    }

    fn link(&mut self, from: NodeId, edge: Edge, to: NodeId) {
        if let Some(node) = self.nodes.get_mut(from) {
            node.edges.push((edge, to));
        }
    }

    fn list(&mut self, id: NodeId, value: &'d Value, depth: u8, edge: impl Fn(usize, &Self) -> Edge) {
        let Value::Array(parts) = value else {
            return self.tell(SchemaFault::Value { reason: "must be a list of schemas".into() });
        };
        for (nth, part) in parts.iter().enumerate() {
            let edge = edge(nth, self);
            self.within(&nth.to_string(), |walk| walk.part(id, part, depth, |_| edge.clone()));
        }
    }

    fn map(&mut self, id: NodeId, value: &'d Value, depth: u8, edge: impl Fn(&str) -> Edge) {
        let Value::Object(parts) = value else {
            return self.tell(SchemaFault::Value { reason: "must be an object of schemas".into() });
        };
        for (name, part) in parts {
            let edge = edge(name);
            self.within(name, |walk| walk.part(id, part, depth, |_| edge.clone()));
        }
    }

    fn dependencies(&mut self, id: NodeId, value: &'d Value, depth: u8) {
        let Value::Object(parts) = value else {
            return self.tell(SchemaFault::Value { reason: "must be an object".into() });
        };
        for (name, part) in parts {
            if !part.is_array() {
                self.within(name, |walk| walk.part(id, part, depth, |_| Edge::Here));
            }
        }
    }

    fn assertion(&mut self, keyword: &str, value: &Value) {
        if keyword == "format"
            && let Some(name) = value.as_str()
            && !is_format(self.dialect, name)
        {
            self.tell(SchemaFault::Format(name.to_owned()));
        }
    }

    fn check_unique(&mut self, object: &Map<String, Value>) {
        let bounded =
            object.get("maxItems").and_then(Value::as_f64).is_some_and(|most| most <= MAX_UNIQUE_ITEMS as f64);
        if object.get("uniqueItems") == Some(&Value::Bool(true)) && !bounded {
            self.tell(SchemaFault::Unbounded);
        }
    }

    /// The profile of closed and bounded schemas.
    fn check_strict(&mut self, object: &Map<String, Value>) {
        let has = |keyword: &str| object.contains_key(keyword);
        let types: Vec<&str> = match object.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let listed = has("enum") || has("const");
        let bounded = |least: &str, exclusive: &str| has(least) || has(exclusive);
        let rules = [
            (
                types.contains(&"object"),
                has("additionalProperties") || has("unevaluatedProperties"),
                "additionalProperties on an object (true to leave it open)",
            ),
            (types.contains(&"string"), has("maxLength"), "maxLength on a string"),
            (types.contains(&"array"), has("maxItems"), "maxItems on an array"),
            (
                types.contains(&"number") || types.contains(&"integer"),
                bounded("minimum", "exclusiveMinimum") && bounded("maximum", "exclusiveMaximum"),
                "a minimum and a maximum on a number",
            ),
        ];
        for (concerned, met, what) in rules {
            if concerned && !met && !listed {
                self.tell(SchemaFault::Strict(what));
            }
        }
    }

    /// Finds what references lead to.
    fn resolve(&mut self) {
        for (from, at, target) in std::mem::take(&mut self.references) {
            let found = target
                .strip_prefix('#')
                .and_then(percent_decoded)
                .and_then(|target| self.by_pointer.get(&target).copied());
            match found {
                Some(to) => self.link(from, Edge::Here, to),
                None => {
                    self.pointer = at;
                    self.tell(SchemaFault::Reference);
                }
            }
        }
        self.pointer.clear();
    }

    /// Whether the root is one for objects, itself or where it refers to.
    fn check_root(&mut self, document: &Value) {
        let mut root = document;
        for _ in 0..MAX_DEPTH {
            if root.get("type").and_then(Value::as_str) == Some("object") {
                return;
            }
            let target = root.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
            match target.and_then(percent_decoded).and_then(|target| document.pointer(&target)) {
                Some(target) => root = target,
                None => break,
            }
        }
        self.tell(SchemaFault::NotAnObject);
    }
}

/// The text with `%41` made `A`; `None` when that is not UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let value = digit(rest.next())? * 16 + digit(rest.next())?;
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// Whether the type leaves objects out.
fn no_object(object: &Map<String, Value>) -> bool {
    match object.get("type") {
        None => false,
        Some(Value::Array(names)) => names.iter().all(|name| name != "object"),
        Some(name) => name != "object",
    }
}

/// The properties that an object must have, and whose values it names: what tells it apart from others.
fn tags(object: &Map<String, Value>) -> Vec<(String, Vec<Value>)> {
    let required: Vec<&str> = match object.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => return Vec::new(),
    };
    let properties = object.get("properties").and_then(Value::as_object);
    let named = |(name, property): (&String, &Value)| {
        let values = match (property.get("const"), property.get("enum")) {
            (Some(value), _) => vec![value.clone()],
            (None, Some(Value::Array(values))) => values.clone(),
            _ => return None,
        };
        // As far as the validator tells alternatives apart.
        let plain = values.iter().all(|value| value.is_string() || value.is_i64());
        (plain && required.contains(&&**name)).then(|| (name.clone(), values))
    };
    properties.into_iter().flatten().filter_map(named).collect()
}
