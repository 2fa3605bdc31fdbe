//! The gate's own files: who may touch them, and what happens when they can't be used.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::world::World;

const FILES: [&str; 5] = ["audit.jsonl", "audit.jsonl.head", "state.json", "state.json.limits", "state.json.key"];

fn used() -> World {
    let world = World::new();
    world.ask(&["fs.write", r#"{"path":"a","content":"b"}"#]);
    world
}

#[test]
fn the_files_belong_to_their_user_alone() {
    let world = used();
    let mode = |name: &str| fs::metadata(world.path(name)).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(".callgate"), 0o700);
    for file in FILES {
        assert_eq!(mode(&format!(".callgate/{file}")), 0o600, "{file}");
    }
    assert_eq!(world.text(".callgate/.gitignore"), "*\n");
}

// F1, J8: without the log nothing runs.
#[test]
fn f1_nothing_runs_without_the_log() {
    let world = World::new();
    // A file where the directory should be: nobody can write there, not even root.
    world.put(".callgate", "");
    let ran = world.call(&["time.now"]);
    ran.refused("AUDIT_UNAVAILABLE");
    assert_eq!(ran.out, "");
    assert!(ran.err.contains(".callgate"), "{}", ran.err);
    assert!(world.run(&["tools"]).ok().out.contains("time.now"), "what writes nothing works");
}

#[test]
fn f1_nothing_runs_in_a_directory_that_cannot_be_written() {
    let world = World::new();
    fs::set_permissions(world.path("."), fs::Permissions::from_mode(0o500)).expect("it is ours");
    // Who may write everywhere is not kept out by that.
    if fs::write(world.path("probe"), "").is_err() {
        world.call(&["time.now"]).refused("AUDIT_UNAVAILABLE");
    }
    fs::set_permissions(world.path("."), fs::Permissions::from_mode(0o700)).expect("it is ours");
}

// F1, N6: a store that is damaged, newer, or open to others is not used and not replaced, and no call passes.
#[test]
fn f1_damaged_files_are_refused_and_kept() {
    for (file, code) in [
        ("state.json", "STORE_UNAVAILABLE"),
        ("state.json.limits", "STORE_UNAVAILABLE"),
        ("state.json.key", "STORE_UNAVAILABLE"),
        ("audit.jsonl.head", "AUDIT_UNAVAILABLE"),
    ] {
        let world = used();
        let path = format!(".callgate/{file}");
        let whole = world.text(&path);
        world.put(&path, "{}");
        let ran = world.call(&["time.now"]);
        ran.refused(code);
        assert_eq!(ran.out, "");
        assert_eq!(world.text(&path), "{}", "{file}");
        world.put(&path, &whole);
        world.call(&["time.now"]).ok();
        fs::set_permissions(world.path(&path), fs::Permissions::from_mode(0o666)).expect("it is ours");
        world.call(&["time.now"]).refused(code);
    }
}

// P6: no tool writes what the gate goes by, under whatever name.
#[test]
fn p6_tools_cannot_write_the_gates_own_files() {
    let world = used();
    world.put("sub/x", "");
    std::os::unix::fs::symlink(world.path(".callgate"), world.path("link")).expect("a link");
    fs::hard_link(world.path(".callgate/audit.jsonl"), world.path("hard")).expect("a link");
    let before = world.text(".callgate/state.json.key");
    let paths = [
        ".callgate/state.json",
        ".callgate/state.json.key",
        ".callgate/state.json.limits",
        ".callgate/audit.jsonl",
        ".callgate/audit.jsonl.head",
        ".callgate/new",
        "callgate.toml",
        "sub/callgate.toml",
        "sub/CallGate.TOML",
        "link/state.json.key",
        "hard",
    ];
    // As many as a budget has room for.
    for (path, mode) in paths.into_iter().zip(["overwrite", "append", "create"].into_iter().cycle()) {
        let arguments = format!(r#"{{"path":"{path}","content":"evil","mode":"{mode}"}}"#);
        let token = world.ask(&["fs.write", &arguments]);
        let ran = world.call(&["fs.write", "--confirm", &token]);
        assert_eq!(ran.status, 1, "{path} {mode} {}", ran.out);
    }
    assert_eq!(world.text(".callgate/state.json.key"), before);
    assert!(!world.path("sub/callgate.toml").exists() && !world.path("callgate.toml").exists());
    world.run(&["audit", "verify"]).ok();
}

// P6: also where the configuration puts them somewhere else.
#[test]
fn p6_files_that_are_named_elsewhere_are_kept_from_tools_too() {
    let world = World::with_config("[state]\nfile = \"data/pending\"\n[audit]\nfile = \"data/calls.jsonl\"\n");
    world.ask(&["fs.write", r#"{"path":"a","content":"b"}"#]);
    for path in ["data/pending", "data/pending.key", "data/pending.limits", "data/calls.jsonl", "data/calls.jsonl.head"]
    {
        let arguments = format!(r#"{{"path":"{path}","content":"evil","mode":"overwrite"}}"#);
        let token = world.ask(&["fs.write", &arguments]);
        assert_eq!(world.call(&["fs.write", "--confirm", &token]).status, 1, "{path}");
    }
    assert!(!world.path(".callgate").exists());
    world.run(&["audit", "verify"]).ok();
}

// L2, L3: no tool reads what others sent, or the key of the digests, under whatever name.
#[test]
fn l2_tools_cannot_read_the_gates_own_files() {
    let world = World::with_config("[state]\nfile = \"data/pending\"\n");
    world.ask(&["fs.write", r#"{"path":"a","content":"CANARY"}"#]);
    world.put("data/free", "a CANARY of its own\n");
    std::os::unix::fs::symlink("data/pending", world.path("soft")).expect("a link");
    std::os::unix::fs::symlink(".callgate", world.path("dir")).expect("a link");
    fs::hard_link(world.path("data/pending.key"), world.path("hard")).expect("a link");
    let paths = ["data/pending", "data/pending.key", ".callgate/audit.jsonl", "dir/audit.jsonl", "soft", "hard"];
    for path in paths {
        let ran = world.call(&["fs.read", &format!(r#"{{"path":"{path}"}}"#)]);
        assert_eq!(ran.status, 1, "{path} {}", ran.out);
        assert!(ran.err.contains("not for tools to read"), "{path} {}", ran.err);
    }
    let search = |path: &str| {
        let arguments = format!(r#"{{"pattern":"a","path":"{path}","hidden":true}}"#);
        let found = world.call(&["fs.search", &arguments, "-q"]);
        let matches = if found.status == 0 { found.json()["matches"].take() } else { serde_json::json!([]) };
        let paths =
            matches.as_array().expect("a list").iter().map(|found| found["path"].as_str().expect("a path").to_owned());
        paths.collect::<Vec<_>>()
    };
    let found = search(".");
    assert!(found.contains(&"data/free".to_owned()), "{found:?}");
    let own = ["data/pending", ".callgate", "dir", "soft", "hard"];
    assert!(!found.iter().any(|path| own.iter().any(|own| path.starts_with(own))), "{found:?}");
    for path in own {
        assert_eq!(search(path), [""; 0], "{path}");
    }
}

#[test]
fn what_only_looks_leaves_nothing_behind() {
    let world = World::new();
    let commands: [&[&str]; 7] = [
        &["tools"],
        &["inspect", "fs.write"],
        &["config", "check"],
        &["config", "show"],
        &["audit", "tail"],
        &["demo"],
        &["--help"],
    ];
    for command in commands {
        world.run(command).ok();
    }
    let left: Vec<_> =
        fs::read_dir(world.path(".")).expect("a directory").map(|entry| entry.expect("it").file_name()).collect();
    assert!(!left.iter().any(|name| name == ".callgate" || name == "callgate.toml"), "{left:?}");
}
