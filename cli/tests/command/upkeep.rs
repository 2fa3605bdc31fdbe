//! What a process that died left open, and who closes it.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use callgate_core::audit::chain::Head;
use callgate_std::audit::line;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world::World;

/// A tool that kills the process that runs it, and one that does it after a yes.
const CONFIG: &str = r#"
[[exec]]
name = "dies"
description = "Ends the gate in the middle of a call."
program = "sh"
args = ["-c", "kill -9 $PPID"]
confirm = "nobody"

[[exec]]
name = "dies.asked"
description = "The same, when it was asked for."
program = "sh"
args = ["-c", "kill -9 $PPID"]
confirm = "caller"
"#;

/// The database, opened past the gate.
fn database(world: &World) -> rusqlite::Connection {
    rusqlite::Connection::open(world.path(".callgate/gate.db")).expect("a database")
}

/// Has the last record of the log be an old one, and every claim over.
fn let_time_pass(world: &World) {
    let database = database(world);
    let (seq, line): (i64, String) = database
        .query_row("SELECT seq, line FROM audit ORDER BY seq DESC LIMIT 1", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("a line");
    let before: [u8; 32] =
        database.query_row("SELECT hash FROM audit WHERE seq = ?1", [seq - 1], |row| row.get(0)).unwrap_or_default();
    let before = Head { seq: seq.unsigned_abs() - 1, hash: callgate_core::digest::Digest::from_bytes(before) };
    let record: Value = serde_json::from_str(&line).expect("a record");
    assert_eq!(record["kind"], "intent", "{line}");
    let at = record["at"].as_str().expect("a time");
    let start = line.find("\"v\":1").expect("a version");
    let end = line.rfind(",\"hash\"").expect("a hash");
    let text = format!("{{{}}}", &line[start..end]).replace(at, "2020-01-01T00:00:00.000Z");
    let mut old = String::new();
    let head = line::append(&before, &text, &mut old).expect("a line");
    let hash = head.hash.as_bytes();
    database.execute_batch("DROP TRIGGER audit_is_not_changed").expect("the operator may");
    database
        .execute("UPDATE audit SET line = ?1, hash = ?2 WHERE seq = ?3", (old.trim_end(), hash, seq))
        .expect("the operator may");
    database.execute("UPDATE audit_head SET hash = ?1", [hash]).expect("the operator may");
    database
        .execute("UPDATE tickets SET held_until_ms = 1 WHERE held_until_ms IS NOT NULL", [])
        .expect("the operator may");
    database
        .execute_batch(
            "CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;",
        )
        .expect("the operator may");
}

/// A call whose process died, long ago.
fn died(args: &[&str]) -> World {
    let world = World::with_config(CONFIG);
    let token = if args == ["dies.asked"] { Some(world.ask(args)) } else { None };
    let args = match &token {
        Some(token) => [args, &["--confirm", token]].concat(),
        None => args.to_vec(),
    };
    assert_eq!(world.call(&[&args[..], &["--request-id", "r1"]].concat()).status, -1, "it was killed");
    world
}

// J1: nothing is closed before its time, and what is closed is closed once, with the effect unknown.
#[test]
fn j1_what_was_not_heard_of_is_closed_by_hand() {
    let world = died(&["dies"]);
    assert_eq!(world.ends(), ["intent"]);
    let reaped = world.run(&["audit", "reap"]).ok();
    assert!(reaped.err.contains("nothing was left open") && reaped.out.is_empty(), "{}{}", reaped.out, reaped.err);
    let_time_pass(&world);
    let json = world.run(&["audit", "reap", "--json"]).ok().json();
    assert_eq!(
        json,
        serde_json::json!({
            "lost": [{"request_id": "r1", "tool": "dies", "line": 1}], "in_doubt": [], "operations": [],
            "troubles": []
        })
    );
    assert_eq!(world.run(&["audit", "reap", "--json"]).ok().json()["lost"], serde_json::json!([]));
    let records = world.records();
    assert_eq!((&records[1]["end"], &records[1]["effect"]), (&"lost".into(), &"unknown".into()));
    assert_eq!(world.run(&["audit", "verify", "--json"]).ok().json()["open_intent_count"], 0);
}

// J1, J4: the next call does it by itself; what the dead one claimed is in doubt, and can be settled.
#[test]
fn j4_the_next_call_closes_what_was_left_open() {
    let world = died(&["dies.asked"]);
    let_time_pass(&world);
    let next = world.call(&["time.now"]).ok();
    assert!(next.err.contains("dies.asked, request r1 (line 2), was not heard of"), "{}", next.err);
    assert!(next.err.contains("of dies.asked is in doubt"), "{}", next.err);
    let kinds: Vec<_> = world.records().iter().map(|record| record["end"].clone()).collect();
    assert_eq!(kinds, ["asked", "intent", "lost", "in_doubt", "done"]);
    assert!(world.call(&["time.now"]).ok().err.is_empty());
    let ticket = world.run(&["approvals", "list", "--all", "--json"]).ok().json()[0].clone();
    assert_eq!(ticket["state"], "in_doubt");
    let id = ticket["approval_id"].as_str().expect("an id");
    let args = ["approvals", "resolve", id, "--outcome", "none", "--proof", "looked", "--principal", "ops"];
    world.run(&[&args[..], &["--scope", "reconcile"]].concat()).ok();
}

// J1, J4: a server does it from time to time.
#[test]
#[cfg(feature = "mcp")]
fn j1_a_server_looks_after_its_stores() {
    let world = World::with_config(&format!("[audit]\nupkeep = \"1s\"\n{CONFIG}"));
    let mut server = world.command(&["serve"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#;
    let mut input = server.stdin.take().expect("a pipe");
    writeln!(input, "{initialize}").expect("it reads");
    let mut output = BufReader::new(server.stdout.take().expect("a pipe"));
    output.read_line(&mut String::new()).expect("it answers");
    // It stands still until time has passed: it would rightly not go on with a log that is another one than it knows.
    let pid = Pid::from_child(&server);
    let signal = |signal| kill_process(pid, signal).expect("it runs");
    loop {
        signal(Signal::STOP);
        let ran = world.call(&["dies", "--request-id", "r1"]);
        if ran.status == -1 {
            break;
        }
        // It stopped in the middle of a step, which nobody else gets past.
        ran.refused("UNAVAILABLE");
        signal(Signal::CONT);
    }
    let_time_pass(&world);
    signal(Signal::CONT);
    let started = Instant::now();
    while world.ends() != ["intent", "lost"] {
        assert!(started.elapsed() < Duration::from_secs(120), "{:?}", world.ends());
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(input);
    assert!(server.wait().expect("it ends").success());
    world.run(&["audit", "verify"]).ok();
}
