//! A value of the arguments has no serde form (L1).

use world::*;

pub fn drive(value: Value<'_>) {
    drop(value.write_json(&mut String::new()));
}
