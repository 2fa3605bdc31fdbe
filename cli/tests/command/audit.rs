//! The log: read, followed, verified.

use std::fs;
use std::io::{BufRead, BufReader};

use serde_json::Value;

use crate::world::World;

const LOG: &str = ".callgate/audit.jsonl";

/// A log of five calls, as text.
fn logged() -> World {
    let world = World::with_texts();
    for _ in 0..5 {
        world.call(&["time.now"]).ok();
    }
    world
}

fn lines(world: &World) -> Vec<String> {
    world.text(LOG).lines().map(str::to_owned).collect()
}

fn write(world: &World, lines: &[String]) {
    world.put(LOG, &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
}

#[track_caller]
fn broken(world: &World, line: u64, word: &str) {
    let ran = world.run(&["audit", "verify"]);
    assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("BROKEN") && ran.out.contains(word), "{}", ran.out);
    let json = world.run(&["audit", "verify", "--json"]).json();
    assert_eq!((&json["intact"], &json["first_broken"]), (&Value::Bool(false), &line.into()), "{json}");
}

// J10
#[test]
fn j10_an_edited_line_shows() {
    let world = logged();
    let mut log = lines(&world);
    log[2] = log[2].replace("local-shell", "local-shelf");
    write(&world, &log);
    broken(&world, 3, "line 3: the line was changed");
}

// J10
#[test]
fn j10_a_removed_line_shows() {
    let world = logged();
    let mut log = lines(&world);
    log.remove(1);
    write(&world, &log);
    broken(&world, 2, "line 2");
}

// J10
#[test]
fn j10_swapped_lines_show() {
    let world = logged();
    let mut log = lines(&world);
    log.swap(1, 2);
    write(&world, &log);
    broken(&world, 2, "line 2");
}

// R6 of the cases: a log that was cut off fits itself, and not its head.
#[test]
fn j10_a_log_that_was_cut_off_shows() {
    let world = logged();
    write(&world, &lines(&world)[..3]);
    broken(&world, 3, "5 lines were recorded");
    // Nothing is written behind such an end, and so nothing runs.
    let ran = world.call(&["time.now"]);
    ran.refused("AUDIT_UNAVAILABLE");
    assert!(ran.err.contains("cut off"), "{}", ran.err);
    assert_eq!(lines(&world).len(), 3);
}

// J10: whoever takes the head along as well is found out by a copy of it.
#[test]
fn j10_a_head_that_was_kept_elsewhere_counts() {
    let world = logged();
    let json = world.run(&["audit", "verify", "--json"]).ok().json();
    let kept = format!("{}:{}", json["head"]["seq"], json["head"]["hash"].as_str().expect("a hash"));
    world.run(&["audit", "verify", "--head", &kept]).ok();
    fs::remove_dir_all(world.path(".callgate")).expect("it is there");
    world.call(&["time.now"]).ok();
    world.run(&["audit", "verify"]).ok();
    let ran = world.run(&["audit", "verify", "--head", &kept]);
    assert_eq!(ran.status, 1, "{}", ran.out);
    assert_eq!(world.run(&["audit", "verify", "--head", "nix"]).status, 2);
}

#[test]
fn what_is_missing_is_said() {
    let world = logged();
    fs::remove_file(world.path(&format!("{LOG}.head"))).expect("it is there");
    broken(&world, 5, ".head");
    fs::remove_file(world.path(LOG)).expect("it is there");
    let ran = world.run(&["audit", "verify"]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("there is no log"), "{}", ran.err);
    assert_eq!(world.run(&["audit", "verify", "nix.jsonl"]).status, 1);
}

// J4: a call that never ended is named.
#[test]
fn j4_an_intent_without_an_end_is_named() {
    let world = World::with_texts();
    let token = world.ask(&["fs.write", r#"{"path":"a","content":"b"}"#]);
    world.call(&["fs.write", "--confirm", &token, "--request-id", "lost-1"]).ok();
    write(&world, &lines(&world)[..2]);
    let json = world.run(&["audit", "verify", "--json"]).json();
    assert_eq!(json["open_intents"][0]["request_id"], "lost-1");
    assert!(world.run(&["audit", "verify"]).out.contains("line 2: fs.write, request lost-1"));
}

#[test]
fn the_latest_records_are_shown() {
    let world = logged();
    world.call(&["fs.search", r#"{"pattern":"TODO","max":5000}"#]).ok();
    world.call(&["fs.nix"]).refused("TOOL_NOT_FOUND");
    let tail = world.run(&["audit", "tail", "-n", "2"]).ok().out;
    assert_eq!(tail.lines().count(), 3, "{tail}");
    for text in ["max 5000 -> 1000", "not_found", "TOOL_NOT_FOUND", "cli:local-shell", "SEQ"] {
        assert!(tail.contains(text), "{tail}");
    }
    let json = world.run(&["audit", "tail", "--json", "-n", "3"]).ok().out;
    assert_eq!(json.lines().map(str::to_owned).collect::<Vec<_>>(), lines(&world)[4..]);
    assert_eq!(World::new().run(&["audit", "tail"]).ok().out, "");
    assert_eq!(world.run(&["audit", "tail", "--file", "nix"]).status, 1);
}

#[test]
fn a_log_can_be_followed() {
    let world = logged();
    let mut follower = world.start(&["audit", "tail", "--follow", "--json", "-n", "1"]);
    let mut shown = BufReader::new(follower.stdout.take().expect("a pipe")).lines();
    let mut next = || shown.next().expect("it goes on").expect("text");
    assert_eq!(next(), lines(&world)[4]);
    world.call(&["fs.list"]).ok();
    assert_eq!(next(), lines(&world)[5]);
    follower.kill().expect("it runs");
    follower.wait().expect("it ends");
}
