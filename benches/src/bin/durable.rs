//! Prints what callers that come at once cost each other where they wait for the disk: `durable [CALLERS [SECONDS]]`.
//!
//! Baseline and subjects take turns in one run; the ratio is the median of the rounds' ratios.

use std::time::Duration;

use callgate_benches::durable::{Budgets, Spent, confirm, gate, one_commit_each, read, run};

const ROUNDS: usize = 5;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u32>().expect("a number"));
    let callers = arguments.next().unwrap_or(64) as usize;
    let seconds = Duration::from_secs(arguments.next().unwrap_or(2).into());
    let place = tempfile::tempdir().expect("a directory");
    let directory = |name: &str| {
        let directory = place.path().join(name);
        std::fs::create_dir(&directory).expect("new");
        directory
    };
    let bare = one_commit_each(&directory("bare"));
    let in_memory = gate(&directory("memory"), Budgets::Memory);
    let in_text = gate(&directory("text"), Budgets::Text);
    let in_database = gate(&directory("database"), Budgets::Database);
    let sides: [(&str, &(dyn Fn() + Sync)); 5] = [
        ("one commit for each record, without the gate", &bare),
        ("a call that reads, budgets in memory", &|| read(&in_memory)),
        ("a call that reads, budgets in a file of text", &|| read(&in_text)),
        ("a call that reads, budgets in the database", &|| read(&in_database)),
        ("a call that is asked about and confirmed, budgets in the database", &|| confirm(&in_database)),
    ];
    let mut rounds: Vec<Vec<Spent>> = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(sides.iter().map(|(_, turn)| run(callers, seconds, *turn)).collect());
    }
    println!("{callers} callers at once, {ROUNDS} rounds of {} s each:", seconds.as_secs());
    for (side, (name, _)) in sides.iter().enumerate() {
        let mut ratios: Vec<_> = rounds.iter().map(|round| round[side].per_second() / round[0].per_second()).collect();
        ratios.sort_by(f64::total_cmp);
        let mut all = Spent::default();
        for round in &rounds {
            all.turns.extend(&round[side].turns);
            all.time += round[side].time;
        }
        all.turns.sort_unstable();
        println!(
            "{name}: {:.0} a second, {:.2}x; median {:.1} ms, p99 {:.1} ms, longest {:.1} ms",
            all.per_second(),
            ratios[ROUNDS / 2],
            all.at(50),
            all.at(99),
            all.at(100)
        );
    }
}
