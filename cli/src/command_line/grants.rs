//! What may stand on the command line about standing grants.

use std::time::Duration;

use callgate_core::digest::Digest;
use callgate_std::confirmations::{MAX_GRANT_MS, MAX_GRANT_USES};
use clap::Args;

use super::{CallerArgs, approvals, principal};

const GRANT_EXAMPLES: &str = "\
Examples:
  # what ann's agent may write by itself today, five times
  callgate approvals grant fs.write --to ann --including '{\"path\":\"log.md\"}' \\
      --lasts 8h --uses 5 --principal boss --scope grant
  callgate approvals grants --principal boss --scope grant
  callgate approvals revoke 3fa1c02b77aa --principal boss --scope grant

It takes the scope `grant`, and nobody gives a grant to itself. A covered call
passes every stage, the policy included; it is only not asked about.

Exit status: 0 done, 2 usage, 3 refused.";

#[derive(Args, Debug)]
#[command(after_help = GRANT_EXAMPLES)]
pub(crate) struct GrantArgs {
    /// The tool
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// Whose calls are covered, in the tenant of whoever gives the grant
    #[arg(long, value_name = "PRINCIPAL", value_parser = principal)]
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) arguments: GrantedArguments,
    /// For how long: 30s, 15m, 8h or 7d, at most 90 days
    #[arg(long, value_name = "TIME", value_parser = lasts)]
    pub(crate) lasts: Duration,
    /// For how many calls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_GRANT_USES)))]
    pub(crate) uses: u32,
    /// The digest of the tool's definition [default: that of the tool of this name in the configuration]
    #[arg(long, value_name = "DIGEST", value_parser = approvals::digest)]
    pub(crate) definition: Option<Digest>,
    /// Print the grant as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

/// For which arguments.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct GrantedArguments {
    /// Only the arguments with this digest, as `approvals show` names it
    #[arg(long, value_name = "DIGEST", value_parser = approvals::digest)]
    pub(crate) exactly: Option<Digest>,
    /// Arguments that have these members with these values: a JSON object, or @FILE
    #[arg(long, value_name = "JSON")]
    pub(crate) including: Option<String>,
    /// Arguments that this JSON Schema accepts: its text, or @FILE
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) fitting: Option<String>,
}

#[derive(Args, Debug)]
#[command(after_help = GRANT_EXAMPLES)]
pub(crate) struct GrantsArgs {
    /// Print the grants as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

#[derive(Args, Debug)]
#[command(after_help = GRANT_EXAMPLES)]
pub(crate) struct RevokeArgs {
    /// The grant's id, or the first eight digits of it or more
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Print what was found as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) caller: CallerArgs,
}

/// A time that a grant may last.
fn lasts(text: &str) -> Result<Duration, &'static str> {
    const EXPECTED: &str = "a whole number and one of s, m, h, d, such as 8h";
    let unit = text.chars().next_back().ok_or(EXPECTED)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(EXPECTED),
    };
    let number = text.strip_suffix(unit).ok_or(EXPECTED)?;
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(EXPECTED);
    }
    let number: u64 = number.parse().map_err(|_| EXPECTED)?;
    let lasts = Duration::from_secs(number.checked_mul(seconds).ok_or(EXPECTED)?);
    if lasts.is_zero() || lasts > Duration::from_millis(MAX_GRANT_MS) {
        return Err("a grant lasts for 1 s to 90 days");
    }
    Ok(lasts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a7_a_grant_has_an_end() {
        for (text, seconds) in [("30s", 30), ("15m", 900), ("8h", 28_800), ("90d", 7_776_000)] {
            assert_eq!(lasts(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "s", "8", "8x", "0h", "91d", "-1h", "+1h", "1.5h", "8 h", "8hh", "18446744073709551615d", "ä"]
        {
            assert!(lasts(text).is_err(), "{text}");
        }
    }
}
