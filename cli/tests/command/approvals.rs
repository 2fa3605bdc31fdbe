//! What waits for somebody else's yes.

use crate::world::World;

const CONFIG: &str = "[tools.\"fs.write\"]\nconfirm = \"approver\"\napprover_scope = \"files:approve\"\n";
const WRITE: &str = r#"{"path":"a.txt","content":"hi"}"#;

/// Asks, and gives the token and the id of the request.
fn ask(world: &World) -> (String, String) {
    let asked = world.call(&["fs.write", WRITE, "--json"]);
    assert_eq!(asked.status, 4, "{}", asked.err);
    let part = |name: &str| asked.json()["data"][name].as_str().expect("a text").to_owned();
    (part("confirm_token"), part("approval_id"))
}

const BOSS: [&str; 4] = ["--principal", "boss", "--scope", "files:approve"];

fn answer(world: &World, verb: &str, id: &str, who: &[&str]) -> crate::world::Ran {
    world.run(&[&["approvals", verb, id], who].concat())
}

// A2: another principal with the scope decides; then the caller's token works, once.
#[test]
fn a2_an_approved_call_runs_once() {
    let world = World::with_config(CONFIG);
    let asked = world.call(&["fs.write", WRITE]);
    assert!(asked.out.contains("callgate approvals approve ") && asked.out.contains("files:approve"), "{}", asked.out);
    let (token, id) = ask(&world);
    world.call(&["fs.write", "--confirm", &token]).refused("APPROVAL_PENDING");
    let listed = world.run(&[&["approvals", "list"], &BOSS[..]].concat()).ok().out;
    for line in
        [&id, "| fs.write", r#"|   path = "a.txt""#, r#"|   content = "hi""#, "asked by   local-shell through cli"]
    {
        assert!(listed.contains(line), "{line}: {listed}");
    }
    assert!(!listed.contains(&token));
    let shown = world.run(&[&["approvals", "show", &id[..8]], &BOSS[..]].concat()).ok().out;
    assert!(listed.contains(&shown), "{shown}");
    let json = world.run(&[&["approvals", "show", &id, "--json"], &BOSS[..]].concat()).ok().json();
    assert_eq!((&json["whole"], &json["approval_id"]), (&true.into(), &id.as_str().into()));
    // The first digits of an id will do.
    answer(&world, "approve", &id[..12], &BOSS).ok();
    assert!(!world.path("a.txt").exists());
    world.call(&["fs.write", "--confirm", &token]).ok();
    assert_eq!(world.text("a.txt"), "hi");
    world.call(&["fs.write", "--confirm", &token]).refused("CONFIRMATION_INVALID");
    let done = world.records().into_iter().find(|record| record["end"] == "done").expect("it is recorded");
    assert_eq!(done["confirmed_by"], "approver");
    // J7: the record says who approved what, and the chain holds.
    let records = world.records();
    let decided = records.iter().find(|record| record["kind"] == "decision").expect("it is recorded");
    assert_eq!((&decided["end"], &decided["principal"]), (&"approve".into(), &"boss".into()));
    assert_eq!((&decided["tool"], &decided["ticket"]), (&"fs.write".into(), &id.as_str().into()));
    assert_eq!(decided["args_digest"], done["args_digest"]);
    let verified = world.run(&["audit", "verify"]).ok().out;
    assert!(verified.contains("1 decisions of approvers"), "{verified}");
}

// A2, A9: neither the requester, nor somebody without the scope, nor nobody; and the first answer stands.
#[test]
fn a9_who_decides_and_the_first_answer() {
    let world = World::with_config(CONFIG);
    let (token, id) = ask(&world);
    answer(&world, "approve", &id, &[]).refused("FORBIDDEN");
    answer(&world, "approve", &id, &["--principal", "boss", "--scope", "other"]).refused("FORBIDDEN");
    answer(&world, "approve", &id, &["--scope", "files:approve"]).refused("UNAUTHORIZED");
    answer(&world, "approve", &id, &[&BOSS[..], &["--tenant", "acme"]].concat()).refused("NOT_FOUND");
    answer(&world, "approve", &"0".repeat(64), &BOSS).refused("NOT_FOUND");
    answer(&world, "approve", "00000000", &BOSS).refused("NOT_FOUND");
    assert_eq!(answer(&world, "approve", "nix", &BOSS).status, 2);
    answer(&world, "deny", &id, &BOSS).ok();
    answer(&world, "approve", &id, &BOSS).refused("FORBIDDEN");
    world.call(&["fs.write", "--confirm", &token]).refused("APPROVAL_DENIED");
    assert!(!world.path("a.txt").exists());
    assert_eq!(world.run(&[&["approvals", "list", "--json"], &BOSS[..]].concat()).ok().out, "[]\n");
    // Each attempt is recorded, and why it did not count.
    let records = world.records();
    let refused = records.iter().filter(|record| record["kind"] == "decision" && !record["code"].is_null());
    let checks: Vec<_> = refused.map(|record| record["check"].as_str().expect("a reason").to_owned()).collect();
    assert_eq!(checks, ["own_request", "missing_scope", "unauthenticated", "unknown", "unknown", "settled"]);
}

// F1, J2: no decision without its record.
#[test]
fn j2_a_decision_that_cannot_be_recorded_is_not_made() {
    let config = format!("{CONFIG}[audit]\nfile = \"log/audit.jsonl\"\n");
    let world = World::with_config(&config);
    let (token, id) = ask(&world);
    std::fs::rename(world.path("log"), world.path("away")).expect("it is there");
    world.put("log", "");
    answer(&world, "approve", &id, &BOSS).refused("AUDIT_UNAVAILABLE");
    std::fs::remove_file(world.path("log")).expect("it is there");
    std::fs::rename(world.path("away"), world.path("log")).expect("it is there");
    world.call(&["fs.write", "--confirm", &token]).refused("APPROVAL_PENDING");
    answer(&world, "deny", &id, &BOSS).ok();
}

// D2: what is too long to be shown is approved by whoever names its digest.
#[test]
fn d2_a_request_that_is_not_shown_whole_takes_its_digest() {
    let world = World::with_config(CONFIG);
    let arguments = serde_json::json!({"path": "a.txt", "content": "x".repeat(20_000)}).to_string();
    let asked = world.call(&["fs.write", &arguments, "--json"]).json();
    let part = |name: &str| asked["data"][name].as_str().expect("a text").to_owned();
    let (token, id) = (part("confirm_token"), part("approval_id"));
    let json = world.run(&[&["approvals", "show", &id, "--json"], &BOSS[..]].concat()).ok().json();
    assert_eq!(json["whole"], false);
    assert!(json["shown"].as_str().expect("a text").contains("content is not shown: 20000 bytes, SHA-256 "), "{json}");
    let refused = answer(&world, "approve", &id, &BOSS);
    assert!(refused.status == 2 && refused.err.contains("--digest"), "{}", refused.err);
    let other = "0".repeat(64);
    assert_eq!(answer(&world, "approve", &id, &[&BOSS[..], &["--digest", &other]].concat()).status, 2);
    let digest = json["arguments_digest"].as_str().expect("a digest");
    answer(&world, "approve", &id, &[&BOSS[..], &["--digest", digest]].concat()).ok();
    world.call(&["fs.write", "--confirm", &token]).ok();
}

// A requester takes back what it asked; nobody else can, and nothing runs by it afterwards.
#[test]
fn a9_a_request_is_cancelled_by_who_asked() {
    let world = World::with_config(CONFIG);
    let (token, id) = ask(&world);
    answer(&world, "cancel", &id, &BOSS).refused("NOT_FOUND");
    let short = &id[..10];
    answer(&world, "cancel", short, &[]).ok();
    answer(&world, "approve", &id, &BOSS).refused("FORBIDDEN");
    world.call(&["fs.write", "--confirm", &token]).refused("CONFIRMATION_INVALID");
    answer(&world, "cancel", &id, &[]).refused("FORBIDDEN");
    let listed = world.run(&["approvals", "list", "--all"]).ok().out;
    assert!(listed.contains(short) && listed.contains("cancelled") && listed.contains("fs.write"), "{listed}");
    let shown = world.run(&["approvals", "show", short, "--json"]).ok().json();
    assert_eq!((&shown["state"], &shown["approval_id"]), (&"cancelled".into(), &id.as_str().into()));
}

// J4: what is not in doubt is not settled, whoever says so.
#[test]
fn j4_only_what_is_in_doubt_is_settled() {
    let world = World::with_config(CONFIG);
    let (token, id) = ask(&world);
    answer(&world, "approve", &id, &BOSS).ok();
    world.call(&["fs.write", "--confirm", &token]).ok();
    assert_eq!(world.run(&["approvals", "show", &id, "--json"]).ok().json()["state"], "done");
    let resolve = |who: &[&str]| {
        let args = ["approvals", "resolve", &id, "--outcome", "done", "--proof", "the file is there"];
        world.run(&[&args[..], who].concat())
    };
    resolve(&["--principal", "ops", "--scope", "reconcile"]).refused("FORBIDDEN");
    resolve(&["--principal", "ops"]).refused("FORBIDDEN");
    assert_eq!(world.run(&["approvals", "resolve", &id, "--outcome", "unknown", "--proof", "x"]).status, 2);
    assert_eq!(world.run(&["approvals", "resolve", &id, "--outcome", "done"]).status, 2);
}
