//! `callgate init --from`: the gate put in front of the servers that a client has already.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use callgate_core::redact::{Redaction, Secrets};

use super::MODE;
use super::client::{ClientFile, Reach, Replacement, Server};
use crate::caller::shell_word;
use crate::command_line::ClientName;
use crate::config::{Config, FILE_NAME, TEMPLATE, Toolkit, Upstream, check_header, check_url, is_variable};
use crate::exit::Exit;
use crate::terminal::{BAD, BOLD, Brush, DIM, GOOD, NAME, Terminal, WARN, visible};
use crate::trouble::Trouble;

/// How large a client's configuration may be, in bytes.
const MAX_FILE: u64 = 4 << 20;
/// Of an argument, so many characters are shown.
const SHOWN: usize = 120;

/// What becomes of one server.
struct Change {
    server: Server,
    fate: Fate,
}

enum Fate {
    /// The gate is put in front of it.
    Gated { upstream: Declaration, new: Replacement, note: Option<String> },
    /// The gate stands there already.
    Already,
    /// It stays as it is, for this reason.
    Left(String),
}

/// What `callgate.toml` says of a server.
struct Declaration {
    name: String,
    env: Vec<String>,
    headers: BTreeMap<String, String>,
    /// Whether it says so already.
    there: bool,
}

pub(super) fn run(
    client: ClientName,
    file: &Path,
    dir: &Path,
    write: bool,
    terminal: &mut Terminal,
) -> Result<Exit, Trouble> {
    let shown = visible(&file.display().to_string());
    let refused = |reason: String| Trouble::failed(format!("{shown}: {}", visible(&reason)));
    // Editors put links to where they keep a file; the file is changed where it is.
    let real = fs::canonicalize(file).map_err(|error| refused(format!("can't be read: {error}")))?;
    let text = read(&real).map_err(&refused)?;
    let parsed = ClientFile::parse(client, &text).map_err(&refused)?;
    let servers = parsed.servers().map_err(&refused)?;
    let gate = Gate::of(dir)?;
    let mut names = Names::of(&gate.config);
    let changes: Vec<Change> = servers
        .into_iter()
        .map(|server| {
            let fate = fate(&server, &gate, &mut names);
            Change { server, fate }
        })
        .collect();
    let brush = terminal.out.brush();
    terminal.out.print(&told(&shown, &changes, &gate, brush));
    let gated: Vec<&Declaration> = changes.iter().filter_map(Change::declaration).collect();
    if gated.is_empty() {
        terminal.err.line("nothing to change");
        return Ok(Exit::Success);
    }
    if !write {
        terminal.err.line("nothing was written; --write does it, and keeps the old file beside the new one");
        return Ok(Exit::Success);
    }
    for change in &changes {
        if let Fate::Gated { new, .. } = &change.fate {
            change.server.replace(new);
        }
    }
    gate.declare(&gated)?;
    let backup =
        replace(&real, &text, &parsed.text()).map_err(|error| refused(format!("can't be written: {error}")))?;
    terminal.out.line(format_args!("wrote {shown}; as it was it is in {}", visible(&backup.display().to_string())));
    terminal
        .err
        .line(format_args!("next: restart the client; `{}` shows what its servers say of their tools", gate.pins()));
    Ok(Exit::Success)
}

impl Change {
    const fn declaration(&self) -> Option<&Declaration> {
        match &self.fate {
            Fate::Gated { upstream, .. } => Some(upstream),
            Fate::Already | Fate::Left(_) => None,
        }
    }
}

/// The gate's own configuration.
struct Gate {
    /// Where it is or will be: a full path, because a client starts programs anywhere.
    file: PathBuf,
    /// The program.
    program: String,
    config: Config,
    /// Its text, if there is one.
    text: Option<String>,
}

