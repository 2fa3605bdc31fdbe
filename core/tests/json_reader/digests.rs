//! K4, L3: the digest of a value is the value's, and of no other.

use callgate_core::args::Args;
use callgate_core::digest::{Digest, DigestKey};
use callgate_core::json::{KeySlot, Limits, key_capacity};
use proptest::prelude::*;

use super::model::{self, Json};

fn digest(text: &str) -> Digest {
    let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
    let args =
        Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).unwrap_or_else(|error| panic!("{text}: {error}"));
    args.digest(&DigestKey::new([7; 32]), &mut keys).expect("as many keys as there are colons suffice")
}

/// The encoding that `digest.rs` describes, decoded: it says all that the value is.
fn decode(bytes: &mut &[u8]) -> Json {
    fn take<'a>(bytes: &mut &'a [u8], len: usize) -> &'a [u8] {
        let (head, rest) = bytes.split_at(len);
        *bytes = rest;
        head
    }
    fn word(bytes: &mut &[u8]) -> [u8; 8] {
        take(bytes, 8).try_into().expect("eight bytes")
    }
    match take(bytes, 1) {
        [0] => Json::Null,
        [1] => Json::Bool(false),
        [2] => Json::Bool(true),
        [3] => Json::Integer(u64::from_be_bytes(word(bytes)).into()),
        [4] => Json::Integer(i64::from_be_bytes(word(bytes)).into()),
        [5] => Json::Decimal(f64::from_be_bytes(word(bytes))),
        [6] => {
            let len = u64::from_be_bytes(word(bytes));
            Json::Text(String::from_utf8(take(bytes, len as usize).to_vec()).expect("UTF-8"))
        }
        [7] => {
            let count = u64::from_be_bytes(word(bytes));
            Json::Array((0..count).map(|_| decode(bytes)).collect())
        }
        [8] => {
            let count = u64::from_be_bytes(word(bytes));
            let member = |bytes: &mut &[u8]| match decode(bytes) {
                Json::Text(key) => (key, decode(bytes)),
                other => panic!("a key is a string, not {other:?}"),
            };
            Json::Object((0..count).map(|_| member(bytes)).collect())
        }
        other => panic!("no such tag: {other:?}"),
    }
}

/// The encoding, made independently of the crate.
fn encode(value: &Json, out: &mut Vec<u8>) {
    let text = |text: &str, out: &mut Vec<u8>| {
        out.push(6);
        out.extend((text.len() as u64).to_be_bytes());
        out.extend(text.as_bytes());
    };
    match value {
        Json::Null => out.push(0),
        Json::Bool(value) => out.push(1 + u8::from(*value)),
        Json::Integer(value) => match u64::try_from(*value) {
            Ok(value) => {
                out.push(3);
                out.extend(value.to_be_bytes());
            }
            Err(_) => {
                out.push(4);
                out.extend(i64::try_from(*value).expect("64 bits").to_be_bytes());
            }
        },
        Json::Decimal(value) => {
            out.push(5);
            out.extend(value.to_bits().to_be_bytes());
        }
        Json::Text(string) => text(string, out),
        Json::Array(items) => {
            out.push(7);
            out.extend((items.len() as u64).to_be_bytes());
            items.iter().for_each(|item| encode(item, out));
        }
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
            out.push(8);
            out.extend((members.len() as u64).to_be_bytes());
            for (key, value) in members {
                text(key, out);
                encode(value, out);
            }
        }
    }
}

/// HMAC-SHA-256 by its definition (RFC 2104), over the encoding.
fn expected(value: &Json) -> Digest {
    let domain = "gate/args/v1";
    let mut inner = vec![7 ^ 0x36; 32];
    inner.resize(64, 0x36);
    inner.extend((domain.len() as u64).to_be_bytes());
    inner.extend(domain.as_bytes());
    encode(value, &mut inner);
    let mut outer = vec![7 ^ 0x5c; 32];
    outer.resize(64, 0x5c);
    outer.extend(Digest::of_bytes(&inner).as_bytes());
    Digest::of_bytes(&outer)
}

/// Another value that is near: one leaf, key or structure differs.
fn changed(value: &Json, choice: u64) -> Json {
    match value {
        Json::Null => Json::Bool(false),
        Json::Bool(value) => Json::Bool(!value),
        Json::Integer(value) if choice.is_multiple_of(3) && value.unsigned_abs() < 1 << 53 => {
            Json::Decimal(*value as f64)
        }
        Json::Integer(value) => Json::Integer(if *value > 0 { value - 1 } else { value + 1 }),
        Json::Decimal(value) => Json::Decimal(value + 1.0),
        Json::Text(text) if choice.is_multiple_of(2) => Json::Text(format!("{text}\0")),
        Json::Text(text) => Json::Array(vec![Json::Text(text.clone())]),
        Json::Array(items) if items.is_empty() => Json::Object(Vec::new()),
        Json::Array(items) => {
            let mut items = items.clone();
            let place = choice as usize % items.len();
            match choice / 7 % 3 {
                0 => drop(items.remove(place)),
                1 => items.push(Json::Null),
                _ => items[place] = changed(&items[place], choice / 21),
            }
            Json::Array(items)
        }
        Json::Object(members) if members.is_empty() => Json::Array(Vec::new()),
        Json::Object(members) => {
            let mut members = members.clone();
            let place = choice as usize % members.len();
            match choice / 7 % 3 {
                0 => drop(members.remove(place)),
                1 => members[place].0.push('\u{1}'),
                _ => members[place].1 = changed(&members[place].1, choice / 21),
            }
            Json::Object(members)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    // K4: independent of spelling and order, and made as it is described.
    #[test]
    fn k4_one_value_has_one_digest(value in model::objects(), seeds in any::<[u64; 2]>()) {
        let expected = expected(&value);
        prop_assert_eq!(digest(&value.to_text(Some(seeds[0]))), expected);
        prop_assert_eq!(digest(&value.shuffled(seeds[1]).to_text(Some(seeds[1]))), expected);
    }

    // K4, R6: no other value has it.
    #[test]
    fn k4_another_value_has_another_digest(value in model::objects(), choice in any::<u64>(), seed in any::<u64>()) {
        let other = changed(&value, choice);
        prop_assume!(matches!(other, Json::Object(_)) && other.sorted() != value.sorted());
        prop_assert_ne!(digest(&value.to_text(Some(seed))), digest(&other.to_text(Some(seed))));
    }

    // The encoding says everything: decoded, it is the value again.
    #[test]
    fn k4_the_encoding_can_be_decoded(value in model::values()) {
        let mut bytes = Vec::new();
        encode(&value, &mut bytes);
        let mut rest = &bytes[..];
        prop_assert_eq!(decode(&mut rest), value.sorted());
        prop_assert!(rest.is_empty());
    }
}
