//! What the gate costs: the work that is measured, and how.
//!
//! - `ratios` compares each subject with its baseline in the same run, in turns, and reads the medians;
//! - `instructions` counts the instructions of one turn exactly, under valgrind, and holds them to `budgets.txt`;
//! - `allocations` counts the allocations of one turn exactly; `tests/allocations.rs` holds them;
//! - `instructions --parts` and `ratios --parts` say what the parts of a call cost at least, each by itself;
//! - `durable` counts the calls a second of callers that wait for the disk, beside one commit for each record;
//! - `spin` does a turn so many times, for whoever wants to look with a profiler.
//!
//! `benches/table` runs them all and prints the table of the README. Programs to compare with that bring many dependencies are in
//! `benches/peers`, a workspace of its own.

pub mod call;
pub mod durable;
pub mod part;
pub mod ratio;
pub mod reader;
pub mod scaling;
pub mod subject;
pub mod waiting;
