//! Who may come in over HTTP, and under which names.

use callgate_mcp::auth::{Authenticator, Issuer, KnownToken};
use callgate_mcp::http::{Hosts, Origins};

use super::AssembleError;
use crate::config::{Config, MAX_FILE_BYTES};

/// What `[serve]` comes to.
pub(crate) struct Served {
    pub(crate) authenticator: Authenticator,
    pub(crate) hosts: Hosts,
    pub(crate) origins: Origins,
}

impl Served {
    /// Reads what the configuration names, keys included.
    ///
    /// # Errors
    /// Something can't be used; nothing is served then (invariant F7).
    pub(crate) fn of(config: &Config) -> Result<Self, AssembleError> {
        let unusable = |error: &dyn std::fmt::Display| AssembleError::Serve(error.to_string());
        let serve = &config.serve;
        let tokens = serve
            .tokens
            .iter()
            .map(|token| KnownToken::new(token.sha256, &token.principal, token.tenant.as_deref(), &token.scopes));
        let tokens = tokens.collect::<Result<Vec<_>, _>>().map_err(|error| unusable(&error))?;
        let mut authenticator = Authenticator::new().with_known(tokens);
        if let Some(jwt) = &serve.jwt {
            let keys = read(&jwt.jwks).map_err(|error| unusable(&format!("{}: {error}", jwt.jwks.display())))?;
            let issuer = Issuer::new(&jwt.issuer, &jwt.audience, jwt.tenant.as_deref(), &keys);
            authenticator = authenticator.with_issuer(issuer.map_err(|error| unusable(&error))?);
        }
        let hosts = serve.hosts.iter().try_fold(Hosts::loopback(), |hosts, name| hosts.with(name));
        let origins = serve.origins.iter().try_fold(Origins::default(), |origins, name| origins.with(name));
        Ok(Self {
            authenticator,
            hosts: hosts.map_err(|error| unusable(&error))?,
            origins: origins.map_err(|error| unusable(&error))?,
        })
    }
}

/// Reads a file that is no longer than a configuration may be.
fn read(file: &std::path::Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;

    let mut text = Vec::new();
    let read = std::fs::File::open(file)?.take(MAX_FILE_BYTES.saturating_add(1)).read_to_end(&mut text)?;
    if read as u64 > MAX_FILE_BYTES {
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "the file is too long"));
    }
    Ok(text)
}
