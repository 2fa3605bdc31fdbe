//! `callgate init --from`: the gate in front of the servers that a client has.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::world::World;

/// As VS Code writes it, with comments and a trailing comma, a secret in each place that can hold one.
const VSCODE: &str = r#"{
  // my servers
  "inputs": [],
  "servers": {
    "My Files": {
      "command": "npx", // from npm
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "${workspaceFolder}"],
      "env": { "FILES_TOKEN": "canary-env", "HOME": "anywhere" }
    },
    "keyed": { "command": "keyed", "args": ["--api-key", "canary-word", "--password=canary-equals", "ok"] },
    "search": {
      "type": "http",
      "url": "https://search.example/mcp",
      "headers": { "Authorization": "Bearer canary-header" }
    },
    "old": { "type": "sse", "url": "https://old.example/sse" },
    "time": { "command": "time-server" },
  }
}
"#;

/// A command line that stands for the same everywhere.
fn json(world: &World, file: &str) -> Value {
    let text = world.text(file);
    let lines: Vec<_> = text.lines().map(|line| line.split(" // ").next().expect("a line")).collect();
    let text = lines.iter().filter(|line| !line.trim_start().starts_with("//")).copied().collect::<String>();
    serde_json::from_str(&text.replace(",  }", "  }")).unwrap_or_else(|error| panic!("{error}: {text}"))
}

// L2: what stands in a variable, a header or behind a word such as --api-key is shown nowhere.
#[test]
fn l2_the_change_is_shown_without_secrets_and_not_made() {
    let world = World::new();
    world.put("mcp.json", VSCODE);
    let ran = world.run(&["init", "--from", "vscode", "mcp.json"]).ok();
    let told = format!("{}{}", ran.out, ran.err);
    assert!(!told.contains("canary"), "{told}");
    for expected in ["- npx -y", "proxy --name My-Files -- npx -y", "env: FILES_TOKEN, HOME", "stays as it is", "SSE"] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    assert!(
        told.contains("keyed --api-key '[redacted]' '--password=[redacted]' ok") || told.contains("[redacted]"),
        "{told}"
    );
    assert_eq!(world.text("mcp.json"), VSCODE);
    assert!(!world.path("callgate.toml").exists());
}

#[test]
fn the_change_is_made_beside_a_backup_and_only_once() {
    let world = World::new();
    world.put("mcp.json", VSCODE);
    fs::set_permissions(world.path("mcp.json"), fs::Permissions::from_mode(0o600)).expect("it is ours");
    let ran = world.run(&["init", "--from", "vscode", "mcp.json", "--write"]).ok();
    assert!(!format!("{}{}", ran.out, ran.err).contains("canary"), "{}{}", ran.out, ran.err);
    assert_eq!(world.text("mcp.json.before-callgate"), VSCODE);
    let mode = |file: &str| fs::metadata(world.path(file)).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode("mcp.json"), mode("mcp.json.before-callgate")), (0o600, 0o600));
    let text = world.text("mcp.json");
    assert!(text.contains("// my servers") && text.contains("// from npm"), "comments stay: {text}");
    let servers = json(&world, "mcp.json")["servers"].clone();
    let args = |name: &str| -> Vec<String> {
        servers[name]["args"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|arg| arg.as_str().expect("text").to_owned())
            .collect()
    };
    let toml = world.path("callgate.toml").canonicalize().expect("it is there").display().to_string();
    let files = args("My Files");
    assert_eq!(files[..5], ["--config", &toml, "proxy", "--name", "My-Files"]);
    assert_eq!(files[5..], ["--", "npx", "-y", "@modelcontextprotocol/server-filesystem", "${workspaceFolder}"]);
    assert_eq!(servers["My Files"]["env"]["FILES_TOKEN"], "canary-env", "values stay where they are");
    let search = &servers["search"];
    assert_eq!(args("search")[5..], ["--url", "https://search.example/mcp"]);
    assert_eq!(search["env"]["CALLGATE_HEADER_1"], "Bearer canary-header");
    assert!(search.get("headers").is_none() && search.get("url").is_none() && search["type"] == "stdio", "{search}");
    assert_eq!(servers["old"]["type"], "sse");
    assert_eq!(args("time")[4], "time-2", "the name of a toolkit is taken");
    let config = world.text("callgate.toml");
    assert!(config.contains("env = [\"FILES_TOKEN\"]") && !config.contains("canary"), "{config}");
    assert!(config.contains("\"Authorization\" = \"CALLGATE_HEADER_1\""), "{config}");
    let checked = world.run(&["config", "check"]).ok();
    assert!(checked.out.contains("upstreams  4"), "{}", checked.out);

    // Again there is nothing to do; with the old file the same names are found again.
    let again = world.run(&["init", "--from", "vscode", "mcp.json", "--write"]).ok();
    assert!(again.err.contains("nothing to change") && again.out.contains("passes the gate already"), "{}", again.out);
    assert_eq!((world.text("mcp.json"), world.text("callgate.toml")), (text.clone(), config.clone()));
    world.put("mcp.json", VSCODE);
    world.run(&["init", "--from", "vscode", "mcp.json", "--write"]).ok();
    assert_eq!((world.text("mcp.json"), world.text("callgate.toml")), (text, config));
    assert!(world.path("mcp.json.before-callgate-1").exists(), "no backup is written over");
}

