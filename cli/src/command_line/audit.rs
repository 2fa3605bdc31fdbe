//! What may stand on the command line about the log.

use std::path::PathBuf;

use callgate_core::audit::chain::Head;
use clap::{Args, Subcommand, ValueHint};

#[derive(Subcommand, Debug)]
pub(crate) enum AuditCommand {
    /// Show the latest records
    Tail(TailArgs),
    /// Check that no record was changed, removed or added
    ///
    /// Follows the chain of hashes through the whole file and compares its end with the head that is kept beside it. Every
    /// problem is reported with its line. Exit status 0 when the record is whole, 1 when it is not.
    Verify(VerifyArgs),
    /// Explain one call from its record: which stage said what, and whether the gate of now would say the same
    ///
    /// The call is made again as a plan, on a gate that keeps nothing: no tool runs, nothing is asked, charged or recorded.
    Explain(ExplainArgs),
    /// Write the whole record as JSON Lines, for keeping or for another program
    ///
    /// The lines are those of a file's log, so `callgate audit verify FILE --head SEQ:HASH` verifies them; the head is told on
    /// standard error.
    Export(ExportArgs),
    /// Close the calls that were started and not heard of within their lease
    ///
    /// Their process died, or takes longer than it may: each gets an end, `lost`, with the effect `unknown`, and requests that such a
    /// call held are left in doubt. Nothing runs by it. `call`, `serve` and `proxy` do the same when they start, and the servers from time
    /// to time. Exit status 1 when something could not be looked after.
    Reap(ReapArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ReapArgs {
    /// Print what was closed as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TailArgs {
    /// How many records
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(crate) lines: usize,
    /// Go on with the records that come, until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print the records as they are, one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// The log [default: that of the configuration]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// The log [default: that of the configuration]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Compare with this head, which was copied before, instead of the one that stands beside the log
    #[arg(long, value_name = "SEQ:HASH", value_parser = crate::commands::parse_head)]
    pub(crate) head: Option<Head>,
    /// The file is an excerpt that begins behind this line, such as a dump of a device's log
    #[arg(long, value_name = "SEQ:HASH", value_parser = crate::commands::parse_head)]
    pub(crate) after: Option<Head>,
    /// Print the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// The request id of the call, or the number of one of its lines
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The log [default: that of the configuration]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// The log [default: that of the configuration]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
}
