//! The tools with which agents ask people, and what people answer.

use serde_json::{Value, json};

use crate::world::{Ran, World};

const CONFIG: &str = "[verification]\nenabled = true\n";

fn ask(world: &World, subject: &str, who: &[&str]) -> String {
    let arguments = json!({"subject": subject}).to_string();
    let asked = world.call(&[&["request_verification", &arguments, "--quiet"], who].concat()).ok();
    asked.json()["approval_id"].as_str().expect("an id").to_owned()
}

fn answer(world: &World, id: &str, decision: &str, who: &str, scope: &str) -> Ran {
    let arguments = json!({"request_id": id, "decision": decision, "principal": who}).to_string();
    world.call(&["resolve_verification", &arguments, "--quiet", "--principal", who, "--scope", scope])
}

// A1, A2, A9: asked by one, answered by another with the scope, once; an id that was never given out is unknown.
#[test]
fn a2_a_verification_is_answered_by_somebody_else_once() {
    let world = World::with_config(CONFIG);
    let ann = ["--principal", "ann", "--scope", "verify"];
    let id = ask(&world, "the invoice is paid", &ann);
    let told = |ran: &Ran, says: &str| assert!(matches!(ran.status, 1 | 3) && ran.err.contains(says), "{}", ran.err);
    told(&answer(&world, &id, "grant", "ann", "verify"), "VALIDATION_ERROR");
    told(&answer(&world, &id, "grant", "bob", "other"), "FORBIDDEN");
    told(&answer(&world, &"0".repeat(64), "grant", "bob", "verify"), "NOT_FOUND");
    told(&answer(&world, "no-such", "grant", "bob", "verify"), "NOT_FOUND");
    // Nobody decides in another's name.
    let other = json!({"request_id": id, "decision": "grant", "principal": "boss"}).to_string();
    let other = world.call(&["resolve_verification", &other, "--quiet", "--principal", "bob", "--scope", "verify"]);
    told(&other, "VALIDATION_ERROR");
    let granted = answer(&world, &id, "grant", "bob", "verify").ok().json();
    assert_eq!((&granted["status"], &granted["principal"]), (&"passed".into(), &"bob".into()));
    told(&answer(&world, &id, "reject", "bob", "verify"), "VALIDATION_ERROR");
    told(&answer(&world, &id, "grant", "eve", "verify"), "VALIDATION_ERROR");
    let rejected = ask(&world, "the moon is a cheese", &ann);
    assert_eq!(answer(&world, &rejected, "reject", "bob", "verify").ok().json()["status"], "failed");
    // People see it among what waits as well.
    let third = ask(&world, "the door is shut", &ann);
    let listed = world.run(&["approvals", "list", "--principal", "bob", "--scope", "verify"]).ok().out;
    assert!(listed.contains(&third) && listed.contains("the door is shut"), "{listed}");
    world.run(&["audit", "verify"]).ok();
}

#[test]
fn f7_they_are_there_when_the_configuration_says_so() {
    let world = World::new();
    let off = world.call(&["request_verification", r#"{"subject":"x"}"#]);
    off.refused("TOOL_NOT_FOUND");
    let world = World::with_config(&format!("{CONFIG}scope = \"people\"\n[tools.request_verification]\ncost = 1\n"));
    assert_eq!(world.run(&["config", "check"]).status, 2, "they are not adjusted");
    let world = World::with_config(&format!("{CONFIG}scope = \"people\"\n"));
    let tools = world.run(&["tools"]).ok().out;
    assert!(tools.contains("request_verification") && tools.contains("resolve_verification"), "{tools}");
    let id = ask(&world, "x", &[]);
    answer(&world, &id, "grant", "bob", "verify").refused("FORBIDDEN");
    answer(&world, &id, "grant", "bob", "people").ok();
}

// The same through the server, whose process knows ids of the caller's own.
#[test]
#[cfg(feature = "mcp")]
fn a2_a_server_asks_and_takes_answers() {
    let world = World::with_config(CONFIG);
    let line = |id: u64, tool: &str, arguments: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
            .to_string()
    };
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}
    }})
    .to_string();
    let serve = |who: &str, lines: &[String]| {
        let input = format!("{initialize}\n{}\n", lines.join("\n"));
        let ran = world.run_with(&["serve", "--principal", who, "--scope", "verify"], input.as_bytes()).ok();
        let mut answers: Vec<Value> =
            ran.out.lines().map(|line| serde_json::from_str(line).expect("a message")).collect();
        answers.sort_by_key(|answer| answer["id"].as_u64());
        answers
    };
    let asked = serve("ann", &[line(1, "request_verification", json!({"subject": "the build is green"}))]);
    let asked = asked[1]["result"]["structuredContent"].clone();
    let id = asked["approval_id"].as_str().unwrap_or_else(|| panic!("{asked}")).to_owned();
    let grant = |who: &str| json!({"request_id": id, "decision": "grant", "principal": who});
    let own = serve("ann", &[line(1, "resolve_verification", grant("ann"))]);
    assert_eq!(own[1]["result"]["isError"], true, "{}", own[1]);
    let granted = serve("bob", &[line(1, "resolve_verification", grant("bob"))]);
    assert_eq!(granted[1]["result"]["structuredContent"]["status"], "passed", "{}", granted[1]);
    let again = serve("bob", &[line(1, "resolve_verification", grant("bob"))]);
    assert_eq!(again[1]["result"]["isError"], true, "{}", again[1]);
}

// F7: what keeps a server from starting shows in the check.
#[test]
#[cfg(feature = "mcp")]
fn f7_the_check_looks_at_servers_too() {
    for (config, says) in [
        ("[serve.jwt]\nissuer = \"i\"\naudience = \"a\"\njwks = \"none.json\"\n", "none.json"),
        ("[serve]\norigins = [\"x\"]\n", "http or https"),
        (
            "[[upstream]]\nname = \"u\"\nurl = \"https://u.example/mcp\"\nheaders = { Authorization = \"NO_SUCH\" }\n",
            "NO_SUCH",
        ),
    ] {
        let world = World::with_config(config);
        let ran = world.run(&["config", "check"]);
        assert!(ran.status == 2 && ran.err.contains(says), "{config}: {}{}", ran.out, ran.err);
    }
    let world = World::with_config("[[upstream]]\nname = \"u\"\ncommand = [\"no-such-program\"]\n");
    let noted = world.run(&["config", "check"]).ok().out;
    assert!(noted.contains("there is no program no-such-program here"), "{noted}");
}
