//! What may stand on the command line about operations.

use clap::{Args, Subcommand};

use super::approvals::Outcome;
use super::{CallerArgs, operation};

const EXAMPLES: &str = "\
Examples:
  callgate call fs.write --args-file a.json --operation order-7
  callgate operations list
  callgate operations resolve order-7 --outcome none --proof 'there is no such file'";

#[derive(Subcommand, Debug)]
pub(crate) enum OperationsCommand {
    /// List one's own operations, and with the scope `reconcile` all of the tenant
    List(OperationsListArgs),
    /// Settle an operation in doubt: its call was lost, or failed without saying what it did
    ///
    /// Nothing runs again by itself. Whoever has found out what happened says so, with how it is known; that stands in the record. It takes
    /// the scope `reconcile`. With outcome `none` the next call of it may try again.
    Resolve(SettleArgs),
}

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct OperationsListArgs {
    /// Print the operations as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SettleArgs {
    /// The id that its caller gave the operation
    #[arg(value_name = "ID", value_parser = operation)]
    pub(crate) id: String,
    /// Whose operation it is, where several principals used the id
    #[arg(long, value_name = "PRINCIPAL")]
    pub(crate) of: Option<String>,
    /// What the call did
    #[arg(long, value_name = "OUTCOME")]
    pub(crate) outcome: Outcome,
    /// How that is known, for people and for the record
    #[arg(long, value_name = "TEXT")]
    pub(crate) proof: String,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}
