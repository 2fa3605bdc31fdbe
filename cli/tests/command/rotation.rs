//! The log in segments.

use std::fs;
use std::io::{BufRead, BufReader};

use crate::world::World;

const TEXTS: &str = "[state]\nfile = \".callgate/state.json\"\n[audit]\nfile = \".callgate/audit.jsonl\"\n";
const DATABASE: &str = "[audit]\nfile = \".callgate/gate.db\"\n";

fn name(config: &str) -> &'static str {
    if config == TEXTS { ".callgate/audit.jsonl" } else { ".callgate/gate.db" }
}

// J6, J10: by hand; verified, explained and exported through all segments; one that is taken away shows.
#[test]
fn j6_a_log_is_rotated_by_hand() {
    for config in [TEXTS, DATABASE] {
        let world = World::with_config(config);
        for call in 0..3 {
            world.call(&["time.now", "--request-id", &format!("r{call}")]).ok();
            let rotated = world.run(&["audit", "rotate"]).ok().out;
            assert!(rotated.starts_with("put aside in ") && rotated.contains("segments"), "{rotated}");
        }
        let nothing = world.run(&["audit", "rotate"]).ok();
        assert!(
            nothing.out.is_empty() && nothing.err.contains("nothing to put aside"),
            "{}{}",
            nothing.out,
            nothing.err
        );
        let verified = world.run(&["audit", "verify"]).ok().out;
        assert!(verified.contains("3 segments and the log itself"), "{verified}");
        assert_eq!(world.ends(), ["done", "note", "done", "note", "done", "note"]);
        assert!(world.run(&["audit", "explain", "r0"]).ok().out.contains("time.now"));
        let exported = world.run(&["audit", "export"]).ok();
        world.put("copy.jsonl", &exported.out);
        let head = world.run(&["audit", "verify", "--json"]).ok().json()["head"].clone();
        let head = format!("{}:{}", head["seq"], head["hash"].as_str().expect("a hash"));
        world.run(&["audit", "verify", "copy.jsonl", "--head", &head]).ok();
        let segment = |first: u32| world.path(&format!("{}.segments/{first:012}.jsonl", name(config)));
        // The last one alone, and all of them without one.
        fs::rename(segment(2), world.path("aside")).expect("it is there");
        let broken = world.run(&["audit", "verify"]);
        assert!(broken.status == 1 && broken.out.contains("BROKEN"), "{}", broken.out);
        assert!(broken.out.contains("000000000004.jsonl line 1"), "it says where: {}", broken.out);
        fs::rename(world.path("aside"), segment(2)).expect("it is there");
        world.run(&["audit", "verify"]).ok();
        if config == TEXTS {
            let json = world.run(&["audit", "verify", "copy.jsonl", "--head", &head, "--json"]).ok().json();
            assert_eq!(json["parts"].as_array().expect("a list").len(), 1);
            let lines = exported.out.lines().nth(5).expect("six lines");
            let record: serde_json::Value = serde_json::from_str(lines).expect("a record");
            let after = format!("5:{}", record["prev"].as_str().expect("a hash"));
            world.run(&["audit", "verify", name(config), "--after", &after]).ok();
        }
        // No tool reads or writes them.
        let path = format!("{}.segments/{:012}.jsonl", name(config), 1);
        world.call(&["fs.read", &format!(r#"{{"path":"{path}"}}"#)]).refused_or_failed();
    }
}

// J6: the latest records stand in the segments, too, and whoever follows a log goes on with the new one.
#[test]
fn j6_a_log_is_followed_through_its_rotations() {
    for config in [TEXTS, DATABASE] {
        let world = World::with_config(config);
        let number = |line: String| {
            let record: serde_json::Value = serde_json::from_str(&line).expect("a record");
            record["seq"].as_u64().expect("a number")
        };
        world.call(&["time.now"]).ok();
        let mut follower = world.start(&["audit", "tail", "--follow", "--json", "-n", "1"]);
        let mut shown = BufReader::new(follower.stdout.take().expect("a pipe")).lines();
        let mut next = || number(shown.next().expect("it goes on").expect("text"));
        assert_eq!(next(), 1);
        for _ in 0..3 {
            world.call(&["time.now"]).ok();
            world.run(&["audit", "rotate"]).ok();
        }
        world.call(&["time.now"]).ok();
        assert_eq!(std::array::from_fn(|_| next()), [2, 3, 4, 5, 6, 7, 8]);
        follower.kill().expect("it runs");
        follower.wait().expect("it ends");
        let tail = world.run(&["audit", "tail", "--json", "-n", "6"]).ok().out;
        assert_eq!(tail.lines().map(|line| number(line.to_owned())).collect::<Vec<_>>(), [3, 4, 5, 6, 7, 8]);
    }
}

// J6: by size and by itself, with what is kept; what was removed is told and no fault.
#[test]
fn j6_a_log_is_rotated_by_size_and_segments_are_removed() {
    for config in [TEXTS, DATABASE] {
        let world = World::with_config(&format!("{config}max_size = \"4KiB\"\nkeep_segments = 1\n"));
        for _ in 0..24 {
            world.call(&["time.now"]).ok();
        }
        let directory = world.path(&format!("{}.segments", name(config)));
        assert_eq!(fs::read_dir(&directory).expect("it is there").count(), 1);
        let verified = world.run(&["audit", "verify"]).ok().out;
        assert!(verified.contains("were removed by retention"), "{verified}");
        let json = world.run(&["audit", "verify", "--json"]).ok().json();
        assert!(json["removed"]["seq"].as_u64().is_some_and(|seq| seq > 4), "{json}");
        assert_eq!(json["parts"].as_array().expect("a list").len(), 2);
        // What is exported says it as well.
        world.put("copy.jsonl", &world.run(&["audit", "export"]).ok().out);
        let head = format!("{}:{}", json["head"]["seq"], json["head"]["hash"].as_str().expect("a hash"));
        world.run(&["audit", "verify", "copy.jsonl", "--head", &head]).ok();
        // One that is removed without a record shows.
        fs::remove_dir_all(&directory).expect("ours");
        let broken = world.run(&["audit", "verify"]);
        assert!(broken.status == 1 && broken.out.contains("no record says"), "{}", broken.out);
    }
}
