//! Tokens that an issuer signed (RFC 9068 in what counts here).

use callgate_core::name::{check_label, check_principal, check_scope};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;

use crate::server::Caller;

/// How far the clocks of the issuer and this machine may be apart, in seconds.
const LEEWAY_S: u64 = 60;

/// Somebody who signs tokens for us. Keys come from the host, as a JWK set (RFC 7517); nothing is fetched.
///
/// A token counts when a key of the set signed it, with an algorithm for that key, when `iss` is the issuer and `aud` holds our
/// audience (invariant T2), when it has not expired (`exp` is needed, `nbf` counts), and when `sub` is a principal. `scope` (or `scp`)
/// says what the principal may do. `*` is no scope that an issuer can give, and one outside the grammar gives nothing.
pub struct Issuer {
    issuer: String,
    audience: String,
    tenant: Option<String>,
    keys: Vec<Key>,
}

struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

/// Why an issuer can't be trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IssuerError {
    /// Issuer or audience is empty: it would fit too much (invariant F2).
    #[error("an issuer needs a name and an audience")]
    Nameless,
    /// The tenant is outside its grammar.
    #[error("the tenant {0}")]
    Tenant(callgate_core::name::NameError),
    /// It is no JWK set.
    #[error("this is no JWK set: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// A key is symmetric: whoever checks with it can sign with it.
    #[error("key {0} of the set is symmetric; only public keys are taken")]
    Symmetric(usize),
    /// A key is of no use.
    #[error("key {0} of the set can't be used: {1}")]
    Unusable(usize, jsonwebtoken::errors::Error),
    /// There is no key that signs.
    #[error("the set has no key that checks signatures")]
    NoKeys,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    #[serde(default)]
    scope: Option<Listed>,
    #[serde(default)]
    scp: Option<Listed>,
}

/// Scopes in a text (RFC 8693) or in a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Listed {
    Text(String),
    List(Vec<String>),
}

impl Issuer {
    /// The issuer with the keys of this JWK set.
    ///
    /// # Errors
    /// Says what can't be used. A key that is not for signatures is left out.
    pub fn new(issuer: &str, audience: &str, tenant: Option<&str>, jwks: &[u8]) -> Result<Self, IssuerError> {
        if issuer.is_empty() || audience.is_empty() {
            return Err(IssuerError::Nameless);
        }
        if let Some(tenant) = tenant {
            check_label(tenant).map_err(IssuerError::Tenant)?;
        }
        let set: JwkSet = serde_json::from_slice(jwks)?;
        let keys = set.keys.iter().enumerate().filter_map(|(at, jwk)| Key::of(at, jwk).transpose());
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            return Err(IssuerError::NoKeys);
        }
        Ok(Self { issuer: issuer.to_owned(), audience: audience.to_owned(), tenant: tenant.map(str::to_owned), keys })
    }

    /// Its name, which is an address by custom.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.issuer
    }

    /// Whom its tokens have to be for.
    #[must_use]
    pub fn audience(&self) -> &str {
        &self.audience
    }

    /// Whom a token stands for.
    pub(super) fn caller(&self, token: &str) -> Option<Caller> {
        let header = decode_header(token).ok()?;
        let mut named = self.keys.iter().filter(|key| match &header.kid {
            Some(kid) => key.id.as_ref() == Some(kid),
            None => true,
        });
        // Without a name there must be no choice.
        let (Some(key), None) = (named.next(), named.next()) else { return None };
        let mut validation = Validation::new(*key.algorithms.first()?);
        validation.algorithms.clone_from(&key.algorithms);
        validation.leeway = LEEWAY_S;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(&[&self.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        let claims = decode::<Claims>(token, &key.key, &validation)
            .inspect_err(|error| tracing::debug!(%error, "a token was refused"))
            .ok()?
            .claims;
        check_principal(&claims.sub).ok()?;
        let listed = [claims.scope, claims.scp].into_iter().flatten().flat_map(|listed| match listed {
            Listed::Text(text) => text.split(' ').map(str::to_owned).collect(),
            Listed::List(list) => list,
        });
        let scopes = listed.filter(|scope| scope != "*" && check_scope(scope).is_ok());
        let caller = Caller::new("mcp").with_principal(claims.sub).with_scopes(scopes);
        Some(match &self.tenant {
            Some(tenant) => caller.with_tenant(tenant.as_str()),
            None => caller,
        })
    }
}

/// Tells no key.
impl std::fmt::Debug for Issuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issuer")
            .field("issuer", &self.issuer)
            .field("audience", &self.audience)
            .field("keys", &self.keys.len())
            .finish_non_exhaustive()
    }
}

impl Key {
    /// A key of a set. `None` for one that is not for signatures, or of a kind that is not known here.
    fn of(at: usize, jwk: &Jwk) -> Result<Option<Self>, IssuerError> {
        if matches!(jwk.common.public_key_use, Some(PublicKeyUse::Encryption)) {
            return Ok(None);
        }
        use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
        let fitting: &[Algorithm] = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => &[RS256, RS384, RS512, PS256, PS384, PS512],
            AlgorithmParameters::EllipticCurve(params) => match params.curve {
                EllipticCurve::P256 => &[ES256],
                EllipticCurve::P384 => &[ES384],
                _ => return Ok(None),
            },
            AlgorithmParameters::OctetKeyPair(params) => match params.curve {
                EllipticCurve::Ed25519 => &[EdDSA],
                _ => return Ok(None),
            },
            AlgorithmParameters::OctetKey(_) => return Err(IssuerError::Symmetric(at)),
            _ => return Ok(None),
        };
        // A key that names its algorithm is for no other.
        let named = jwk.common.key_algorithm;
        let algorithms: Vec<_> = match named {
            None => fitting.to_vec(),
            Some(named) => fitting.iter().copied().filter(|fits| same(*fits, named)).collect(),
        };
        if algorithms.is_empty() {
            return Ok(None);
        }
        let key = DecodingKey::from_jwk(jwk).map_err(|error| IssuerError::Unusable(at, error))?;
        Ok(Some(Self { id: jwk.common.key_id.clone(), algorithms, key }))
    }
}

fn same(algorithm: Algorithm, named: KeyAlgorithm) -> bool {
    use {Algorithm as A, KeyAlgorithm as K};
    matches!(
        (algorithm, named),
        (A::RS256, K::RS256)
            | (A::RS384, K::RS384)
            | (A::RS512, K::RS512)
            | (A::PS256, K::PS256)
            | (A::PS384, K::PS384)
            | (A::PS512, K::PS512)
            | (A::ES256, K::ES256)
            | (A::ES384, K::ES384)
            | (A::EdDSA, K::EdDSA)
    )
}
