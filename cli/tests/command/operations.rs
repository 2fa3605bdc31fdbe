//! Calls that are asked for again: made once, given again, in doubt, settled.

use crate::world::World;

/// A tool that leaves a line each time, and one that kills the process that runs it.
const CONFIG: &str = r#"
[[exec]]
name = "leaves"
description = "Leaves a line."
program = "sh"
args = ["-c", "echo made >> lines; echo left"]
confirm = "nobody"

[[exec]]
name = "dies"
description = "Ends the gate in the middle of a call."
program = "sh"
args = ["-c", "echo made >> lines; kill -9 $PPID"]
confirm = "nobody"
"#;

fn lines(world: &World) -> usize {
    world.text("lines").lines().count()
}

// J3, P7: it is made once, and whoever asks again gets what it gave, marked, from another process.
#[test]
fn j3_a_call_that_is_asked_for_again_is_made_once() {
    let world = World::with_config(CONFIG);
    let first = world.call(&["leaves", "--operation", "o-1", "--json"]).ok().json();
    let again = world.call(&["leaves", "--operation", "o-1", "--json"]).ok().json();
    assert_eq!(lines(&world), 1);
    assert_eq!((&first["data"], &first["message"]), (&again["data"], &again["message"]));
    assert_eq!((&first["meta"]["replayed"], &first["meta"]["attempt"]), (&serde_json::Value::Null, &1.into()));
    assert_eq!((&again["meta"]["replayed"], &again["meta"]["effect"]), (&true.into(), &"done".into()));
    let told = world.call(&["leaves", "--operation", "o-1"]).ok();
    assert!(told.err.contains("the tool did not run again"), "{}", told.err);
    // J7: the record says so, and is explained.
    let id = again["meta"]["request_id"].as_str().expect("a text");
    let record = world.records().into_iter().find(|record| record["request_id"] == id).expect("it is recorded");
    assert_eq!((&record["end"], &record["effect"]), (&"replayed".into(), &"none".into()));
    let explained = world.run(&["audit", "explain", id]).ok().out;
    assert!(explained.contains("operation o-1: it was given the result of an earlier call"), "{explained}");
    assert!(explained.contains("the tool never started"), "{explained}");
    // Another id, or none, is another call; another call under the id is refused, and so is a word that is no id.
    world.call(&["leaves", "--operation", "o-2"]).ok();
    world.call(&["leaves"]).ok();
    assert_eq!(lines(&world), 3);
    world.call(&["dies", "--operation", "o-1"]).refused("OPERATION_CONFLICT");
    assert_eq!(world.call(&["leaves", "--operation", "o 1"]).status, 2);
    assert_eq!(lines(&world), 3);
}

// J4, J5: a process that died in the middle leaves a doubt, and nothing runs before somebody settles it.
#[test]
fn j4_a_process_that_died_leaves_a_doubt() {
    let world = World::with_config(CONFIG);
    let killed = world.call(&["dies", "--operation", "o-1"]);
    assert!(![0, 1, 2, 3, 4].contains(&killed.status), "{}", killed.status);
    world.call(&["dies", "--operation", "o-1"]).refused("OPERATION_IN_PROGRESS");
    rusqlite::Connection::open(world.path(".callgate/gate.db"))
        .expect("a database")
        .execute("UPDATE operations SET until_ms = 1 WHERE state = 'claimed'", [])
        .expect("the operator may");
    let doubt = world.call(&["dies", "--operation", "o-1"]);
    assert!(doubt.err.contains("whether it took effect is not known"), "{}", doubt.err);
    doubt.refused("UNKNOWN_OUTCOME");
    assert_eq!(lines(&world), 1);
    let host = ["--principal", "host", "--scope", "reconcile"];
    let listed = world.run(&[&["operations", "list"], &host[..]].concat()).ok().out;
    assert!(listed.contains("o-1") && listed.contains("in_doubt"), "{listed}");
    let resolve = |who: &[&str]| {
        let line = ["operations", "resolve", "o-1", "--outcome", "done", "--proof", "there is a line"];
        world.run(&[&line[..], who].concat())
    };
    resolve(&["--principal", "mallory"]).refused("NOT_FOUND");
    assert!(resolve(&host).ok().out.contains("o-1 is completed"));
    world.call(&["dies", "--operation", "o-1"]).refused("RESULT_NOT_KEPT");
    assert_eq!(lines(&world), 1);
    let settled = world.records().into_iter().find(|record| record["end"] == "resolve_done").expect("it is recorded");
    assert_eq!((&settled["operation"], &settled["principal"]), (&"o-1".into(), &"host".into()));
    let json = world.run(&[&["operations", "list", "--json"], &host[..]].concat()).ok().json();
    assert_eq!((&json[0]["state"], &json[0]["proof"]), (&"completed".into(), &"there is a line".into()));
}

// F6: files of text keep no operations, and say so instead of running without.
#[test]
fn f6_files_of_text_refuse_operations() {
    let world = World::with_config(&format!("[state]\nfile = \".callgate/state.json\"\n{CONFIG}"));
    world.call(&["leaves", "--operation", "o-1"]).refused("OPERATION_UNSUPPORTED");
    world.run(&["operations", "list"]).refused("OPERATION_UNSUPPORTED");
    assert!(!world.path("lines").exists());
}
