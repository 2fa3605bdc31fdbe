//! S5, F5, V14: each bound at -1, 0 and +1, and texts made to be costly.

use callgate_core::json::{KeySlot, Limits, ReadErrorKind, key_capacity, scan};

use super::kind;

fn kind_under(text: &str, limits: &Limits) -> Option<ReadErrorKind> {
    let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
    scan(text.as_bytes(), &mut keys, limits).err().map(|error| error.kind)
}

/// The text at one below, at, and one above the limit: accepted, accepted, refused with `kind`.
fn bound(text: impl Fn(usize) -> String, at: usize, limits: &Limits, kind: ReadErrorKind) {
    assert_eq!(kind_under(&text(at - 1), limits), None);
    assert_eq!(kind_under(&text(at), limits), None);
    assert_eq!(kind_under(&text(at + 1), limits), Some(kind));
}

#[test]
fn s5_depth() {
    let limits = &Limits::DEFAULT;
    let kind = ReadErrorKind::TooDeep { max: 64 };
    bound(|depth| "[".repeat(depth) + &"]".repeat(depth), 64, limits, kind);
    bound(|depth| "{\"\":".repeat(depth) + "1" + &"}".repeat(depth), 64, limits, kind);
    bound(
        |depth| {
            "[{\"a\":".repeat(depth / 2)
                + &"[".repeat(depth % 2)
                + &"]".repeat(depth % 2)
                + if depth % 2 == 0 { "0" } else { "" }
                + &"}]".repeat(depth / 2)
        },
        64,
        limits,
        kind,
    );
    let limits = &Limits { depth: 3, ..Limits::DEFAULT };
    bound(|depth| "[".repeat(depth) + &"]".repeat(depth), 3, limits, ReadErrorKind::TooDeep { max: 3 });
    // Nobody can ask for more than the stack holds.
    let limits = &Limits { depth: 1000, ..Limits::DEFAULT };
    bound(|depth| "[".repeat(depth) + &"]".repeat(depth), 64, limits, kind);
    let none = &Limits { depth: 0, ..Limits::DEFAULT };
    assert_eq!(kind_under("1", none), None);
    assert_eq!(kind_under("[]", none), Some(ReadErrorKind::TooDeep { max: 0 }));
}

// V14
#[test]
fn v14_deep_texts_are_refused_and_nothing_overflows() {
    for opening in ["[", "{\"a\":", "[{\"a\":", "[[],"] {
        for count in [10_000, 1_000_000 / opening.len()] {
            assert_eq!(kind(&opening.repeat(count)), Some(ReadErrorKind::TooDeep { max: 64 }));
        }
    }
}

#[test]
fn s5_bytes() {
    let limits = &Limits { bytes: 100, ..Limits::DEFAULT };
    bound(|len| format!("\"{}\"", "a".repeat(len - 2)), 100, limits, ReadErrorKind::TooLong { max: 100 });
    bound(|len| format!("1{}", " ".repeat(len - 1)), 100, limits, ReadErrorKind::TooLong { max: 100 });
    bound(
        |len| format!("\"{}\"", "a".repeat(len - 2)),
        1 << 20,
        &Limits::DEFAULT,
        ReadErrorKind::TooLong { max: 1 << 20 },
    );
}

#[test]
fn s5_nodes() {
    let kind = ReadErrorKind::TooManyNodes { max: 100_000 };
    bound(|nodes| format!("[{}0]", "0,".repeat(nodes - 2)), 100_000, &Limits::DEFAULT, kind);
    let limits = &Limits { nodes: 7, ..Limits::DEFAULT };
    let kind = ReadErrorKind::TooManyNodes { max: 7 };
    bound(|nodes| format!("[{}[]]", "{},".repeat(nodes - 2)), 7, limits, kind);
    bound(|nodes| format!("{{\"a\":[{}\"\"]}}", "null,".repeat(nodes - 3)), 7, limits, kind);
}

#[test]
fn s5_members() {
    let object = |count: usize| {
        let members: Vec<_> = (0..count).map(|nth| format!("\"{nth}\":{{}}")).collect();
        format!("{{{}}}", members.join(","))
    };
    bound(object, 4_096, &Limits::DEFAULT, ReadErrorKind::TooManyMembers { max: 4_096 });
    let limits = &Limits { members: 3, ..Limits::DEFAULT };
    bound(object, 3, limits, ReadErrorKind::TooManyMembers { max: 3 });
    // Each object has its own count.
    let nested = format!("[{0},{0},{{\"a\":{0},\"b\":{0},\"c\":{0}}}]", object(3));
    assert_eq!(kind_under(&nested, limits), None);
}

#[test]
fn s5_key_bytes() {
    let kind = ReadErrorKind::KeyTooLong { max: 256 };
    bound(|len| format!("{{\"{}\":1}}", "k".repeat(len)), 256, &Limits::DEFAULT, kind);
    // Counted after unescaping: an escape of six characters is one byte, a surrogate pair four.
    bound(|len| format!("{{\"{}\":1}}", "\\u0061".repeat(len)), 256, &Limits::DEFAULT, kind);
    let limits = &Limits { key_bytes: 8, ..Limits::DEFAULT };
    let kind = ReadErrorKind::KeyTooLong { max: 8 };
    bound(|len| format!("{{\"{}\\ud83d\\ude00\":1}}", "a".repeat(len - 4)), 8, limits, kind);
    bound(|len| format!("{{\"{}é\":1}}", "a".repeat(len - 2)), 8, limits, kind);
}

#[test]
fn s5_number_bytes() {
    let kind = ReadErrorKind::NumberTooLong { max: 128 };
    bound(|len| format!("1.{}", "0".repeat(len - 2)), 128, &Limits::DEFAULT, kind);
    let limits = &Limits { number_bytes: 5, ..Limits::DEFAULT };
    bound(|len| "1".repeat(len), 5, limits, ReadErrorKind::NumberTooLong { max: 5 });
    assert_eq!(kind_under("-1234", limits), None);
    assert_eq!(kind_under("-12345", limits), Some(ReadErrorKind::NumberTooLong { max: 5 }));
}

// S5: keys made alike for the hash and long for the comparison cost no more than a sort.
#[test]
fn s5_many_keys_that_are_hard_to_tell_apart() {
    // The same length, head and tail; different only in the middle.
    let members: Vec<_> =
        (0..4_000).map(|nth| format!("\"{}{nth:06}{}\":0", "a".repeat(100), "b".repeat(100))).collect();
    let text = format!("{{{}}}", members.join(","));
    assert_eq!(kind(&text), None);
    let repeated = format!("{{{},{}}}", members.join(","), members[1_234]);
    assert_eq!(kind(&repeated), Some(ReadErrorKind::DuplicateKey));
}
