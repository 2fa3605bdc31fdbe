//! `fs.search`.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use callgate::toolkit::fs::{SearchArgs, search};
use callgate::toolkit::{Deadline, Fault};
use serde_json::{Value, json};

use crate::place::{Counting, Place, never};

/// Searches with `args`, as a caller writes them.
fn searching(place: &Place, args: Value) -> Value {
    search(&place.root, &serde_json::from_value(args).unwrap(), never()).unwrap()
}

fn args(args: Value) -> SearchArgs {
    serde_json::from_value(args).unwrap()
}

/// The matches as `path:line:column`.
fn places(answer: &Value) -> Vec<String> {
    let place = |hit: &Value| format!("{}:{}:{}", hit["path"].as_str().unwrap(), hit["line"], hit["column"]);
    answer["matches"].as_array().unwrap().iter().map(place).collect()
}

fn tree() -> Place {
    let place = Place::new();
    place.file("src/main.rs", "fn main() {\n    // TODO one\n}\n");
    place.file("src/deep/er/lib.rs", "// todo\n// TODO two, TODO three\n");
    place.file("README.md", "TODO: write\n");
    place.file(".hidden/x.rs", "TODO\n");
    place.file("src/.env", "TODO\n");
    place.file("target/out.rs", "TODO\n");
    place.file(".gitignore", "/target\n*.log\n");
    place.file("a.log", "TODO\n");
    place
}

#[test]
fn every_line_with_the_pattern_is_found_in_order() {
    let answer = searching(&tree(), json!({"pattern": "TODO"}));
    assert_eq!(
        places(&answer),
        ["README.md:1:1", "a.log:1:1", "src/deep/er/lib.rs:2:4", "src/main.rs:2:8", "target/out.rs:1:1"]
    );
    assert_eq!(answer["matches"][3]["text"], "    // TODO one");
    assert_eq!(answer["files_searched"], 5);
    assert_eq!(answer["truncated"], false);
    assert_eq!(answer.get("truncated_by"), None);
}

#[test]
fn what_to_look_into_can_be_narrowed() {
    let place = tree();
    for (args, expected) in [
        (json!({"pattern": "TODO", "path": "src"}), vec!["src/deep/er/lib.rs:2:4", "src/main.rs:2:8"]),
        (json!({"pattern": "TODO", "path": "src/main.rs"}), vec!["src/main.rs:2:8"]),
        (json!({"pattern": "TODO", "glob": "*.md"}), vec!["README.md:1:1"]),
        (json!({"pattern": "TODO", "glob": "src/*.rs"}), vec!["src/main.rs:2:8"]),
        (json!({"pattern": "TODO", "glob": "./src/**/*.rs"}), vec!["src/deep/er/lib.rs:2:4", "src/main.rs:2:8"]),
        (json!({"pattern": "TODO", "path": "src", "glob": "{lib,none}.rs"}), vec!["src/deep/er/lib.rs:2:4"]),
        (
            json!({"pattern": "TODO", "gitignore": true}),
            vec!["README.md:1:1", "src/deep/er/lib.rs:2:4", "src/main.rs:2:8"],
        ),
        (
            json!({"pattern": "TODO", "hidden": true, "glob": "*.rs", "gitignore": true}),
            vec![".hidden/x.rs:1:1", "src/deep/er/lib.rs:2:4", "src/main.rs:2:8"],
        ),
        (json!({"pattern": "^// TODO", "regex": true}), vec!["src/deep/er/lib.rs:2:1"]),
        (
            json!({"pattern": "// todo", "case_insensitive": true, "path": "src/deep"}),
            vec!["src/deep/er/lib.rs:1:1", "src/deep/er/lib.rs:2:1"],
        ),
    ] {
        assert_eq!(places(&searching(&place, args.clone())), expected, "{args}");
    }
}

#[test]
fn ignore_files_hold_from_the_root_down_and_the_nearest_decides() {
    let place = Place::new();
    place.file(".gitignore", "*.txt\nbuild/\n");
    place.file("a/.gitignore", "!keep.txt\n/only-here\n");
    place.file("a/keep.txt", "HIT");
    place.file("a/other.txt", "HIT");
    place.file("a/only-here", "HIT");
    place.file("a/b/only-here", "HIT");
    place.file("ab/only-here", "HIT");
    place.file("a/b/build/f", "HIT");
    place.file("top.txt", "HIT");
    place.file(".git/config", "HIT");
    let all = searching(&place, json!({"pattern": "HIT", "gitignore": true, "hidden": true}));
    assert_eq!(places(&all), ["a/b/only-here:1:1", "a/keep.txt:1:1", "ab/only-here:1:1"]);
    // Also when the search begins below a directory whose file speaks.
    let below = searching(&place, json!({"pattern": "HIT", "gitignore": true, "path": "a"}));
    assert_eq!(places(&below), ["a/b/only-here:1:1", "a/keep.txt:1:1"]);
}

