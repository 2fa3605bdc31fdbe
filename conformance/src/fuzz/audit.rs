//! The audit log: its lines, their chain, and the verifier.

use callgate_core::audit::chain::Head;
use callgate_core::json::Object;
use callgate_std::audit::{Against, Report, line, verify};
use serde_json::Value;

use super::choices::Choices;

/// Invariants J6, J9, J10, N6: whatever texts are recorded, each is one line and says what it said, and the log of them is intact; any
/// other bytes are not. Bytes that nobody wrote are no log, and their verification ends. The first bytes choose a change, the rest are
/// texts, split at line breaks.
pub fn audit_log(data: &[u8]) {
    let foreign = check(data, Against::Nothing);
    assert!(!foreign.is_intact(), "nobody vouches for it");
    let mut choices = Choices::new(data);
    let change = [choices.byte(), choices.byte(), choices.byte(), choices.byte()];
    let (mut head, mut log, mut count) = (Head::EMPTY, String::new(), 0);
    for text in choices.rest().split(|byte| *byte == b'\n').take(8) {
        let before = log.len();
        let text = String::from_utf8_lossy(text);
        head = line::append(&head, &note(&text), &mut log).expect("a record has its line");
        count += 1;
        let written = log.get(before..).unwrap_or_default();
        let alone = written.strip_suffix('\n').expect("a line has its end");
        assert!(!alone.contains(['\n', '\r']), "{written:?}");
        let read: Value = serde_json::from_str(alone).expect("a line is JSON");
        assert_eq!(read.get("note").and_then(Value::as_str), Some(&*text));
        assert_eq!(read.get("seq").and_then(Value::as_u64), Some(count));
    }
    let whole = check(log.as_bytes(), Against::Head(head));
    assert!(whole.is_intact(), "{:?} of {log}", whole.problems);
    assert_eq!((whole.lines, whole.notes, whole.head), (count, count, head));
    let changed = changed(log.as_bytes(), data, change);
    if changed != log.as_bytes() {
        let report = check(&changed, Against::Head(head));
        assert!(!report.is_intact(), "{}", String::from_utf8_lossy(&changed));
        assert!(report.first_broken().is_some_and(|line| line <= report.lines.max(1)), "{:?}", report.problems);
    }
}

fn check(mut log: &[u8], against: Against) -> Report {
    verify(&mut log, against).expect("bytes in memory can be read")
}

fn note(text: &str) -> String {
    let mut out = String::new();
    let mut write = || {
        let mut object = Object::begin(&mut out)?;
        object.number("v", 1)?;
        object.text("kind", "note")?;
        object.text("note", text)?;
        object.end()
    };
    write().expect("a string takes all");
    out
}

/// The log with one thing changed.
fn changed(log: &[u8], data: &[u8], [how, one, two, byte]: [u8; 4]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    let last = lines.len().max(1);
    let (one, two) = (usize::from(one) % last, usize::from(two) % last);
    match how % 7 {
        0 => drop(lines.remove(one)),
        1 => lines.swap(one, two),
        2 => lines.insert(one, lines.get(two).copied().unwrap_or_default()),
        3 => lines.truncate(one),
        // What is worded by somebody else, as a line of its own.
        4 => lines.insert(one, data),
        _ => {
            let mut bytes = log.to_vec();
            let place = (one << 8 | two).wrapping_mul(31).wrapping_add(usize::from(byte)) % bytes.len().max(1);
            match (how % 7, bytes.get_mut(place)) {
                (5, Some(found)) => *found ^= byte.max(1),
                _ => bytes.truncate(place),
            }
            return bytes;
        }
    }
    lines.concat()
}
