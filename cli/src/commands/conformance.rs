//! `callgate conformance`.

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use callgate_conformance::baseline::Baseline;
use callgate_conformance::library::{Library, LibraryError};
use callgate_conformance::process::Process;
use callgate_conformance::random::Random;
use callgate_conformance::report::{human, json, junit};
use callgate_conformance::run::{Report, Runner};
use callgate_conformance::serve::serve;
use callgate_conformance::stop::Stop;
use callgate_conformance::subject::Subject;
use callgate_conformance::subjects::{Blocking, NAMES, named};
#[cfg(unix)]
use callgate_conformance::subjects::{Command, Store};
use callgate_conformance::vector::{FORMAT, Profile, Vector, VectorFile};

use crate::command_line::{ConformanceArgs, ProfileName, ReportFormat, SubjectArgs};
use crate::exit::Exit;
use crate::interrupt;
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
    let stop = Stop::when(interrupt::happened);
    let runner = Runner::new().seeded(args.seed).knowing(baseline(args)?).until(stop.clone());
    let mut subject = subject_of(args, stop)?;
    // From here on a signal ends the run with what is known so far.
    interrupt::listen();
    let mut progress = Progress::new(&mut terminal.err);
    let report = match args.random {
        None => {
            let mut done = 0_usize;
            runner.run(&mut *subject, some.vectors(), all.vectors(), |judged, all| {
                done = done.saturating_add(1);
                progress.tell(&format!("{done}/{all} {}", visible(&judged.id)));
            })
        }
        Some(scripts) => by_chance(scripts, args.seed, &mut *subject, &mut progress),
    };
    progress.end();
    if let (Some(directory), Some(vector)) =
        (&args.save, report.chance.as_ref().and_then(|chance| chance.found.as_ref()))
    {
        let path = save(directory, vector)?;
        terminal.err.line(format_args!("saved: {}", shown_path(&path)));
    }
    terminal.out.print(&written(args.format, &report)?);
    Ok(match interrupt::signal() {
        Some(signal) if report.is_cut_short() => Exit::Interrupted(signal),
        _ if report.holds() => Exit::Success,
        _ => Exit::Failed,
    })
}

/// Runs scripts of chance at the subject.
fn by_chance(scripts: u32, seed: u64, subject: &mut dyn Subject, progress: &mut Progress<'_>) -> Report {
    let scripts = usize::try_from(scripts).unwrap_or(usize::MAX);
    let hunted = Random::new(seed, scripts).hunt(subject, |run, tried| {
        progress.tell(&match tried {
            0 => format!("{run}/{scripts} scripts"),
            _ => format!("script {run} differs; tried to make it smaller {tried} times"),
        });
        if interrupt::happened() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    Report::of_chance(subject.declaration().clone(), hunted)
}

/// Saves a vector as a file of its own.
fn save(directory: &Path, vector: &Vector) -> Result<PathBuf, Trouble> {
    let about = "A script of chance at which a gate differed from the model".to_owned();
    let file = VectorFile { schema: None, format: FORMAT, about, vectors: vec![vector.clone()] };
    let path = directory.join(format!("{}.json", vector.id));
    let write = || {
        fs::create_dir_all(directory)?;
        fs::write(&path, serde_json::to_string_pretty(&file)? + "\n")
    };
    write().map_err(|error: io::Error| Trouble::failed(format!("{}: {error}", shown_path(&path))))?;
    Ok(path)
}

/// Speaks the protocol until the runner says goodbye. Standard output belongs to the protocol.
pub(super) fn subject(args: &SubjectArgs) -> Result<Exit, Trouble> {
    let unknown = || {
        let trouble = Trouble::usage(format!("there is no subject `{}`", args.name));
        trouble.with_help(format!("there are {}{OF_COMMAND}, and wrong:NAME", NAMES.join(", ")))
    };
    let mut subject = of_command(&args.name).or_else(|| named(&args.name)).ok_or_else(unknown)?;
    match serve(&mut *subject, io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => Ok(Exit::Success),
        Err(error) => Err(Trouble::failed(format!("the protocol broke off: {error}"))),
    }
}

/// The names of the command itself as a subject.
const OF_COMMAND: &str = if cfg!(unix) { ", command, command-files" } else { "" };

/// The command itself: each call a process of its own, with its state in a database or in files.
#[cfg(unix)]
fn of_command(name: &str) -> Option<Box<dyn Subject>> {
    let store = match name {
        "command" => Store::Database,
        "command-files" => Store::Files,
        _ => return None,
    };
    Some(Box::new(Command::new(std::env::current_exe().ok()?, store)))
}

/// Programs are run as tools on Unix only.
#[cfg(not(unix))]
fn of_command(_: &str) -> Option<Box<dyn Subject>> {
    None
}

fn baseline(args: &ConformanceArgs) -> Result<Baseline, Trouble> {
    let Some(path) = &args.baseline else { return Ok(Baseline::default()) };
    let wrong = |why: String| Trouble::usage(format!("the baseline {}: {why}", shown_path(path)));
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    Baseline::read(&text).map_err(|error| wrong(error.to_string()))
}

fn subject_of(args: &ConformanceArgs, stop: Stop) -> Result<Box<dyn Subject>, Trouble> {
    let Some((program, arguments)) = args.command.split_first() else { return Ok(Box::new(Blocking::new())) };
    let started = Process::start(program, arguments, Duration::from_secs(args.timeout));
    let process = started.map_err(|fault| {
        let help = "the program speaks the protocol of conformance/PROTOCOL.md on its standard input and output";
        Trouble::failed(fault.to_string()).with_help(help)
    })?;
    Ok(Box::new(process.until(stop)))
}

fn written(format: ReportFormat, report: &Report) -> Result<String, Trouble> {
    Ok(match format {
        ReportFormat::Human => visible_lines(&human(report)),
        ReportFormat::Json => format!("{}\n", json(report)),
        ReportFormat::Junit => junit(report).map_err(|error| Trouble::failed(error.to_string()))?,
    })
}

/// How often it is said how far a run is where nobody sees a line that is written over and over.
const SAID_EVERY: Duration = Duration::from_secs(10);

/// How far a run is, for whoever watches: one line that is written over and over, or a line now and then.
struct Progress<'t> {
    stream: &'t mut Stream,
    said: Instant,
}

impl<'t> Progress<'t> {
    fn new(stream: &'t mut Stream) -> Self {
        Self { stream, said: Instant::now() }
    }

    fn tell(&mut self, line: &str) {
        if self.stream.is_terminal() {
            self.write(line);
        } else if self.said.elapsed() >= SAID_EVERY {
            self.said = Instant::now();
            self.stream.line(line);
        }
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
