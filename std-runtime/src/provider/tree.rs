//! A JSON document whose members keep their order: models read schemas from the top, and some fill them in from the top.

use std::fmt;

use callgate_core::json::write::Writer;
use callgate_core::json::{KeySlot, Kind, Limits, Number, Value, key_capacity, scan};

/// A JSON value.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

impl Tree {
    /// Reads what a tool says of itself, which was read before.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
        scan(text.as_bytes(), &mut keys, &Limits::DEFAULT).ok().map(|scanned| Self::from(scanned.value()))
    }

    pub(super) fn object<const N: usize>(members: [(&str, Self); N]) -> Self {
        Self::Object(members.map(|(name, value)| (name.to_owned(), value)).into())
    }

    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The member of an object.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        self.members().iter().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// The members of an object; none of anything else.
    pub(super) fn members(&self) -> &[(String, Self)] {
        match self {
            Self::Object(members) => members,
            _ => &[],
        }
    }

    /// The items of a list; none of anything else.
    pub(super) fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn write(&self, json: &mut Writer<'_>) -> fmt::Result {
        match self {
            Self::Null => json.null(),
            Self::Bool(value) => json.bool(*value),
            Self::Number(value) => json.number(*value),
            Self::Text(text) => json.string(text),
            Self::List(items) => {
                json.start_array()?;
                items.iter().try_for_each(|item| item.write(json))?;
                json.end_array()
            }
            Self::Object(members) => {
                json.start_object()?;
                for (name, value) in members {
                    json.key(name)?;
                    value.write(json)?;
                }
                json.end_object()
            }
        }
    }
}

/// Nests as deep as the text, which the reader bounds.
impl From<Value<'_>> for Tree {
    fn from(value: Value<'_>) -> Self {
        match value.kind() {
            Kind::Array => Self::List(value.items().map(Self::from).collect()),
            Kind::Object => {
                Self::Object(value.members().map(|(name, value)| (name.to_string(), Self::from(value))).collect())
            }
            _ => match (value.as_text(), value.as_number(), value.as_bool()) {
                (Some(text), ..) => Self::Text(text.to_string()),
                (_, Some(number), _) => Self::Number(number),
                (.., Some(truth)) => Self::Bool(truth),
                _ => Self::Null,
            },
        }
    }
}

/// Compact JSON.
impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(&mut Writer::new(f))
    }
}
