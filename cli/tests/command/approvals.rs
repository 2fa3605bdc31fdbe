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
    assert!(listed.contains(&id) && listed.contains(r#"fs.write({"path":"a.txt","content":"hi"})"#), "{listed}");
    assert!(!listed.contains(&token));
    // The first digits of an id will do.
    answer(&world, "approve", &id[..12], &BOSS).ok();
    assert!(!world.path("a.txt").exists());
    world.call(&["fs.write", "--confirm", &token]).ok();
    assert_eq!(world.text("a.txt"), "hi");
    world.call(&["fs.write", "--confirm", &token]).refused("CONFIRMATION_INVALID");
    let done = world.records().into_iter().find(|record| record["end"] == "done").expect("it is recorded");
    assert_eq!(done["confirmed_by"], "approver");
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
}