/// The main job: an agent asks for more than it may have.
#[test]
fn k2_the_number_of_matches_is_bounded_and_the_cut_is_shown() {
    let place = Place::new();
    place.file("many", "TODO\n".repeat(1_500));
    for (max, given) in [(5_000, 1_000), (1_000, 1_000), (7, 7), (0, 1)] {
        let answer = searching(&place, json!({"pattern": "TODO", "max": max}));
        assert_eq!(answer["matches"].as_array().unwrap().len(), given, "max {max}");
        assert_eq!((&answer["truncated"], &answer["truncated_by"]), (&json!(true), &json!("max")));
    }
    place.file("many", "TODO\n".repeat(7));
    assert_eq!(searching(&place, json!({"pattern": "TODO", "max": 7}))["truncated"], false);
}

#[test]
fn what_is_no_text_is_skipped_and_counted() {
    let place = Place::new();
    place.file("binary", b"TODO\0TODO");
    place.file("latin", b"caf\xe9 TODO");
    place.file("large", vec![b'a'; (8 << 20) + 1]);
    place.file("fits", [vec![b'a'; (8 << 20) - 4], b"TODO".to_vec()].concat());
    place.fifo("pipe");
    place.link("latin", "link");
    place.link("../outside/secret", "out");
    let answer = searching(&place, json!({"pattern": "TODO"}));
    assert_eq!(places(&answer), ["fits:1:8388605", "latin:1:6"]);
    assert_eq!(answer["matches"][0]["cut"], true);
    assert_eq!(answer["matches"][1]["text"], "caf\u{fffd} TODO");
    assert_eq!(answer["skipped"], json!({"binary": 1, "too_large": 1, "unreadable": 0}));
    assert_eq!(answer["files_searched"], 2);
}

#[test]
fn what_may_not_be_read_is_counted() {
    if rustix::process::geteuid().is_root() {
        return; // Nothing is unreadable to it.
    }
    let place = tree();
    fs::set_permissions(place.inside().join("src/deep"), fs::Permissions::from_mode(0o000)).unwrap();
    let answer = searching(&place, json!({"pattern": "TODO", "path": "src"}));
    fs::set_permissions(place.inside().join("src/deep"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(answer["skipped"]["unreadable"], 1);
}

#[test]
fn s7_a_search_does_not_leave_the_root() {
    let place = tree();
    place.link("../../outside", "src/out");
    place.link("../../outside/secret", "src/file");
    assert!(places(&searching(&place, json!({"pattern": "CANARY"}))).is_empty());
    for path in ["src/out", "src/file", "../outside", "src/main.rs/x"] {
        let error = search(&place.root, &args(json!({"pattern": "CANARY", "path": path})), never()).unwrap_err();
        assert_eq!(error.fault, Fault::Refused, "{path}");
    }
}

#[test]
fn x2_a_search_stops_at_the_deadline() {
    let place = tree();
    let clock = Counting(Cell::new(0));
    let deadline = Deadline::within(&clock, Duration::from_secs(8));
    let error = search(&place.root, &args(json!({"pattern": "TODO"})), deadline).unwrap_err();
    assert_eq!(error.fault, Fault::TimedOut);
    // In the middle of a file, too.
    place.file("src/long", "line\n".repeat(200_000));
    let deadline = Deadline::within(&clock, Duration::from_secs(20));
    let slow = args(json!({"pattern": "nothing.like.it", "regex": true, "path": "src/long"}));
    assert_eq!(search(&place.root, &slow, deadline).unwrap_err().fault, Fault::TimedOut);
}

#[test]
fn what_cannot_be_searched_for_is_refused() {
    let place = tree();
    for (bad, field) in [
        (json!({"pattern": ""}), "pattern"),
        (json!({"pattern": "a\nb"}), "pattern"),
        (json!({"pattern": "(", "regex": true}), "pattern"),
        (json!({"pattern": "x", "glob": "["}), "glob"),
        (json!({"pattern": "x", "path": ""}), "path"),
    ] {
        let error = search(&place.root, &args(bad.clone()), never()).unwrap_err();
        assert_eq!(error.fault, Fault::Refused, "{bad}");
        assert!(error.message.starts_with(&format!("{field}: ")), "{bad}: {}", error.message);
    }
}

#[test]
fn x6_an_answer_is_bounded_in_size() {
    let place = Place::new();
    // Each match is shown with a path of 3 KiB.
    let deep = format!("{}/", "d".repeat(250)).repeat(12);
    place.file(&format!("{deep}f"), "TODO\n".repeat(900));
    let answer = searching(&place, json!({"pattern": "TODO", "max": 1000}));
    assert_eq!((&answer["truncated"], &answer["truncated_by"]), (&json!(true), &json!("size")));
    assert!(answer["matches"].to_string().len() < (1 << 19) + 1_000);
    for n in 0..300 {
        place.file(&format!("{deep}file{n}"), "");
    }
    let listed = crate::list::listing(
        &place,
        &callgate::toolkit::fs::ListArgs { recursive: true, max: 1_000, ..Default::default() },
    );
    assert_eq!(listed["truncated"], true);
    assert!(listed["entries"].to_string().len() < (1 << 19) + 1_000);
}
