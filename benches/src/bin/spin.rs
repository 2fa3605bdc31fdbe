//! Does one turn of a subject so many times: `spin NAME TURNS`. Without arguments, names the subjects.

use callgate_benches::subject::{NAMES, subject};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(turns)) = (arguments.next(), arguments.next()) else {
        println!("{}", NAMES.join("\n"));
        return;
    };
    let turns: u32 = turns.parse().expect("a number of turns");
    let mut turn = subject(&name).unwrap_or_else(|| panic!("no subject is called {name}; there are {NAMES:?}"));
    (0..turns).for_each(|_| turn());
}
