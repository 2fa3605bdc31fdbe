//! A subject process: `gate-subject blocking`, or another of the subjects that `callgate_conformance::subjects::named` knows.

use std::io::{self, Write};
use std::process::ExitCode;

use callgate_conformance::serve::serve;
use callgate_conformance::subject::Subject;
use callgate_conformance::subjects::{Child, Durable, NAMES, named};

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let directory = std::env::args_os().nth(2);
    let mut subject = match (name.as_str(), directory) {
        // Kills and starts the next line again and again.
        ("durable", None) => {
            std::env::current_exe().ok().map(|program| Box::new(Durable::new(program, ["durable"])) as Box<dyn Subject>)
        }
        ("durable", Some(directory)) => Some(Box::new(Child::new(directory)) as Box<dyn Subject>),
        (name, _) => named(name),
    };
    let Some(subject) = &mut subject else {
        // Nobody reads: there is nobody to tell.
        drop(writeln!(
            io::stderr(),
            "usage: gate-subject SUBJECT; one of {}, durable, or wrong:NAME",
            NAMES.join(", ")
        ));
        return ExitCode::from(2);
    };
    match serve(&mut **subject, io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "gate-subject: {error}"));
            ExitCode::FAILURE
        }
    }
}
