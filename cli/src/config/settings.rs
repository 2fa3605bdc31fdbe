//! Everything that one configuration says.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use callgate_core::json::Number;

use super::audit::{self, Keeping};
use super::channel::{self, Channel};
use super::confirmation::{self, Confirmation};
use super::decode::{Entry, Key, Keys, Sink, Table};
use super::discover::{self, Found};
use super::document;
use super::exec::{self, ExecTool};
use super::names::Names;
use super::problem::{ConfigError, shown_path};
use super::quota::{self, Quotas};
use super::rule::{self, Rule};
use super::serve::{self, Serve};
use super::signed::{self, Signed};
use super::source::{Location, Source};
use super::tool::{self, ToolAdjustment};
use super::toolkit::Toolkit;
use super::upstream::{self, Upstream};
use super::verification::{self, Verification};

/// The version of the file's format that this program reads. Another is refused, never guessed at (invariant N6).
const VERSION: u64 = 1;
/// The directory beside the file in which the program keeps what it writes, unless the file says otherwise.
pub(crate) const OWN_DIRECTORY: &str = ".callgate";
/// The file in it that keeps both, unless the file says otherwise.
pub(crate) const DATABASE: &str = "gate.db";

/// A configuration of which every entry was read and checked.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Where it comes from.
    pub origin: Origin,
    /// The directory that the file stands in; relative paths of the file start here.
    pub dir: PathBuf,
    /// The directory that the `fs` toolkit is confined to.
    pub root: PathBuf,
    /// The built-in toolkits that are on.
    pub toolkits: Vec<Toolkit>,
    /// Where confirmations wait between two runs of the command; see [`Keeper`](super::Keeper).
    pub state_file: PathBuf,
    /// Where audit records go, each holding the hash of the one before it; see [`Keeper`](super::Keeper).
    pub audit_file: PathBuf,
    /// How the log is kept.
    pub audit: Keeping,
    /// Names of fields that are redacted beside the built-in ones.
    pub redacted_fields: Vec<String>,
    /// Channels, by name. One that is given here replaces the built-in one of its name whole.
    pub channels: BTreeMap<String, Channel>,
    /// Rules, in the order of the file, which has no meaning (invariant P1).
    pub rules: Vec<Rule>,
    /// Quotas.
    pub quotas: Quotas,
    /// How confirmations are kept.
    pub confirmation: Confirmation,
    /// Whose signature counts as a yes to a call.
    pub signed: Signed,
    /// Adjustments of built-in tools and of those of upstreams, by name.
    pub tools: BTreeMap<String, ToolAdjustment>,
    /// Declared tools, in the order of the file.
    pub exec: Vec<ExecTool>,
    /// MCP servers whose tools pass the gate, in the order of the file.
    pub upstreams: Vec<Upstream>,
    /// Tools with which agents ask people.
    pub verification: Verification,
    /// How the tools are served over HTTP.
    pub serve: Serve,
    /// What is right but worth knowing, such as a built-in channel that is replaced.
    pub notes: Vec<Note>,
}

/// Where a configuration comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a configuration is read or it is not")]
pub enum Origin {
    /// There is no file; these are the defaults.
    Defaults,
    /// A file.
    File(Arc<Source>),
}

/// Something about a configuration that is right but worth knowing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// Where it stands.
    pub location: Location,
    /// What is worth knowing.
    pub message: String,
}

/// `line 12: ...`
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.location.line, self.message)
    }
}

pub(super) static KEYS: Keys = Keys {
    table: "",
    keys: &[
        Key { name: "version", takes: "the number 1", example: "1" },
        Key { name: "root", takes: "a path in quotes", example: "\".\"" },
        Key { name: "toolkits", takes: "a list of toolkits in quotes", example: "[\"time\", \"fs\"]" },
        Key { name: "state", takes: "a table", example: "{ file = \".callgate/gate.db\" }" },
        Key { name: "audit", takes: "a table", example: "{ file = \".callgate/gate.db\" }" },
        Key { name: "redaction", takes: "a table", example: "{ fields = [\"iban\"] }" },
        Key { name: "channels", takes: "a table of channels by name", example: "{ web = { block_mutating = true } }" },
        Key {
            name: "rules",
            takes: "a list of tables",
            example: "[{ id = 1, effect = \"deny\", tool = \"fs.write\" }]",
        },
        Key { name: "quotas", takes: "a table", example: "{ limit = 100, window = \"60s\" }" },
        Key { name: "confirmation", takes: "a table", example: "{ ttl = \"60s\" }" },
        Key { name: "signed", takes: "a table", example: "{ host = \"build-7\" }" },
        Key {
            name: "signers",
            takes: "a list of tables",
            example: "[{ name = \"ann\", key = \"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMUdi1d21Wf7JLI2DLzQy5tkIKMg/8s84t0Kg9eAc2LL\", principal = \"ann\" }]",
        },
        Key { name: "tools", takes: "a table of tools by name", example: "{ \"fs.write\" = { disabled = true } }" },
        Key {
            name: "exec",
            takes: "a list of tables",
            example: "[{ name = \"git.status\", description = \"Shows what changed.\", program = \"git\", args = [\"status\"] }]",
        },
        Key {
            name: "upstream",
            takes: "a list of tables",
            example: "[{ name = \"files\", command = [\"npx\", \"-y\", \"@modelcontextprotocol/server-filesystem\", \"/srv/files\"] }]",
        },
        Key { name: "verification", takes: "a table", example: "{ enabled = true }" },
        Key { name: "serve", takes: "a table", example: "{ hosts = [\"gate.example\"] }" },
    ],
};

