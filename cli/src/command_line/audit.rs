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
    /// Follows the chain of hashes through all segments and the log itself and compares its end with the head that is kept beside it, and
    /// with a checkpoint where one is given. Every problem is reported with its line. Exit status 0 when the record is whole, 1 when it is not.
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
    /// Put the log aside as a segment, and go on with a new one
    ///
    /// The chain goes through the segments: `audit verify` follows it through all of them. Old segments are removed as [audit] in the
    /// configuration says, none with a call that is open, and the log records that they were.
    Rotate(RotateArgs),
    /// Sign the head of the log, to be kept where whoever writes the log can't reach
    ///
    /// The log is verified first; one that is broken is not vouched for. Against its last checkpoint a log that was cut off or written
    /// anew shows: `callgate audit verify --checkpoint FILE --allowed-signers FILE`.
    #[command(after_help = CHECKPOINT_EXAMPLES)]
    Checkpoint(CheckpointArgs),
}

const CHECKPOINT_EXAMPLES: &str = "\
Examples:
  ssh-keygen -t ed25519 -N '' -f checkpoint_key
  callgate audit checkpoint --key checkpoint_key --out monday.checkpoint
  echo \"ops $(cat checkpoint_key.pub)\" > allowed
  callgate audit verify --checkpoint monday.checkpoint --allowed-signers allowed

Exit status: 0 signed, 1 the log is broken, 2 usage.";

#[derive(Args, Debug)]
pub(crate) struct RotateArgs {
    /// Print what was put aside and removed as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CheckpointArgs {
    /// The log [default: that of the configuration]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// The private key of OpenSSH (Ed25519, not locked) that signs [default: that of [audit.checkpoint]]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<PathBuf>,
    /// Write it to this file, which must not be there yet, instead of standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// The name of the log in it [default: that of [audit.checkpoint], else of the host, else of the file]
    #[arg(long, value_name = "NAME")]
    pub(crate) log: Option<String>,
}

/// The checkpoint that a log is held against.
#[derive(Args, Debug)]
pub(crate) struct CheckedArgs {
    /// Hold the log against this checkpoint as well; of a directory of them, against the last one
    #[arg(long, value_name = "FILE", requires = "allowed_signers", value_hint = ValueHint::AnyPath)]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Who may have signed it: a file of allowed signers, as ssh-keygen(1) describes it
    #[arg(long, value_name = "FILE", requires = "checkpoint", value_hint = ValueHint::FilePath)]
    pub(crate) allowed_signers: Option<PathBuf>,
    /// The name of the log in it [default: as for `audit checkpoint`]
    #[arg(long, value_name = "NAME", requires = "checkpoint")]
    pub(crate) log: Option<String>,
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
    #[command(flatten)]
    pub(crate) checked: CheckedArgs,
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
