//! Signed checkpoints: made by hand and by themselves, and what shows against them.

use std::fs;

use callgate_signed::SecretKey;
use serde_json::Value;

use crate::world::{Ran, World};

const TEXTS: &str = "[state]\nfile = \".callgate/state.json\"\n[audit]\nfile = \"audit.jsonl\"\n";
const DATABASE: &str = "[audit]\nfile = \"audit.db\"\n";

/// A private key of OpenSSH, made by nobody, and who may sign.
fn put_key(world: &World, name: &str, seed: u8) {
    let key = SecretKey::from_seed(&[seed; 32]).expect("a key");
    world.put(name, &key.private().expect("a key"));
    world.put(&format!("{name}.allowed"), &format!("ops {}\n", key.public().expect("a key").trim()));
}

/// A log of some calls in either form, and a key.
fn logged(config: &str) -> World {
    let world = World::with_config(config);
    put_key(&world, "key", 1);
    for _ in 0..3 {
        world.call(&["time.now"]).ok();
    }
    world
}

fn checkpoint(world: &World, out: &str) -> Ran {
    world.run(&["audit", "checkpoint", "--key", "key", "--out", out])
}

fn verify(world: &World, at: &str) -> Ran {
    world.run(&["audit", "verify", "--checkpoint", at, "--allowed-signers", "key.allowed", "--json"])
}

// J6, J10: made by hand, read back, and held against the log; the log that went on holds it still.
#[test]
fn j6_a_checkpoint_vouches_for_the_log() {
    for config in [TEXTS, DATABASE] {
        let world = logged(config);
        checkpoint(&world, "one").ok();
        let found = verify(&world, "one").ok().json();
        assert_eq!((&found["checkpoint"]["signer"], &found["checkpoint"]["head"]["seq"]), (&"ops".into(), &3.into()));
        world.call(&["time.now"]).ok();
        verify(&world, "one").ok();
        let text = world.run(&["audit", "verify", "--checkpoint", "one", "--allowed-signers", "key.allowed"]).ok().out;
        assert!(text.contains("checked against the checkpoint of line 3, signed by ops at 20"), "{text}");
        // What was signed is not replaced.
        assert_eq!(checkpoint(&world, "one").status, 1);
        let printed = world.run(&["audit", "checkpoint", "--key", "key"]).ok().out;
        assert!(
            printed.starts_with("callgate checkpoint v1\nlog audit.") && printed.contains("BEGIN SSH"),
            "{printed}"
        );
    }
}

// J10: cut off or written anew together with the head beside it, the log shows against its checkpoint and against nothing else.
#[test]
fn j10_what_only_a_checkpoint_shows() {
    let world = logged(TEXTS);
    let (log, head) = (world.path("audit.jsonl"), world.path("audit.jsonl.head"));
    let before = (fs::read(&log).expect("it is there"), fs::read(&head).expect("it is there"));
    world.call(&["time.now"]).ok();
    checkpoint(&world, "last").ok();
    let whole = (fs::read(&log).expect("it is there"), fs::read(&head).expect("it is there"));
    fs::write(&log, &before.0).expect("ours");
    fs::write(&head, &before.1).expect("ours");
    world.run(&["audit", "verify"]).ok();
    let cut = verify(&world, "last");
    assert!(cut.status == 1 && cut.out.contains("it was cut off"), "{}", cut.out);
    // It goes on from there, and is longer in the end.
    for _ in 0..3 {
        world.call(&["time.now"]).ok();
    }
    world.run(&["audit", "verify"]).ok();
    let fork = verify(&world, "last");
    assert!(fork.status == 1 && fork.out.contains("the log was written anew"), "{}", fork.out);
    fs::write(&log, &whole.0).expect("ours");
    fs::write(&head, &whole.1).expect("ours");
    verify(&world, "last").ok();
    // A broken log is not vouched for.
    fs::write(&log, String::from_utf8_lossy(&whole.0).replacen("local-shell", "local-shelf", 1)).expect("ours");
    let refused = checkpoint(&world, "other");
    assert!(refused.status == 1 && refused.err.contains("broken"), "{}", refused.err);
    assert!(!world.path("other").exists());
}

