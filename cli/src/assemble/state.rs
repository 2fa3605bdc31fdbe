//! The files in which the command keeps what has to outlive it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use callgate_core::limit::{LimitKey, Purpose, Quota};
use callgate_signed::Authorizer;
use callgate_std::audit::{Fanout, SharedAudit};
use callgate_std::digest_key;
use callgate_std::entropy::OsEntropy;

use super::AssembleError;
use super::stores::{Budgets, Databases, Log, Waiting};
use super::upkeep::Upkeep;
use crate::config::{Config, DATABASE, Keeper, OWN_DIRECTORY, Quotas};

/// What earlier versions kept in the place of the database: what waits, and the log.
const EARLIER: [&str; 2] = ["state.json", "audit.jsonl"];
/// What SQLite puts beside a database.
const DATABASE_COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Where the files are.
#[derive(Clone, Debug)]
pub(crate) struct StateFiles {
    /// Calls that wait to be confirmed.
    pub(crate) confirmations: PathBuf,
    /// How much of each budget is spent: in the database of the confirmations, where they are in one.
    pub(crate) limits: PathBuf,
    /// The key of argument digests.
    pub(crate) digest_key: PathBuf,
    /// The nonces of signed consent, where what waits is kept as text.
    pub(crate) nonces: PathBuf,
    /// What tools of MCP servers looked like.
    pub(crate) pins: PathBuf,
    /// The log.
    pub(crate) audit: PathBuf,
    /// The key of checkpoints, and where they go.
    pub(crate) checkpoint: Vec<PathBuf>,
}

impl StateFiles {
    /// The state file and the log are where the configuration says. What else there is stands beside the state file under its
    /// name, so that two configurations that share a directory do not share budgets.
    ///
    /// Versions before the database kept texts in its place. Where they are and the database is not, they are gone on with:
    /// nothing that waits is lost, and the log stays one chain.
    pub(crate) fn of(config: &Config) -> Self {
        let own = config.dir.join(OWN_DIRECTORY);
        let (database, [state, log]) = (own.join(DATABASE), EARLIER.map(|name| own.join(name)));
        let earlier = !database.exists() && (state.exists() || log.exists());
        let kept = |file: &PathBuf, before: PathBuf| if earlier && *file == database { before } else { file.clone() };
        let confirmations = kept(&config.state_file, state);
        let beside = |extension: &str| confirmations.with_added_extension(extension);
        Self {
            limits: match Keeper::of(&confirmations) {
                Keeper::Database => confirmations.clone(),
                Keeper::Text => beside("limits"),
            },
            digest_key: beside("key"),
            pins: beside("pins"),
            nonces: beside("nonces"),
            audit: kept(&config.audit_file, log),
            checkpoint: match &config.audit.checkpoint {
                Some(checkpoint) => vec![checkpoint.key.clone(), checkpoint.to.clone()],
                None => Vec::new(),
            },
            confirmations,
        }
    }

    /// Every file that belongs to the gate, those that stand beside the others included: no tool may write them (invariant
    /// P6).
    pub(crate) fn all(&self) -> Vec<PathBuf> {
        let Self { confirmations, limits, digest_key, nonces, pins, audit, checkpoint } = self;
        let mut files = checkpoint.clone();
        for (file, companions) in [
            (confirmations, &["lock", "new"][..]),
            (limits, &["lock", "new"]),
            (digest_key, &["lock", "new"]),
            (pins, &["lock", "new"]),
            (nonces, &[]),
            (
                audit,
                &[
                    "head", "head.new", "torn", "lost", "lost.new", "open", "open.new", "next", "segments", "lock",
                    "new",
                ],
            ),
        ] {
            files.push(file.clone());
            files.extend(companions.iter().map(|companion| file.with_added_extension(companion)));
            if Keeper::of(file) == Keeper::Database {
                files.extend(DATABASE_COMPANIONS.map(|ending| with_ending(file, ending)));
            }
        }
        files
    }
}

/// The stores, opened.
pub(crate) struct Stores {
    pub(crate) budgets: Budgets,
    pub(crate) waiting: Waiting,
    pub(crate) log: Log,
    pub(crate) audit: SharedAudit,
    pub(crate) digest_key: [u8; 32],
    /// Who verifies signed consent; none where this host has no name.
    pub(crate) authorizer: Option<Authorizer>,
    /// Who looks after the log and what waits.
    pub(crate) upkeep: Arc<Upkeep>,
}

/// Opens everything. The log comes first: without it nothing else matters.
pub(super) fn open(config: &Config, files: &StateFiles, extra: Option<SharedAudit>) -> Result<Stores, AssembleError> {
    hide_from_git(config);
    let mut databases = Databases::default();
    let log = Log::open(&files.audit, &mut databases)?;
    let audit: SharedAudit = match extra {
        Some(extra) => Arc::new(Fanout::new("file", log.sink()).and_optional("log", extra)),
        None => log.sink(),
    };
    let pending = usize::try_from(config.confirmation.max_pending).unwrap_or(usize::MAX);
    let waiting = Waiting::open(&files.confirmations, pending, &mut databases)?;
    let budgets = Budgets::open(&files.limits, quotas(&config.quotas), &mut databases)?;
    let authorizer = super::signed::authorizer(config, files, &waiting);
    let digest_key = digest_key::load_or_make(&files.digest_key, &OsEntropy::default())?;
    let upkeep = Upkeep::of(&log, &waiting, config, &files.audit, audit.clone(), |builder| {
        builder.redact(&config.redacted_fields).policy_digest(config.digest()).digest_key(digest_key)
    })?;
    Ok(Stores { authorizer, upkeep: Arc::new(upkeep), budgets, waiting, log, audit, digest_key })
}

/// Keeps the command's own directory out of a repository: what is in it belongs to one machine. That it couldn't be done
/// changes nothing.
fn hide_from_git(config: &Config) {
    let own = config.dir.join(OWN_DIRECTORY);
    if config.state_file.starts_with(&own) || config.audit_file.starts_with(&own) {
        let ignore = own.join(".gitignore");
        if !ignore.exists() && make_private(&own).is_ok() {
            drop(std::fs::write(ignore, "*\n"));
        }
    }
}

fn with_ending(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn make_private(directory: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// The quota of each bucket.
fn quotas(quotas: &Quotas) -> impl Fn(&LimitKey<'_>) -> Quota + Send + Sync + use<> {
    let quotas = quotas.clone();
    move |key| match (key.purpose, key.tool) {
        (Purpose::Calls, Some(tool)) => quotas.quota_for(key.channel, key.principal, tool),
        _ => quotas.attempts,
    }
}
