//! Texts to read, and the reader beside `serde_json`.

use std::hint::black_box;

use callgate_core::json::{KeySlot, Limits, key_capacity, scan};
use serde_json::Value;

/// A text of about so many bytes: rows with names, numbers and lists.
#[must_use]
pub fn text_of(bytes: usize) -> Vec<u8> {
    let mut items = Vec::new();
    let mut size = 2;
    let mut at = 0;
    while size < bytes {
        let item =
            format!(r#"{{"id":{at},"name":"row number {at}","price":{}.25,"tags":["a","bc"],"open":true}}"#, at % 97);
        size += item.len() + 1;
        items.push(item);
        at += 1;
    }
    format!(r#"{{"rows":[{}]}}"#, items.join(",")).into_bytes()
}

/// The sizes of texts that are measured: their name, and the bytes to ask [`text_of`] for.
pub const SIZES: [(&str, usize); 3] = [("100 B", 60), ("4 KiB", 4_000), ("256 KiB", 262_000)];

/// Room for the keys of `text`.
#[must_use]
pub fn keys_of(text: &[u8]) -> Vec<KeySlot> {
    vec![KeySlot::default(); key_capacity(text)]
}

/// Reads into a value with `serde_json`.
pub fn read_bare(text: &[u8]) {
    black_box(serde_json::from_slice::<Value>(black_box(text)).expect("good text"));
}

/// Reads into the same value with the gate's reader.
pub fn read(text: &[u8], keys: &mut [KeySlot]) {
    let scanned = scan(black_box(text), keys, &Limits::DEFAULT).expect("good text");
    black_box(scanned.value().parse::<Value>().expect("a value"));
}

/// Checks with `serde_json`, which looks for less.
pub fn check_bare(text: &[u8]) {
    black_box(serde_json::from_slice::<serde::de::IgnoredAny>(black_box(text)).expect("good text"));
}

/// Checks with the gate's reader.
pub fn check(text: &[u8], keys: &mut [KeySlot]) {
    black_box(scan(black_box(text), keys, &Limits::DEFAULT).expect("good text"));
}