pub(super) static STATE: Keys =
    Keys { table: "state", keys: &[Key { name: "file", takes: "a path in quotes", example: "\".callgate/gate.db\"" }] };
pub(super) static REDACTION: Keys = Keys {
    table: "redaction",
    keys: &[Key { name: "fields", takes: "a list of field names in quotes", example: "[\"iban\", \"birthday\"]" }],
};

impl Config {
    /// What holds in `dir` without a file: the built-in toolkits, confined to `dir`, and the built-in channels.
    #[must_use]
    pub fn default_for(dir: &Path) -> Self {
        Self {
            origin: Origin::Defaults,
            dir: dir.to_owned(),
            root: dir.to_owned(),
            toolkits: Toolkit::ALL.to_vec(),
            state_file: dir.join(OWN_DIRECTORY).join(DATABASE),
            audit_file: dir.join(OWN_DIRECTORY).join(DATABASE),
            audit: Keeping::default(),
            redacted_fields: Vec::new(),
            channels: BTreeMap::new(),
            rules: Vec::new(),
            quotas: Quotas::default(),
            confirmation: Confirmation::default(),
            signed: Signed::default(),
            tools: BTreeMap::new(),
            exec: Vec::new(),
            upstreams: Vec::new(),
            verification: Verification::default(),
            serve: Serve::default(),
            notes: Vec::new(),
        }
    }

    /// Reads the text of a file. Looks at nothing else: whether the root exists is found out by [`Config::load`].
    ///
    /// # Errors
    /// Everything that is wrong with the text.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Self::read(text, file, dir, &|_| Ok(()))
    }

    /// Reads a file that somebody has named.
    ///
    /// # Errors
    /// When it can't be read, isn't a regular file, is longer than [`super::MAX_FILE_BYTES`], may be changed by everybody, or
    /// anything in it is wrong.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        Self::load_from(file, false)
    }

    /// The configuration for a command that runs in `start`: the file `named` on the command line, else the one that the
    /// variable `CALLGATE_CONFIG` names (`environment` is its value), else the first `callgate.toml` in `start` or a directory
    /// above it, else the defaults for `start`.
    ///
    /// A file that was looked for rather than named must belong to whoever runs the command, or to root: it can declare programs
    /// to run, and a directory that others write to must not slip one in.
    ///
    /// # Errors
    /// As [`Config::load`]; also when it can't be told whether a directory on the way has a file, since a file that is there has
    /// to count (invariant F7).
    pub fn discover(start: &Path, named: Option<&Path>, environment: Option<&OsStr>) -> Result<Self, ConfigError> {
        let start = absolute(start)?;
        match discover::find(&start, named, environment)? {
            Found::Named(file) => Self::load_from(&file, false),
            Found::Above(file) => Self::load_from(&file, true),
            Found::Nothing => Ok(Self::default_for(&start)),
        }
    }

    fn load_from(file: &Path, own: bool) -> Result<Self, ConfigError> {
        let text = discover::read(file, own)?;
        let absolute = absolute(file)?;
        Self::read(&text, file, absolute.parent().unwrap_or(&absolute), &|root| match std::fs::metadata(root) {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            Ok(_) => Err("is not a directory".into()),
            Err(error) => Err(format!("can't be used: {error}")),
        })
    }

    fn read(text: &str, file: &Path, dir: &Path, check_root: &CheckRoot<'_>) -> Result<Self, ConfigError> {
        let source = Arc::new(Source::new(file, text));
        let sink = Sink::new(&source);
        let config = document::parse(&source, &sink)
            .and_then(|document| read(&Table::new(&document, 0..0, String::new(), &KEYS, &sink), dir, check_root));
        match (sink.finish(), config) {
            (Ok(notes), Some(config)) => Ok(Self { origin: Origin::File(Arc::clone(&source)), notes, ..config }),
            (Err(problems), _) => Err(ConfigError::new(file, problems)),
            // Nothing is given up on without a reason; should it ever be, the program still doesn't start.
            (Ok(_), None) => Err(ConfigError::of_file(file, "can't be understood", None)),
        }
    }

    /// The file, when there is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match &self.origin {
            Origin::Defaults => None,
            Origin::File(source) => Some(source.file()),
        }
    }

    /// The files, and the directory of the program's own files, that no tool may write, whatever the root is (invariant P6).
    ///
    /// `callgate.toml` is among them even while it doesn't exist. Since a search for the configuration finds it in any
    /// directory, a tool that writes files has to refuse this name everywhere.
    #[must_use]
    pub fn protected_paths(&self) -> Vec<PathBuf> {
        let mut paths = vec![
            self.dir.join(discover::FILE_NAME),
            self.dir.join(OWN_DIRECTORY),
            self.state_file.clone(),
            self.audit_file.clone(),
        ];
        paths.extend(self.file().and_then(|file| std::path::absolute(file).ok()));
        paths.sort();
        paths.dedup();
        paths
    }
}

