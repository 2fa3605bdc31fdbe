//! A subject process: `gate-subject blocking`, or another of the subjects that `callgate_conformance::subjects::named` knows.

use std::io::{self, Write};
use std::process::ExitCode;

use callgate_conformance::serve::serve;
use callgate_conformance::subjects::{NAMES, named};

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some(mut subject) = named(&name) else {
        // Nobody reads: there is nobody to tell.
        drop(writeln!(io::stderr(), "usage: gate-subject SUBJECT; one of {}, or wrong:NAME", NAMES.join(", ")));
        return ExitCode::from(2);
    };
    match serve(&mut *subject, io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "gate-subject: {error}"));
            ExitCode::FAILURE
        }
    }
}
