//! Ctrl-C and the like.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::world::{Ran, World};

/// A tool that says that it runs, and then runs for longer than any test.
const PROGRAM: &str = r#"
[[exec]]
name = "wait"
description = "Waits."
program = "sh"
args = ["-c", "echo $$ > running; exec sleep 600"]
confirm = "nobody"
timeout = "1h"
"#;

/// Waits until the file is there; gives up long after any machine would be done.
fn wait_for(path: &Path) {
    let started = Instant::now();
    while std::fs::read(path).map_or(true, |text| text.is_empty()) {
        assert!(started.elapsed() < Duration::from_secs(120), "the tool was never started");
        std::thread::yield_now();
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process")).expect("a process");
    kill_process(pid, signal).expect("it runs");
}

// X4, J1: a running call that is interrupted ends as cancelled, with its record; what it started ends with it.
#[test]
fn x4_an_interrupted_call_is_recorded_as_cancelled() {
    for (number, status) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let world = World::with_config(PROGRAM);
        let child = world.start(&["call", "wait"]);
        wait_for(&world.path("running"));
        signal(&child, number);
        let ran = Ran::of(child.wait_with_output().expect("it ends"));
        assert_eq!(ran.status, status, "{}{}", ran.out, ran.err);
        assert!(ran.err.contains("error[CANCELLED]") && ran.err.contains("not known"), "{}", ran.err);
        assert_eq!(world.ends(), ["intent", "cancelled"]);
        let record = world.records().pop().expect("a record");
        assert_eq!((&record["effect"], &record["code"]), (&"unknown".into(), &"CANCELLED".into()));
        let program: i32 = world.text("running").trim().parse().expect("a number");
        let gone = rustix::process::test_kill_process(Pid::from_raw(program).expect("a process")).is_err();
        assert!(gone, "the program was ended, too");
        world.run(&["audit", "verify"]).ok();
    }
}

// J4: a killed process leaves an intent without an end, which the log tells of; nothing runs again by itself.
#[test]
fn j4_a_killed_call_leaves_its_intent() {
    let world = World::with_config(PROGRAM);
    let mut child = world.start(&["call", "wait", "--request-id", "killed-1"]);
    wait_for(&world.path("running"));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let program: i32 = world.text("running").trim().parse().expect("a number");
    kill_process(Pid::from_raw(program).expect("a process"), Signal::KILL).expect("it runs");
    assert_eq!(world.ends(), ["intent"]);
    let verified = world.run(&["audit", "verify"]).ok();
    assert!(verified.out.contains("request killed-1"), "{}", verified.out);
    // The gate goes on.
    world.call(&["time.now"]).ok();
}

// J4, J5: a confirmed call that was interrupted, or killed, is in doubt and stays so; nothing runs it again, and whoever has found out what
// happened settles it, once, with a proof that stands in the record. Nobody waits for a lease here: it is put into the past.
#[test]
fn j4_a_confirmed_call_that_was_cut_off_is_in_doubt_until_it_is_settled() {
    let config = PROGRAM.replace("confirm = \"nobody\"", "confirm = \"caller\"");
    for kill in [false, true] {
        let world = World::with_config(&config);
        let token = world.ask(&["wait"]);
        let mut child = world.start(&["call", "wait", "--confirm", &token]);
        wait_for(&world.path("running"));
        if kill {
            child.kill().expect("it runs");
            child.wait().expect("it ends");
            let program: i32 = world.text("running").trim().parse().expect("a number");
            kill_process(Pid::from_raw(program).expect("a process"), Signal::KILL).expect("it runs");
            let database = rusqlite::Connection::open(world.path(".callgate/gate.db")).expect("a database");
            let held = database.execute("UPDATE tickets SET held_until_ms = 0 WHERE state = 'reserved'", []);
            assert_eq!(held, Ok(1));
        } else {
            signal(&child, Signal::INT);
            child.wait().expect("it ends");
        }
        let all = || world.run(&["approvals", "list", "--all", "--json"]).ok().json();
        let listed = all();
        assert_eq!(listed[0]["state"], "in_doubt", "kill {kill}: {listed}");
        let id = listed[0]["approval_id"].as_str().expect("an id").to_owned();
        world.call(&["wait", "--confirm", &token]).refused("CONFIRMATION_INVALID");
        let resolve = |scope: &str, proof: &str| {
            let args = ["approvals", "resolve", &id[..12], "--outcome", "none", "--proof", proof];
            world.run(&[&args[..], &["--principal", "ops", "--scope", scope]].concat())
        };
        resolve("other", "asked the bank").refused("NOT_FOUND");
        resolve("reconcile", "  ").refused("VALIDATION_ERROR");
        let settled = resolve("reconcile", "asked the bank").ok().out;
        assert!(settled.contains("done (none)") && settled.contains("known by    asked the bank"), "{settled}");
        resolve("reconcile", "asked again").refused("FORBIDDEN");
        assert_eq!((&all()[0]["state"], &all()[0]["effect"]), (&"done".into(), &"none".into()));
        let records = world.records();
        let decision =
            records.iter().find(|record| record["end"] == "resolve_none" && record["detail"] == "asked the bank");
        assert_eq!(decision.expect("it is recorded")["principal"], "ops");
    }
}
