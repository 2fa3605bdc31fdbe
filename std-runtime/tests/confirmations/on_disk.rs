//! The file of a store: what survives, what is refused, what is never in it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use callgate_core::confirm::TOKEN_TEXT;
use callgate_core::digest::Digest;
use callgate_std::clock::ManualClock;
use callgate_std::confirmations::{
    By, Capacity, ConfirmationFileError, ConfirmationStore, FileConfirmations, IssueFault, StoreFault, TicketState,
};
use callgate_std::entropy::SeededEntropy;
use tempfile::TempDir;

use crate::bench::{ALICE, CANARY, TTL, presented, request};

struct Shop {
    directory: TempDir,
    clock: ManualClock,
}

impl Shop {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory"), clock: ManualClock::new() }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("confirmations")
    }

    /// The store as another process would open it.
    fn open(&self, seed: u64) -> Result<FileConfirmations, ConfirmationFileError> {
        let store = FileConfirmations::open_with(
            self.path(),
            Capacity::DEFAULT,
            self.clock.shared(),
            SeededEntropy::shared(seed),
        )?;
        store.attach_approvers(true);
        Ok(store)
    }
}

#[test]
fn a11_the_file_holds_no_token_and_forgets_arguments_that_are_spent() {
    let shop = Shop::new();
    let store = shop.open(1).expect("new");
    let tokens: Vec<_> = (0..3).map(|_| store.issue(&request(1), TTL).expect("room").token).collect();
    let content = fs::read_to_string(shop.path()).expect("text");
    for token in &tokens {
        assert!(!content.contains(&token.to_string()) && token.to_string().len() == TOKEN_TEXT);
    }
    assert_eq!(content.matches(CANARY).count(), 3, "arguments are kept until they are spent");
    store.claim(tokens[0].hash(), &presented(1)).expect("answers").expect("claimed");
    store.claim(tokens[1].hash(), &presented(2)).expect("answers").expect_err("burnt");
    store.withdraw(tokens[2].hash()).expect("answers");
    assert!(!fs::read_to_string(shop.path()).expect("text").contains(CANARY));
}

#[test]
#[cfg(unix)]
fn the_file_is_its_owners_alone() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let shop = Shop::new();
    let store = shop.open(1).expect("new");
    let ticket = store.issue(&request(1), TTL).expect("room").token.hash();
    assert_eq!(fs::metadata(shop.path()).expect("there").mode() & 0o7777, 0o600);
    fs::set_permissions(shop.path(), fs::Permissions::from_mode(0o666)).expect("ours");
    // F1: what others may have written is believed by nobody, neither at the start nor later.
    assert_eq!(store.claim(ticket, &presented(1)), Err(StoreFault));
    assert_eq!(store.issue(&request(1), TTL), Err(IssueFault::Store));
    assert!(store.last_error().expect("it says why").contains("chmod 600"));
    assert!(matches!(shop.open(2), Err(ConfirmationFileError::File(_))));
    fs::set_permissions(shop.path(), fs::Permissions::from_mode(0o600)).expect("ours");
    assert_eq!(store.claim(ticket, &presented(1)), Ok(Ok(By::Caller)));
}

/// F1, S: not one byte of the file can be changed or lost without notice. Nothing is redeemed or issued on it, and
/// it is left as it is for whoever looks into it.
#[test]
fn f1_a_damaged_file_fails_closed() {
    let shop = Shop::new();
    let store = shop.open(1).expect("new");
    let ticket = store.issue(&request(1), TTL).expect("room").token.hash();
    let good = fs::read(shop.path()).expect("there");
    let try_with = |bad: &[u8]| {
        fs::write(shop.path(), bad).expect("ours");
        let answers = (store.claim(ticket, &presented(1)), store.load(ticket).is_err(), store.issue(&request(1), TTL));
        assert_eq!(answers, (Err(StoreFault), true, Err(IssueFault::Store)), "{}", String::from_utf8_lossy(bad));
        assert_eq!(fs::read(shop.path()).expect("there"), bad);
    };
    for at in (0..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        try_with(&bad);
        try_with(&good[..at]);
    }
    try_with(&good[..good.len() - 1]);
    try_with(&[&good[..], b"\n"].concat());
    try_with(&[&good[..], &good[..]].concat());
    try_with(&[0xff; 64]);
    fs::write(shop.path(), &good).expect("ours");
    assert_eq!(store.claim(ticket, &presented(1)), Ok(Ok(By::Caller)));
}

#[test]
fn n6_an_unknown_version_is_refused_by_name() {
    let shop = Shop::new();
    shop.open(1).expect("new").issue(&request(1), TTL).expect("room");
    let content = fs::read_to_string(shop.path()).expect("text");
    for version in ["0", "3", "18446744073709551615"] {
        fs::write(shop.path(), content.replace("\"version\":2,", &format!("\"version\":{version},\"more\":0,")))
            .expect("ours");
        match shop.open(2) {
            Err(error @ ConfirmationFileError::UnknownVersion { .. }) => assert!(error.to_string().contains(version)),
            other => panic!("{other:?}"),
        }
    }
    // The version before is read, and what was claimed by it stays spent.
    let (_, body) = content.split_once('\n').expect("two lines");
    let rest = r#","needs":1,"approved_by":[],"proof":null"#;
    assert!(body.contains(rest) && body.contains(r#""state":"pending""#), "{body}");
    let body = body.replace(rest, "").replace(r#""state":"pending""#, r#""state":"claimed""#);
    let hash = Digest::of_bytes(body.trim_end().as_bytes());
    let header = format!(r#"{{"format":"callgate confirmations","version":1,"sha256":"{hash}"}}"#);
    fs::write(shop.path(), format!("{header}\n{body}")).expect("ours");
    let store = shop.open(3).expect("the version before");
    let seen = store.tickets(&ALICE, 9).expect("answers");
    assert_eq!(seen.iter().map(|view| view.state).collect::<Vec<_>>(), [TicketState::Cancelled]);
    drop(store);

    fs::write(shop.path(), content.replace("confirmations", "accounts")).expect("ours");
    assert!(matches!(shop.open(2), Err(ConfirmationFileError::Damaged { .. })));
}

/// C2, F1: a step that fails has not seen that the clock was set back. The next one does, and forgets what waits.
#[test]
fn c2_a_step_that_fails_leaves_a_clock_that_was_set_back_to_the_next() {
    let shop = Shop::new();
    let store = shop.open(1).expect("new");
    let ticket = store.issue(&request(1), TTL).expect("room").token.hash();
    shop.clock.advance(Duration::from_secs(600));
    shop.clock.step_wall(-600_000);
    let in_the_way = shop.path().with_added_extension("new");
    fs::create_dir(&in_the_way).expect("ours");
    assert!(store.load(ticket).is_err(), "it cannot be written that the ticket is forgotten");
    fs::remove_dir(&in_the_way).expect("ours");
    assert!(store.load(ticket).expect("answers").is_none(), "its life would be longer than it was given");
}