// J10: what is no checkpoint of this log by an allowed signer counts for nothing.
#[test]
fn j10_whose_checkpoint_it_is_counts() {
    let world = logged(DATABASE);
    put_key(&world, "stranger", 2);
    checkpoint(&world, "one").ok();
    let verify = |more: &[&str]| world.run(&[&["audit", "verify"], more].concat());
    let stranger = verify(&["--checkpoint", "one", "--allowed-signers", "stranger.allowed"]);
    assert!(stranger.status == 1 && stranger.err.contains("not signed"), "{}", stranger.err);
    let other = verify(&["--checkpoint", "one", "--allowed-signers", "key.allowed", "--log", "gate-2"]);
    assert!(other.status == 1 && other.err.contains("not of gate-2"), "{}", other.err);
    let text = world.text("one");
    world.put("changed", &text.replacen("seq 3", "seq 2", 1));
    assert_eq!(verify(&["--checkpoint", "changed", "--allowed-signers", "key.allowed"]).status, 1);
    assert_eq!(verify(&["--checkpoint", "none", "--allowed-signers", "key.allowed"]).status, 1);
    assert_eq!(verify(&["--checkpoint", "one"]).status, 2);
    assert_eq!(verify(&["--checkpoint", "one", "--allowed-signers", "none"]).status, 2);
    assert_eq!(verify(&["--checkpoint", "one", "--allowed-signers", "notes.md"]).status, 2);
    assert_eq!(world.run(&["audit", "checkpoint"]).status, 2, "there is no key");
    assert_eq!(world.run(&["audit", "checkpoint", "--key", "notes.md"]).status, 2);
    assert_eq!(world.run(&["audit", "checkpoint", "--key", "key", "--log", "a b"]).status, 2);
}

// J6: made by themselves, every so many records and so often; the last one, or all of them.
#[test]
fn j6_checkpoints_are_made_by_themselves() {
    for (to, directory) in [("away/last", false), ("away/all/", true)] {
        let config = format!(
            "{DATABASE}[audit.checkpoint]\nkey = \"key\"\nto = \"{to}\"\nevery_records = 3\nlog = \"gate-1\"\n"
        );
        let world = World::with_config(&config);
        put_key(&world, "key", 1);
        fs::create_dir_all(world.path("away/all")).expect("a directory");
        let made = || fs::read_dir(world.path("away/all")).expect("it is there").count();
        // A call looks after the log before it writes to it: at 1, 4 and 7 lines.
        for _ in 0..9 {
            world.call(&["time.now"]).ok();
        }
        assert_eq!(made(), if directory { 3 } else { 0 });
        let found = verify(&world, to.trim_end_matches('/')).ok().json();
        assert_eq!(found["checkpoint"]["head"]["seq"], 7);
        // No tool reads the key, or writes where they go.
        world.call(&["fs.read", r#"{"path":"key"}"#]).refused_or_failed();
        let target = if directory { "away/all/x" } else { "away/last" };
        let write = format!(r#"{{"path":"{target}","content":"x","mode":"overwrite"}}"#);
        let token = world.ask(&["fs.write", &write]);
        world.call(&["fs.write", "--confirm", &token]).refused_or_failed();
    }
}

// J10, F1: a log that ends before its last checkpoint gets no other one, and that is told with each call.
#[test]
fn j10_a_log_that_was_cut_off_gets_no_other_checkpoint() {
    let config = format!("{TEXTS}[audit.checkpoint]\nkey = \"key\"\nto = \"last\"\nevery_records = 1\n");
    let world = World::with_config(&config);
    put_key(&world, "key", 1);
    for _ in 0..4 {
        world.call(&["time.now"]).ok();
    }
    let last = world.text("last");
    fs::remove_file(world.path("audit.jsonl")).expect("ours");
    fs::remove_file(world.path("audit.jsonl.head")).expect("ours");
    let told = world.call(&["time.now"]).ok();
    assert!(
        told.err.contains("before its last checkpoint") || told.err.contains("last checkpoint is of line 3"),
        "{}",
        told.err
    );
    assert_eq!(world.text("last"), last);
    let bad: Value = verify(&world, "last").json();
    assert_eq!(bad["intact"], false);
}
