//! A directory with a few files, and the command in it.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// What keeps state and log in files of text.
const TEXTS: &str = "[state]\nfile = \".callgate/state.json\"\n[audit]\nfile = \".callgate/audit.jsonl\"\n";

/// A directory of its own.
pub(crate) struct World {
    dir: tempfile::TempDir,
}

/// What became of one command.
pub(crate) struct Ran {
    /// The exit status.
    pub(crate) status: i32,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

impl World {
    /// Two files that hold `TODO`, and one that doesn't.
    pub(crate) fn new() -> Self {
        let world = Self { dir: tempfile::tempdir().expect("a directory") };
        world.put("src/main.rs", "fn main() {\n    // TODO: greet\n}\n");
        world.put("notes.md", "# Notes\nTODO buy milk\n");
        world.put("done.md", "all done\n");
        world
    }

    /// The same with a configuration, to which the version is added.
    pub(crate) fn with_config(config: &str) -> Self {
        let world = Self::new();
        world.put("callgate.toml", &format!("version = 1\n{config}"));
        world
    }

    /// The same with the state and the log in files of text.
    pub(crate) fn with_texts() -> Self {
        Self::with_config(TEXTS)
    }

    /// Where something in it is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Puts a file into it.
    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("written");
    }

    /// The text of a file in it.
    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("it is there")
    }

    /// The command, about to be started.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_callgate"));
        command.args(args).current_dir(self.dir.path()).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    /// Runs the command.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        Ran::of(self.command(args).output().expect("it starts"))
    }

    /// Runs the command with something on its standard input.
    pub(crate) fn run_with(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        // It may stop reading before the end.
        drop(child.stdin.take().expect("a pipe").write_all(input));
        Ran::of(child.wait_with_output().expect("it ends"))
    }

    /// Starts the command and does not wait.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    /// Runs `callgate call`.
    pub(crate) fn call(&self, args: &[&str]) -> Ran {
        self.run(&[&["call"], args].concat())
    }

    /// Asks for a call that has to be confirmed, and gives the token.
    pub(crate) fn ask(&self, args: &[&str]) -> String {
        let asked = self.call(&[args, &["--json"]].concat());
        assert_eq!(asked.status, 4, "{}{}", asked.out, asked.err);
        asked.json()["data"]["confirm_token"].as_str().expect("a token").to_owned()
    }

    /// The records of the log.
    pub(crate) fn records(&self) -> Vec<Value> {
        let log = self.run(&["audit", "export"]).ok().out;
        log.lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
    }

    /// How the calls ended, by their records, intents included.
    pub(crate) fn ends(&self) -> Vec<String> {
        self.records().iter().map(|record| record["end"].as_str().unwrap_or("note").to_owned()).collect()
    }
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// Standard output as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }

    /// Asserts how it ended, and that standard error names the code.
    #[track_caller]
    pub(crate) fn refused(&self, code: &str) {
        assert_eq!(self.status, 3, "{}{}", self.out, self.err);
        assert!(self.err.contains(code), "{}", self.err);
    }

    /// Asserts that the tool, or the gate before it, did not do it.
    #[track_caller]
    pub(crate) fn refused_or_failed(&self) {
        assert!(matches!(self.status, 1 | 3), "{}{}", self.out, self.err);
    }

    /// Asserts that it succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.status, 0, "{}{}", self.out, self.err);
        self
    }
}