/// Says why a root can't be used.
type CheckRoot<'a> = dyn Fn(&Path) -> Result<(), String> + 'a;

fn absolute(path: &Path) -> Result<PathBuf, ConfigError> {
    std::path::absolute(path)
        .map_err(|error| ConfigError::of_file(path, format!("the current directory can't be told: {error}"), None))
}

fn read(table: &Table<'_>, dir: &Path, check_root: &CheckRoot<'_>) -> Option<Config> {
    // A file of another version is not judged by the rules of this one.
    if let Some(version) = table.require("version")
        && let Some(number) = version.number()
        && number != Number::U64(VERSION)
    {
        version.report(format!("this program reads version {VERSION} of the file"));
        return None;
    }
    table.refuse_unknown_keys();
    let default = Config::default_for(dir);
    let channels = table.get("channels").map_or(default.channels, |entry| channel::read(&entry));
    let exec = table.get("exec").map_or(default.exec, |entry| exec::read(&entry));
    let upstreams = table.get("upstream").map_or(default.upstreams, |entry| upstream::read(&entry, dir, &exec));
    let names = Names::new(&channels, &exec, &upstreams);
    Some(Config {
        origin: Origin::Defaults,
        dir: default.dir,
        root: table.get("root").and_then(|entry| root(&entry, dir, check_root)).unwrap_or(default.root),
        toolkits: table.get("toolkits").map_or(default.toolkits, |entry| toolkits(&entry)),
        state_file: file(table, "state", &STATE, dir).unwrap_or(default.state_file),
        audit_file: file(table, "audit", &audit::KEYS, dir).unwrap_or(default.audit_file),
        audit: audit::read(table, dir),
        redacted_fields: table.get("redaction").map_or(default.redacted_fields, |entry| redaction(&entry)),
        rules: table.get("rules").map_or(default.rules, |entry| rule::read(&entry, &names)),
        quotas: table.get("quotas").map_or(default.quotas, |entry| quota::read(&entry, &names)),
        confirmation: table.get("confirmation").map_or(default.confirmation, |entry| confirmation::read(&entry)),
        signed: signed::read(table),
        tools: table.get("tools").map_or(default.tools, |entry| tool::read(&entry, &names, &exec)),
        channels,
        exec,
        upstreams,
        verification: table.get("verification").map_or(default.verification, |entry| verification::read(&entry)),
        serve: table.get("serve").map_or(default.serve, |entry| serve::read(&entry, dir)),
        notes: default.notes,
    })
}

fn root(entry: &Entry<'_>, dir: &Path, check: &CheckRoot<'_>) -> Option<PathBuf> {
    let root = path(entry, dir)?;
    if let Err(reason) = check(&root) {
        let help = "root names the directory that the fs toolkit is confined to, as seen from the file";
        entry.report_with(format!("the root {} {reason}", shown_path(&root)), Some(help.into()));
    }
    Some(root)
}

pub(super) fn path(entry: &Entry<'_>, dir: &Path) -> Option<PathBuf> {
    let path = Path::new(entry.filled_text()?);
    if path.starts_with("~") {
        let help = Some("write the full path, or one as seen from the file".into());
        entry.report_with("`~` is not resolved in a path", help);
        return None;
    }
    // `./` in front is dropped, so that a file that writes the defaults down gives the defaults.
    Some(if path == Path::new(".") { dir.to_owned() } else { dir.join(path.strip_prefix(".").unwrap_or(path)) })
}

fn file(table: &Table<'_>, section: &'static str, keys: &'static Keys, dir: &Path) -> Option<PathBuf> {
    let entry = table.get(section)?.table(keys)?.get("file")?;
    let file = path(&entry, dir)?;
    if file.file_name().is_none() || entry.value().as_str().is_some_and(|text| text.ends_with(['/', '\\'])) {
        entry.report(format!("`{}` names a directory, not a file", entry.path()));
        return None;
    }
    Some(file)
}

fn toolkits(entry: &Entry<'_>) -> Vec<Toolkit> {
    // Here an empty list is plain: no toolkit.
    entry.set(&entry.list(), |item| item.one_of(&Toolkit::ALL.map(|toolkit| (toolkit.as_str(), toolkit))))
}

fn redaction(entry: &Entry<'_>) -> Vec<String> {
    let Some(fields) = entry.table(&REDACTION).and_then(|table| table.get("fields")) else {
        return Vec::new();
    };
    fields.set(&fields.list(), |item| item.filled_text().map(str::to_owned))
}
