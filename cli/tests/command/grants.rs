//! Standing grants: given, used, listed, taken back.

use serde_json::Value;

use crate::world::{Ran, World};

const CONFIG: &str = "[tools.\"fs.write\"]\nconfirm = \"approver\"\napprover_scope = \"files:approve\"\n";
const BOSS: [&str; 4] = ["--principal", "boss", "--scope", "grant"];
const LOG: [&str; 7] = ["fs.write", "--including", r#"{"path":"log.md"}"#, "--lasts", "1h", "--uses", "2"];

fn write(world: &World, path: &str) -> Ran {
    world.call(&["fs.write", &format!(r#"{{"path":"{path}","content":"x","mode":"overwrite"}}"#), "--json"])
}

fn grant(world: &World, what: &[&str], to: &str, by: &[&str]) -> Ran {
    world.run(&[&["approvals", "grant"], what, &["--to", to, "--json"], by].concat())
}

fn grants(world: &World, who: &[&str]) -> Value {
    world.run(&[&["approvals", "grants", "--json"], who].concat()).ok().json()
}

// A7, P5: what a grant names is not asked about, so often as it says, and nothing else is; taken back, it covers nothing.
#[test]
fn a7_p5_a_grant_covers_what_it_names_until_it_is_taken_back() {
    let world = World::with_config(CONFIG);
    let given = grant(&world, &LOG, "local-shell", &BOSS).ok().json();
    assert_eq!(
        (&given["tool"], &given["given_by"], &given["state"]),
        (&"fs.write".into(), &"boss".into(), &"open".into())
    );
    assert_eq!(given["arguments"], r#"including {"path":"log.md"}"#);
    assert_eq!(write(&world, "other.md").status, 4, "it is asked about");
    write(&world, "log.md").ok();
    let done = world.records().into_iter().rfind(|record| record["end"] == "done").expect("a record");
    // J7: and the record says which.
    assert_eq!((&done["confirmed_by"], &done["grant"]), (&"grant".into(), &given["grant_id"]));
    assert_eq!(grants(&world, &BOSS)[0]["used"], 1);
    let id = given["grant_id"].as_str().expect("an id");
    let shown = world.run(&[&["approvals", "grants"], &BOSS[..]].concat()).ok().out;
    for part in [&id[..12], "open", "fs.write", "local-shell", "1 of 2", "log.md"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // Who may not take it back, and who is not told of it.
    let revoke = |id: &str, who: &[&str]| world.run(&[&["approvals", "revoke", id, "--json"], who].concat());
    revoke(id, &["--principal", "eve"]).refused("FORBIDDEN");
    revoke(id, &["--scope", "grant"]).refused("UNAUTHORIZED");
    revoke(id, &[&BOSS[..], &["--tenant", "acme"]].concat()).refused("NOT_FOUND");
    revoke("00000000", &BOSS).refused("NOT_FOUND");
    assert_eq!(revoke("nix", &BOSS).status, 2);
    assert_eq!(grants(&world, &["--principal", "eve"]), serde_json::json!([]));
    assert_eq!(grants(&world, &["--principal", "local-shell"]).as_array().expect("a list").len(), 1, "its own");
    let revoked = revoke(&id[..12], &BOSS).ok().json();
    assert_eq!((&revoked["used"], &revoked["under_way"]), (&1.into(), &0.into()));
    assert_eq!(write(&world, "log.md").status, 4, "it is asked about again");
    assert_eq!(grants(&world, &BOSS)[0]["state"], "revoked");
    let decisions: Vec<_> = world.records().into_iter().filter(|record| record["kind"] == "decision").collect();
    let ends: Vec<_> = decisions.iter().map(|record| record["end"].as_str().expect("a text").to_owned()).collect();
    assert_eq!(ends.iter().filter(|end| *end == "grant").count(), 1);
    assert!(ends.iter().filter(|end| *end == "revoke").count() >= 4, "refusals are recorded as well: {ends:?}");
    world.run(&["audit", "verify"]).ok();
    let request = done["request_id"].as_str().expect("an id");
    let told = world.run(&["audit", "explain", request, "--json"]).ok().json();
    let told = told["confirmation"].as_str().expect("a text").to_owned();
    assert!(told.starts_with(&format!("covered by the standing grant {id}; revoke by boss")), "{told}");
}

// A2, A7, F7: nobody grants to itself or without the scope, and a grant leaves nothing open.
#[test]
fn a2_who_may_grant_what() {
    let world = World::with_config(CONFIG);
    grant(&world, &LOG, "boss", &BOSS).refused("FORBIDDEN");
    grant(&world, &LOG, "local-shell", &[]).refused("FORBIDDEN");
    grant(&world, &LOG, "ann", &["--principal", "boss"]).refused("FORBIDDEN");
    grant(&world, &LOG, "ann", &["--scope", "grant"]).refused("UNAUTHORIZED");
    assert_eq!(grants(&world, &BOSS), serde_json::json!([]));
    let usage = |what: &[&str], says: &str| {
        let ran = grant(&world, what, "ann", &BOSS);
        assert!(ran.status == 2 && ran.err.contains(says), "{what:?}: {}", ran.err);
    };
    let rest = ["--lasts", "1h", "--uses", "2"];
    usage(&[&["fs.wrote", "--including", "{\"a\":1}"], &rest[..]].concat(), "fs.write");
    usage(&[&["fs.write"], &rest[..]].concat(), "--exactly");
    usage(&[&["fs.write", "--including", "{}"], &rest[..]].concat(), "not empty");
    usage(&[&["fs.write", "--including", "[1]"], &rest[..]].concat(), "not empty");
    usage(&[&["fs.write", "--fitting", "{\"type\":\"nix\"}"], &rest[..]].concat(), "type");
    usage(&[&["fs.write", "--fitting", "@none.json"], &rest[..]].concat(), "none.json");
    usage(&["fs.write", "--including", "{\"a\":1}", "--uses", "2"], "--lasts");
    usage(&["fs.write", "--including", "{\"a\":1}", "--lasts", "1h"], "--uses");
    usage(&["fs.write", "--including", "{\"a\":1}", "--lasts", "91d", "--uses", "2"], "90 days");
    usage(&["fs.write", "--including", "{\"a\":1}", "--lasts", "1h", "--uses", "0"], "--uses");
    usage(&[&["fs.write", "--including", "{\"a\":1}", "--fitting", "{}"], &rest[..]].concat(), "cannot be used with");
}

// A7, L2: exactly what was asked before, or what a schema accepts; secrets are not shown.
#[test]
fn a7_a_grant_by_digest_and_by_schema() {
    let world = World::with_config(CONFIG);
    let id = write(&world, "a.txt").json()["data"]["approval_id"].as_str().expect("an id").to_owned();
    let approver = ["--principal", "boss", "--scope", "files:approve", "--json"];
    let asked = world.run(&[&["approvals", "show", &id], &approver[..]].concat()).ok().json();
    let digest = asked["arguments_digest"].as_str().expect("a digest");
    let rest = ["--lasts", "1h", "--uses", "1"];
    grant(&world, &[&["fs.write", "--exactly", digest], &rest[..]].concat(), "local-shell", &BOSS).ok();
    assert_eq!(write(&world, "b.txt").status, 4);
    write(&world, "a.txt").ok();
    assert_eq!(write(&world, "a.txt").status, 4, "used up");
    world.put("schema.json", r#"{"type":"object","properties":{"path":{"pattern":"^logs/"}},"required":["path"]}"#);
    grant(&world, &[&["fs.write", "--fitting", "@schema.json"], &rest[..]].concat(), "local-shell", &BOSS).ok();
    assert_eq!(write(&world, "b.txt").status, 4);
    let including = [&["fs.write", "--including", r#"{"password":"hunter2","path":"x"}"#], &rest[..]].concat();
    let given = grant(&world, &including, "ann", &BOSS).ok();
    let listed = world.run(&[&["approvals", "grants"], &BOSS[..]].concat()).ok().out;
    let log = world.run(&["audit", "export"]).ok().out;
    assert!([&given.out, &listed, &log].iter().all(|text| !text.contains("hunter2")), "{listed}");
    assert!(listed.contains("used up") && listed.contains("^logs/"), "{listed}");
}
