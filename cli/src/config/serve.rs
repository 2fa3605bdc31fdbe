//! `[serve]`: the tools over HTTP, and who may call them there.

use std::path::PathBuf;

use callgate_core::digest::Digest;
use callgate_core::name::{check_label, check_principal, check_scope};

use super::decode::{Entry, Key, Keys, Table};
use super::settings::path;

/// How the tools are served over HTTP.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Serve {
    /// The names that the server answers to beside those of this machine for itself: `host`, or `host:port`.
    pub hosts: Vec<String>,
    /// The origins whose pages may send requests.
    pub origins: Vec<String>,
    /// Bearer tokens, by their hash.
    pub tokens: Vec<ServedToken>,
    /// The issuer whose tokens are taken.
    pub jwt: Option<ServedIssuer>,
}

/// A bearer token, and who it stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServedToken {
    /// The SHA-256 of the token.
    pub sha256: Digest,
    /// The principal.
    pub principal: String,
    /// The tenant, where one gate serves several.
    pub tenant: Option<String>,
    /// What the principal may do.
    pub scopes: Vec<String>,
}

/// Somebody who signs tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServedIssuer {
    /// What `iss` has to be.
    pub issuer: String,
    /// What `aud` has to hold: this server's own address, as a rule.
    pub audience: String,
    /// The file with the issuer's public keys, a JWK set.
    pub jwks: PathBuf,
    /// The tenant of all its principals.
    pub tenant: Option<String>,
}

pub(super) static KEYS: Keys = Keys {
    table: "serve",
    keys: &[
        Key { name: "hosts", takes: "a list of host names in quotes", example: "[\"gate.example\"]" },
        Key { name: "origins", takes: "a list of origins in quotes", example: "[\"https://app.example\"]" },
        Key {
            name: "tokens",
            takes: "a list of tables",
            example: "[{ principal = \"alice\", sha256 = \"5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8\" }]",
        },
        Key {
            name: "jwt",
            takes: "a table",
            example: "{ issuer = \"https://id.example\", audience = \"https://gate.example/mcp\", jwks = \"jwks.json\" }",
        },
    ],
};

pub(super) static TOKEN: Keys = Keys {
    table: "serve.tokens",
    keys: &[
        Key { name: "principal", takes: "a principal in quotes", example: "\"alice\"" },
        Key {
            name: "sha256",
            takes: "the SHA-256 of the token: 64 hexadecimal digits in quotes",
            example: "\"5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8\"",
        },
        TENANT,
        Key { name: "scopes", takes: "a list of scopes in quotes", example: "[\"notes:read\"]" },
    ],
};

pub(super) static JWT: Keys = Keys {
    table: "serve.jwt",
    keys: &[
        Key { name: "issuer", takes: "the issuer in quotes", example: "\"https://id.example\"" },
        Key { name: "audience", takes: "the audience in quotes", example: "\"https://gate.example/mcp\"" },
        Key { name: "jwks", takes: "a path in quotes", example: "\"jwks.json\"" },
        TENANT,
    ],
};

const TENANT: Key = Key { name: "tenant", takes: "a tenant in quotes", example: "\"acme\"" };

pub(super) fn read(entry: &Entry<'_>, dir: &std::path::Path) -> Serve {
    let Some(table) = entry.table(&KEYS) else {
        return Serve::default();
    };
    let texts = |name| {
        table.get(name).map_or_else(Vec::new, |entry: Entry<'_>| {
            entry.set(&entry.list(), |item| item.filled_text().map(str::to_owned))
        })
    };
    let (hosts, origins) = (texts("hosts"), texts("origins"));
    let mut tokens: Vec<ServedToken> = Vec::new();
    for item in table.get("tokens").iter().flat_map(Entry::list) {
        let Some(token) = item.table(&TOKEN).and_then(|table| token(&table)) else {
            continue;
        };
        if tokens.iter().any(|earlier| earlier.sha256 == token.sha256) {
            item.report_with("this token stands for somebody already", Some("each token is one caller's".into()));
        } else {
            tokens.push(token);
        }
    }
    let jwt = table.get("jwt").and_then(|entry| issuer(&entry.table(&JWT)?, dir));
    Serve { hosts, origins, tokens, jwt }
}

fn token(table: &Table<'_>) -> Option<ServedToken> {
    let principal = table.require("principal").and_then(|entry| entry.name(check_principal));
    let sha256 = table.require("sha256").and_then(|entry| {
        let digest = entry.text()?.parse().ok();
        if digest.is_none() {
            entry.report(
                "`sha256` is 64 lower-case hexadecimal digits; `callgate serve --new-token` makes a token and its hash",
            );
        }
        digest
    });
    let tenant = tenant(table);
    let scopes = table.get("scopes").map_or_else(Vec::new, |entry| {
        let items = entry.filled_list("a caller without a scope is one without the key");
        entry.set(&items, |item| item.name(check_scope))
    });
    Some(ServedToken { sha256: sha256?, principal: principal?, tenant: tenant?, scopes })
}

fn issuer(table: &Table<'_>, dir: &std::path::Path) -> Option<ServedIssuer> {
    let text = |name| table.require(name).and_then(|entry: Entry<'_>| entry.filled_text().map(str::to_owned));
    let (issuer, audience) = (text("issuer"), text("audience"));
    let jwks = table.require("jwks").and_then(|entry| path(&entry, dir));
    let tenant = tenant(table);
    Some(ServedIssuer { issuer: issuer?, audience: audience?, jwks: jwks?, tenant: tenant? })
}

/// The tenant, if there is one; `None` when it was reported.
fn tenant(table: &Table<'_>) -> Option<Option<String>> {
    match table.get("tenant") {
        None => Some(None),
        Some(entry) => entry.name(check_label).map(Some),
    }
}
