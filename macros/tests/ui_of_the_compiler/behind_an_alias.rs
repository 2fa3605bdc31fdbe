//! What only the compiler finds, because the type's name does not tell.
use callgate_macros::Arguments;

type Name = String;
type Small = u8;

#[derive(Arguments)]
enum Order {
    Up,
    Down,
}

#[derive(Arguments)]
struct Aliased {
    #[param(clamp(1..=3))]
    name: Name,
    #[param(length(1..=3))]
    small: Small,
    #[param(default = "up")]
    order: Order,
    #[param(default = 300)]
    count: Small,
    #[param(range(300..=400))]
    range: Small,
}

fn main() {}
