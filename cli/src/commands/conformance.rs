//! `callgate conformance`.

use std::fs;
use std::io;
use std::time::Duration;

use callgate_conformance::baseline::Baseline;
use callgate_conformance::library::{Library, LibraryError};
use callgate_conformance::process::Process;
use callgate_conformance::report::{human, json, junit};
use callgate_conformance::run::{Judged, Report, Runner};
use callgate_conformance::serve::serve;
use callgate_conformance::subject::Subject;
use callgate_conformance::subjects::{Blocking, NAMES, named};
use callgate_conformance::vector::Profile;

use crate::command_line::{ConformanceArgs, ProfileName, ReportFormat, SubjectArgs};
use crate::exit::Exit;
use crate::terminal::{Stream, Terminal, fit, shown_path, visible, visible_lines};
use crate::trouble::Trouble;

pub(super) fn run(args: &ConformanceArgs, terminal: &mut Terminal) -> Result<Exit, Trouble> {
    let all = match &args.vectors {
        Some(directory) => Library::read(directory),
        None => Library::built_in(),
    };
    let all = all.map_err(|error: LibraryError| Trouble::usage(error.to_string()))?;
    let mut some = all.clone().matching(&args.filter);
    if let Some(profile) = args.profile {
        some = some.of_profile(match profile {
            ProfileName::Ordering => Profile::Ordering,
            ProfileName::Seed => Profile::Seed,
            ProfileName::Hardened => Profile::Hardened,
        });
    }
    if some.vectors().is_empty() {
        return Err(Trouble::usage("no vector fits, so nothing can be judged"));
    }
    let runner = Runner::new().seeded(args.seed).knowing(baseline(args)?);
    let mut subject = subject_of(args)?;
    let mut progress = Progress { stream: &mut terminal.err, done: 0 };
    let report = runner.run(&mut *subject, some.vectors(), all.vectors(), |judged, all| progress.tell(judged, all));
    progress.end();
    terminal.out.print(&written(args.format, &report)?);
    Ok(if report.holds() { Exit::Success } else { Exit::Failed })
}

/// Speaks the protocol until the runner says goodbye. Standard output belongs to the protocol.
pub(super) fn subject(args: &SubjectArgs) -> Result<Exit, Trouble> {
    let unknown = || {
        let trouble = Trouble::usage(format!("there is no subject `{}`", args.name));
        trouble.with_help(format!("there are {}, and wrong:NAME", NAMES.join(", ")))
    };
    let mut subject = named(&args.name).ok_or_else(unknown)?;
    match serve(&mut *subject, io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => Ok(Exit::Success),
        Err(error) => Err(Trouble::failed(format!("the protocol broke off: {error}"))),
    }
}

fn baseline(args: &ConformanceArgs) -> Result<Baseline, Trouble> {
    let Some(path) = &args.baseline else { return Ok(Baseline::default()) };
    let wrong = |why: String| Trouble::usage(format!("the baseline {}: {why}", shown_path(path)));
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    Baseline::read(&text).map_err(|error| wrong(error.to_string()))
}

fn subject_of(args: &ConformanceArgs) -> Result<Box<dyn Subject>, Trouble> {
    let Some((program, arguments)) = args.command.split_first() else { return Ok(Box::new(Blocking::new())) };
    let started = Process::start(program, arguments, Duration::from_secs(args.timeout));
    let process = started.map_err(|fault| {
        let help = "the program speaks the protocol of conformance/PROTOCOL.md on its standard input and output";
        Trouble::failed(fault.to_string()).with_help(help)
    })?;
    Ok(Box::new(process))
}

fn written(format: ReportFormat, report: &Report) -> Result<String, Trouble> {
    Ok(match format {
        ReportFormat::Human => visible_lines(&human(report)),
        ReportFormat::Json => format!("{}\n", json(report)),
        ReportFormat::Junit => junit(report).map_err(|error| Trouble::failed(error.to_string()))?,
    })
}

/// One line that is written over and over, for whoever watches.
struct Progress<'t> {
    stream: &'t mut Stream,
    done: usize,
}

impl Progress<'_> {
    fn tell(&mut self, judged: &Judged, all: usize) {
        self.done = self.done.saturating_add(1);
        let line = format!("{}/{all} {}", self.done, visible(&judged.id));
        self.write(&line);
    }

    fn end(&mut self) {
        self.write("");
        if self.stream.is_terminal() {
            self.stream.print("\r");
        }
    }

    fn write(&mut self, line: &str) {
        if self.stream.is_terminal() {
            let width = self.stream.width().saturating_sub(1);
            self.stream.print(&format!("\r{:<width$}", fit(line, width)));
        }
    }
}
