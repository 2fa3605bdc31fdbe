//! Colours, widths, pipes and help.

use std::process::Stdio;

use crate::world::{Ran, World};

fn coloured(text: &str) -> bool {
    text.contains('\u{1b}')
}

#[test]
fn colours_are_for_terminals_and_for_those_who_ask() {
    let world = World::new();
    let refused = ["call", "fs.nix"];
    let with = |name: &str, value: &str| Ran::of(world.command(&refused).env(name, value).output().expect("it starts"));
    assert!(!coloured(&world.run(&refused).err), "a pipe");
    assert!(coloured(&with("CLICOLOR_FORCE", "1").err));
    assert!(!coloured(&with("NO_COLOR", "1").err));
    let both =
        Ran::of(world.command(&refused).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output().expect("it starts"));
    assert!(!coloured(&both.err), "who wants none gets none");
    assert!(coloured(&world.run(&["call", "fs.nix", "--color", "always"]).err));
    assert!(!coloured(&with("CLICOLOR_FORCE", "1").out));
    let never = world.command(&["call", "fs.nix", "--color", "never"]).env("CLICOLOR_FORCE", "1").output();
    assert!(!coloured(&Ran::of(never.expect("it starts")).err));
    // JSON is JSON.
    assert!(!coloured(&world.run(&["call", "time.now", "--json", "--color", "always"]).out));
}

// O3: what a file holds can't act on the terminal that shows it.
#[test]
fn o3_a_result_cannot_act_on_the_terminal() {
    let world = World::new();
    world.put("evil.txt", "TODO \u{1b}[2J\u{1b}]0;x\u{7}\u{202e}\n");
    for call in [&["fs.search", r#"{"pattern":"TODO"}"#][..], &["fs.read", r#"{"path":"evil.txt"}"#]] {
        let ran = world.call(call).ok();
        assert!(ran.out.contains("TODO \\u{1b}[2J"), "{}", ran.out);
        let acts = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!ran.out.contains(acts) && !ran.err.contains(acts));
    }
    world.call(&["fs.\u{1b}[2J\u{202e}"]).refused("TOOL_NOT_FOUND");
    assert!(!world.call(&["fs.\u{1b}[2J"]).err.contains('\u{1b}'));
}

#[test]
fn whoever_reads_a_pipe_gets_all_of_it() {
    let world = World::new();
    let long = format!("TODO {}end", "x".repeat(300));
    world.put("long.txt", &long);
    assert!(world.call(&["fs.search", r#"{"pattern":"TODO"}"#]).ok().out.contains(&long));
}

#[test]
fn nobody_who_reads_on_is_no_fault() {
    let world = World::new();
    let commands: [&[&str]; 5] = [&["demo"], &["call", "fs.list"], &["tools"], &["--help"], &["completions", "bash"]];
    for command in commands {
        let mut child =
            world.command(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        drop(child.stdout.take());
        let ran = Ran::of(child.wait_with_output().expect("it ends"));
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{command:?}");
    }
    // What the command did does not depend on who reads of it.
    let shell = "exec \"$0\" \"$@\" >&-";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", shell, env!("CARGO_BIN_EXE_callgate"), "call", "time.now"]).current_dir(world.path("."));
    assert_eq!(Ran::of(command.output().expect("it starts")).status, 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said() {
    let world = World::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let output = world.command(&["call", "time.now"]).stdout(full).stderr(Stdio::piped()).output().expect("it starts");
    let ran = Ran::of(output);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("the output could not be written"), "{}", ran.err);
    assert_eq!(world.ends(), ["done"]);
}

#[test]
fn every_command_explains_itself() {
    let world = World::new();
    let commands: [&[&str]; 30] = [
        &[],
        &["call"],
        &["tools"],
        &["inspect"],
        &["approvals"],
        &["approvals", "list"],
        &["approvals", "approve"],
        &["approvals", "deny"],
        &["approvals", "show"],
        &["approvals", "watch"],
        &["approvals", "cancel"],
        &["approvals", "resolve"],
        &["sign"],
        &["demo"],
        &["audit"],
        &["audit", "tail"],
        &["audit", "verify"],
        &["audit", "explain"],
        &["audit", "export"],
        &["init"],
        &["config"],
        &["config", "check"],
        &["config", "show"],
        &["completions"],
        &["approvals", "grant"],
        &["approvals", "grants"],
        &["approvals", "revoke"],
        &["audit", "reap"],
        &["audit", "rotate"],
        &["audit", "checkpoint"],
    ];
    for command in commands {
        let ran = world.run(&[command, &["--help"]].concat()).ok();
        assert!(ran.out.contains("Usage: callgate"), "{command:?}");
        // In a terminal of 80 columns nothing breaks that is to be copied.
        let examples = ran.out.split_once("Examples:").map_or("", |(_, examples)| examples);
        assert!(examples.lines().all(|line| line.len() <= 80), "{examples}");
    }
    let help = world.run(&["--help"]).ok().out;
    for status in ["0 ", "1 ", "2 ", "3 ", "4 ", "130 "] {
        assert!(help.contains(&format!("\n  {status}")), "{help}");
    }
    assert!(world.run(&["--version"]).ok().out.starts_with("callgate "));
}

#[test]
fn completions_know_the_commands() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = world.run(&["completions", shell]).ok().out;
        for word in ["approvals", "inspect", "args-file", "verify"] {
            assert!(script.contains(word), "{shell} {word}");
        }
    }
    assert_eq!(world.run(&["completions", "nix"]).status, 2);
}

#[test]
fn who_asks_is_told_what_happens() {
    let world = World::new();
    assert_eq!(world.call(&["time.now", "-q"]).ok().err, "");
    let verbose = world.call(&["time.now", "-q", "-v"]).ok();
    assert!(verbose.err.contains("callgate::audit") && verbose.err.contains("end=\"done\""), "{}", verbose.err);
    assert_eq!(verbose.json()["timezone"], "UTC", "standard output is the result alone");
    let by_environment = world.command(&["call", "time.now", "-q"]).env("RUST_LOG", "callgate::audit=info").output();
    assert!(Ran::of(by_environment.expect("it starts")).err.contains("callgate::audit"));
    let bad = world.command(&["tools"]).env("RUST_LOG", "callgate=nix=no").output();
    assert_eq!(Ran::of(bad.expect("it starts")).status, 2);
}
