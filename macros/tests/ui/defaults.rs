//! Defaults and choices.
use callgate_macros::Arguments;

#[derive(Arguments)]
struct Defaults {
    #[param(default = "10")]
    text_for_number: u32,
    #[param(default = 10)]
    number_for_text: String,
    #[param(default = 1.5)]
    fraction: i64,
    #[param(default = 300)]
    too_great: u8,
    #[param(default = 1)]
    flag: bool,
    #[param(default = 3)]
    optional: Option<u8>,
    #[param(default = [])]
    list: Vec<u8>,
    #[param(default = u8::MAX)]
    no_literal: u8,
    #[param(clamp(1..=10), default = 11)]
    clamped: u8,
    #[param(range(1..=10), default = 0)]
    refused: u8,
    #[param(default = "ab")]
    letter: char,
    #[param(enum("a", 1))]
    mixed: String,
    #[param(enum())]
    none: String,
    #[param(enum("a", "b", "a"))]
    twice: String,
    #[param(enum(1, 2), clamp(1..=2))]
    both: u8,
    #[param(enum = "a")]
    no_list: String,
}

fn main() {}
