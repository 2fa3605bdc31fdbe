//! Types that are no parameters and no results.
use callgate_macros::{Arguments, Output};

struct Mine;

#[derive(Arguments)]
struct Wrong {
    mine: Mine,
    ok: u8,
}

#[derive(Output)]
struct Result {
    mine: Mine,
}

fn main() {}
