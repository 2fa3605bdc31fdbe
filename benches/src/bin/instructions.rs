//! Counts the instructions of one turn of each subject under valgrind, and holds them to the budgets in `budgets.txt`.
//!
//! `instructions` prints the counts; `instructions --check` fails for a subject that is over its budget by more than the tolerance,
//! or far enough under it that the budget says nothing any more; `instructions --write` writes the counts down as the budgets.
//! `instructions --parts` prints what the parts of a call cost at least; no budget holds them.
//! Without valgrind it says so and succeeds, because what it holds is not a matter of correctness.
//!
//! A count is the difference of two runs of `spin`, divided by the difference of their turns, so that what happens once does not
//! count. It is exact on one machine with one compiler; another processor makes the library's routines for memory choose other
//! instructions, which is what the tolerance is for.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use callgate_benches::part::PARTS;
use callgate_benches::subject::NAMES;

/// How far a count may be from its budget, in percent of it.
const TOLERANCE: f64 = 5.0;

fn main() -> ExitCode {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("instructions are not counted: valgrind is not installed");
        return ExitCode::SUCCESS;
    }
    let mode = std::env::args().nth(1).unwrap_or_default();
    let budgets = Path::new(env!("CARGO_MANIFEST_DIR")).join("budgets.txt");
    let held = std::fs::read_to_string(&budgets).unwrap_or_default();
    let budget = |name: &str| {
        let line = held.lines().find_map(|line| line.split_once('\t').filter(|(_, of)| *of == name))?;
        line.0.trim().parse::<f64>().ok()
    };
    let mut failed = false;
    let mut written = String::new();
    let names: &[&str] = if mode == "--parts" { &PARTS } else { &NAMES };
    for name in names.iter().copied() {
        let count = count(name);
        let note = match budget(name) {
            Some(budget) if mode == "--check" && (count - budget).abs() > budget * TOLERANCE / 100.0 => {
                failed = true;
                format!("budget {budget:.0}, {:+.1} %: more than {TOLERANCE} % off", (count / budget - 1.0) * 100.0)
            }
            None if mode == "--check" => {
                failed = true;
                "no budget".to_owned()
            }
            Some(budget) => format!("budget {budget:.0}, {:+.1} %", (count / budget - 1.0) * 100.0),
            None => String::new(),
        };
        println!("| {name} | {count:.0} | {note} |");
        written += &format!("{count:>9.0}\t{name}\n");
    }
    if mode == "--write" {
        std::fs::write(&budgets, written).expect("the budgets can be written");
    }
    if failed {
        println!("write the new counts down with `instructions --write`, and say in the commit why they changed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The instructions of one turn.
fn count(name: &str) -> f64 {
    let (few, many) = if name.ends_with("KiB") { (2, 6) } else { (100, 1_100) };
    (total(name, many) - total(name, few)) / f64::from(many - few)
}

/// The instructions of a whole run.
fn total(name: &str, turns: u32) -> f64 {
    let spin = std::env::current_exe().expect("a program has a path").with_file_name("spin");
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(spin)
        .args([name, &turns.to_string()])
        .output()
        .expect("valgrind runs");
    let report = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{report}");
    let collected = report.lines().find_map(|line| line.split_once("Collected :"));
    collected.and_then(|(_, count)| count.trim().parse().ok()).unwrap_or_else(|| panic!("no count in {report}"))
}
