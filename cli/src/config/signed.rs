//! `[signed]` and `[[signers]]`: whose signature counts as a yes to a call.

use std::collections::BTreeMap;
use std::time::Duration;

use callgate_core::name::{check_label, check_principal};
use callgate_signed::{DEFAULT_WINDOW_MS, Signer, VerifyingKey};

use super::decode::{Entry, Key, Keys, Table};

/// How signed consent is taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signed {
    /// The name of this host, which a signature has to name; without one no signature counts.
    pub host: Option<String>,
    /// How old a signature may be.
    pub window: Duration,
    /// Whose signatures count.
    pub signers: Vec<Signer>,
}

impl Default for Signed {
    fn default() -> Self {
        Self { host: None, window: Duration::from_millis(DEFAULT_WINDOW_MS), signers: Vec::new() }
    }
}

pub(super) static KEYS: Keys = Keys {
    table: "signed",
    keys: &[
        Key { name: "host", takes: "a name in quotes", example: "\"build-7\"" },
        Key { name: "window", takes: "a duration in quotes, such as \"120s\"", example: "\"120s\"" },
    ],
};

pub(super) static SIGNER: Keys = Keys {
    table: "signers",
    keys: &[
        Key { name: "name", takes: "a name in quotes", example: "\"ann\"" },
        Key {
            name: "key",
            takes: "a public key in quotes",
            example: "\"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMUdi1d21Wf7JLI2DLzQy5tkIKMg/8s84t0Kg9eAc2LL\"",
        },
        Key { name: "principal", takes: "a principal in quotes", example: "\"ann\"" },
        Key { name: "tenant", takes: "a tenant in quotes", example: "\"acme\"" },
    ],
};

/// Reads both tables.
pub(super) fn read(file: &Table<'_>) -> Signed {
    let mut signed = Signed::default();
    if let Some(table) = file.get("signed").and_then(|entry| entry.table(&KEYS)) {
        signed.host = table.get("host").and_then(|host| host.name(check_label));
        let window = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
        signed.window = table.get("window").and_then(|entry| entry.duration(window)).unwrap_or(signed.window);
    }
    if let Some(signers) = file.get("signers") {
        signed.signers = read_signers(&signers);
        if signed.host.is_none() {
            file.note("no signature counts: this host has no name ([signed] host), and a signature counts on the host that it names");
        }
    }
    signed
}

fn read_signers(signers: &Entry<'_>) -> Vec<Signer> {
    let mut lines = BTreeMap::new();
    let mut read = Vec::new();
    for entry in signers.list() {
        let Some(table) = entry.table(&SIGNER) else {
            continue;
        };
        let (name, key, principal) = (table.require("name"), table.require("key"), table.require("principal"));
        let key = key.and_then(|entry| {
            let key = VerifyingKey::parse(entry.filled_text()?);
            key.map_err(|error| entry.report_with(error.to_string(), None)).ok()
        });
        let signer = (|| {
            Some(Signer {
                name: name.as_ref()?.name(check_principal)?,
                key: key?,
                tenant: match table.get("tenant") {
                    Some(tenant) => Some(tenant.name(check_label)?),
                    None => None,
                },
                principal: principal?.name(check_principal)?,
            })
        })();
        let Some(signer) = signer else {
            continue;
        };
        if let (Some(first), Some(name)) = (lines.insert(signer.name.clone(), table.location().line), &name) {
            let help = "each signer has a name of its own: it stands in records";
            name.report_with(
                format!("the name {} is that of the signer on line {first}", signer.name),
                Some(help.into()),
            );
        }
        read.push(signer);
    }
    read
}
