//! Tokens that are known by their hash.

use callgate_core::digest::Digest;
use callgate_core::name::{NameError, check_label, check_principal, check_scope};
use callgate_std::entropy::{Entropy, EntropyError};

use crate::server::Caller;

/// A token that somebody made with [`new_token`]: its SHA-256, and who it stands for. The token itself is kept nowhere (invariant A11).
///
/// A plain hash is enough for 256 random bits, which nobody guesses; it is not for a password.
#[derive(Clone, Debug)]
pub struct KnownToken {
    hash: Digest,
    caller: Caller,
}

/// Why a token can't be known.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KnownTokenError {
    /// The principal is no name.
    #[error("the principal {0}")]
    Principal(NameError),
    /// The tenant is no name.
    #[error("the tenant {0}")]
    Tenant(NameError),
    /// A scope is none.
    #[error("the scope `{0}` {1}")]
    Scope(String, NameError),
}

impl KnownToken {
    /// The token with this SHA-256, for this principal with these scopes, on channel `mcp`.
    ///
    /// # Errors
    /// A name is outside its grammar (invariant S3).
    pub fn new<S: AsRef<str>>(
        hash: Digest,
        principal: &str,
        tenant: Option<&str>,
        scopes: impl IntoIterator<Item = S>,
    ) -> Result<Self, KnownTokenError> {
        check_principal(principal).map_err(KnownTokenError::Principal)?;
        let scopes: Vec<String> = scopes.into_iter().map(|scope| scope.as_ref().to_owned()).collect();
        for scope in &scopes {
            check_scope(scope).map_err(|error| KnownTokenError::Scope(scope.clone(), error))?;
        }
        let mut caller = Caller::new("mcp").with_principal(principal).with_scopes(scopes);
        if let Some(tenant) = tenant {
            check_label(tenant).map_err(KnownTokenError::Tenant)?;
            caller = caller.with_tenant(tenant);
        }
        Ok(Self { hash, caller })
    }
}

/// Whom a token stands for. Looks at all of them, and at each for the same time.
pub(super) fn find(known: &[KnownToken], token: &str) -> Option<Caller> {
    let hash = Digest::of_bytes(token.as_bytes());
    known.iter().fold(None, |found, known| if known.hash == hash { Some(known.caller.clone()) } else { found })
}

/// A new token of 256 random bits, as text.
///
/// # Errors
/// The source of randomness failed.
pub fn new_token(entropy: &(impl Entropy + ?Sized)) -> Result<String, EntropyError> {
    let mut bits = [0; 32];
    entropy.fill(&mut bits)?;
    Ok(bits.iter().fold(String::from("cg_"), |token, byte| token + &format!("{byte:02x}")))
}
