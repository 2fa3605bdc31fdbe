//! Words that an attribute does not know, or knows otherwise.
use callgate_macros::{Arguments, tool};

/// Does something
#[tool(mutatin)]
fn misspelt() {}

/// Does something
#[tool(colour = "red")]
fn unknown() {}

/// Does something
#[tool(mutating = true)]
fn a_flag_with_a_value() {}

/// Does something
#[tool(mutating, mutating)]
fn said_twice() {}

/// Does something
#[tool(mutating, read_only)]
fn contradicts_itself() {}

/// Does something
#[tool(name = "a b")]
fn no_name() {}

/// Does something
#[tool(scopes())]
fn no_scopes() {}

/// Does something
#[tool(scopes("notes read"))]
fn no_scope() {}

/// Does something
#[tool(confirm)]
fn who_confirms() {}

/// Does something
#[tool(confirm(anybody))]
fn somebody_confirms() {}

/// Does something
#[tool(timeout = 30)]
fn no_unit() {}

/// Does something
#[tool(timeout = "0s")]
fn no_time() {}

/// Does something
#[tool(cost = 0)]
fn no_cost() {}

#[derive(Arguments)]
struct Misspelt {
    #[param(clmp(1..=3))]
    a: u8,
    #[param(secret, secret)]
    b: u8,
}

#[derive(Arguments)]
#[arguments(rename = "x")]
struct Container {
    a: u8,
}

#[derive(Arguments)]
#[arguments(rename_all = "camelcase")]
struct Case {
    a: u8,
}

fn main() {}
