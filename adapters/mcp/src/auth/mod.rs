//! Bearer tokens, and who they stand for.
//!
//! A request proves who sends it with a bearer token (RFC 6750) and with nothing else: no handle of a conversation, no address and
//! nothing in a message authenticates anybody (invariants A3, T3). Tokens are either known by their hash ([`KnownToken`]) or signed by
//! an issuer ([`Issuer`]).

mod jwt;
mod known;

pub use jwt::{Issuer, IssuerError};
pub use known::{KnownToken, KnownTokenError, new_token};

use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::server::Caller;

/// The longest bearer token, in bytes.
pub const MAX_TOKEN: usize = 8 << 10;

/// Finds out who sent a request.
#[derive(Debug, Default)]
pub struct Authenticator {
    known: Vec<KnownToken>,
    issuer: Option<Issuer>,
    anyone: Option<Caller>,
}

/// Nobody that is known sent it. What was wrong with a token is not told to whoever sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "RFC 6750 tells these two apart")]
pub enum Unauthenticated {
    /// It has no token.
    #[error("a bearer token is needed")]
    Missing,
    /// It has one that is not good here.
    #[error("the bearer token is not good here")]
    Invalid,
}

impl Authenticator {
    /// Knows nobody.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Knows these tokens as well.
    #[must_use]
    pub fn with_known(mut self, tokens: impl IntoIterator<Item = KnownToken>) -> Self {
        self.known.extend(tokens);
        self
    }

    /// Takes the tokens of this issuer as well.
    #[must_use]
    pub fn with_issuer(mut self, issuer: Issuer) -> Self {
        self.issuer = Some(issuer);
        self
    }

    /// Takes a request without a token for one of this caller. Whoever can reach the address is this caller then. A token that is
    /// there has to be good all the same.
    #[must_use]
    pub fn with_anyone(mut self, caller: Caller) -> Self {
        self.anyone = Some(caller);
        self
    }

    /// Whether nobody at all can come in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty() && self.issuer.is_none() && self.anyone.is_none()
    }

    /// Whether requests without a token come in.
    #[must_use]
    pub const fn takes_anyone(&self) -> bool {
        self.anyone.is_some()
    }

    /// The issuer whose tokens are taken.
    #[must_use]
    pub const fn issuer(&self) -> Option<&Issuer> {
        self.issuer.as_ref()
    }

    /// Who sent a request with these headers.
    ///
    /// # Errors
    /// Nobody that is known.
    pub fn authenticate(&self, headers: &HeaderMap) -> Result<Caller, Unauthenticated> {
        let mut sent = headers.get_all(AUTHORIZATION).iter();
        let Some(header) = sent.next() else {
            return self.anyone.clone().ok_or(Unauthenticated::Missing);
        };
        if sent.next().is_some() {
            return Err(Unauthenticated::Invalid);
        }
        let token = header.to_str().ok().and_then(bearer).ok_or(Unauthenticated::Invalid)?;
        let known = known::find(&self.known, token);
        known.or_else(|| self.issuer.as_ref()?.caller(token)).ok_or(Unauthenticated::Invalid)
    }
}

/// The token of an `Authorization` header.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    let token = token.trim_matches(' ');
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= MAX_TOKEN && token.bytes().all(fits))
        .then_some(token)
}
