//! `callgate serve`, spoken to as clients would.
#![cfg(feature = "mcp")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::world::{Ran, World};

fn initialize() -> String {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}
    }})
    .to_string()
}

fn call(id: u64, tool: &str, arguments: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        .to_string()
}

/// The answers to these lines, by id.
fn answers(world: &World, args: &[&str], lines: &[String]) -> Vec<Value> {
    let ran = world.run_with(&[&["serve"], args].concat(), (lines.join("\n") + "\n").as_bytes()).ok();
    let mut answers: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).expect("a message")).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
}

#[test]
fn a_client_that_starts_it_is_told_tools_calls_them_and_goes_away() {
    let world = World::new();
    let lines = [
        initialize(),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string(),
        call(2, "fs.read", &json!({"path": "done.md"})),
        call(3, "fs.read", &json!({"path": "../done.md"})),
        call(4, "no.such", &json!({})),
    ];
    let answers = answers(&world, &[], &lines);
    let names: Vec<_> =
        answers[1]["result"]["tools"].as_array().expect("tools").iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["fs.list", "fs.read", "fs.search", "fs.write", "time.now"]);
    assert!(answers[2]["result"]["content"].to_string().contains("all done"), "{}", answers[2]);
    assert_eq!(answers[3]["result"]["isError"], true, "{}", answers[3]);
    assert_eq!(answers[4]["error"]["code"], -32602, "{}", answers[4]);
    let records = world.records();
    assert_eq!(records.len(), 3, "one for each call");
    assert!(records.iter().all(|record| record["principal"] == "stdio" && record["channel"] == "mcp"));
    world.run(&["audit", "verify"]).ok();
}

// F2: once something is said of the caller, nothing is made up, and the list is as long as what it may call.
#[test]
fn f2_what_the_caller_may_not_call_it_is_not_told_of() {
    let world = World::with_config("[tools.\"fs.write\"]\nscopes = [\"files:write\"]\n");
    let lines = [initialize(), json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string()];
    let told = |args: &[&str]| {
        let tools = answers(&world, args, &lines)[1]["result"]["tools"].as_array().expect("tools").clone();
        tools.into_iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(told(&["--channel", "mcp"]), Vec::<String>::new(), "nobody is known");
    assert_eq!(told(&["--principal", "ann", "--scope", "files:read"]), ["fs.list", "fs.read", "fs.search", "time.now"]);
}

#[test]
fn what_was_asked_about_runs_when_the_caller_comes_back_with_its_token() {
    let world = World::new();
    let write = |more: Value| {
        let mut arguments = json!({"path": "new.txt", "content": "hi"});
        arguments.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        call(1, "fs.write", &arguments)
    };
    let mut child = world.command(&["serve"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let (mut input, mut output) =
        (child.stdin.take().expect("a pipe"), BufReader::new(child.stdout.take().expect("a pipe")).lines());
    let mut ask = |line: String| -> Value {
        writeln!(input, "{line}").expect("it reads");
        serde_json::from_str(&output.next().expect("an answer").expect("a line")).expect("a message")
    };
    ask(initialize());
    let asked = ask(write(json!({})));
    let token = asked["result"]["structuredContent"]["confirm_token"].as_str().expect("a token").to_owned();
    assert!(!world.path("new.txt").exists(), "nothing has run");
    let ran = ask(write(json!({"confirm_token": token})));
    assert_eq!((&ran["result"]["isError"], world.text("new.txt").as_str()), (&json!(false), "hi"), "{ran}");
    let again = ask(write(json!({"confirm_token": token})));
    assert!(
        again["result"]["content"][0]["text"].as_str().expect("a text").starts_with("CONFIRMATION_INVALID"),
        "{again}"
    );
    drop(input);
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn what_cannot_be_served_keeps_it_from_starting() {
    let token = "[[serve.tokens]]\nprincipal = \"ann\"\nsha256 = \"00\"\n";
    let jwt = "[serve.jwt]\nissuer = \"i\"\naudience = \"a\"\njwks = \"none.json\"\n";
    for (config, args, says) in [
        ("", &["--http"][..], "nobody could come in"),
        ("", &["--http", "0.0.0.0:0", "--principal", "ann"], "need a token"),
        ("", &["--http", "nowhere"], "invalid value"),
        ("", &["--http", "--new-token"], "cannot be used with"),
        (token, &[], "64 lower-case hexadecimal digits"),
        (jwt, &["--http"], "none.json"),
        ("[serve]\nhosts = [\"http://x\"]\n", &["--http", "--principal", "ann"], "no host"),
        ("[serve]\norigins = [\"x\"]\n", &["--http", "--principal", "ann"], "http or https"),
    ] {
        let world = World::with_config(config);
        let ran = world.run(&[&["serve"], args].concat());
        assert_eq!(ran.status, 2, "{args:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(says), "{args:?}: {}", ran.err);
    }
}

/// A server over HTTP, until it is dropped.
struct Served {
    child: Child,
    address: SocketAddr,
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Served {
    fn of(world: &World, args: &[&str]) -> Self {
        let mut child = world.start(&[&["serve", "--http", "127.0.0.1:0"], args].concat());
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("a pipe")).read_line(&mut line).expect("it says where");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split("/mcp").next()).expect("an address");
        Self { child, address: address.parse().expect("an address") }
    }

    /// The status of an answer to a call of `time.now` with these headers, and the answer.
    fn call(&self, headers: &str) -> (u16, String) {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": {}
        });
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "time.now", "_meta": meta}});
        let (body, host) = (body.to_string(), self.address);
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
             Mcp-Name: time.now\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(self.address).expect("it is served");
        stream.write_all(request.as_bytes()).expect("it is sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        (text.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status"), text)
    }
}

