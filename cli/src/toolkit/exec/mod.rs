//! Programs that a configuration declares as tools.
//!
//! There is no shell anywhere (invariant X1). A program gets a vector of arguments made from a template; a value is one argument or a
//! part of one, whatever characters it holds, and can never become an option. Its environment holds what was declared and
//! nothing else; it has no terminal; its time and its output are bounded, and what it started ends with it.
//!
//! What is not done: a program sees the file system as the user does who runs the gate. A path among its arguments is text to
//! the gate, so a tool that takes one needs a `pattern` in its schema, or a sandbox around the program.

mod lookup;
mod output;
mod process;
mod stream;
mod template;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use self::lookup::Pinned;
use self::process::Invocation;
use self::template::Template;
use crate::config::{ExecTool, OutputKind};
use crate::toolkit::deadline::Deadline;
use crate::toolkit::error::{ToolError, ToolResult};
use crate::toolkit::fs::{RelPath, Root};

/// What a configuration says of a program.
#[derive(Clone, Copy, Debug)]
pub struct Declaration<'a> {
    /// An absolute path, or a name that is looked up once.
    pub program: &'a str,
    /// The arguments: plain text, `{name}` for a value, `{name...}` for each value of a list; `{{` and `}}` for braces.
    pub args: &'a [String],
    /// The schema of a call's arguments. Only `properties` and `required` are looked at here.
    pub schema: &'a Value,
    /// The environment variables that the program sees, by name.
    pub env: &'a [String],
    /// Where it runs, below the root; the root itself when `None`.
    pub cwd: Option<&'a Path>,
    /// The argument that is written to its standard input.
    pub stdin: Option<&'a str>,
    /// What its output is.
    pub output: OutputKind,
    /// How many bytes of its output are kept.
    pub max_output: u64,
    /// How long it may take.
    pub timeout: Duration,
}

impl<'a> From<&'a ExecTool> for Declaration<'a> {
    fn from(tool: &'a ExecTool) -> Self {
        Self {
            program: &tool.program,
            args: &tool.args,
            schema: &tool.schema,
            env: &tool.env,
            cwd: tool.cwd.as_deref(),
            stdin: tool.stdin.as_deref(),
            output: tool.output,
            max_output: tool.max_output,
            timeout: tool.timeout,
        }
    }
}

/// Something in a declaration that cannot work, with what would.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The part of the declaration: `program`, `args[2]`, `stdin`, `cwd` or a parameter.
    pub part: String,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub help: String,
}

impl Problem {
    fn new(part: impl Into<String>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { part: part.into(), message: message.into(), help: help.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.part, self.message, self.help)
    }
}

/// What the environment of the gate has to give. Read once, at the start.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// The value of a variable, `PATH` among them.
    pub var: &'a dyn Fn(&str) -> Option<OsString>,
}

impl Environment<'static> {
    /// That of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self { var: &|name| std::env::var_os(name) }
    }
}

impl fmt::Debug for Environment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment(..)")
    }
}

/// A declared program that was found, with everything that could be decided before the first call.
#[derive(Debug)]
pub struct Program {
    pinned: Pinned,
    template: Template,
    env: Vec<(OsString, OsString)>,
    cwd: Option<RelPath>,
    stdin: Option<String>,
    output: OutputKind,
    max_output: usize,
    timeout: Duration,
}

