//! The file of a store: what is refused, what is never in it.

use std::fs;
use std::path::{Path, PathBuf};

use callgate_sqlite::{Database, DatabaseError, SqliteConfirmations};
use callgate_std::confirmations::{By, ConfirmationStore, IssueFault, StoreFault};
use tempfile::TempDir;

use crate::bench::{CANARY, TTL, presented, request};

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("gate.db")
    }

    fn open(&self) -> SqliteConfirmations {
        SqliteConfirmations::open(self.path()).expect("new, or whole")
    }

    /// Everything that is in the file and the files beside it.
    fn bytes(&self) -> Vec<u8> {
        let files = fs::read_dir(self.0.path()).expect("a directory");
        files.flat_map(|file| fs::read(file.expect("a name").path()).expect("ours")).collect()
    }
}

fn count(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).filter(|window| *window == what).count()
}

fn sql(path: &Path, sql: &str) {
    rusqlite::Connection::open(path).expect("a database").execute_batch(sql).expect("it can be changed");
}

#[test]
fn a11_the_file_holds_no_token_and_forgets_arguments_that_are_spent() {
    let place = Place::new();
    let store = place.open();
    let tokens: Vec<_> = (0..3).map(|_| store.issue(&request(1), TTL).expect("room").token).collect();
    let content = place.bytes();
    for token in &tokens {
        let text = token.to_string();
        assert_eq!(count(&content, text.as_bytes()), 0);
        let (pairs, _) = text.as_bytes().as_chunks::<2>();
        let bits: Vec<u8> = pairs
            .iter()
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).expect("text"), 16).expect("digits"))
            .collect();
        assert_eq!(count(&content, &bits), 0);
    }
    assert!(count(&content, CANARY.as_bytes()) >= 3, "arguments are kept until they are spent");
    store.claim(tokens[0].hash(), &presented(1)).expect("answers").expect("claimed");
    store.claim(tokens[1].hash(), &presented(2)).expect("answers").expect_err("burnt");
    store.withdraw(tokens[2].hash()).expect("answers");
    drop(store);
    assert_eq!(count(&place.bytes(), CANARY.as_bytes()), 0);
}

#[test]
#[cfg(unix)]
fn the_files_are_their_owners_alone() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let place = Place::new();
    let store = place.open();
    let ticket = store.issue(&request(1), TTL).expect("room").token.hash();
    let mut names = Vec::new();
    for file in fs::read_dir(place.0.path()).expect("a directory") {
        let file = file.expect("a name");
        assert_eq!(file.metadata().expect("there").mode() & 0o7777, 0o600, "{file:?}");
        names.push(file.file_name());
    }
    assert_eq!(names.len(), 3, "the file, its log and its index: {names:?}");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o666)).expect("ours");
    // F1: what others may have written is believed by nobody, neither at the start nor later.
    assert_eq!(store.claim(ticket, &presented(1)), Err(StoreFault));
    assert_eq!(store.issue(&request(1), TTL), Err(IssueFault::Store));
    assert!(store.database().last_error().expect("it says why").contains("chmod 600"));
    assert!(matches!(Database::open(place.path()), Err(DatabaseError::File(_))));
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o600)).expect("ours");
    assert_eq!(store.claim(ticket, &presented(1)), Ok(Ok(By::Caller)));
    let link = place.0.path().join("link");
    symlink(place.path(), &link).expect("a link");
    assert!(matches!(Database::open(link), Err(DatabaseError::File(_))));
}

/// F1, A5: a claim that would be written to a file that nobody finds any more is no claim.
#[test]
#[cfg(unix)]
fn f1_a_file_that_was_replaced_is_not_written_to() {
    let place = Place::new();
    let store = place.open();
    let ticket = store.issue(&request(1), TTL).expect("room").token.hash();
    fs::rename(place.path(), place.0.path().join("aside")).expect("ours");
    assert_eq!(store.claim(ticket, &presented(1)), Err(StoreFault), "it is gone");
    let other = Place::new();
    drop(other.open());
    fs::copy(other.path(), place.path()).expect("ours");
    assert_eq!(store.claim(ticket, &presented(1)), Err(StoreFault), "it is another one");
    assert!(store.database().last_error().expect("it says why").contains("was moved"));
    fs::rename(place.0.path().join("aside"), place.path()).expect("ours");
    assert_eq!(store.claim(ticket, &presented(1)), Ok(Ok(By::Caller)), "it is back");
}

#[test]
fn n6_an_unknown_version_is_refused_by_name_and_left_as_it_is() {
    let known: i64 = {
        let place = Place::new();
        drop(place.open());
        let file = rusqlite::Connection::open(place.path()).expect("a database");
        file.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("it has one")
    };
    for version in (0..known).chain([known + 1, -1, 2_147_483_647]) {
        let place = Place::new();
        let store = place.open();
        let ticket = store.issue(&request(1), TTL).expect("room").token.hash();
        sql(&place.path(), &format!("PRAGMA user_version = {version}"));
        // Who has it open sees it, too.
        assert_eq!(store.claim(ticket, &presented(1)), Err(StoreFault));
        drop(store);
        let before = place.bytes();
        match Database::open(place.path()) {
            Err(error @ DatabaseError::UnknownVersion { .. }) => {
                assert!(error.to_string().contains(&version.to_string()));
            }
            other => panic!("{other:?}"),
        }
        assert!(place.bytes() == before);
    }
}

#[test]
fn n6_a_file_of_something_else_is_refused_and_left_as_it_is() {
    let place = Place::new();
    let other = |content: &dyn Fn()| {
        content();
        chmod(&place.path());
        let before = fs::read(place.path()).expect("there");
        assert!(matches!(Database::open(place.path()), Err(DatabaseError::Foreign { .. })));
        assert!(fs::read(place.path()).expect("there") == before);
        fs::remove_file(place.path()).expect("ours");
    };
    other(&|| fs::write(place.path(), "not a database, and longer than a header of one is".repeat(20)).expect("ours"));
    other(&|| sql(&place.path(), "CREATE TABLE accounts (name TEXT)"));
    other(&|| sql(&place.path(), "PRAGMA application_id = 7"));
    other(&|| sql(&place.path(), "PRAGMA user_version = 3"));
}

#[cfg(unix)]
fn chmod(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("ours");
}

#[cfg(not(unix))]
fn chmod(_: &Path) {}

/// F1: a row that no store wrote is not guessed at.
#[test]
fn f1_a_row_that_makes_no_sense_is_a_fault() {
    for damage in [
        "UPDATE tickets SET state = 'granted'",
        "UPDATE tickets SET confirmed_by = 'nobody'",
        "UPDATE tickets SET expires_ms = -1",
        "UPDATE confirmations SET time_ms = -1",
        "DELETE FROM confirmations",
        "DROP TABLE tickets",
    ] {
        let place = Place::new();
        let store = place.open();
        let ticket = store.issue(&request(1), TTL).expect("room").token.hash();
        sql(&place.path(), &format!("PRAGMA ignore_check_constraints = ON; {damage}"));
        assert_eq!(store.claim(ticket, &presented(1)), Err(StoreFault), "{damage}");
        assert!(store.load(ticket).is_err(), "{damage}");
    }
}