impl Gate {
    fn of(dir: &Path) -> Result<Self, Trouble> {
        let unusable = |error: io::Error| Trouble::failed(format!("the directory can't be used: {error}"));
        let dir = std::path::absolute(dir).map_err(unusable)?;
        let file = dir.join(FILE_NAME);
        let program =
            std::env::current_exe().map_err(|error| Trouble::failed(format!("no path to callgate: {error}")))?;
        let utf8 = |path: &Path| {
            let text = path.to_str().map(str::to_owned);
            text.ok_or_else(|| Trouble::failed("the path is not UTF-8, so JSON can't hold it"))
        };
        let there = fs::symlink_metadata(&file).is_ok();
        let config = if there { Config::load(&file)? } else { Config::default_for(&dir) };
        let text = if there { Some(read(&file).map_err(Trouble::failed)?) } else { None };
        let program = utf8(&program)?;
        drop(utf8(&file)?);
        Ok(Self { file, program, config, text })
    }

    /// Adds the servers to the configuration.
    fn declare(&self, upstreams: &[&Declaration]) -> Result<(), Trouble> {
        let mut text = self.text.clone().unwrap_or_else(|| TEMPLATE.to_owned());
        let new: Vec<_> = upstreams.iter().filter(|upstream| !upstream.there).collect();
        if new.is_empty() && self.text.is_some() {
            return Ok(());
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        for upstream in new {
            text.push_str(&upstream.toml());
        }
        // What would not be read is not written.
        Config::parse(&text, &self.file)?;
        let directory = self.file.parent().unwrap_or(Path::new("."));
        let written = fs::create_dir_all(directory).and_then(|()| persist(&self.file, &text, None));
        written.map_err(|error| Trouble::failed(format!("{} can't be written: {error}", self.shown())))
    }

    fn shown(&self) -> String {
        visible(&self.file.display().to_string())
    }

    fn pins(&self) -> String {
        format!("callgate --config {} pins list", shell_word(&self.shown()))
    }

    /// The words that start the gate in front of an upstream.
    fn words(&self, name: &str) -> Vec<String> {
        let file = self.file.to_str().unwrap_or_default();
        ["--config", file, "proxy", "--name", name].map(str::to_owned).into()
    }
}

impl Declaration {
    fn toml(&self) -> String {
        let list = |names: &[String]| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let mut text = format!("\n[[upstream]]\nname = \"{}\"\n", self.name);
        // A string takes everything. Names of variables and headers hold nothing that TOML would read otherwise.
        if !self.env.is_empty() {
            let _ = writeln!(text, "env = [{}]", list(&self.env));
        }
        if !self.headers.is_empty() {
            let headers: Vec<_> =
                self.headers.iter().map(|(header, variable)| format!("\"{header}\" = \"{variable}\"")).collect();
            let _ = writeln!(text, "headers = {{ {} }}", headers.join(", "));
        }
        text
    }

    /// Whether an upstream of the file is this one.
    fn is(&self, upstream: &Upstream) -> bool {
        let sees = |name: &String| upstream.env.contains(name) || Upstream::BASE_ENV.contains(&name.as_str());
        upstream.name == self.name
            && upstream.reach.is_none()
            && upstream.headers == self.headers
            && self.env.iter().all(sees)
    }
}

/// Names for upstreams.
struct Names<'c> {
    config: &'c Config,
    taken: Vec<String>,
}

impl<'c> Names<'c> {
    fn of(config: &'c Config) -> Self {
        let kits = Toolkit::ALL.into_iter().map(|kit| kit.as_str().to_owned());
        let tools = config.exec.iter().filter_map(|tool| Some(tool.name.split_once('.')?.0.to_owned()));
        Self { config, taken: kits.chain(tools).collect() }
    }

    /// Gives the declaration a name like the one that the client has for it: one that the file has for the same server, else a
    /// free one.
    fn name(&mut self, wanted: &str, mut declaration: Declaration) -> Declaration {
        let shape = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '-' };
        let base: String = wanted.chars().map(shape).take(32).collect();
        let base = if base.is_empty() { Upstream::UNNAMED.to_owned() } else { base };
        let mut name = base.clone();
        for number in 2.. {
            declaration.name = name;
            let is_taken = self.taken.iter().any(|taken| taken.eq_ignore_ascii_case(&declaration.name));
            let other =
                self.config.upstreams.iter().find(|upstream| upstream.name.eq_ignore_ascii_case(&declaration.name));
            declaration.there = other.is_some_and(|other| declaration.is(other));
            if !is_taken && (other.is_none() || declaration.there) {
                break;
            }
            name = format!("{base}-{number}");
        }
        self.taken.push(declaration.name.clone());
        declaration
    }
}

