//! The `callgate` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    callgate::commands::main()
}
