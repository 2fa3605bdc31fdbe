//! A process that ends at one operation of the database, at each in turn, before it and after it (invariants A5, J1 to J3).

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use callgate_core::digest::Digest;
use callgate_std::confirmations::{ConfirmationStore, Refusal};

use crate::bench::{presented, request};
use crate::driven::{Case, drive};
use crate::faults::{ENDED, Mode};
use crate::{Database, SqliteAudit, SqliteConfirmations};

/// Set for a process that is a child of this test: its directory, whether it ends before or after the operation, its number.
const CHILD: &str = "CALLGATE_TEST_END";
/// So that no clock of a busy machine plays a part.
const TTL: u64 = 86_400_000;

fn open(directory: &Path) -> (Arc<Database>, SqliteConfirmations, SqliteAudit) {
    let database = Arc::new(Database::open(directory.join("gate.db")).expect("new, or whole"));
    let audit = SqliteAudit::on(Arc::clone(&database)).expect("as it was left");
    (Arc::clone(&database), SqliteConfirmations::on(database), audit)
}

/// The part of a child: claims a ticket, and records a call. Does nothing when run as a test.
#[test]
fn child() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let mut told = told.splitn(4, ' ');
    let mut next = || told.next().expect("the parent says it");
    let (mode, number, ticket) = (next(), next().parse().expect("a number"), next().parse().expect("a ticket"));
    let (database, store, audit) = open(next().as_ref());
    database.faults.set(if mode == "before" { Mode::EndsBefore } else { Mode::EndsAfter }, number, 0);
    let claimed = store.claim(ticket, &presented(1)).expect("answers");
    // In one piece, and known to the parent before anything else happens.
    println!("\n@claimed {}", claimed.is_ok());
    drive(Case { end: "done", mutating: true }, "r1", &audit).expect("written");
    println!("\n@recorded");
}

#[test]
fn j3_a_process_may_end_at_every_operation() {
    let place = tempfile::tempdir().expect("a directory");
    for mode in ["before", "after"] {
        for number in 1.. {
            let what = format!("{mode} operation {number}");
            let directory = place.path().join(format!("{mode}{number}"));
            std::fs::create_dir(&directory).expect("ours");
            let ticket: Digest = {
                let (_, store, _) = open(&directory);
                store.issue(&request(1), TTL).expect("room").token.hash()
            };
            let child = Command::new(std::env::current_exe().expect("this program"))
                .args(["--exact", "end_tests::child", "--nocapture", "--test-threads=1"])
                .env(CHILD, format!("{mode} {number} {ticket} {}", directory.display()))
                .output()
                .expect("a process");
            let said = String::from_utf8_lossy(&child.stdout);
            let ended = child.status.code() == Some(ENDED);
            assert!(ended || child.status.success(), "{what}: {said}");

            let (_, store, audit) = open(&directory);
            let again = store.claim(ticket, &presented(1)).expect("answers");
            let told = said.contains("@claimed true");
            assert!(again == Err(Refusal::Used) || again.is_ok() && !told, "{what}: {again:?}");
            assert_eq!(store.claim(ticket, &presented(1)), Ok(Err(Refusal::Used)), "{what}");
            let report = audit.verify(None).expect("readable");
            assert!(report.is_intact(), "{what}: {report:?}");
            // J1, J2: no end without its intent, each at most once, and what was told is there.
            assert!(report.terminals <= report.intents && report.intents <= 1, "{what}: {report:?}");
            assert!(!said.contains("@recorded") || report.terminals == 1, "{what}: {report:?}");
            drive(Case { end: "done", mutating: true }, "r2", &audit).expect("the log goes on");
            assert!(audit.verify(None).expect("readable").is_intact(), "{what}");
            if !ended {
                assert!(number > 15 && said.contains("@recorded"), "there were {number} operations");
                break;
            }
        }
    }
}
