//! Whether a signature is a yes to one call.

use std::fmt;
use std::sync::Arc;

use callgate_core::args::Args;
use callgate_core::confirm::MAX_SKEW_MS;
use callgate_core::context::SignedConsent;
use callgate_core::digest::{Digest, DigestBuilder, DigestKey};
use callgate_core::json::{KeysFull, Limits, ReadError};
use callgate_core::time::Timestamp;
use callgate_std::nonces::NonceLedger;

use crate::key::VerifyingKey;
use crate::operation::{MAX_PAYLOAD, Operation, OperationError, room};

/// How old a signature may be where a host says nothing else, in milliseconds.
pub const DEFAULT_WINDOW_MS: u64 = 120_000;

/// Whose signatures count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signer {
    /// What the signer is called in records.
    pub name: String,
    /// The key.
    pub key: VerifyingKey,
    /// The tenant in which the key speaks.
    pub tenant: Option<String>,
    /// The principal for which the key speaks: it consents to calls of nobody else.
    pub principal: String,
}

/// A call, with what is said to be a yes to it.
#[derive(Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "whoever asks must not leave out anything")]
pub struct Presented<'a> {
    /// The tool that is called.
    pub tool: &'a str,
    /// The arguments as they were sent.
    pub arguments: &'a [u8],
    /// The tenant of the caller, as a transport has authenticated it.
    pub tenant: Option<&'a str>,
    /// The caller, likewise.
    pub principal: Option<&'a str>,
    /// The text that was signed, byte for byte.
    pub payload: &'a [u8],
    /// The signature.
    pub signature: &'a str,
}

/// Shows no argument (invariant L1).
impl fmt::Debug for Presented<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presented").field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// A yes to one call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Granted {
    signer: String,
    tool: String,
    arguments: Digest,
}

impl Granted {
    /// The consent, for the context of the call.
    #[must_use]
    pub fn consent(&self) -> SignedConsent<'_> {
        SignedConsent { signer: &self.signer, tool: &self.tool, arguments: self.arguments }
    }
}

/// Why a signature is no yes to this call, in the order of the checks. None but the last two has touched the nonce.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignedRefusal {
    /// No key that speaks for the caller made the signature.
    #[error("the signature does not verify, or its key is unknown")]
    Unverified,
    /// What was signed is no operation.
    #[error(transparent)]
    Payload(#[from] OperationError),
    /// What was signed is another call, or one on another host.
    #[error("this authorization is for a different call: signed for {tool} on the host {host}")]
    OtherCall {
        /// The tool that was signed.
        tool: String,
        /// The host that was signed.
        host: String,
    },
    /// It was signed later than now allows (invariant C4).
    #[error("the authorization is stamped in the future")]
    FromTheFuture,
    /// It was signed too long ago.
    #[error("the authorization expired {seconds}s ago: sign the operation again")]
    Expired {
        /// How long ago it stopped to count.
        seconds: u64,
    },
    /// The ledger does not answer; whether the nonce is spent is unknown.
    #[error("the ledger of nonces did not answer, so the authorization counts as used")]
    Ledger,
    /// The nonce was spent before.
    #[error("this authorization was already used")]
    Used,
}

impl SignedRefusal {
    /// The name in records.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Unverified => "unverified",
            Self::Payload(_) => "malformed",
            Self::OtherCall { .. } => "other_call",
            Self::FromTheFuture => "from_the_future",
            Self::Expired { .. } => "expired",
            Self::Ledger => "ledger",
            Self::Used => "used",
        }
    }
}

/// Verifies signed consent for one host.
pub struct Authorizer {
    signers: Vec<Signer>,
    host: String,
    window_ms: u64,
    nonces: Arc<dyn NonceLedger>,
}

impl Authorizer {
    /// Takes signatures of these signers for this host, at most [`DEFAULT_WINDOW_MS`] old. Without a signer nothing counts
    /// (invariant F2).
    #[must_use]
    pub fn new(signers: Vec<Signer>, host: impl Into<String>, nonces: Arc<dyn NonceLedger>) -> Self {
        Self { signers, host: host.into(), window_ms: DEFAULT_WINDOW_MS, nonces }
    }

