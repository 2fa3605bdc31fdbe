//! What a new user does first.

use crate::world::World;

// K3, J1: the search finds what is there, says what was clamped, and leaves a record that can be verified.
#[test]
fn k3_a_search_finds_shows_its_clamp_and_is_recorded() {
    let world = World::new();
    let found = world.call(&["fs.search", r#"{"pattern":"TODO","max":5000}"#]).ok();
    for line in ["notes.md     2     1", "src/main.rs  2     8", "TODO: greet", "TODO buy milk"] {
        assert!(found.out.contains(line), "{}", found.out);
    }
    assert!(!found.out.contains("done.md"));
    assert!(found.err.contains("max was 5000, brought to 1000"), "{}", found.err);
    let records = world.records();
    assert_eq!(world.ends(), ["done"]);
    assert_eq!(records[0]["clamped"][0]["to"], "1000");
    assert_eq!((&records[0]["tool"], &records[0]["principal"]), (&"fs.search".into(), &"local-shell".into()));
    let verified = world.run(&["audit", "verify"]).ok();
    assert!(verified.out.starts_with(".callgate/gate.db: intact"), "{}", verified.out);
}

// A5: it asks, runs once, in another process, and never again.
#[test]
fn a5_a_write_asks_and_runs_once_with_its_token() {
    let world = World::new();
    let arguments = r#"{"path":"a.txt","content":"hi"}"#;
    let asked = world.call(&["fs.write", arguments]);
    assert_eq!(asked.status, 4, "{}", asked.err);
    assert!(asked.out.contains("nothing has run yet"), "{}", asked.out);
    assert!(asked.out.contains(r#"fs.write({"path":"a.txt","content":"hi"})"#), "{}", asked.out);
    assert!(!world.path("a.txt").exists());
    // What it says is to be typed works as it stands.
    let again = asked.out.lines().find(|line| line.contains("--confirm")).expect("it says how");
    let again: Vec<&str> = again.split_whitespace().skip(1).collect();
    world.run(&again).ok();
    assert_eq!(world.text("a.txt"), "hi");
    world.put("a.txt", "changed since");
    for _ in 0..2 {
        world.run(&again).refused("CONFIRMATION_INVALID");
    }
    assert_eq!(world.text("a.txt"), "changed since");
    assert_eq!(world.ends(), ["asked", "intent", "done", "refused", "refused"]);
    assert_eq!(world.records()[2]["confirmed_by"], "self");
    // A11: the token is not in any file.
    let token = *again.last().expect("a token");
    for entry in std::fs::read_dir(world.path(".callgate")).expect("a directory") {
        let file = entry.expect("a file").path();
        let content = std::fs::read(&file).expect("it is ours");
        assert!(!content.windows(token.len()).any(|part| part == token.as_bytes()), "{}", file.display());
    }
    world.run(&["audit", "verify"]).ok();
}

#[test]
fn every_tool_works_without_a_configuration() {
    let world = World::new();
    let now = world.call(&["time.now", r#"{"timezone":"Europe/Rome"}"#, "--quiet"]).ok();
    assert_eq!(now.json()["timezone"], "Europe/Rome");
    let listed = world.call(&["fs.list", "--json"]).ok().json();
    assert_eq!(listed["meta"]["effect"], "done");
    let read = world.call(&["fs.read", r#"{"path":"notes.md"}"#]).ok();
    assert!(read.out.contains("# Notes\n  TODO buy milk\n"), "{}", read.out);
    let tools = world.run(&["tools"]).ok().out;
    for tool in ["time.now", "fs.list", "fs.read", "fs.search", "fs.write"] {
        assert!(tools.contains(tool), "{tools}");
    }
}

#[test]
fn an_inspection_tells_the_steps_and_runs_nothing() {
    let world = World::new();
    let table = world.run(&["inspect", "fs.write"]).ok().out;
    let steps = [
        "resolve",
        "validate",
        "clamp",
        "authorize",
        "rate_limit",
        "plan_mode",
        "confirm",
        "emit_executing",
        "execute",
        "contain_exception",
        "check_output",
        "audit",
    ];
    let places: Vec<_> = steps.iter().map(|step| table.find(&format!("\n{step} "))).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{table}");
    let json = world.run(&["inspect", "fs.write", "--json", "--channel", "web"]).ok().json();
    assert_eq!(json["operation"], "fs.write");
    assert_eq!(json["steps"].as_array().expect("a list").len(), 12);
    assert!(json["assumptions"][0].as_str().expect("a text").contains("require_auth"), "{json}");
    assert_eq!(json["wiring"]["audit"], "present");
    let planned = world.run(&["inspect", "fs.write", "--plan", "--json"]).ok().json();
    assert_eq!(planned["context"]["mode"], "plan");
    world.run(&["inspect", "fs.serch"]).refused("TOOL_NOT_FOUND");
    assert!(!world.path(".callgate").exists());
}

// F2: a caller is told of what it may call, and of nothing else.
#[test]
fn f2_a_list_shows_what_the_caller_may_see() {
    let world = World::with_config("[tools.\"fs.read\"]\nscopes = [\"files:read\"]\n");
    let names = |args: &[&str]| {
        let listed = world.run(&[&["tools", "--json"], args].concat()).ok().json();
        let tools = listed.as_array().expect("a list").iter();
        tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&[]).len(), 5);
    assert_eq!(names(&["--prefix", "time."]), ["time.now"]);
    let bob = ["--channel", "web", "--principal", "bob"];
    assert!(!names(&bob).contains(&"fs.read".to_owned()));
    assert!(names(&[&bob[..], &["--scope", "files:read"]].concat()).contains(&"fs.read".to_owned()));
    assert_eq!(names(&["--channel", "web"]), [""; 0], "nobody is known there");
    let small = world.run(&["tools", "--budget", "phi-3"]).ok();
    assert!(small.err.contains("tokens that tools may take"), "{}", small.err);
}
