//! `[[exec]]`: tools that run a program with arguments of its own, never through a shell.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use callgate_core::name::check_tool_name;
use callgate_core::nearest::nearest;
use callgate_core::tool::DEFAULT_TIMEOUT_MS;
use serde_json::Value;

use super::confirmation::{APPROVER_SCOPE_KEY, CONFIRM_KEY, Confirm, confirm};
use super::decode::{Entry, Key, Keys, Table};
use super::field::{self, CLAMPS_KEY, FieldRules, SECRETS_KEY};
use super::source::Location;
use super::tool::{COST_KEY, SCOPES_KEY, TIMEOUT, TIMEOUT_KEY, cost, scopes};
use super::toolkit::Toolkit;
use super::upstream::is_variable;
use super::{parameter, problem::quoted, schema};

/// A tool that the file declares.
#[derive(Clone, PartialEq, Debug)]
pub struct ExecTool {
    /// The tool's name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The program: an absolute path, or a name that is looked up in `PATH` once, at the start.
    pub program: String,
    /// Its arguments, with placeholders.
    pub args: Vec<String>,
    /// The schema of the call's arguments (JSON Schema 2020-12).
    pub schema: Value,
    /// Clamps and secrets.
    pub fields: FieldRules,
    /// Whether a call can change something. True unless the file says otherwise: nobody else knows what the program does.
    pub mutating: bool,
    /// Whether repeating a call changes nothing more.
    pub idempotent: bool,
    /// Who confirms: unless the file says otherwise the caller for a tool that changes something, else nobody.
    pub confirm: Confirm,
    /// Scopes, one of which a caller must hold; none asked when empty.
    pub scopes: Vec<String>,
    /// How long one call may take.
    pub timeout: Duration,
    /// What one call costs at the rate limiter, where it isn't the usual.
    pub cost: Option<u32>,
    /// How many bytes of each output stream are kept.
    pub max_output: u64,
    /// The environment variables that the program sees; no others.
    pub env: Vec<String>,
    /// Where it runs, below the root; the root itself when `None`.
    pub cwd: Option<PathBuf>,
    /// The argument of the call that is written to its standard input; nothing when `None`.
    pub stdin: Option<String>,
    /// What its output is.
    pub output: OutputKind,
    /// Where the file states it.
    pub location: Location,
}

/// What a program's output is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::exhaustive_enums, reason = "whoever reads the output must decide for each")]
pub enum OutputKind {
    /// One text.
    #[default]
    Text,
    /// One JSON value.
    Json,
    /// A list of lines.
    Lines,
}

/// How much of each output stream is kept unless the file says otherwise.
pub const DEFAULT_MAX_OUTPUT: u64 = 64 << 10;

pub(super) static KEYS: Keys = Keys {
    table: "exec",
    keys: &[
        Key { name: "name", takes: "a tool's name in quotes", example: "\"git.log\"" },
        Key { name: "description", takes: "a text in quotes", example: "\"Shows the latest commits.\"" },
        Key { name: "program", takes: "a path or a name in quotes", example: "\"git\"" },
        Key { name: "args", takes: "a list of arguments in quotes", example: "[\"log\", \"--max-count={count}\"]" },
        Key {
            name: "parameters",
            takes: "a table of parameters by name",
            example: "{ count = { type = \"integer\", min = 1, max = 100 } }",
        },
        Key {
            name: "schema",
            takes: "a JSON Schema as a table",
            example: "{ type = \"object\", additionalProperties = false }",
        },
        CLAMPS_KEY,
        SECRETS_KEY,
        Key { name: "mutating", takes: "true or false", example: "false" },
        Key { name: "idempotent", takes: "true or false", example: "true" },
        CONFIRM_KEY,
        APPROVER_SCOPE_KEY,
        SCOPES_KEY,
        TIMEOUT_KEY,
        COST_KEY,
        Key { name: "max_output", takes: "a size in quotes, such as \"64KiB\"", example: "\"64KiB\"" },
        Key { name: "env", takes: "a list of names in quotes", example: "[\"HOME\", \"LANG\"]" },
        Key { name: "cwd", takes: "a path below the root in quotes", example: "\"docs\"" },
        Key { name: "stdin", takes: "the name of a parameter in quotes", example: "\"text\"" },
        Key { name: "output", takes: "\"text\", \"json\" or \"lines\"", example: "\"lines\"" },
    ],
};

