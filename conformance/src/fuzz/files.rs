//! The files that outlive a process: pending confirmations and rate limits; and the texts of tokens and digests.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use callgate_core::call::{Charge, ChargeMode};
use callgate_core::confirm::{Binding, Presented, Token, call_digest};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::limit::{LimitKey, Quota};
use callgate_core::time::{Instant, Now, Timestamp};
use callgate_std::clock::ManualClock;
use callgate_std::confirmations::{Capacity, ConfirmationStore, FileConfirmations};
use callgate_std::entropy::SeededEntropy;
use callgate_std::limiter::{FileLimiter, RateLimiter};
use serde_json::Value;

/// The wall clock, in milliseconds.
const NOW: u64 = 1_000_000;
const CAPACITY: Capacity = Capacity { entries: 16, bytes: 1 << 20, per_principal: 16 };

/// Invariants A1, A5, A9, A10, C2, F1, J3, N6, R2: a file that is not what a store wrote is not used; from one that is used, no ticket
/// is claimed that was decided against, is over, or was claimed before, none is claimed twice, be it after a restart, and no budget
/// gives more than it has. The first byte says which file it is, the rest is its content.
pub fn state_files(data: &[u8]) {
    let (kind, content) = data.split_first().unwrap_or((&0, &[]));
    let directory = Directory::new();
    match kind % 5 {
        0 => confirmations(&directory.0, content),
        2 => limits(&directory.0, content),
        3 => tokens(&String::from_utf8_lossy(content)),
        version => {
            // The content alone, under a header that vouches for it.
            let hash = Digest::of_bytes(content.strip_suffix(b"\n").unwrap_or(content));
            let version = if version == 1 { 1 } else { 2 };
            let header =
                format!("{{\"format\":\"callgate confirmations\",\"version\":{version},\"sha256\":\"{hash}\"}}\n");
            let mut whole = header.into_bytes();
            whole.extend(content.strip_suffix(b"\n").unwrap_or(content));
            whole.push(b'\n');
            confirmations(&directory.0, &whole);
        }
    }
}

/// A directory of its own, in memory where the system has such a place: a store makes everything durable that it writes.
struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        Self(tempfile::tempdir_in(parent).expect("a directory can be made"))
    }
}

fn write(directory: &tempfile::TempDir, content: &[u8]) -> PathBuf {
    let path = directory.path().join("state.json");
    fs::write(&path, content).expect("it can be written");
    path
}

fn clock() -> ManualClock {
    ManualClock::at(Now { monotonic: Instant::from_nanos(1), wall: Timestamp::from_unix_millis(NOW) })
}

fn confirmations(directory: &tempfile::TempDir, content: &[u8]) {
    let path = write(directory, content);
    let open = || FileConfirmations::open_with(&path, CAPACITY, clock().shared(), SeededEntropy::shared(1));
    let store = match open() {
        Ok(store) => store,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert_eq!(fs::read(&path).expect("it is there"), content, "what is refused is left alone");
            return;
        }
    };
    let text = str::from_utf8(content).expect("a file that is used is text");
    let (header, body) = text.split_once('\n').expect("and has a header");
    let vouched = Digest::of_bytes(body.strip_suffix('\n').expect("and an end").as_bytes()).to_string();
    let header: Value = serde_json::from_str(header).expect("that is JSON");
    assert_eq!(header.get("sha256").and_then(Value::as_str), Some(&*vouched), "and vouches for the body");
    let body: Value = serde_json::from_str(body).expect("which is JSON, too");
    let time = body.get("time_ms").and_then(Value::as_u64).expect("and has a time").max(NOW);
    let rows = body.get("tickets").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut ids = HashSet::new();
    for row in rows {
        let said = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
        let millis = |name: &str| row.get(name).and_then(Value::as_u64).unwrap_or_default();
        let digest = |name: &str| said(name).parse::<Digest>().expect("a digest");
        let id = digest("ticket");
        assert!(ids.insert(id), "one ticket twice");
        let binding = Binding {
            tool: digest("tool_digest"),
            arguments: digest("args_digest"),
            caller: digest("caller_digest"),
            principal: digest("principal_digest"),
        };
        let presented = Presented { binding, call: call_digest("fuzz"), lease_ms: 1_000 };
        let answerable = matches!((said("state"), said("by")), ("pending", "caller") | ("approved", _));
        let alive = answerable && time < millis("expires_at_ms");
        let loaded = store.load(id).expect("it answers");
        let usable = loaded.is_some_and(|loaded| loaded.usable.is_ok());
        assert!(alive || !usable, "{row}");
        let claimed = store.claim(id, &presented).expect("it answers").is_ok();
        assert_eq!(claimed, usable, "{row}");
        assert!(store.claim(id, &presented).expect("it answers").is_err(), "claimed twice: {row}");
        if claimed {
            let later = open().expect("what a store wrote can be read");
            assert!(later.claim(id, &presented).expect("it answers").is_err(), "claimed again: {row}");
        }
    }
}

fn limits(directory: &tempfile::TempDir, content: &[u8]) {
    let path = write(directory, content);
    let quota = Quota::per_window(2, 60_000).expect("a usable quota");
    let open = || FileLimiter::open_with(&path, move |_| quota, clock().shared(), 8);
    let Ok(limiter) = open() else { return };
    let caller = CallContext::cli("r").with_principal("u");
    let charge = Charge { key: LimitKey::of_call(&caller, "t"), cost: 1, mode: ChargeMode::Take };
    let admitted = |limiter: &FileLimiter| {
        (0..4).filter(|_| limiter.charge(&charge).is_ok_and(|allowance| allowance.is_admitted())).count()
    };
    let first = admitted(&limiter);
    assert!(first <= 2, "{first} of 2");
    let later = open().expect("what a limiter wrote can be read");
    assert!(first + admitted(&later) <= 2, "more after a restart");
}

/// Invariants A11, S3: a token and a digest have one spelling each, and a token shows itself to nobody who debugs.
fn tokens(text: &str) {
    if let Some(token) = Token::parse(text) {
        assert_eq!(token.to_string(), text);
        assert!(!format!("{token:?}").contains(text));
        assert_ne!(token.hash().to_string().get(..32), Some(text));
    }
    if let Ok(digest) = text.parse::<Digest>() {
        assert_eq!(digest.to_string(), text);
    }
    // Of any text a token can be made, and then one character more or less is none.
    let bits: [u8; 16] = std::array::from_fn(|at| text.as_bytes().get(at).copied().unwrap_or_default());
    let token = Token::from_random(bits).to_string();
    assert_eq!(Token::parse(&token), Some(Token::from_random(bits)));
    assert_eq!(Token::parse(token.get(1..).unwrap_or_default()), None);
    assert_eq!(Token::parse(&format!("{token}0")), None);
    let upper = token.to_uppercase();
    assert_eq!(Token::parse(&upper).is_some(), upper == token);
}
