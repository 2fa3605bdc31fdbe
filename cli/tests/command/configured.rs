//! What a `callgate.toml` changes.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::world::World;

// F7: nothing starts with a configuration that can't be used, and every problem has its place.
#[test]
fn f7_a_bad_configuration_is_refused_with_its_lines() {
    let world = World::with_config("[channels.web]\nblock_mutatin = true\nrequire_auth = 3\n");
    let commands: [&[&str]; 4] = [&["call", "time.now"], &["tools"], &["inspect", "time.now"], &["config", "check"]];
    for command in commands {
        let ran = world.run(command);
        assert_eq!(ran.status, 2, "{command:?}");
        assert!(ran.err.contains("callgate.toml:3:1: unknown key `block_mutatin`"), "{}", ran.err);
        assert!(ran.err.contains("callgate.toml:4:"), "{}", ran.err);
        assert!(ran.err.contains("did you mean `block_mutating`?"), "{}", ran.err);
    }
    assert!(!world.path(".callgate").exists());
}

// F7: what shows only when a configuration is put to use has its place, too.
#[test]
fn f7_what_cannot_be_put_to_use_is_refused_with_its_lines() {
    let exec = |line: &str| {
        World::with_config(&format!(
            "[[exec]]\nname = \"x\"\ndescription = \"X.\"\nprogram = \"sh\"\n{line}\n[exec.parameters.a]\ntype = \"string\"\n"
        ))
    };
    let cases = [
        (World::with_config("[[exec]]\nname = \"x\"\ndescription = \"X.\"\nprogram = \"no-such-program\"\n"), ":5:"),
        (exec("args = [\"-x\", \"{b}\"]"), ":6:"),
        (World::with_config("[tools.\"fs.write\"]\nconfirm = \"nobody\"\n"), ":3:"),
        (World::with_config("[tools.\"fs.search\"]\nclamps = { max = { max = 5000 } }\n"), ":3:"),
        (World::with_config("[tools.\"fs.search\"]\nclamps = { mx = { max = 50 } }\n"), ":3:"),
        (World::with_config("root = \"no-such-directory\"\n"), ":2:"),
    ];
    for (world, place) in cases {
        for command in [["config", "check"], ["call", "time.now"]] {
            let ran = world.run(&command);
            assert_eq!(ran.status, 2, "{}", ran.err);
            assert!(ran.err.contains(&format!("callgate.toml{place}")), "{place}: {}", ran.err);
        }
    }
}

