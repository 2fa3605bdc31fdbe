//! Bounds of numbers.
use callgate_macros::Arguments;

#[derive(Arguments)]
struct Bounds {
    #[param(clamp(1..=10))]
    text: String,
    #[param(range(1..=10))]
    other_text: Option<String>,
    #[param(range(0..=1))]
    flag: bool,
    #[param(clamp(1..=3))]
    list: Vec<u8>,
    #[param(range(10..=1))]
    swapped: u32,
    #[param(range(1..10))]
    half_open: u32,
    #[param(range(..))]
    nothing: u32,
    #[param(range(5))]
    no_range: u32,
    #[param(clamp)]
    no_bounds: u32,
    #[param(clamp = 1..=3)]
    no_parentheses: u32,
    #[param(range(0..=300))]
    too_wide: u8,
    #[param(range(-1..))]
    negative: Option<u64>,
    #[param(range(0.5..=1.5))]
    fraction: i32,
    #[param(clamp(0..=18446744073709551615))]
    beyond: u64,
}

fn main() {}
