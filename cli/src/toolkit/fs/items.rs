//! The items of an answer, as many as fit.

use serde_json::Value;

/// The most bytes of JSON that the items of one answer have together.
pub(super) const MAX_ITEMS_BYTES: usize = 1 << 19;

/// Entries or matches, bounded in number and in size: a thousand of them with the longest paths would be many megabytes
/// (invariant X6).
pub(super) struct Items {
    items: Vec<Value>,
    max: usize,
    bytes: usize,
}

/// Why an item was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Full {
    /// There are as many as were asked for.
    Number,
    /// They are as long as an answer may be.
    Size,
}

impl Items {
    pub(super) const fn new(max: usize) -> Self {
        Self { items: Vec::new(), max, bytes: 0 }
    }

    /// Takes `item`, or tells why not.
    pub(super) fn push(&mut self, item: Value) -> Result<(), Full> {
        if self.items.len() >= self.max {
            return Err(Full::Number);
        }
        let bytes = self.bytes.saturating_add(item.to_string().len());
        if bytes > MAX_ITEMS_BYTES {
            return Err(Full::Size);
        }
        self.bytes = bytes;
        self.items.push(item);
        Ok(())
    }

    pub(super) fn into_value(self) -> Value {
        Value::Array(self.items)
    }
}