impl Program {
    /// Looks the program up, and checks that template and schema fit each other.
    ///
    /// The program is pinned: later calls run this file, and none when another has taken its place.
    ///
    /// # Errors
    ///
    /// Every problem at once: a program that is not there or cannot be run, a placeholder that is no parameter or sits where
    /// its value could become an option, a parameter that is never used, a parameter whose values cannot be arguments.
    pub fn prepare(declaration: &Declaration<'_>, environment: Environment<'_>) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let template = Template::read(declaration.args, declaration.schema, declaration.stdin, &mut problems);
        let search = (environment.var)("PATH");
        let pinned = Pinned::find(declaration.program, search.as_deref().unwrap_or(OsStr::new("")));
        let pinned = pinned.map_err(|problem| problems.push(problem)).ok();
        let cwd = declaration.cwd.map(|cwd| RelPath::parse("cwd", &cwd.to_string_lossy())).transpose();
        let cwd = cwd
            .map_err(|error| problems.push(Problem::new("cwd", error.message, "name a directory below the root")))
            .ok();
        match (pinned, cwd) {
            (Some(pinned), Some(cwd)) if problems.is_empty() => Ok(Self {
                pinned,
                template,
                env: declaration.env.iter().filter_map(|name| Some((name.into(), (environment.var)(name)?))).collect(),
                cwd,
                stdin: declaration.stdin.map(str::to_owned),
                output: declaration.output,
                max_output: usize::try_from(declaration.max_output).unwrap_or(usize::MAX),
                timeout: declaration.timeout,
            }),
            _ => Err(problems),
        }
    }

    /// The file that is run.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.pinned.path()
    }

    /// Runs the program with the arguments `args` of a call, and answers `{"output", "exit_code", "bytes", "cut", "stderr_bytes"}`.
    ///
    /// `output` is a text, a list of lines or a JSON value, as declared. `bytes` is how much the program wrote in all. What is beyond the
    /// declared cap is cut off at the end of a character or line, and `cut` is true: then `sha256` is the digest of the
    /// whole (invariant O2). Bytes of a text that are not UTF-8 are replaced, and `lossy` is true.
    ///
    /// The program runs in a session of its own, and whatever is left of that session's process group when it ends is killed. A
    /// process that left the group (a daemon) is not found; it cannot hold the call up.
    ///
    /// # Errors
    ///
    /// A status other than 0 and a death by a signal are failures. At the deadline, or `timeout` after the start if that is
    /// earlier, the process group gets `SIGTERM` and a quarter of a second later `SIGKILL`. What the program wrote to standard error is in
    /// the error's detail, and never in its message.
    pub fn run(&self, root: &Root, args: &Map<String, Value>, deadline: Deadline<'_>) -> ToolResult {
        let deadline = deadline.at_most(self.timeout);
        deadline.check()?;
        let vector = self.template.fill(args)?;
        let stdin = self.stdin_of(args)?;
        self.pinned.check()?;
        // The caller has no say in where it is, so it is not told either.
        let directory = root.working_directory("cwd", self.cwd.as_ref()).map_err(|error| {
            ToolError::refused("the program has no directory to run in")
                .with_detail(error.detail.unwrap_or(error.message))
        })?;
        let invocation = Invocation {
            program: self.pinned.path(),
            args: &vector,
            env: &self.env,
            directory: &directory.path(),
            stdin,
            max_output: self.max_output,
        };
        let finished = process::run(&invocation, deadline)?;
        output::answer(self.output, finished)
    }

    fn stdin_of<'v>(&self, args: &'v Map<String, Value>) -> Result<Option<&'v [u8]>, ToolError> {
        let Some(name) = &self.stdin else { return Ok(None) };
        match args.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_bytes())),
            Some(_) => Err(ToolError::refused(format!("{name}: must be a string"))),
        }
    }
}

/// A directory held open, as a path that leads to it for as long as it is held.
pub(in crate::toolkit) struct WorkingDirectory {
    /// Named by its number where the system can; else by where it was.
    dir: cap_std::fs::Dir,
    path: PathBuf,
}

impl WorkingDirectory {
    pub(in crate::toolkit) const fn new(dir: cap_std::fs::Dir, path: PathBuf) -> Self {
        Self { dir, path }
    }

    /// On Linux this leads to the very directory that was opened, whatever has been renamed since. It is meant for a child process
    /// before it runs its program, which still has the handle.
    fn path(&self) -> PathBuf {
        use std::os::fd::{AsFd, AsRawFd};
        let by_handle = PathBuf::from(format!("/proc/self/fd/{}", self.dir.as_fd().as_raw_fd()));
        if cfg!(target_os = "linux") && by_handle.is_dir() { by_handle } else { self.path.clone() }
    }
}
