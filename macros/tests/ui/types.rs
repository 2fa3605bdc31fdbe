//! Types that have no schema.
use callgate_macros::{Arguments, Output};

#[derive(Arguments)]
struct Generic<T> {
    a: T,
}

#[derive(Arguments)]
struct Pair(u8, u8);

#[derive(Arguments)]
enum Empty {}

#[derive(Arguments)]
enum Unlike {
    Pair(u8, u8),
}

#[derive(Arguments)]
union Union {
    a: u8,
}

#[derive(Arguments)]
struct OfSerde {
    #[serde(flatten)]
    a: u8,
    #[serde(alias = "c")]
    b: u8,
}

#[derive(Arguments)]
#[serde(tag = "kind")]
enum Tagged {
    A,
}

#[derive(Output)]
struct Written {
    #[serde(with = "module")]
    a: u8,
    #[serde(rename(serialize = "c", deserialize = "d"))]
    b: u8,
}

#[derive(Output)]
#[serde(untagged)]
enum Untagged {
    A,
}

#[derive(Output)]
struct Unlikes(u8, u8);

#[derive(Output)]
enum Same {
    A,
    #[serde(rename = "A")]
    B,
}

fn main() {}
