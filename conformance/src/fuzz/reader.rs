//! The strict reader, alone and beside another one.

use std::collections::BTreeSet;
use std::fmt;

use callgate_core::json::{KeySlot, Limits, ReadError, ReadErrorKind, Scanned, scan};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::slots;

fn read<'t>(text: &'t [u8], keys: &mut [KeySlot], limits: &Limits) -> Result<Scanned<'t>, ReadError> {
    scan(text, keys, limits)
}

fn written(scanned: Scanned<'_>) -> String {
    let mut text = String::new();
    scanned.value().write_json(&mut text).expect("a string takes all");
    text
}

/// Invariants S2, S4, S5, N4: whatever is accepted is written again as the same value, in no other spelling than the first time;
/// a bound below what the text needs refuses it, the exact one does not; too little room for keys refuses and never accepts.
pub fn reader(data: &[u8]) {
    let mut keys = slots(data);
    let scanned = match read(data, &mut keys, &Limits::DEFAULT) {
        Ok(scanned) => scanned,
        Err(error) => {
            assert!(error.at as usize <= data.len(), "{error}");
            let room = keys.len();
            assert!(error.kind != ReadErrorKind::NoRoomForKeys, "{room} keys are what the text has");
            // L4: the message tells the kind and the place, so two texts refused alike are told alike.
            assert_eq!(error.to_string(), format!("at byte {}: {}", error.at, error.kind));
            return;
        }
    };
    let value: Value = scanned.value().parse().expect("what was scanned can be parsed");
    let once = written(scanned);
    let mut again = slots(once.as_bytes());
    let reread = read(once.as_bytes(), &mut again, &Limits::DEFAULT).expect("what was written can be read");
    assert_eq!(reread.value().parse::<Value>().expect("and parsed"), value, "{once}");
    assert_eq!(written(reread), once, "written twice, it is the same text");
    for (limits, fits) in around(&value, data.len()) {
        let read = read(data, &mut keys, &limits);
        assert_eq!(read.is_ok(), fits, "{limits:?} {read:?}");
    }
    if let Some(fewer) = keys.len().checked_sub(1) {
        // Any error at all: with fewer slots than keys nothing but a refusal is right, and with enough the text fits.
        let _ = read(data, &mut vec![KeySlot::default(); fewer], &Limits::DEFAULT);
    }
}

/// Limits that the value just fits, and those that are one below.
fn around(value: &Value, bytes: usize) -> Vec<(Limits, bool)> {
    let need = Need::of(value);
    let exact = Limits {
        depth: need.depth,
        bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        nodes: need.nodes,
        members: need.members,
        key_bytes: need.key_bytes,
        ..Limits::DEFAULT
    };
    let mut all = vec![(exact, true)];
    let below = [
        need.depth.checked_sub(1).map(|depth| Limits { depth, ..exact }),
        exact.bytes.checked_sub(1).map(|bytes| Limits { bytes, ..exact }),
        need.nodes.checked_sub(1).map(|nodes| Limits { nodes, ..exact }),
        need.members.checked_sub(1).map(|members| Limits { members, ..exact }),
        need.key_bytes.checked_sub(1).map(|key_bytes| Limits { key_bytes, ..exact }),
    ];
    all.extend(below.into_iter().flatten().map(|limits| (limits, false)));
    all
}

/// What a value needs of each bound.
#[derive(Default)]
struct Need {
    depth: u16,
    nodes: u32,
    members: u32,
    key_bytes: u32,
}

impl Need {
    fn of(value: &Value) -> Self {
        let mut need = Self::default();
        need.add(value, 0);
        need
    }

    fn add(&mut self, value: &Value, depth: u16) {
        self.nodes += 1;
        match value {
            Value::Array(items) => {
                self.depth = self.depth.max(depth + 1);
                items.iter().for_each(|item| self.add(item, depth + 1));
            }
            Value::Object(members) => {
                self.depth = self.depth.max(depth + 1);
                self.members = self.members.max(members.len() as u32);
                for (key, value) in members {
                    self.key_bytes = self.key_bytes.max(key.len() as u32);
                    self.add(value, depth + 1);
                }
            }
            _ => {}
        }
    }
}

/// Invariant S1: `serde_json` accepts whatever the strict reader accepts, with the same value; and what the strict reader refuses
/// alone, it refuses for a reason that the other one does not look at, and that is there.
pub fn readers(data: &[u8]) {
    let theirs = serde_json::from_slice::<Value>(data);
    let mut keys = slots(data);
    match (read(data, &mut keys, &Limits::DEFAULT), theirs) {
        (Ok(scanned), Ok(theirs)) => {
            let ours: Value = scanned.value().parse().expect("what was scanned can be parsed");
            assert!(same(&ours, &theirs), "{ours} is not {theirs}");
            let mut room = vec![0; data.len()];
            let lent: Value = scanned.value().deserialize(&mut room).expect("the text's length is room enough");
            assert_eq!(lent, ours, "with and without a heap");
            let Once(duplicates) = serde_json::from_slice(data).expect("it was read before");
            assert!(!duplicates, "a duplicate key was let through");
        }
        (Ok(_), Err(error)) => panic!("accepted alone: {error}"),
        (Err(_), Err(_)) => {}
        (Err(error), Ok(theirs)) => {
            let Once(duplicates) = serde_json::from_slice(data).expect("it was read before");
            let need = Need::of(&theirs);
            let there = match error.kind {
                ReadErrorKind::DuplicateKey => duplicates,
                ReadErrorKind::TooDeep { max } => need.depth > max,
                // Where keys are given twice, the other reader has kept some of them only.
                ReadErrorKind::KeyTooLong { max } => need.key_bytes > max || duplicates,
                ReadErrorKind::TooManyMembers { max } => need.members > max || duplicates,
                ReadErrorKind::TooManyNodes { max } => need.nodes > max || duplicates,
                ReadErrorKind::TooLong { max } => data.len() > max as usize,
                ReadErrorKind::NumberOutOfRange
                | ReadErrorKind::NumberInexact
                | ReadErrorKind::NumberTooLong { .. } => true,
                _ => false,
            };
            assert!(there, "refused alone: {error}");
        }
    }
}

/// Equal, but for the sign of zero, which the reader drops.
fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.as_f64() == b.as_f64() && (a.as_f64() == Some(0.0) || (a.is_f64() && b.is_f64())))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => ours == theirs,
    }
}

/// Whether any object of a text has a key twice, as `serde_json` hands its keys out.
struct Once(bool);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Keys)
    }
}

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = Once;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Once, E> {
        Ok(Once(false))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Once, E> {
        Ok(Once(false))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Once, E> {
        Ok(Once(false))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Once, E> {
        Ok(Once(false))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Once, E> {
        Ok(Once(false))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Once, E> {
        Ok(Once(false))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Once, A::Error> {
        let mut any = false;
        while let Some(Once(twice)) = items.next_element()? {
            any |= twice;
        }
        Ok(Once(any))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Once, A::Error> {
        let (mut any, mut keys) = (false, BTreeSet::new());
        while let Some((key, Once(twice))) = members.next_entry::<String, Once>()? {
            any |= twice || !keys.insert(key);
        }
        Ok(Once(any))
    }
}
