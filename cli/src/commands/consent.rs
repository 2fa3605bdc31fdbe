//! A signature that is presented with a call.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use callgate_core::audit::{Decision, Record};
use callgate_core::code::Code;
use callgate_core::context::CallContext;
use callgate_core::digest::DigestKey;
use callgate_core::redact::Redaction;
use callgate_core::time::Clock as _;
use callgate_signed::{Granted, MAX_PAYLOAD, Presented, SignedRefusal};
use callgate_std::clock::SystemClock;

use super::sign::signature_file;
use crate::assemble::Open;
use crate::command_line::CallArgs;
use crate::config::Config;
use crate::terminal::shown_path;
use crate::trouble::Trouble;

/// The consent that the signature beside a call gives; `None` where none is presented. One that does not count ends the command, and
/// leaves a record: whoever presents a signature does not want the call without it.
///
/// # Errors
/// Says why it does not count.
pub(super) fn granted(
    args: &CallArgs,
    arguments: &[u8],
    caller: &CallContext<'_>,
    config: &Config,
    open: &Open,
) -> Result<Option<Granted>, Trouble> {
    let Some(file) = &args.signed else { return Ok(None) };
    let payload = read(file)?;
    let signature = read(&args.signature.clone().unwrap_or_else(|| signature_file(file)))?;
    let signature = String::from_utf8_lossy(&signature);
    let Some(authorizer) = &open.stores.authorizer else {
        return Err(Trouble::refused(Code::ConfirmationInvalid, "no signature counts here")
            .with_help("[signed] host and [[signers]] in the configuration say whose does"));
    };
    let now = SystemClock::default().now();
    let presented = Presented {
        tool: &args.tool,
        arguments,
        tenant: caller.tenant,
        principal: caller.known_principal(),
        payload: &payload,
        signature: &signature,
    };
    let refusal = match authorizer.authorize(&presented, &DigestKey::new(open.stores.digest_key), now.wall) {
        Ok(granted) => return Ok(Some(granted)),
        Err(refusal) => refusal,
    };
    let code = if refusal == SignedRefusal::Ledger { Code::StoreUnavailable } else { Code::ConfirmationInvalid };
    let recorded = open.stores.audit.record(&Record::decision(&Decision {
        at: now,
        by: *caller,
        tool: &args.tool,
        arguments: None,
        policy: Some(config.digest()),
        ticket: None,
        operation: None,
        what: "consent",
        refused: Some((code, refusal.as_str())),
        note: None,
        redaction: Redaction::DEFAULT,
    }));
    let trouble = Trouble::refused(code, refusal.to_string());
    Err(match recorded {
        Ok(()) => trouble.with_help("nothing ran; without --signed the call is made as ever"),
        Err(_) => trouble.with_help("nothing ran, and that could not be recorded"),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Trouble> {
    let unreadable = |error: io::Error| Trouble::usage(format!("{} can't be read: {error}", shown_path(path)));
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_PAYLOAD).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(unreadable)?;
    Ok(bytes)
}
