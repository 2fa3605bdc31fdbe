//! Signed consent, with the real `ssh-keygen`.

use std::process::Command;

use crate::world::{Ran, World};

const WRITE: &str = r#"{"path":"a.txt","content":"hi"}"#;
const ANN: [&str; 4] = ["--principal", "ann", "--scope", "files:write"];

/// A world whose configuration knows Ann's key, which lies beside it; `None` where there is no `ssh-keygen`.
fn signing(state: &str) -> Option<World> {
    let world = World::new();
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "ann", "-f"])
        .arg(world.path("key"))
        .status();
    let Ok(made) = made else {
        println!("skipped: there is no ssh-keygen");
        return None;
    };
    assert!(made.success());
    let key = world.text("key.pub");
    let key = key.trim();
    world.put(
        "callgate.toml",
        &format!(
            "version = 1\n{state}[signed]\nhost = \"build-7\"\n[[signers]]\nname = \"ann-laptop\"\nkey = \"{key}\"\nprincipal = \"ann\"\n"
        ),
    );
    Some(world)
}

fn sign(world: &World, name: &str) {
    world.run(&["sign", "fs.write", WRITE, "--key", "key", "--out", name]).ok();
}

fn call(world: &World, arguments: &str, more: &[&str]) -> Ran {
    world.run(&[&["call", "fs.write", arguments], more, &ANN[..]].concat())
}

// A4, A5, A3: it is a yes to this call, by this caller, once.
#[test]
fn a4_a_signed_call_runs_once_without_a_question() {
    let states = ["", "[state]\nfile = \".callgate/state.json\"\n"];
    for state in states {
        let Some(world) = signing(state) else { return };
        sign(&world, "call.json");
        assert_eq!(call(&world, WRITE, &[]).status, 4, "without the signature it asks");
        let other = r#"{"path":"b.txt","content":"hi"}"#;
        call(&world, other, &["--signed", "call.json"]).refused("CONFIRMATION_INVALID");
        let as_bob =
            ["call", "fs.write", WRITE, "--signed", "call.json", "--principal", "bob", "--scope", "files:write"];
        world.run(&as_bob).refused("CONFIRMATION_INVALID");
        call(&world, WRITE, &["--signed", "call.json"]).ok();
        assert_eq!(world.text("a.txt"), "hi");
        std::fs::remove_file(world.path("a.txt")).expect("it is there");
        let again = call(&world, WRITE, &["--signed", "call.json"]);
        again.refused("CONFIRMATION_INVALID");
        assert!(again.err.contains("already used"), "{}", again.err);
        assert!(!world.path("a.txt").exists() && !world.path("b.txt").exists());
        let records = world.records();
        let done = records.iter().find(|record| record["end"] == "done").expect("it is recorded");
        assert_eq!((&done["signer"], &done["principal"]), (&"ann-laptop".into(), &"ann".into()));
        let refused = records.iter().filter(|record| record["end"] == "consent");
        let checks: Vec<_> = refused.map(|record| record["check"].as_str().expect("a reason")).collect();
        assert_eq!(checks, ["other_call", "unverified", "used"]);
        world.run(&["audit", "verify"]).ok();
    }
}

#[test]
fn what_ssh_keygen_signs_counts() {
    let Some(world) = signing("") else { return };
    let payload = world.run(&["sign", "fs.write", WRITE, "--host", "build-7"]).ok();
    assert!(payload.err.contains("ssh-keygen -Y sign"), "{}", payload.err);
    world.put("call.json", &payload.out);
    let sign = |namespace: &str| {
        let args = ["-Y", "sign", "-n", namespace, "-f", "key", "call.json"];
        let signed = Command::new("ssh-keygen").args(args).current_dir(world.path(".")).output().expect("it starts");
        assert!(signed.status.success(), "{}", String::from_utf8_lossy(&signed.stderr));
    };
    sign("git");
    call(&world, WRITE, &["--signed", "call.json"]).refused("CONFIRMATION_INVALID");
    std::fs::remove_file(world.path("call.json.sig")).expect("it is there");
    sign("callgate");
    std::fs::rename(world.path("call.json.sig"), world.path("elsewhere")).expect("it is there");
    call(&world, WRITE, &["--signed", "call.json", "--signature", "elsewhere"]).ok();
    assert_eq!(world.text("a.txt"), "hi");
}

// A2: it is the caller's own yes, and never an approver's.
#[test]
fn a2_a_signature_is_no_approval() {
    let Some(world) = signing("[tools.\"fs.write\"]\nconfirm = \"approver\"\n") else { return };
    sign(&world, "call.json");
    assert_eq!(call(&world, WRITE, &["--signed", "call.json"]).status, 4);
    assert!(!world.path("a.txt").exists());
}

#[test]
fn what_cannot_be_signed_says_why() {
    let Some(world) = signing("") else { return };
    sign(&world, "call.json");
    for line in [
        &["sign", "fs.write", WRITE, "--key", "key", "--out", "call.json"][..],
        &["sign", "fs.write", "{", "--out", "x"],
        &["sign", "fs.write", WRITE, "--key", "key"],
        &["sign", "fs.write", WRITE, "--key", "callgate.toml", "--out", "x"],
        &["call", "fs.write", WRITE, "--signed", "no-such-file"],
        &["call", "fs.write", WRITE, "--signed", "call.json", "--plan"],
    ] {
        let ran = world.run(line);
        assert!([1, 2].contains(&ran.status) && !ran.err.is_empty(), "{line:?} {} {}", ran.status, ran.err);
    }
    let nobody = World::new();
    assert_eq!(nobody.run(&["sign", "fs.write", WRITE]).status, 2);
    nobody.put("call.json", &world.text("call.json"));
    nobody.put("call.json.sig", &world.text("call.json.sig"));
    nobody.call(&["fs.write", WRITE, "--signed", "call.json"]).refused("CONFIRMATION_INVALID");
}
