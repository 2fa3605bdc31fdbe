//! What may stand on the command line about judging gates.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

const CONFORMANCE_EXAMPLES: &str = "\
Examples:
  # this gate
  callgate conformance run
  # another one, in any language: a program that speaks the protocol
  callgate conformance run --profile ordering -- python3 adapter.py
  # one rule, with all that is wrong
  callgate conformance run --filter A5 -- ./adapter
  callgate conformance run --format junit --baseline known.json -- ./adapter
  # a thousand scripts that nobody thought of; then the one that was found
  callgate conformance run --random 1000 --seed 7 --save found -- ./adapter
  callgate conformance run --vectors found -- ./adapter

Ctrl-C ends a run with what is known so far.

Exit status: 0 it holds what it was judged by, 1 it does not, or could not be
judged, 2 usage, 128 and the number of a signal that ended it.";

#[derive(Subcommand, Debug)]
pub(crate) enum ConformanceCommand {
    /// Run the vectors at a gate, and report every failure
    Run(Box<ConformanceArgs>),
    /// Be a gate under test: speak the protocol on standard input and output
    Subject(SubjectArgs),
}

#[derive(Args, Debug)]
#[command(after_help = CONFORMANCE_EXAMPLES)]
pub(crate) struct ConformanceArgs {
    /// Only the vectors of this profile
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<ProfileName>,
    /// Only vectors whose id contains this, or that hold the rule of this number
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) filter: String,
    /// Where randomness comes from, for gates that can be told: the same seed repeats a run
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Instead of the vectors, run so many scripts of chance, and compare with the reference model
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["profile", "filter", "baseline", "vectors"], value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) random: Option<u32>,
    /// Save the smallest script at which the gate differs from the model there, as a vector
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "random")]
    pub(crate) save: Option<PathBuf>,
    /// How long one answer may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// Failures that are known, each with its reason; an entry that is stale fails the run
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) baseline: Option<PathBuf>,
    /// The vectors of this directory instead of those that are built in
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) vectors: Option<PathBuf>,
    /// How to report
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: ReportFormat,
    /// The program that speaks the protocol, and its arguments [default: this gate, in this process]
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// The profiles of the suite.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub(crate) enum ProfileName {
    /// What any gate must hold
    Ordering,
    /// What the documents of the systems before promise
    Seed,
    /// What those systems leak
    Hardened,
}

/// How a report is written.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub(crate) enum ReportFormat {
    /// For people
    Human,
    /// For programs
    Json,
    /// For continuous integration
    Junit,
}

#[derive(Args, Debug)]
pub(crate) struct SubjectArgs {
    /// Which: blocking, steps, model, or wrong:NAME for a model that is wrong on purpose
    #[arg(value_name = "SUBJECT", default_value = "blocking")]
    pub(crate) name: String,
}
