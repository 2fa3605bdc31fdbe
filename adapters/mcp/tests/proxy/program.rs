//! Servers that are programs of their own: what they are given, and that they end with the gate.
#![cfg(unix)]

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use callgate_mcp::upstream::{Program, Reach, Settings};

use crate::world::{Plan, data, failure};

/// A server in a few lines of shell: its one tool tells its environment, which process it is, and what it was given.
const SERVER: &str = r#"
sleep 1000 & child=$!
echo "starting" >&2
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) r='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) r='{"tools":[{"name":"tell","description":"Tells","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) r="{\"content\":[{\"type\":\"text\",\"text\":\"$$ $child [${CARGO_MANIFEST_DIR-none}] [${GIVEN-none}] $1\"}]}" ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done
sleep 1000
"#;

fn settings(script: &str) -> Settings {
    let words = ["-c", script, "sh", "$(echo shell) *"].map(OsString::from);
    let env = [("GIVEN", "given"), ("PATH", "/usr/bin:/bin")].map(|(name, value)| (name.into(), value.into()));
    let program = Program { program: "sh".into(), args: words.into(), env: env.into(), cwd: None };
    Settings::new("u", Reach::Program(program)).expect("a name")
}

/// Whether a process of this number runs. One that has ended and was not waited for is none.
fn runs(process: &str) -> bool {
    let state = std::fs::read_to_string(Path::new("/proc").join(process).join("stat")).unwrap_or_default();
    state.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

// X1: arguments and environment are what they are said to be, and everything that was started ends with the gate, also when it
// ignores that its input has ended.
#[tokio::test(flavor = "multi_thread")]
async fn x1_a_program_gets_what_it_is_given_and_ends_with_all_it_started() {
    let world = Plan::new().adjusted(settings(SERVER), ()).start().await;
    world.until("the server", |world| world.tools() == ["u.tell"]).await;
    let outcome = world.call("u.tell", "{}").await;
    let told = data(&outcome)["content"][0]["text"].as_str().expect("a text").to_owned();
    let (processes, given) = told.split_once(" [").expect("what it was given");
    assert_eq!(given, "none] [given] $(echo shell) *");
    let processes: Vec<_> = processes.split(' ').collect();
    assert!(cfg!(not(target_os = "linux")) || processes.iter().all(|process| runs(process)));
    world.fleet.end().await;
    let started = Instant::now();
    while processes.iter().any(|process| runs(process)) {
        assert!(started.elapsed() < Duration::from_secs(60), "{processes:?} are left over");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_complains_of_is_told() {
    let world = Plan::new().adjusted(settings("echo 'no such module' >&2; exit 3"), ()).start().await;
    world.until("the reason", |world| world.told().iter().any(|told| told.contains("no such module"))).await;
    let (code, effect, _) = failure(&world.call("u.tell", "{}").await);
    assert_eq!((code.as_str(), effect.as_str()), ("TOOL_NOT_FOUND", "none"));
    let absent = Program { program: "/there/is/no/such".into(), args: vec![], env: vec![], cwd: None };
    let world = Plan::new().adjusted(Settings::new("u", Reach::Program(absent)).expect("a name"), ()).start().await;
    assert!(world.told().iter().any(|told| told.contains("it cannot be started")), "{:?}", world.told());
}
