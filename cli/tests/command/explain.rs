//! One call explained from its record.

use serde_json::Value;

use crate::world::World;

const CONFIG: &str = "[tools.\"fs.write\"]\nconfirm = \"approver\"\napprover_scope = \"files:approve\"\n";
const BOSS: [&str; 4] = ["--principal", "boss", "--scope", "files:approve"];

fn stage<'v>(explained: &'v Value, name: &str) -> (&'v str, &'v str) {
    let stages = explained["stages"].as_array().expect("a list");
    let stage = stages.iter().find(|stage| stage["stage"] == name).expect("each stage");
    (stage["how"].as_str().expect("a word"), stage["known"].as_str().expect("a text"))
}

fn explain(world: &World, id: &str) -> Value {
    world.run(&["audit", "explain", id, "--json"]).ok().json()
}

// J7: the record suffices to make the decision again.
#[test]
fn j7_a_call_that_ran_is_explained_and_replayed() {
    let world = World::with_config("[[rules]]\nid = 7\neffect = \"allow\"\ntool = \"fs.*\"\n");
    world.call(&["fs.search", r#"{"pattern":"TODO","max":5000}"#, "--request-id", "r-1"]).ok();
    let before = world.records().len();
    let explained = explain(&world, "r-1");
    assert_eq!(stage(&explained, "clamp"), ("passed", "max 5000 -> 1000"));
    assert_eq!(stage(&explained, "authorize"), ("passed", "rule 7"));
    assert_eq!(explained["replay"]["same_decision"], true, "{explained}");
    for (name, how) in explained["replay"]["compared"].as_object().expect("members") {
        assert_eq!(how, "same", "{name}: {explained}");
    }
    let shown = world.run(&["audit", "explain", "1"]).ok().out;
    for text in
        ["fs.search by local-shell through cli, request r-1 (lines 1)", "the same decision", "not to be known from it"]
    {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    // R4: nothing was recorded, charged or asked by that.
    assert_eq!(world.records().len(), before);
    // Another configuration decides otherwise, and says that it is another.
    world.put("callgate.toml", "version = 1\n[[rules]]\nid = 8\neffect = \"deny\"\ntool = \"fs.search\"\n");
    let explained = explain(&world, "r-1");
    assert_eq!(explained["replay"]["same_decision"], false);
    assert!(
        explained["replay"]["says"]
            .as_str()
            .expect("a text")
            .starts_with("ANOTHER decision now: refuses it at authorize")
    );
    assert_eq!(explained["replay"]["compared"]["policy"], "different");
    assert_eq!(explained["replay"]["compared"]["tool_digest"], "same");
    assert!(explained["unknown"].to_string().contains("the configuration of then"), "{explained}");
}

#[test]
fn j7_a_refusal_names_its_stage_and_its_rule() {
    let world = World::with_config("[[rules]]\nid = 3\neffect = \"deny\"\ntool = \"fs.read\"\n");
    world.call(&["fs.read", r#"{"path":"notes.md"}"#, "--request-id", "r-2"]).refused("FORBIDDEN");
    world.call(&["fs.nix", "--request-id", "r-3"]).refused("TOOL_NOT_FOUND");
    let explained = explain(&world, "r-2");
    let (how, known) = stage(&explained, "authorize");
    assert!(how == "refused" && known.contains("rule 3") && known.contains("FORBIDDEN"), "{known}");
    assert_eq!(stage(&explained, "execute"), ("not reached", "the tool never started"));
    assert_eq!(explained["replay"]["same_decision"], true, "{explained}");
    let explained = explain(&world, "r-3");
    assert_eq!(stage(&explained, "resolve").0, "refused");
    assert_eq!(explained["replay"]["same_decision"], false);
    assert!(explained["unknown"].to_string().contains("the arguments were never read"));
}

#[test]
fn j7_who_approved_is_found_by_the_ticket() {
    let world = World::with_config(CONFIG);
    let asked = world.call(&["fs.write", r#"{"path":"a.txt","content":"hi"}"#, "--json"]).json();
    let part = |name: &str| asked["data"][name].as_str().expect("a text").to_owned();
    world.run(&[&["approvals", "approve", &part("approval_id")], &BOSS[..]].concat()).ok();
    let token = part("confirm_token");
    world.call(&["fs.write", "--confirm", &token, "--request-id", "r-4"]).ok();
    let explained = explain(&world, "r-4");
    let (how, known) = stage(&explained, "confirm");
    assert!(how == "passed" && known.starts_with("approve by boss at "), "{known}");
    assert_eq!(explained["records"].as_array().map(Vec::len), Some(2), "its intent and its end");
}

#[test]
fn what_cannot_be_explained_says_so() {
    let world = World::with_config("[redaction]\nfields = [\"content\"]\n");
    world.ask(&["fs.write", r#"{"path":"a.txt","content":"CANARY-77"}"#, "--request-id", "r-5"]);
    let shown = world.run(&["audit", "explain", "r-5"]).ok().out;
    assert!(shown.contains("secrets replaced") && !shown.contains("CANARY"), "{shown}");
    let ran = world.run(&["audit", "explain", "no-such"]);
    assert!(ran.status == 1 && ran.err.contains("no call"), "{}", ran.err);
    assert_eq!(World::new().run(&["audit", "explain", "r-5"]).status, 1, "there is no log");
}
