//! A value of the arguments has no serde form (L1).

use world::*;

pub fn drive(value: Value<'_>) {
    serialize(&value); //~ E0277
}