pub(super) static CLAMPS: Keys = field::clamp_keys("exec.clamps.FIELD");

pub(super) fn read(exec: &Entry<'_>) -> Vec<ExecTool> {
    let mut tools: Vec<ExecTool> = Vec::new();
    for entry in exec.list() {
        if let Some((tool, name)) = tool(&entry) {
            check_unique(&tool, name.as_ref(), &tools);
            tools.push(tool);
        }
    }
    tools
}

/// Names that differ only in case are refused as well: people and models mix them up (invariant G3).
fn check_unique(tool: &ExecTool, name: Option<&Entry<'_>>, before: &[ExecTool]) {
    let Some(entry) = name else { return };
    let taken = |other: &str| !tool.name.is_empty() && tool.name.eq_ignore_ascii_case(other);
    let builtin = Toolkit::ALL.into_iter().flat_map(Toolkit::tools).find(|name| taken(name));
    if let Some(other) = before.iter().find(|other| taken(&other.name)) {
        let message = format!("the name {} is taken by the tool on line {}", quoted(&other.name), other.location.line);
        entry.report_with(message, Some("tools have names of their own, also when case is ignored".into()));
    } else if let Some(builtin) = builtin {
        let message = format!("the name `{builtin}` is taken by a built-in tool");
        entry.report_with(message, Some(format!("choose another, or adjust that tool as [tools.\"{builtin}\"]")));
    }
}