// T2, A11: a new token is good for its principal once its hash is in the file; no file and no record holds the token.
#[test]
fn t2_a_token_that_it_makes_lets_its_principal_in() {
    let world = World::new();
    let made = world.run(&["serve", "--new-token", "--principal", "ann", "--scope", "files:read"]).ok();
    let token = made.out.trim();
    let table = &made.err[made.err.find("[[").expect("a table")..];
    assert!(!table.contains(token), "the file never holds it");
    world.put("callgate.toml", &format!("version = 1\n{table}"));
    let served = Served::of(&world, &[]);
    for (headers, status) in [
        (String::new(), 401),
        ("Authorization: Bearer cg_00\r\n".to_owned(), 401),
        (format!("Authorization: Bearer {token}\r\n"), 200),
        (format!("Authorization: Bearer {token}\r\nOrigin: http://evil.example\r\n"), 403),
        (format!("Authorization: Bearer {token}\r\nOrigin: http://{}\r\n", served.address), 200),
    ] {
        let (got, text) = served.call(&headers);
        assert_eq!(got, status, "{headers}: {text}");
    }
    let record = world.records().pop().expect("a record");
    assert_eq!((&record["principal"], &record["ip"]), (&json!("ann"), &json!("127.0.0.1")));
    assert!(!world.run(&["audit", "export"]).out.contains(token));
}

#[test]
fn j1_a_signal_ends_it_when_what_runs_is_recorded() {
    let world = World::new();
    let mut served = Served::of(&world, &["--principal", "ann"]);
    assert_eq!(served.call("").0, 200, "whoever is on this machine is ann");
    let pid = Pid::from_raw(i32::try_from(served.child.id()).expect("a process")).expect("a process");
    kill_process(pid, Signal::INT).expect("it runs");
    let ended = served.child.wait().expect("it ends");
    assert_eq!(Ran::of(std::process::Output { status: ended, stdout: Vec::new(), stderr: Vec::new() }).status, 130);
    world.run(&["audit", "verify"]).ok();
    assert_eq!(world.ends(), ["done"]);
}
