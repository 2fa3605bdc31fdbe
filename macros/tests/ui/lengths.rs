//! Lengths and counts.
use callgate_macros::Arguments;

#[derive(Arguments)]
struct Lengths {
    #[param(length(1..=10))]
    number: u32,
    #[param(clamp_length(..=10))]
    other_number: f64,
    #[param(length(1..=10))]
    list: Vec<String>,
    #[param(items(1..=10))]
    text: String,
    #[param(length(-1..))]
    negative: String,
    #[param(clamp_length(2..=10))]
    stretched: String,
    #[param(length(0..=0.5))]
    fraction: String,
}

fn main() {}