#[test]
fn the_file_is_found_above_named_or_in_the_environment() {
    let world = World::with_config("toolkits = [\"time\"]\n");
    world.put("deep/below/x", "");
    world.put("other.toml", "version = 1\ntoolkits = []\n");
    let count = |command: &mut std::process::Command| {
        let output = command.output().expect("it starts");
        serde_json::from_slice::<Vec<serde_json::Value>>(&output.stdout).expect("a list").len()
    };
    let list = ["tools", "--json"];
    assert_eq!(count(world.command(&list).current_dir(world.path("deep/below"))), 1);
    assert_eq!(count(world.command(&list).env("CALLGATE_CONFIG", "other.toml")), 0);
    assert_eq!(count(world.command(&["tools", "--json", "--config", "other.toml"]).env("CALLGATE_CONFIG", "nix")), 0);
    // A question says the option again, where it was needed.
    world.put("other.toml", "version = 1\n");
    let asked = world.run(&["--config", "other.toml", "call", "fs.write", r#"{"path":"a","content":"b"}"#]);
    assert!(asked.out.contains("callgate --config other.toml call fs.write --confirm "), "{}", asked.out);
}

// P6: a configuration that everybody may change is none.
#[test]
fn p6_a_file_that_others_may_write_is_not_used() {
    let world = World::with_config("");
    fs::set_permissions(world.path("callgate.toml"), fs::Permissions::from_mode(0o666)).expect("it is ours");
    let ran = world.call(&["time.now"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("may be changed by everybody"), "{}", ran.err);
}

// P6, J7: each record names the configuration that held, so that a change of it shows.
#[test]
fn p6_a_record_names_the_configuration_that_held() {
    let world = World::new();
    world.call(&["time.now"]).ok();
    world.put("callgate.toml", "version = 1\n");
    world.call(&["time.now"]).ok();
    world.call(&["time.now"]).ok();
    world.put("callgate.toml", "version = 1\n[quotas]\nlimit = 50\n");
    world.call(&["time.now"]).ok();
    let policies: Vec<_> =
        world.records().iter().map(|record| record["policy"].as_str().expect("one").to_owned()).collect();
    assert_eq!(policies[1], policies[2]);
    assert!(policies[0] != policies[1] && policies[2] != policies[3], "{policies:?}");
    let shown = world.run(&["config", "show"]).ok().out;
    assert!(shown.contains(&policies[3]), "{shown}");
}

#[test]
fn adjustments_hold() {
    let world = World::with_config(
        "[tools.\"time.now\"]\ndisabled = true\n[tools.\"fs.list\"]\nscopes = [\"files:list\"]\n\
         [tools.\"fs.search\"]\nclamps = { max = { max = 1 } }\ncost = 7\n",
    );
    world.call(&["time.now"]).refused("TOOL_NOT_FOUND");
    let bob = ["--channel", "web", "--principal", "bob"];
    let denied = world.call(&[&["fs.list"], &bob[..]].concat());
    denied.refused("FORBIDDEN");
    assert!(denied.err.contains("files:list"), "{}", denied.err);
    world.call(&[&["fs.list"], &bob[..], &["--scope", "files:list"]].concat()).ok();
    let found = world.call(&["fs.search", r#"{"pattern":"TODO"}"#, "--quiet"]).ok().json();
    assert_eq!(found["matches"].as_array().expect("a list").len(), 2, "what is not sent is not clamped");
    let found = world.call(&["fs.search", r#"{"pattern":"TODO","max":9}"#, "--quiet"]).ok().json();
    assert_eq!(found["matches"].as_array().expect("a list").len(), 1);
    assert!(world.run(&["tools"]).ok().out.contains("7 "), "its cost");
}

// P1
#[test]
fn p1_rules_and_channels_hold() {
    let world = World::with_config(
        "[[rules]]\nid = 9\neffect = \"deny\"\ntool = \"fs.*\"\nwhere = [{ field = \"path\", prefix = \"secret/\" }]\n\
         description = \"Secrets stay where they are.\"\n[channels.kiosk]\nrequire_auth = false\nblock_mutating = true\n",
    );
    world.put("secret/key", "TODO\n");
    let denied = world.call(&["fs.read", r#"{"path":"secret/key"}"#]);
    denied.refused("FORBIDDEN");
    assert!(denied.err.contains("Secrets stay where they are."), "{}", denied.err);
    assert_eq!(world.records()[0]["rule"], 9);
    world.call(&["fs.read", r#"{"path":"notes.md"}"#, "--channel", "kiosk"]).ok();
    world.call(&["fs.write", r#"{"path":"a","content":"b"}"#, "--channel", "kiosk"]).refused("block_mutating");
}

// R2: a quota holds over commands, each of which is a process of its own.
#[test]
fn r2_a_quota_holds_from_one_command_to_the_next() {
    let world = World::with_config("[quotas.tools.\"time.now\"]\nlimit = 2\nwindow = \"24h\"\n");
    world.call(&["time.now"]).ok();
    world.call(&["time.now"]).ok();
    let limited = world.call(&["time.now", "--json"]);
    limited.refused("RATE_LIMITED");
    assert!(limited.json()["meta"]["retry_after_seconds"].as_u64().expect("seconds") > 3600);
    world.call(&["fs.list"]).ok();
    world.call(&["time.now", "--principal", "bob", "--scope", "*"]).ok();
}

// R3: whoever only probes uses up a budget of its own.
#[test]
fn r3_refused_calls_have_their_own_budget() {
    let world = World::with_config("[quotas.attempts]\nlimit = 2\nwindow = \"24h\"\n");
    world.call(&["fs.nix"]).refused("TOOL_NOT_FOUND");
    world.call(&["fs.read", "{}"]).refused("VALIDATION_ERROR");
    world.call(&["fs.nix"]).refused("RATE_LIMITED");
    world.call(&["time.now"]).ok();
    assert_eq!(world.records()[2]["code"], "TOOL_NOT_FOUND", "the record keeps the true reason");
}

const PROGRAMS: &str = r#"
[[exec]]
name = "say"
description = "Says it."
program = "printf"
args = ["%s|", "--", "{words...}"]
mutating = false

[exec.parameters.words]
type = "array"

[[exec]]
name = "fail"
description = "Fails."
program = "sh"
args = ["-c", "echo told-in-private >&2; exit 3"]
mutating = false

[[exec]]
name = "login"
description = "Logs in."
program = "sh"
args = ["-c", "cat > login.txt"]
stdin = "memo"
confirm = "nobody"

[exec.parameters.memo]
type = "string"
secret = true
required = true

[[exec]]
name = "count"
description = "Counts."
program = "printf"
args = ["%s", "{to}"]
mutating = false

[exec.parameters.to]
type = "integer"
min = 1
max = 10
clamp = true
"#;

// X1: arguments never become options, and no shell sees them.
#[test]
fn x1_declared_programs_run_without_a_shell() {
    let world = World::with_config(PROGRAMS);
    let said = world.call(&["say", r#"{"words":["a b","$(id)","-n",";ls"]}"#, "-q"]).ok().json();
    assert_eq!(said["output"], "--|a b|$(id)|-n|;ls|");
    world.call(&["say", r#"{"word":["a"]}"#]).refused("did you mean words?");
    let counted = world.call(&["count", r#"{"to":99}"#]).ok();
    assert!(
        counted.err.contains("to was 99, brought to 10") && counted.out.contains("10"),
        "{}{}",
        counted.out,
        counted.err
    );
    let failed = world.call(&["fail"]);
    assert_eq!(failed.status, 1);
    assert!(failed.err.contains("error[INTERNAL_ERROR]") && !failed.err.contains("told-in-private"), "{}", failed.err);
    let record = world.records().pop().expect("a record");
    assert!(record["detail"].as_str().expect("a detail").contains("told-in-private"), "{record}");
}

// L2: a secret reaches its tool, and nothing that is written or shown.
#[test]
fn l2_a_secret_is_written_nowhere() {
    let world = World::with_config(PROGRAMS);
    let secret = r#"{"memo":"CANARY-7f3a"}"#;
    world.call(&["login", secret, "-vv"]).ok();
    assert_eq!(world.text("login.txt"), "CANARY-7f3a");
    fs::remove_file(world.path("login.txt")).expect("it is there");
    let runs = [
        world.call(&["login", secret, "-vv"]),
        world.call(&["login", secret, "--plan"]),
        world.call(&["login", r#"{"memo":"CANARY-7f3a","user":1}"#, "-vv"]),
        world.call(&["login", secret, "--channel", "mcp", "-vv"]),
        world.call(&["login", secret, "--channel", "telegram", "--principal", "ann", "-vv"]),
        world.run(&["audit", "tail"]),
    ];
    for ran in runs {
        assert!(!ran.out.contains("CANARY") && !ran.err.contains("CANARY"), "{}{}", ran.out, ran.err);
    }
    assert!(!world.run(&["audit", "export"]).ok().out.contains("CANARY"));
}

#[test]
fn a_template_is_written_once_and_gives_the_defaults() {
    let world = World::new();
    let defaults = world.run(&["config", "show"]).ok().out;
    world.run(&["init"]).ok();
    let shown = world.run(&["config", "show"]).ok().out;
    let tail = |text: &str| text.split_once("Channels").map(|(_, tail)| tail.to_owned());
    assert_eq!(tail(&defaults), tail(&shown));
    assert!(
        world.run(&["config", "check"]).ok().out.starts_with("callgate.toml: ok") || shown.contains("callgate.toml")
    );
    world.put("callgate.toml", "version = 1\n# mine\n");
    let again = world.run(&["init"]);
    assert_eq!(again.status, 1);
    assert!(again.err.contains("--force"), "{}", again.err);
    assert!(world.text("callgate.toml").contains("# mine"));
    world.run(&["init", "--force"]).ok();
    assert!(!world.text("callgate.toml").contains("# mine"));
    world.run(&["init", "new/dir"]).ok();
    world.run(&["config", "check", "new/dir/callgate.toml"]).ok();
    let mode = fs::metadata(world.path("callgate.toml")).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o644);
}
