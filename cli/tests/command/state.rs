//! The gate's own files: who may touch them, and what happens when they can't be used.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::world::World;

const DATABASE: [&str; 2] = ["gate.db", "gate.db.key"];
const TEXTS: [&str; 5] = ["audit.jsonl", "audit.jsonl.head", "state.json", "state.json.limits", "state.json.key"];
const WRITE: &str = r#"{"path":"a","content":"b"}"#;

/// A directory where something was asked, with a database.
fn used() -> World {
    let world = World::new();
    world.ask(&["fs.write", WRITE]);
    world
}

/// The same with files of text.
fn used_texts() -> World {
    let world = World::with_texts();
    world.ask(&["fs.write", WRITE]);
    world
}

#[test]
fn the_files_belong_to_their_user_alone() {
    for (world, files) in [(used(), &DATABASE[..]), (used_texts(), &TEXTS)] {
        let mode = |name: &str| fs::metadata(world.path(name)).expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode(".callgate"), 0o700);
        for file in files {
            assert_eq!(mode(&format!(".callgate/{file}")), 0o600, "{file}");
        }
        assert_eq!(world.text(".callgate/.gitignore"), "*\n");
    }
}

// What an earlier version left is gone on with: nothing that waits is lost, and the log is one chain. Put aside, it stays
// readable.
#[test]
fn what_an_earlier_version_left_is_gone_on_with() {
    let world = World::with_texts();
    let token = world.ask(&["fs.write", WRITE]);
    fs::remove_file(world.path("callgate.toml")).expect("it is there");
    world.call(&["fs.write", "--confirm", &token]).ok();
    assert_eq!(world.ends(), ["asked", "intent", "done"]);
    assert!(!world.path(".callgate/gate.db").exists());
    assert!(world.run(&["audit", "verify"]).ok().out.starts_with(".callgate/audit.jsonl: intact"));
    let shown = world.run(&["config", "show"]).ok().out;
    assert!(shown.contains(".callgate/state.json") && !shown.contains("gate.db"), "{shown}");
    for file in TEXTS {
        fs::rename(world.path(&format!(".callgate/{file}")), world.path(&format!("old-{file}"))).expect("it is there");
    }
    world.call(&["time.now"]).ok();
    assert_eq!(world.ends(), ["done"]);
    assert!(world.path(".callgate/gate.db").exists());
    world.run(&["audit", "verify", "old-audit.jsonl"]).ok();
    assert_eq!(world.run(&["audit", "export", "old-audit.jsonl"]).ok().out, world.text("old-audit.jsonl"));
    // From now on the database counts, whatever lies beside it.
    fs::rename(world.path("old-audit.jsonl"), world.path(".callgate/audit.jsonl")).expect("it is there");
    world.call(&["time.now"]).ok();
    assert_eq!(world.ends(), ["done", "done"]);
}

// N2: processes share the database.
#[test]
fn processes_share_the_database() {
    let world = World::new();
    let calls: Vec<_> = (0..8).map(|_| world.start(&["call", "time.now", "-q"])).collect();
    for call in calls {
        let output = call.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(world.ends(), ["done"; 8]);
    let verified = world.run(&["audit", "verify"]).ok().out;
    assert!(verified.starts_with(".callgate/gate.db: intact"), "{verified}");
    // What is exported is the log of a file, and its head vouches for it.
    let exported = world.run(&["audit", "export"]).ok();
    let head = exported.err.trim().strip_prefix("head ").expect("a head").to_owned();
    world.put("copy.jsonl", &exported.out);
    world.run(&["audit", "verify", "copy.jsonl", "--head", &head]).ok();
    let all = world.run(&["audit", "tail", "-n", "100", "--json"]).ok().out;
    assert_eq!(all, exported.out);
    assert_eq!(world.run(&["audit", "tail", "-n", "3", "--json"]).ok().out.lines().count(), 3);
}

// F1, N6: a database that is damaged, newer, somebody else's, or held by another process stops every call with a reason,
// and stays as it is.
#[test]
fn f1_a_database_that_cannot_be_used_stops_every_call() {
    let world = used();
    let (path, name) = (world.path(".callgate/gate.db"), "gate.db");
    let whole = fs::read(&path).expect("it is there");
    let patched = |at: usize, bytes: &[u8]| {
        let mut content = whole.clone();
        content[at..at + bytes.len()].copy_from_slice(bytes);
        content
    };
    // The header of SQLite's format: the version at 60, whose file it is at 68; the first page holds the table of tables.
    let cases = [
        (patched(60, &99_u32.to_be_bytes()), "version 99"),
        (patched(68, &7_u32.to_be_bytes()), "not a file of the gate"),
        (patched(0, b"no such format...").clone(), "not a file of the gate"),
        (patched(100, &[0xff; 64]), "damaged"),
    ];
    for (content, reason) in cases {
        fs::write(&path, &content).expect("it is ours");
        let ran = world.call(&["time.now"]);
        ran.refused("AUDIT_UNAVAILABLE");
        assert!(ran.err.contains(reason) && ran.err.contains(name) && ran.out.is_empty(), "{reason}: {}", ran.err);
        assert_eq!(fs::read(&path).expect("it is there"), content, "{reason}");
        let verified = world.run(&["audit", "verify"]);
        assert_eq!(verified.status, 1, "{reason}: {}{}", verified.out, verified.err);
        assert!(verified.err.contains(reason), "{}", verified.err);
    }
    fs::write(&path, &whole).expect("it is ours");
    let held = rusqlite::Connection::open(&path).expect("it is a database");
    held.execute_batch("BEGIN IMMEDIATE").expect("nobody else holds it");
    let ran = world.call(&["time.now"]);
    ran.refused("AUDIT_UNAVAILABLE");
    assert!(ran.err.contains("another process has held"), "{}", ran.err);
    held.execute_batch("ROLLBACK").expect("it was begun");
    world.call(&["time.now"]).ok();
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
        let world = used_texts();
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
    fs::hard_link(world.path(".callgate/gate.db"), world.path("hard")).expect("a link");
    let before = world.text(".callgate/gate.db.key");
    let paths = [
        ".callgate/gate.db",
        ".callgate/gate.db-wal",
        ".callgate/gate.db.key",
        ".callgate/gate.db.limits",
        ".callgate/audit.jsonl",
        ".callgate/new",
        "callgate.toml",
        "sub/callgate.toml",
        "sub/CallGate.TOML",
        "link/gate.db.key",
        "hard",
    ];
    // As many as a budget has room for.
    for (path, mode) in paths.into_iter().zip(["overwrite", "append", "create"].into_iter().cycle()) {
        let arguments = format!(r#"{{"path":"{path}","content":"evil","mode":"{mode}"}}"#);
        let token = world.ask(&["fs.write", &arguments]);
        let ran = world.call(&["fs.write", "--confirm", &token]);
        assert_eq!(ran.status, 1, "{path} {mode} {}", ran.out);
    }
    assert_eq!(world.text(".callgate/gate.db.key"), before);
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
    let paths = ["data/pending", "data/pending.key", ".callgate/gate.db", "dir/gate.db", "soft", "hard"];
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
