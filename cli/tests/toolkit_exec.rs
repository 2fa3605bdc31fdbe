//! Declared programs, run for real.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "in helpers of tests; a failure is a failed test")]

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use callgate::config::OutputKind;
use callgate::toolkit::exec::{Declaration, Environment, Problem, Program};
use callgate::toolkit::fs::Root;
use callgate::toolkit::{Deadline, Fault, ToolError};
use callgate_core::time::{Clock, Instant, Now};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// A clock that stands still.
struct Still;

impl Clock for Still {
    fn now(&self) -> Now {
        Now::default()
    }
}

/// A clock that stands still until somebody has written to the pipe, and has then gone on by an hour.
struct UntilWritten<'a>(&'a fs::File);

impl Clock for UntilWritten<'_> {
    fn now(&self) -> Now {
        let nanos = if is_written(self.0) { 3_600_000_000_000 } else { 0 };
        Now { monotonic: Instant::from_nanos(nanos), ..Now::default() }
    }
}

fn is_written(pipe: &fs::File) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&now)).unwrap() > 0
}

/// A declaration that owns its parts.
struct Tool {
    root: TempDir,
    program: String,
    args: Vec<String>,
    schema: Value,
    env: Vec<String>,
    cwd: Option<&'static str>,
    stdin: Option<&'static str>,
    output: OutputKind,
    max_output: u64,
}

impl Tool {
    fn new(program: &str, args: &[&str]) -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
            program: program.to_owned(),
            args: args.iter().map(ToString::to_string).collect(),
            schema: json!({"type": "object", "properties": {}}),
            env: Vec::new(),
            cwd: None,
            stdin: None,
            output: OutputKind::Text,
            max_output: 65_536,
        }
    }

    /// A script of the shell, as the program under test. Values reach it as `"$1"`, `"$2"`.
    fn script(script: &str, args: &[&str]) -> Self {
        let fixed = ["-c", script, "script"];
        Self::new("sh", &fixed.into_iter().chain(args.iter().copied()).collect::<Vec<_>>())
    }

    fn with(mut self, parameters: &[&str]) -> Self {
        let properties = parameters.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        self.schema = json!({"type": "object", "properties": Value::Object(properties)});
        self
    }

    fn prepare(&self) -> Result<Program, Vec<Problem>> {
        let declaration = Declaration {
            program: &self.program,
            args: &self.args,
            schema: &self.schema,
            env: &self.env,
            cwd: self.cwd.map(Path::new),
            stdin: self.stdin,
            output: self.output,
            max_output: self.max_output,
            timeout: Duration::from_secs(3_600),
        };
        let var = |name: &str| match name {
            "PATH" => std::env::var_os("PATH"),
            "SHOWN" | "HIDDEN" => Some(OsString::from(format!("value of {name}"))),
            _ => None,
        };
        Program::prepare(&declaration, Environment { var: &var })
    }

    fn root(&self) -> Root {
        Root::open(self.root.path()).unwrap()
    }

    fn run(&self, args: &Value, deadline: Deadline<'_>) -> Result<Value, ToolError> {
        self.prepare().unwrap().run(&self.root(), args.as_object().unwrap(), deadline)
    }

    fn call(&self, args: &Value) -> Result<Value, ToolError> {
        self.run(args, Deadline::never(&Still))
    }
}

#[test]
fn a_program_gets_its_arguments_and_its_output_comes_back() {
    let tool = Tool::new("printf", &["%s|", "--", "{a}", "{b}"]).with(&["a", "b"]);
    let answer = tool.call(&json!({"a": "x y", "b": "$(id)`id`;id\n'\""})).unwrap();
    let output = "--|x y|$(id)`id`;id\n'\"|";
    assert_eq!(
        answer,
        json!({"output": output, "exit_code": 0, "bytes": output.len(), "cut": false, "stderr_bytes": 0})
    );
}

#[test]
fn x1_a_value_that_looks_like_an_option_does_not_reach_the_program() {
    let tool = Tool::script("touch ran", &["{a}"]).with(&["a"]);
    let error = tool.call(&json!({"a": "-rf"})).unwrap_err();
    assert_eq!(error.fault, Fault::Refused);
    assert!(!error.message.contains("rf"), "{}", error.message);
    assert!(!tool.root.path().join("ran").exists());
}

