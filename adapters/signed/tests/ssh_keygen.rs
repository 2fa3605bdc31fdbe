//! The real `ssh-keygen`, where there is one: what it signs is verified, and what is signed here it verifies.
#![cfg(test)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use callgate_core::time::Timestamp;
use callgate_signed::{KeyError, NAMESPACE, Operation, SecretKey, VerifyingKey};

fn ssh_keygen(dir: &Path, args: &[&str]) -> Option<Output> {
    let output = Command::new("ssh-keygen").args(args).current_dir(dir).stdin(Stdio::null()).output();
    match output {
        Ok(output) => Some(output),
        Err(error) => {
            // Nothing to compare with.
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
            None
        }
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn what_ssh_keygen_signs_is_verified() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let Some(made) = ssh_keygen(dir, &["-q", "-t", "ed25519", "-N", "", "-f", "key"]) else { return };
    assert!(made.status.success());
    let now = Timestamp::from_unix_millis(1_800_000_000_000);
    let payload = Operation::new("t", r#"{"a":1}"#, "host", now, "0123456789abcdef").unwrap().canonical();
    fs::write(dir.join("call.json"), &payload).unwrap();
    let key = VerifyingKey::parse(&text(&dir.join("key.pub"))).unwrap();
    for (hash, namespace, counts) in
        [("sha512", NAMESPACE, true), ("sha256", NAMESPACE, true), ("sha512", "git", false)]
    {
        let hash = format!("hashalg={hash}");
        let args = ["-Y", "sign", "-O", &hash, "-n", namespace, "-f", "key", "call.json"];
        assert!(ssh_keygen(dir, &args).unwrap().status.success());
        let signature = text(&dir.join("call.json.sig"));
        fs::remove_file(dir.join("call.json.sig")).unwrap();
        assert_eq!(key.verifies(payload.as_bytes(), &signature), counts, "{hash} {namespace}");
        assert!(!key.verifies(format!("{payload} ").as_bytes(), &signature));
    }
    let listed = ssh_keygen(dir, &["-l", "-f", "key.pub"]).unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains(&key.fingerprint()));
}

#[test]
fn what_is_signed_here_ssh_keygen_verifies() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let Some(made) = ssh_keygen(dir, &["-q", "-t", "ed25519", "-N", "", "-C", "ann", "-f", "key"]) else { return };
    assert!(made.status.success());
    let signature = SecretKey::parse(&text(&dir.join("key"))).unwrap().sign(b"payload").unwrap();
    fs::write(dir.join("sig"), signature).unwrap();
    fs::write(dir.join("allowed"), format!("ann {}", text(&dir.join("key.pub")))).unwrap();
    let verify = |content: &str| {
        fs::write(dir.join("content"), content).unwrap();
        let mut command = Command::new("ssh-keygen");
        command.args(["-Y", "verify", "-f", "allowed", "-I", "ann", "-n", NAMESPACE, "-s", "sig"]).current_dir(dir);
        command.stdin(fs::File::open(dir.join("content")).unwrap()).output().unwrap().status.success()
    };
    assert!(verify("payload") && !verify("payloae"));
}

#[test]
fn keys_that_cannot_be_used_say_why() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let Some(made) = ssh_keygen(dir, &["-q", "-t", "ed25519", "-N", "a passphrase", "-f", "locked"]) else { return };
    assert!(made.status.success());
    assert_eq!(SecretKey::parse(&text(&dir.join("locked"))).unwrap_err(), KeyError::Locked);
    assert!(ssh_keygen(dir, &["-q", "-t", "ecdsa", "-N", "", "-f", "ecdsa"]).unwrap().status.success());
    assert_eq!(SecretKey::parse(&text(&dir.join("ecdsa"))).unwrap_err(), KeyError::NoPrivateKey);
    assert_eq!(VerifyingKey::parse(&text(&dir.join("ecdsa.pub"))).unwrap_err(), KeyError::OtherKind);
    assert_eq!(SecretKey::parse("nix").unwrap_err(), KeyError::NoPrivateKey);
}