fn fate(server: &Server, gate: &Gate, names: &mut Names<'_>) -> Fate {
    if let Some(odd) = server.env.iter().find(|name| !is_variable(name)) {
        return Fate::Left(format!("{} is no name of an environment variable", visible(odd)));
    }
    let own = |name: &String| !Upstream::BASE_ENV.contains(&name.as_str());
    let mut declaration = Declaration {
        name: String::new(),
        env: server.env.iter().filter(|name| own(name)).cloned().collect(),
        headers: BTreeMap::new(),
        there: false,
    };
    match &server.reach {
        Reach::Gated => Fate::Already,
        Reach::Other(reason) => Fate::Left(reason.clone()),
        Reach::Program(words) => {
            let upstream = names.name(&server.name, declaration);
            let mut args = gate.words(&upstream.name);
            args.push("--".to_owned());
            args.extend(words.iter().cloned());
            let new = Replacement { command: gate.program.clone(), args, env: Vec::new() };
            Fate::Gated { upstream, new, note: None }
        }
        Reach::Url(url, headers) => {
            // A client fills in what stands in ${...}; whether that can be used shows when it is there.
            if let Err(reason) = check_url(url).or_else(|error| if url.contains("${") { Ok(()) } else { Err(error) }) {
                return Fate::Left(format!("its URL {reason}"));
            }
            let mut env = Vec::new();
            for (at, (header, value)) in headers.iter().enumerate() {
                if let Err(reason) = check_header(header) {
                    return Fate::Left(format!("the header {} {reason}", visible(header)));
                }
                let variable = format!("CALLGATE_HEADER_{}", at.saturating_add(1));
                env.push((variable.clone(), value.clone()));
                drop(declaration.headers.insert(header.clone(), variable));
            }
            // Of a server elsewhere nothing is started, so it sees no environment.
            declaration.env.clear();
            let upstream = names.name(&server.name, declaration);
            let mut args = gate.words(&upstream.name);
            args.extend(["--url".to_owned(), url.clone()]);
            let note =
                (!headers.is_empty()).then(|| "the headers become environment variables of the same entry".to_owned());
            Fate::Gated { upstream, new: Replacement { command: gate.program.clone(), args, env }, note }
        }
    }
}

/// What changes, without the value of any variable or header.
fn told(file: &str, changes: &[Change], gate: &Gate, brush: Brush) -> String {
    let mut text = format!("{}\n", brush.paint(BOLD, file));
    let mut line = |line: std::fmt::Arguments<'_>| {
        // A string takes everything.
        let _ = writeln!(text, "{line}");
    };
    for Change { server, fate } in changes {
        let name = brush.paint(NAME, visible(&server.name));
        match fate {
            Fate::Already => line(format_args!("  {name}  {}", brush.paint(DIM, "passes the gate already"))),
            Fate::Left(reason) => {
                line(format_args!("  {name}  {}", brush.paint(WARN, format!("stays as it is: {reason}"))));
            }
            Fate::Gated { new, note, .. } => {
                line(format_args!("  {name}"));
                let (minus, plus) = (|text: String| brush.paint(BAD, text), |text: String| brush.paint(GOOD, text));
                match &server.reach {
                    Reach::Program(words) => line(format_args!("    {}", minus(format!("- {}", command(words))))),
                    Reach::Url(url, _) => line(format_args!("    {}", minus(format!("- {}", word(url))))),
                    Reach::Gated | Reach::Other(_) => {}
                }
                let words = std::iter::once(new.command.clone()).chain(new.args.iter().cloned()).collect::<Vec<_>>();
                line(format_args!("    {}", plus(format!("+ {}", command(&words)))));
                let kept = server.env.iter().map(String::as_str);
                let added = new.env.iter().map(|(name, _)| name.as_str());
                let env = kept.chain(added).map(visible).collect::<Vec<_>>();
                if !env.is_empty() {
                    line(format_args!(
                        "      {}",
                        brush.paint(DIM, format!("env: {} (values not shown)", env.join(", ")))
                    ));
                }
                if let Some(note) = note {
                    line(format_args!("      {}", brush.paint(DIM, note)));
                }
            }
        }
    }
    let declared: Vec<_> = changes.iter().filter_map(Change::declaration).filter(|upstream| !upstream.there).collect();
    if !declared.is_empty() {
        let state = if gate.text.is_some() { "" } else { " (new)" };
        line(format_args!("{}{state}", brush.paint(BOLD, gate.shown())));
        for added in
            declared.iter().flat_map(|upstream| upstream.toml().trim().lines().map(str::to_owned).collect::<Vec<_>>())
        {
            line(format_args!("  {}", brush.paint(GOOD, format!("+ {added}"))));
        }
    }
    text
}