    /// The same, for signatures at most this many milliseconds old.
    #[must_use]
    pub const fn with_window_ms(mut self, window_ms: u64) -> Self {
        self.window_ms = window_ms;
        self
    }

    /// Verifies a yes to one call and spends its nonce, which is the last check: a refusal before it leaves the nonce as it is.
    /// `key` is that of the gate's argument digests. What clamps would change is another call than the one that was signed, and the
    /// gate asks for it as ever.
    ///
    /// # Errors
    /// Says why it is none.
    pub fn authorize(
        &self,
        presented: &Presented<'_>,
        key: &DigestKey,
        now: Timestamp,
    ) -> Result<Granted, SignedRefusal> {
        if presented.payload.len() > MAX_PAYLOAD {
            return Err(OperationError::TooLong.into());
        }
        let speaks_for_caller = |signer: &&Signer| {
            presented.principal == Some(signer.principal.as_str()) && presented.tenant == signer.tenant.as_deref()
        };
        let signer = self
            .signers
            .iter()
            .filter(speaks_for_caller)
            .find(|signer| signer.key.verifies(presented.payload, presented.signature))
            .ok_or(SignedRefusal::Unverified)?;
        let payload = std::str::from_utf8(presented.payload).map_err(|_| OperationError::Malformed)?;
        // An editor's line break at the end is part of what was signed, and says nothing.
        let operation = Operation::parse(payload.trim_end_matches(['\r', '\n']))?;
        let signed = digest(operation.arguments().as_bytes(), key).ok_or(OperationError::Arguments)?;
        let sent = digest(presented.arguments, key);
        if operation.tool() != presented.tool || operation.host() != self.host || sent != Some(signed) {
            let (tool, host) = (operation.tool().to_owned(), operation.host().to_owned());
            return Err(SignedRefusal::OtherCall { tool, host });
        }
        if operation.issued_at() > now.saturating_add_millis(MAX_SKEW_MS) {
            return Err(SignedRefusal::FromTheFuture);
        }
        let age = now.as_unix_millis().saturating_sub(operation.issued_at().as_unix_millis());
        if age > self.window_ms {
            let seconds = age.saturating_sub(self.window_ms).div_ceil(1_000);
            return Err(SignedRefusal::Expired { seconds });
        }
        // Kept for as long as this signature, stamped ahead by what is allowed, could be presented (invariant C3).
        let until = operation.issued_at().saturating_add_millis(self.window_ms.saturating_add(MAX_SKEW_MS));
        match self.nonces.spend(self.nonce(operation.nonce(), &signer.key), now, until) {
            Ok(true) => {
                Ok(Granted { signer: signer.name.clone(), tool: operation.tool().to_owned(), arguments: signed })
            }
            Ok(false) => Err(SignedRefusal::Used),
            Err(_) => Err(SignedRefusal::Ledger),
        }
    }

    /// The name of a nonce in the ledger. A signer has nonces of its own: nobody can spend another's beforehand.
    fn nonce(&self, nonce: &str, key: &VerifyingKey) -> Digest {
        let mut hash = DigestBuilder::new("gate/signed-nonce/v1");
        hash.str(&key.fingerprint()).str(&self.host).str(nonce);
        hash.finish()
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer").field("host", &self.host).field("signers", &self.signers).finish_non_exhaustive()
    }
}

/// The digest of arguments as the gate makes it; `None` for what it does not read.
fn digest(arguments: &[u8], key: &DigestKey) -> Option<Digest> {
    let text = std::str::from_utf8(arguments).ok()?;
    let mut keys = room(text);
    let args: Result<Args<'_>, ReadError> = Args::read(arguments, &mut keys, &Limits::DEFAULT);
    let args = args.ok()?;
    // Made anew: what sufficed to read may not suffice for the digest.
    let mut keys = room(text);
    let digest: Result<Digest, KeysFull> = args.digest(key, &mut keys);
    digest.ok()
}