#[test]
fn output_can_be_lines_or_json() {
    let mut tool = Tool::script("printf 'a\\r\\nb\\n\\nc'", &[]);
    tool.output = OutputKind::Lines;
    assert_eq!(tool.call(&json!({})).unwrap()["output"], json!(["a", "b", "", "c"]));
    let mut tool = Tool::new("printf", &["%s", "--", "{text}"]).with(&["text"]);
    tool.args = vec!["%s".to_owned(), "{text}".to_owned()];
    tool.output = OutputKind::Json;
    // V1: every number exactly, or refused.
    for text in [
        r#"{"id":9007199254740993,"max":18446744073709551615,"f":0.5,"s":"\u00e9","l":[null,true,{}]}"#,
        "[]",
        "\"x\"",
        "7",
    ] {
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(tool.call(&json!({"text": text})).unwrap()["output"], expected, "{text}");
    }
    for text in ["", "{", "{} {}", "NaN", "1e400", "18446744073709551616", r#"{"a":1,"a":2}"#, r#"{"a":1,"\u0061":2}"#]
    {
        assert_eq!(tool.call(&json!({"text": text})).unwrap_err().fault, Fault::Failed, "{text}");
    }
}

#[test]
fn o2_output_over_the_cap_is_cut_with_length_and_digest() {
    let whole = "0123456789é\n".repeat(100_000);
    let mut tool = Tool::new("cat", &["big"]);
    fs::write(tool.root.path().join("big"), &whole).unwrap();
    tool.max_output = 1_000;
    let answer = tool.call(&json!({})).unwrap();
    assert_eq!((&answer["bytes"], &answer["cut"]), (&json!(whole.len()), &json!(true)));
    let digest: String = Sha256::digest(&whole).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(answer["sha256"], json!(digest));
    assert_eq!(answer["output"].as_str(), whole.get(..1_000));
    // In the middle of a character: cut before it, and not taken for bytes that are no text.
    tool.max_output = 11;
    let answer = tool.call(&json!({})).unwrap();
    assert_eq!((&answer["output"], answer.get("lossy")), (&json!("0123456789"), None));
    // Half a line is no line, and half a JSON text is none.
    tool.max_output = 30;
    tool.output = OutputKind::Lines;
    assert_eq!(tool.call(&json!({})).unwrap()["output"], json!(["0123456789é", "0123456789é"]));
    tool.output = OutputKind::Json;
    assert!(tool.call(&json!({})).unwrap_err().message.contains("longer than its cap"));
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_it_shows() {
    let answer = Tool::script("printf 'a\\377b'", &[]).call(&json!({})).unwrap();
    assert_eq!((&answer["output"], &answer["lossy"]), (&json!("a\u{fffd}b"), &json!(true)));
}

#[test]
fn l4_a_failure_shows_its_status_and_keeps_standard_error_for_the_record() {
    let error = Tool::script("echo out; echo CANARY >&2; exit 3", &[]).call(&json!({})).unwrap_err();
    assert_eq!((error.fault, error.message.as_str()), (Fault::Failed, "the program ended with status 3"));
    assert!(error.detail.unwrap().contains("CANARY"));
    let error = Tool::script("kill -9 $$", &[]).call(&json!({})).unwrap_err();
    assert_eq!(error.message, "the program was ended by signal 9");
    let answer = Tool::script("echo CANARY >&2", &[]).call(&json!({})).unwrap();
    assert_eq!(answer["stderr_bytes"], 7);
    assert!(!answer.to_string().contains("CANARY"));
}

#[test]
fn the_environment_holds_what_was_declared() {
    let mut tool = Tool::script("/usr/bin/env", &[]);
    tool.env = vec!["SHOWN".to_owned(), "ABSENT".to_owned()];
    tool.output = OutputKind::Lines;
    let answer = tool.call(&json!({})).unwrap();
    let lines: Vec<&str> = answer["output"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert!(lines.contains(&"SHOWN=value of SHOWN"));
    // A shell adds some of its own, which tell it where it is.
    let own = |line: &&str| !["SHOWN=", "PWD=", "SHLVL=", "OLDPWD=", "_="].iter().any(|name| line.starts_with(name));
    assert_eq!(lines.iter().filter(|line| own(line)).count(), 0, "{lines:?}");
}

#[test]
fn a_program_runs_in_the_root_or_below() {
    let mut tool = Tool::script("/bin/pwd", &[]);
    fs::create_dir(tool.root.path().join("sub")).unwrap();
    symlink("..", tool.root.path().join("sub/up")).unwrap();
    let root = tool.root.path().canonicalize().unwrap();
    assert_eq!(tool.call(&json!({})).unwrap()["output"], json!(format!("{}\n", root.display())));
    tool.cwd = Some("sub");
    assert_eq!(tool.call(&json!({})).unwrap()["output"], json!(format!("{}\n", root.join("sub").display())));
    // S7: a directory of the declaration is resolved below the root as any path.
    symlink("/", root.join("out")).unwrap();
    for missing in ["out", "nothing", "sub/up/up"] {
        tool.cwd = Some(missing);
        assert_eq!(tool.call(&json!({})).unwrap_err().fault, Fault::Refused, "{missing}");
    }
    tool.cwd = Some("../x");
    assert_eq!(tool.prepare().unwrap_err()[0].part, "cwd");
}

#[test]
fn standard_input_is_empty_or_an_argument() {
    assert_eq!(Tool::new("cat", &[]).call(&json!({})).unwrap()["output"], "");
    let mut tool = Tool::new("cat", &[]).with(&["text"]);
    tool.stdin = Some("text");
    tool.max_output = 10_000_000;
    // More than two pipes hold, in both directions at once.
    let text = "-é\n".repeat(300_000);
    assert_eq!(tool.call(&json!({"text": text})).unwrap()["output"], json!(text));
    assert_eq!(tool.call(&json!({"text": ""})).unwrap()["output"], "");
    assert_eq!(tool.call(&json!({})).unwrap()["output"], "");
    // A program that reads none of it.
    let mut tool = Tool::new("true", &[]).with(&["text"]);
    tool.stdin = Some("text");
    assert!(tool.call(&json!({"text": text})).is_ok());
}

/// A pipe in the root that a program can hold open: at its end, nobody holds it any more.
fn held_pipe(tool: &Tool) -> fs::File {
    let path = tool.root.path().join("held");
    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
    fs::OpenOptions::new().read(true).custom_flags(flags).open(path).unwrap()
}

/// Waits until the last process that held the pipe is gone, and gives what was written to it. What was killed is gone very
/// soon; the bound is there so that a process that was not killed fails the test instead of holding it up.
fn until_released(mut pipe: fs::File) -> String {
    let mut text = String::new();
    loop {
        let mut ready = [PollFd::new(&pipe, PollFlags::IN)];
        let soon = Timespec { tv_sec: 60, tv_nsec: 0 };
        assert!(poll(&mut ready, Some(&soon)).unwrap() > 0, "somebody still holds the pipe");
        let mut byte = [0];
        match pipe.read(&mut byte).unwrap() {
            0 => return text,
            _ => text.extend(byte.map(char::from)),
        }
    }
}

#[test]
fn x2_at_the_deadline_the_whole_group_is_ended() {
    // The program and a child of it, both of which would go on for ever; the child does not even heed SIGTERM.
    let script = "echo begun >&2; exec 3>held; echo x >&3; (trap '' TERM; while :; do sleep 1000; done) & sleep 1000";
    let mut tool = Tool::script(script, &[]);
    tool.env = vec!["PATH".to_owned()];
    let pipe = held_pipe(&tool);
    let clock = UntilWritten(&pipe);
    let error = tool.run(&json!({}), Deadline::within(&clock, Duration::from_secs(60))).unwrap_err();
    assert_eq!((error.fault, error.message.as_str()), (Fault::TimedOut, "the call took longer than it may"));
    assert!(error.detail.unwrap().contains("begun"));
    assert_eq!(until_released(pipe), "x\n");
}

#[test]
fn a_cancelled_call_ends_its_program() {
    let mut tool = Tool::script("exec 3>held; echo ready >&3; trap '' TERM; while :; do sleep 1000; done", &[]);
    tool.env = vec!["PATH".to_owned()];
    let pipe = held_pipe(&tool);
    // Gone as soon as the program is seen to run.
    let started = || is_written(&pipe);
    let error = tool.run(&json!({}), Deadline::never(&Still).or_when(&started)).unwrap_err();
    assert_eq!(error.fault, Fault::Cancelled);
    assert_eq!(until_released(pipe), "ready\n");
}

#[test]
fn what_a_program_leaves_behind_ends_with_it() {
    let mut tool = Tool::script("exec 3>held; sleep 1000 & echo done", &[]);
    tool.env = vec!["PATH".to_owned()];
    let pipe = held_pipe(&tool);
    assert_eq!(tool.call(&json!({})).unwrap()["output"], "done\n");
    until_released(pipe);
}

#[test]
fn a_process_that_left_the_group_cannot_hold_the_call_up() {
    if !Path::new("/usr/bin/setsid").exists() {
        return;
    }
    let mut tool = Tool::script(
        "echo $$; setsid sh -c 'echo $$ >pid; exec sleep 1000' & while ! [ -s pid ]; do :; done; echo done",
        &[],
    );
    tool.env = vec!["PATH".to_owned()];
    tool.output = OutputKind::Lines;
    assert_eq!(tool.call(&json!({})).unwrap()["output"][1], "done");
    let left: i32 = fs::read_to_string(tool.root.path().join("pid")).unwrap().trim().parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(left).unwrap(), rustix::process::Signal::KILL)
        .unwrap();
}

#[test]
fn a_program_has_no_terminal_and_a_session_of_its_own() {
    let mut tool =
        Tool::script("(: </dev/tty) 2>/dev/null && echo terminal; ps -o sid= -p $$ 2>/dev/null || true; echo $$", &[]);
    tool.output = OutputKind::Lines;
    tool.env = vec!["PATH".to_owned()];
    let answer = tool.call(&json!({})).unwrap();
    let lines: Vec<&str> =
        answer["output"].as_array().unwrap().iter().map(|line| line.as_str().unwrap().trim()).collect();
    assert!(!lines.contains(&"terminal"));
    // Its session is named after it, where `ps` can tell.
    assert!(lines.len() < 2 || lines[0] == lines[1], "{lines:?}");
}

#[test]
fn a_program_is_looked_up_once_and_pinned() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tool");
    let put = |text: &str| {
        fs::write(place.path().join("new"), format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(place.path().join("new"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(place.path().join("new"), &path).unwrap();
    };
    put("echo first");
    let tool = Tool::new(path.to_str().unwrap(), &[]);
    let program = tool.prepare().unwrap();
    assert_eq!(program.path(), path);
    let run = || program.run(&tool.root(), json!({}).as_object().unwrap(), Deadline::never(&Still));
    assert_eq!(run().unwrap()["output"], "first\n");
    put("echo second");
    let error = run().unwrap_err();
    assert_eq!((error.fault, error.message.contains("replaced")), (Fault::Refused, true));
    fs::remove_file(&path).unwrap();
    assert_eq!(run().unwrap_err().fault, Fault::Refused);
}

#[test]
fn f7_a_program_that_cannot_be_run_is_a_problem_at_the_start() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("text"), "").unwrap();
    for (program, help) in [
        ("", "full path"),
        ("no-such-program-anywhere", "full path"),
        ("./sh", "full path"),
        ("sh\0", "full path"),
        (place.path().join("text").to_str().unwrap(), "path of a program"),
        (place.path().to_str().unwrap(), "path of a program"),
        (place.path().join("nothing").to_str().unwrap(), "path of a program"),
        ("prinft", "did you mean"),
    ] {
        let problems = Tool::new(program, &[]).prepare().unwrap_err();
        assert_eq!(problems.len(), 1, "{program}: {problems:?}");
        assert!(problems[0].part == "program" && problems[0].help.contains(help), "{program}: {problems:?}");
    }
    // All at once.
    let tool = Tool { cwd: Some("/"), ..Tool::new("", &["{x}", "-{y}"]).with(&["y", "z"]) };
    let parts: Vec<String> = tool.prepare().unwrap_err().into_iter().map(|problem| problem.part).collect();
    assert_eq!(parts, ["args[0]", "args[1]", "z", "program", "cwd"]);
}

#[test]
fn f7_a_relative_directory_in_path_is_passed_over() {
    let place = tempfile::tempdir().unwrap();
    let declaration = Declaration {
        program: "sh",
        args: &[],
        schema: &json!({}),
        env: &[],
        cwd: None,
        stdin: None,
        output: OutputKind::Text,
        max_output: 1,
        timeout: Duration::from_secs(1),
    };
    let program = place.path().join("sh");
    fs::write(&program, "").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let up = "../".repeat(std::env::current_dir().unwrap().components().count());
    let relative = format!("{up}{}", place.path().display());
    assert!(Path::new(&relative).join("sh").exists());
    for path in ["", ".", "bin:../bin:./bin", &relative] {
        let var = |_: &str| Some(OsString::from(path));
        assert!(Program::prepare(&declaration, Environment { var: &var }).is_err(), "{path}");
    }
    let var = |_: &str| Some(OsString::from(format!("{relative}:{}", place.path().display())));
    assert_eq!(Program::prepare(&declaration, Environment { var: &var }).unwrap().path(), program);
}
