//! The digest of arguments.

use callgate_core::args::Args;
use callgate_core::digest::{ARGS_DOMAIN, Digest, DigestKey};
use callgate_core::json::Limits;
use serde_json::Value;

use super::{halves, slots};

/// Invariants K4, R6, L3: the digest of arguments is that of their value in the encoding that `core/src/digest.rs` describes, from
/// which the value can be read back; so two texts have one digest exactly when they have one value. The input is two texts, split
/// at the first zero byte.
pub fn digest(data: &[u8]) {
    let (one, two) = halves(data);
    let one = judged(one);
    let (Some((one, first)), Some((two, second))) = (one, judged(two)) else { return };
    assert_eq!(first == second, one == two, "{one} and {two}");
}

/// The value of a text of arguments and its digest, which is what it has to be.
fn judged(text: &[u8]) -> Option<(Value, Digest)> {
    let mut keys = slots(text);
    let args = Args::read(text, &mut keys, &Limits::DEFAULT).ok()?;
    let value: Value = args.parse().expect("what was read can be parsed");
    let mut keys = slots(args.sent().as_bytes());
    let mut digest = |key: u8| args.digest(&DigestKey::new([key; 32]), &mut keys).expect("there is room");
    let (found, under_another) = (digest(KEY), digest(KEY ^ 1));
    assert_ne!(found, under_another, "the key is in it");
    assert_eq!(found, expected(&value), "{value}");
    // Spelled in another way it is the same.
    let mut again = String::new();
    args.write_json(&mut again).expect("a string takes all");
    let mut keys = slots(again.as_bytes());
    let reread = Args::read(again.as_bytes(), &mut keys, &Limits::DEFAULT).expect("what was written can be read");
    assert_eq!(reread.digest(&DigestKey::new([KEY; 32]), &mut keys), Ok(found), "{again}");
    Some((value, found))
}

const KEY: u8 = 3;
/// The length of a block of SHA-256.
const BLOCK: usize = 64;

/// HMAC by its definition (RFC 2104) over the encoding.
fn expected(value: &Value) -> Digest {
    let pad = |with: u8| {
        let mut block = vec![KEY ^ with; 32];
        block.resize(BLOCK, with);
        block
    };
    let mut inner = pad(0x36);
    encode_text(ARGS_DOMAIN, &mut inner);
    encode(value, &mut inner);
    let mut outer = pad(0x5c);
    outer.extend(Digest::of_bytes(&inner).as_bytes());
    Digest::of_bytes(&outer)
}

fn encode_text(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u64).to_be_bytes());
    out.extend(text.as_bytes());
}

fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0),
        Value::Bool(value) => out.push(1 + u8::from(*value)),
        Value::Number(number) => {
            if let Some(value) = number.as_u64() {
                out.push(3);
                out.extend(value.to_be_bytes());
            } else if let Some(value) = number.as_i64() {
                out.push(4);
                out.extend(value.to_be_bytes());
            } else {
                out.push(5);
                out.extend(number.as_f64().expect("the third kind").to_bits().to_be_bytes());
            }
        }
        Value::String(text) => {
            out.push(6);
            encode_text(text, out);
        }
        Value::Array(items) => {
            out.push(7);
            out.extend((items.len() as u64).to_be_bytes());
            items.iter().for_each(|item| encode(item, out));
        }
        Value::Object(members) => {
            out.push(8);
            out.extend((members.len() as u64).to_be_bytes());
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| key.as_bytes());
            for (key, value) in members {
                out.push(6);
                encode_text(key, out);
                encode(value, out);
            }
        }
    }
}