#[test]
fn a_callgate_toml_that_is_there_is_added_to() {
    let world = World::with_config("[[upstream]]\nname = \"a\"\ncommand = [\"x\"]\n[quotas]\nlimit = 7");
    world.put("c.json", r#"{"mcpServers":{"a":{"command":"a"},"A":{"command":"b"}}}"#);
    world.run(&["init", "--from", "claude", "c.json", "--write"]).ok();
    let config = world.text("callgate.toml");
    assert!(config.contains("limit = 7\n\n[[upstream]]\nname = \"a-2\"\n\n[[upstream]]\nname = \"A-3\"\n"), "{config}");
    world.run(&["config", "check"]).ok();
}

#[test]
fn what_cannot_be_understood_is_left_alone() {
    let world = World::new();
    let cases = [
        ("claude", "{ // a comment\n \"mcpServers\": {} }", "not JSON, which is what this client reads"),
        ("cursor", "{\"servers\": {}}", "no `mcpServers`, where this client keeps its servers; it has `servers`"),
        ("vscode", "[]", "no JSON object"),
        ("vscode", "{\"servers\": {\"a\": {\"command\": \"x\"}, \"a\": {}}}", "stands twice"),
        ("vscode", "{\"servers\": {\"a\": {\"command\": \"x\", \"command\": \"y\"}}}", "stands twice"),
        ("cursor", "{\"mcpServers\": {\"a\": {\"command\": 5}}}", "`command` is no text"),
        ("cursor", "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [5]}}}", "no text"),
        ("cursor", "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"url\": \"https://x\"}}}", "both"),
        ("cursor", "{'mcpServers': {}}", "not JSON"),
    ];
    for (client, text, reason) in cases {
        world.put("c.json", text);
        let ran = world.run(&["init", "--from", client, "c.json", "--write"]);
        assert_eq!(ran.status, 1, "{text}: {}", ran.err);
        assert!(ran.err.contains(reason), "{text}: {}", ran.err);
        assert_eq!(world.text("c.json"), text);
        assert!(!world.path("callgate.toml").exists() && !world.path("c.json.before-callgate").exists());
    }
    assert_eq!(world.run(&["init", "--from", "claude", "nowhere.json"]).status, 1);
    for usage in [
        &["init", "--from", "claude"][..],
        &["init", "a", "b"],
        &["init", "--write"],
        &["init", "--from", "emacs", "x"],
    ] {
        assert_eq!(world.run(usage).status, 2, "{usage:?}");
    }
}
