//! What may stand on the command line about requests that wait.

use callgate_core::digest::Digest;
use clap::{Args, Subcommand};

use super::CallerArgs;
use super::grants::{GrantArgs, GrantsArgs, RevokeArgs};

const APPROVE_EXAMPLES: &str = "\
Examples:
  callgate approvals list --principal ann --scope approve
  callgate approvals show 3fa1c02b77aa --principal ann --scope approve
  callgate approvals approve 3fa1c02b77aa --principal ann --scope approve
  callgate approvals deny 3fa1c02b77aa --principal ann --scope approve

Nobody decides a request of their own, and the first answer stands.";

#[derive(Subcommand, Debug)]
pub(crate) enum ApprovalsCommand {
    /// List what this approver could decide now
    List(WaitingArgs),
    /// Show one request, with every value that would run
    Show(ShowArgs),
    /// Watch what waits on a screen, and decide with keys; or in a browser, with --web
    Watch(WatchArgs),
    /// Let a request run, once, when its caller comes back with its token
    Approve(ApproveArgs),
    /// Have a request never run
    Deny(AnswerArgs),
    /// Take back a request of one's own
    Cancel(AnswerArgs),
    /// Settle a request in doubt: its call was claimed and never heard of again
    ///
    /// Nothing runs again by itself. Whoever has found out what happened says so, with how it is known; that stands in the record. It takes
    /// the scope `reconcile`.
    Resolve(ResolveArgs),
    /// List the standing grants: a yes beforehand to calls that have not been made yet
    Grants(GrantsArgs),
    /// Say yes beforehand: to so many calls of one tool, by one principal, with such arguments, for a time
    Grant(GrantArgs),
    /// Take a standing grant back: from the answer on it covers nothing
    Revoke(RevokeArgs),
}

/// What a call in doubt did.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It took effect
    Done,
    /// It changed nothing
    None,
}

#[derive(Args, Debug)]
pub(crate) struct ResolveArgs {
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
    /// What the call did
    #[arg(long, value_name = "OUTCOME")]
    pub(crate) outcome: Outcome,
    /// How that is known, for people and for the record
    #[arg(long, value_name = "TEXT")]
    pub(crate) proof: String,
}

#[derive(Args, Debug)]
#[command(after_help = APPROVE_EXAMPLES)]
pub(crate) struct WaitingArgs {
    /// Also what is decided, used up or in doubt, as far as it is kept: one's own, what one could decide, and with the scope
    /// `reconcile` all of it
    #[arg(long)]
    pub(crate) all: bool,
    /// Print the requests as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

const WATCH_EXAMPLES: &str = "\
Examples:
  callgate approvals watch --principal ann --scope approve
  callgate approvals watch --web --principal ann --scope approve

Keys: up and down select, page up and down scroll, a approves, d denies (each
asks once more), r looks again, q leaves.";

#[derive(Args, Debug)]
#[command(after_help = WATCH_EXAMPLES)]
pub(crate) struct WatchArgs {
    /// Serve it as a page to one browser on this machine; its address is printed
    #[arg(long)]
    pub(crate) web: bool,
    /// The port of the page; 0 is a free one
    #[arg(long, value_name = "PORT", default_value_t = 0, requires = "web")]
    pub(crate) port: u16,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

#[derive(Args, Debug)]
#[command(after_help = APPROVE_EXAMPLES)]
pub(crate) struct ShowArgs {
    /// The approval id that the question named, or the first eight digits of it or more
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Print the request as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

#[derive(Args, Debug)]
#[command(after_help = APPROVE_EXAMPLES)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
    /// Approve only arguments of this digest. Needed where a request is too long to be shown whole
    #[arg(long, value_name = "DIGEST", value_parser = digest)]
    pub(crate) digest: Option<Digest>,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = APPROVE_EXAMPLES)]
pub(crate) struct AnswerArgs {
    /// The approval id that the question named, or the first eight digits of it or more
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

impl AnswerArgs {
    /// The same answer, to arguments of this digest only.
    pub(crate) fn with_digest(&self, digest: Option<Digest>) -> ApproveArgs {
        ApproveArgs { answer: self.clone(), digest }
    }
}

pub(super) fn digest(text: &str) -> Result<Digest, &'static str> {
    text.parse().map_err(|_| "a digest has 64 hexadecimal digits")
}