/// A command as people read it, without what looks like a secret.
fn command(words: &[String]) -> String {
    let mut shown = Vec::with_capacity(words.len());
    let mut secret = false;
    for text in words {
        let (name, value) = text.split_once('=').map_or((text.as_str(), None), |(name, value)| (name, Some(value)));
        let sensitive = name.starts_with('-') && Redaction::DEFAULT.is_sensitive(name.trim_start_matches('-'));
        shown.push(match value {
            _ if secret => "[redacted]".to_owned(),
            Some(_) if sensitive => format!("{}=[redacted]", word(name)),
            _ => word(text),
        });
        secret = sensitive && value.is_none();
    }
    shown.join(" ")
}

fn word(text: &str) -> String {
    let text = Redaction::DEFAULT.text(text, Secrets::NONE).to_string();
    let text = visible(&text);
    let cut: String = text.chars().take(SHOWN).collect();
    shell_word(&if cut.len() < text.len() { format!("{cut}...") } else { text })
}

fn read(file: &Path) -> Result<String, String> {
    use io::Read as _;
    let unreadable = |error: io::Error| format!("can't be read: {error}");
    if !fs::metadata(file).map_err(unreadable)?.is_file() {
        return Err("is no regular file".to_owned());
    }
    let mut text = String::new();
    let opened = fs::File::open(file).map_err(unreadable)?;
    let bytes = opened.take(MAX_FILE.saturating_add(1)).read_to_string(&mut text).map_err(unreadable)?;
    if u64::try_from(bytes).unwrap_or(u64::MAX) > MAX_FILE {
        return Err("is larger than 4 MiB".to_owned());
    }
    Ok(text)
}

/// Puts the new text in the place of the old one, which is kept beside it under a name that nothing has. Gives that name.
fn replace(file: &Path, old: &str, new: &str) -> io::Result<PathBuf> {
    let permissions = fs::metadata(file)?.permissions();
    for number in 0..1000_u32 {
        let extension = if number == 0 { "before-callgate".to_owned() } else { format!("before-callgate-{number}") };
        let backup = file.with_added_extension(extension);
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        // It may hold secrets: nobody else reads it, not even while it is made.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(&backup) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(mut kept) => {
                kept.write_all(old.as_bytes())?;
                kept.sync_all()?;
                kept.set_permissions(permissions.clone())?;
                // What the client wrote meanwhile is not lost.
                if fs::read_to_string(file)? != old {
                    return Err(io::Error::other("it changed meanwhile; run this again"));
                }
                persist(file, new, Some(permissions))?;
                return Ok(backup);
            }
        }
    }
    Err(io::Error::other("there are a thousand backups already"))
}

/// Writes the file in one step: whoever reads it meanwhile reads the old one or the new one.
fn persist(file: &Path, text: &str, permissions: Option<fs::Permissions>) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let mut draft = tempfile::Builder::new().prefix(".callgate-").tempfile_in(directory)?;
    draft.write_all(text.as_bytes())?;
    #[cfg(unix)]
    let permissions = match permissions {
        Some(permissions) => permissions,
        None => match fs::metadata(file) {
            Ok(metadata) => metadata.permissions(),
            Err(_) => std::os::unix::fs::PermissionsExt::from_mode(MODE),
        },
    };
    #[cfg(unix)]
    draft.as_file().set_permissions(permissions)?;
    #[cfg(not(unix))]
    drop(permissions);
    draft.as_file().sync_all()?;
    draft.persist(file).map(|_| ()).map_err(|error| error.error)
}
