//! Signed consent: a detached signature over exactly one call, which counts as its caller's yes.
//!
//! Whoever is to consent signs the canonical text of an [`Operation`]: the tool, its arguments, the host, when, and a nonce. A host's
//! [`Authorizer`] verifies it for one call, and what it gives goes into the context of that call as
//! [`SignedConsent`](callgate_core::context::SignedConsent). It stands for the caller's own yes, on every channel; it never stands for an
//! approver's (invariant A2), and it opens nothing that the policy closes.
//!
//! Signatures are those of `ssh-keygen -Y sign -n callgate` with an Ed25519 key, or 64 bare bytes of Ed25519 (RFC 8032) in Base64.
#![forbid(unsafe_code)]

mod allowed;
mod authorizer;
mod checkpoint;
mod key;
mod operation;

pub use allowed::{AllowedSigners, AllowedSignersError};
pub use authorizer::{Authorizer, DEFAULT_WINDOW_MS, Granted, Presented, SignedRefusal, Signer};
pub use checkpoint::{Checkpoint, CheckpointError};
pub use key::{KeyError, NAMESPACE, SecretKey, VerifyingKey};
pub use operation::{MAX_PAYLOAD, Operation, OperationError};