fn tool<'d>(entry: &Entry<'d>) -> Option<(ExecTool, Option<Entry<'d>>)> {
    let table = entry.table(&KEYS)?;
    let text =
        |name| table.require(name).and_then(|entry: Entry<'_>| entry.filled_text()).unwrap_or_default().to_owned();
    let name = table.require("name");
    let mut fields = FieldRules::default();
    let schema = arguments(&table, &mut fields);
    field::read(&table, &CLAMPS, &mut fields);
    let mutating = table.boolean("mutating", true);
    let tool = ExecTool {
        name: name.as_ref().and_then(|name| name.name(check_tool_name)).unwrap_or_default(),
        description: text("description"),
        program: table.require("program").and_then(|entry| program(&entry)).unwrap_or_default(),
        args: args(&table),
        mutating,
        idempotent: table.boolean("idempotent", false),
        confirm: confirm(&table).unwrap_or(if mutating { Confirm::Caller } else { Confirm::Nobody }),
        scopes: scopes(&table),
        timeout: table
            .get("timeout")
            .and_then(|entry| entry.duration(TIMEOUT))
            .unwrap_or(Duration::from_millis(DEFAULT_TIMEOUT_MS)),
        cost: cost(&table),
        max_output: table.get("max_output").and_then(|entry| entry.size(1..=16 << 20)).unwrap_or(DEFAULT_MAX_OUTPUT),
        env: env(&table),
        cwd: table.get("cwd").and_then(|entry| below_root(&entry)),
        stdin: table.get("stdin").and_then(|entry| stdin(&entry, schema.as_ref())),
        output: table
            .get("output")
            .and_then(|entry| {
                entry.one_of(&[("text", OutputKind::Text), ("json", OutputKind::Json), ("lines", OutputKind::Lines)])
            })
            .unwrap_or_default(),
        schema: schema.unwrap_or_else(parameter::no_parameters),
        fields,
        location: table.location(),
    };
    check_shell(&tool, &table);
    if tool.mutating && tool.confirm == Confirm::Nobody {
        table.note(format!("`{}` changes something and nobody confirms it", tool.name));
    }
    Some((tool, name))
}

/// The schema of the call's arguments; `None` when it couldn't be read.
fn arguments(table: &Table<'_>, fields: &mut FieldRules) -> Option<Value> {
    match (table.get("parameters"), table.get("schema")) {
        (None, None) => Some(parameter::no_parameters()),
        (Some(parameters), None) => Some(parameter::read(&parameters, fields)),
        (None, Some(schema)) => schema::read(&schema),
        (Some(_), Some(schema)) => {
            let help = "parameters is the short form of the same thing: keep one of the two".into();
            schema.report_key("a tool has either `parameters` or `schema`", Some(help));
            None
        }
    }
}

fn program(entry: &Entry<'_>) -> Option<String> {
    let program = entry.filled_text()?;
    // A relative path would name another program from another directory.
    if program.contains(['/', '\\']) && !Path::new(program).is_absolute() {
        entry.report_with(
            format!("{} is neither a full path nor a plain name", quoted(program)),
            Some("write the full path, or only the name, which is looked up in PATH".into()),
        );
        return None;
    }
    Some(program.to_owned())
}

fn args(table: &Table<'_>) -> Vec<String> {
    const MAX_ARGS: usize = 256;
    let Some(args) = table.get("args") else {
        return Vec::new();
    };
    let items = args.list();
    if items.len() > MAX_ARGS {
        args.report_with(format!("`{}` has more than {MAX_ARGS} entries", args.path()), None);
    }
    items.iter().filter_map(|item| item.text().map(str::to_owned)).collect()
}

/// A placeholder in the script of a shell would let the caller write the script (invariant X1). Looks at the arguments too:
/// `env`, `nice` and the like start the shell that they are given.
fn check_shell(tool: &ExecTool, table: &Table<'_>) {
    const SHELLS: [&str; 11] =
        ["sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "busybox", "cmd", "powershell", "pwsh"];
    let is_shell = |word: &str| {
        let name = Path::new(word).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        SHELLS.iter().any(|shell| shell.eq_ignore_ascii_case(name))
    };
    let is_script = |flag: &str| {
        let flag = flag.to_ascii_lowercase();
        (flag.starts_with('-') && (flag.ends_with('c') || flag.ends_with("command"))) || flag == "/c" || flag == "/k"
    };
    let mut words = std::iter::once(&tool.program).chain(&tool.args).map(String::as_str);
    let in_script = words.by_ref().any(is_shell)
        && words.by_ref().any(is_script)
        && words.next().is_some_and(|script| script.replace("{{", "").contains('{'));
    if in_script {
        table.report(
            "the script for the shell has a placeholder, so a caller could write commands",
            Some("name the program itself; a script gets its values as \"$1\", \"$2\" from arguments after it".into()),
        );
    }
}

/// Reads `env` of a program.
pub(super) fn env(table: &Table<'_>) -> Vec<String> {
    let Some(env) = table.get("env") else {
        return Vec::new();
    };
    env.set(&env.list(), |item| {
        let name = item.text()?;
        let shaped = is_variable(name);
        if !shaped {
            let message = format!("{} is no name of an environment variable", quoted(name));
            item.report_with(message, Some("list names only; the values come from the environment of callgate".into()));
        }
        shaped.then(|| name.to_owned())
    })
}

fn below_root(entry: &Entry<'_>) -> Option<PathBuf> {
    let path = Path::new(entry.filled_text()?);
    let inside = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !inside {
        let help = Some("it is a path below the root, without `..`".into());
        entry.report_with(format!("`{}` leaves the root", entry.path()), help);
    }
    inside.then(|| path.to_owned())
}

fn stdin(entry: &Entry<'_>, schema: Option<&Value>) -> Option<String> {
    let name = entry.filled_text()?;
    // A schema that couldn't be read was reported; whether it has the parameter can't be told.
    let properties = schema?.get("properties").and_then(Value::as_object);
    let Some(kind) = properties.and_then(|properties| properties.get(name)).map(|property| property.get("type")) else {
        let known = properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str));
        let near = nearest(name.chars(), known).map(|near| format!("did you mean \"{near}\"?"));
        let help = near.unwrap_or_else(|| "declare it under [exec.parameters]".into());
        entry.report_with(format!("the tool has no parameter {}", quoted(name)), Some(help));
        return None;
    };
    if kind != Some(&Value::from("string")) {
        entry.report_with(format!("the parameter {} is not a string", quoted(name)), None);
    }
    Some(name.to_owned())
}
