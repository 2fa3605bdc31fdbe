//! Tokens: what they are good for, and what they are not.

use std::fs;

use callgate_core::digest::Digest;
use serde_json::Value;

use crate::world::{Ran, World};

const APPEND: &str = r#"{"path":"log.txt","content":"once\n","mode":"append"}"#;

// A5: many processes with one token, one effect.
#[test]
fn a5_a_race_for_one_token_has_one_winner() {
    let world = World::with_config("[quotas]\nlimit = 10000\n");
    const ROUNDS: usize = 8;
    for round in 1..=ROUNDS {
        let token = world.ask(&["fs.write", APPEND]);
        let racers: Vec<_> = (0..4).map(|_| world.start(&["call", "fs.write", "--confirm", &token])).collect();
        let ran: Vec<_> = racers.into_iter().map(|racer| Ran::of(racer.wait_with_output().expect("it ends"))).collect();
        let winners = ran.iter().filter(|ran| ran.status == 0).count();
        assert_eq!(winners, 1, "{:?}", ran.iter().map(|ran| (ran.status, &ran.err)).collect::<Vec<_>>());
        ran.iter().filter(|ran| ran.status != 0).for_each(|ran| ran.refused("CONFIRMATION_INVALID"));
        assert_eq!(world.text("log.txt").lines().count(), round);
    }
    let done = world.ends().iter().filter(|end| *end == "done").count();
    assert_eq!(done, ROUNDS);
    world.run(&["audit", "verify"]).ok();
}

// A4, A6: a token is bound to its caller and its tool; whoever tries it for something else destroys it.
#[test]
fn a4_a_token_is_good_for_one_caller_and_one_tool() {
    let world = World::new();
    let others: [&[&str]; 5] = [
        &["fs.write", "--principal", "bob", "--scope", "*"],
        &["fs.write", "--channel", "tui", "--principal", "local-shell", "--scope", "*"],
        &["fs.write", "--tenant", "acme"],
        &["fs.write", "--session", "s2"],
        &["fs.list"],
    ];
    for other in others {
        let token = world.ask(&["fs.write", APPEND]);
        world.call(&[other, &["--confirm", &token]].concat()).refused("CONFIRMATION_INVALID");
        world.call(&["fs.write", "--confirm", &token]).refused("CONFIRMATION_INVALID");
    }
    for guess in ["", "00000000000000000000000000000000", "x", "confirm"] {
        world.call(&["fs.write", "--confirm", guess]).refused("CONFIRMATION_INVALID");
    }
    assert!(!world.path("log.txt").exists());
}

// What is sent beside a token is inert: what was asked about runs.
#[test]
fn the_arguments_beside_a_token_count_for_nothing() {
    let world = World::new();
    let token = world.ask(&["fs.write", APPEND]);
    world.call(&["fs.write", r#"{"path":"evil.txt","content":"x"}"#, "--confirm", &token]).ok();
    assert!(!world.path("evil.txt").exists());
    assert_eq!(world.text("log.txt"), "once\n");
}

// A10: nobody waits in this test; the state is made an hour older.
#[test]
fn a10_a_token_is_worth_nothing_after_its_time() {
    let world = World::with_texts();
    let token = world.ask(&["fs.write", APPEND]);
    let text = world.text(".callgate/state.json");
    let (header, body) = text.split_once('\n').expect("two lines");
    let mut body: Value = serde_json::from_str(body).expect("JSON");
    let ticket = &mut body["tickets"][0];
    for time in ["issued_at_ms", "expires_at_ms"] {
        ticket[time] = (ticket[time].as_u64().expect("a time") - 3_600_000).into();
    }
    let mut header: Value = serde_json::from_str(header).expect("JSON");
    let body = body.to_string();
    header["sha256"] = Digest::of_bytes(body.as_bytes()).to_string().into();
    fs::write(world.path(".callgate/state.json"), format!("{header}\n{body}\n")).expect("written");
    world.call(&["fs.write", "--confirm", &token]).refused("CONFIRMATION_INVALID");
    assert!(!world.path("log.txt").exists());
    assert_eq!(world.records().last().expect("a record")["check"], "expired");
}

// R4: a plan leaves nothing behind but its record.
#[test]
fn r4_a_plan_runs_nothing_asks_nothing_and_costs_nothing() {
    let world = World::with_texts();
    for _ in 0..3 {
        let planned = world.call(&["fs.write", APPEND, "--plan"]).ok();
        assert!(planned.out.contains("nothing ran"), "{}", planned.out);
    }
    assert_eq!(world.ends(), ["planned"; 3]);
    assert!(!world.path("log.txt").exists() && !world.path(".callgate/state.json").exists());
    assert!(!world.path(".callgate/state.json.limits").exists());
}

// A3: nothing among the arguments counts as a token, unless the configuration says so.
#[test]
fn a3_a_token_among_the_arguments_is_an_unknown_field() {
    let world = World::new();
    let token = world.ask(&["fs.write", APPEND]);
    let arguments = format!(r#"{{"path":"log.txt","content":"x","confirm_token":"{token}"}}"#);
    world.call(&["fs.write", &arguments]).refused("VALIDATION_ERROR");
    let world = World::with_config("[confirmation]\naccept_reserved_argument = true\n");
    let token = world.ask(&["fs.write", APPEND]);
    world.call(&["fs.write", &format!(r#"{{"confirm_token":"{token}"}}"#)]).ok();
    assert_eq!(world.text("log.txt"), "once\n");
}

// P7: what the policy says when the token comes back counts, not what it said when it was given.
#[test]
fn p7_a_rule_that_came_since_refuses() {
    let world = World::with_config("");
    let token = world.ask(&["fs.write", APPEND]);
    world.put("callgate.toml", "version = 1\n[[rules]]\nid = 1\neffect = \"deny\"\ntool = \"fs.write\"\n");
    world.call(&["fs.write", "--confirm", &token]).refused("FORBIDDEN");
    assert!(!world.path("log.txt").exists());
}

// G4, A4: neither is a tool that was changed since the one that was approved.
#[test]
fn g4_a_tool_that_was_changed_since_is_another_one() {
    let world = World::with_config("");
    let token = world.ask(&["fs.write", APPEND]);
    world.put("callgate.toml", "version = 1\n[tools.\"fs.write\"]\ntimeout = \"5s\"\n");
    world.call(&["fs.write", "--confirm", &token]).refused("CONFIRMATION_INVALID");
    assert!(!world.path("log.txt").exists());
}
