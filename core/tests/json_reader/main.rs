//! The reader as a whole: against a model, against `serde_json`, at its limits, and on what the field has met.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unreachable,
    reason = "a helper of tests fails by panicking"
)]

mod agreement;
mod digests;
mod limits;
mod model;
mod strings;
mod writing;

use callgate_core::json::{
    Event, Events, KeySlot, Limits, Number, ReadError, ReadErrorKind, Scanned, key_capacity, scan,
};

use self::model::Json;

/// What `scan` says of `text`, with as much room for keys as is said to suffice.
fn checked<R>(text: &[u8], look: impl FnOnce(Result<Scanned<'_>, ReadError>) -> R) -> R {
    let mut keys = vec![KeySlot::default(); key_capacity(text)];
    look(scan(text, &mut keys, &Limits::DEFAULT))
}

fn refusal(text: &[u8]) -> Option<ReadError> {
    let mut keys = vec![KeySlot::default(); key_capacity(text)];
    scan(text, &mut keys, &Limits::DEFAULT).err()
}

fn kind(text: &str) -> Option<ReadErrorKind> {
    refusal(text.as_bytes()).map(|error| error.kind)
}

/// The model's value out of events.
fn rebuild(events: Events<'_>) -> Json {
    let mut stack: Vec<(Json, Option<String>)> = Vec::new();
    let mut key = None;
    for (_, event) in events {
        let done = match event {
            Event::Null => Json::Null,
            Event::Bool(value) => Json::Bool(value),
            Event::Number(Number::U64(value)) => Json::Integer(value.into()),
            Event::Number(Number::I64(value)) => Json::Integer(value.into()),
            Event::Number(Number::F64(value)) => Json::Decimal(value),
            Event::String(text) => Json::Text(text.to_string()),
            Event::Key(text) => {
                key = Some(text.to_string());
                continue;
            }
            Event::StartArray => {
                stack.push((Json::Array(Vec::new()), key.take()));
                continue;
            }
            Event::StartObject => {
                stack.push((Json::Object(Vec::new()), key.take()));
                continue;
            }
            Event::EndArray | Event::EndObject => {
                let (container, own_key) = stack.pop().expect("something is open");
                key = own_key;
                container
            }
        };
        match stack.last_mut() {
            None => return done,
            Some((Json::Array(items), _)) => items.push(done),
            Some((Json::Object(members), _)) => members.push((key.take().expect("a key"), done)),
            Some(_) => unreachable!("only containers are open"),
        }
    }
    panic!("the events end too early");
}

impl Json {
    /// The same members in another order, at every depth.
    pub(crate) fn shuffled(&self, seed: u64) -> Self {
        match self {
            Self::Array(items) => Self::Array(items.iter().map(|item| item.shuffled(seed)).collect()),
            Self::Object(members) => {
                let mut members: Vec<_> =
                    members.iter().map(|(key, value)| (key.clone(), value.shuffled(seed))).collect();
                let count = members.len().max(1);
                members.rotate_left(seed as usize % count);
                if seed.is_multiple_of(2) {
                    members.reverse();
                }
                Self::Object(members)
            }
            other => other.clone(),
        }
    }

    /// The same value whatever the order of members.
    pub(crate) fn sorted(&self) -> Self {
        match self {
            Self::Array(items) => Self::Array(items.iter().map(Self::sorted).collect()),
            Self::Object(members) => {
                let mut members: Vec<_> = members.iter().map(|(key, value)| (key.clone(), value.sorted())).collect();
                members.sort_by(|a, b| a.0.cmp(&b.0));
                Self::Object(members)
            }
            other => other.clone(),
        }
    }
}
