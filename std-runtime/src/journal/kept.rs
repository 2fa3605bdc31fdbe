//! A result as a journal keeps it.

use std::fmt;

use callgate_core::digest::Digest;
use callgate_core::json::{KeySlot, Limits, key_capacity, scan};

use crate::output::Reply;

/// A result in texts: what was delivered, byte for byte. `Debug` shows its size only (invariant L1).
#[derive(Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores elsewhere make it of what they kept")]
pub struct KeptReply {
    /// The data, as JSON text.
    pub data: String,
    /// The message for people.
    pub message: Option<String>,
    /// The tool's own members of meta, as the text of a JSON object.
    pub meta: Option<String>,
    /// Whether the tool's meta was over its bound, and left out.
    pub meta_dropped: bool,
    /// Where the data is the beginning of what it was: how many bytes that had, and its digest.
    pub cut: Option<(u64, Digest)>,
}

impl KeptReply {
    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let Self { data, message, meta, .. } = self;
        let optional = [message, meta].into_iter().flatten().map(String::len);
        optional.fold(data.len(), usize::saturating_add)
    }

    /// The result; `None` where the texts are not those of one.
    #[must_use]
    pub fn reply(&self) -> Option<Reply> {
        for text in [Some(&self.data), self.meta.as_ref()].into_iter().flatten() {
            let limits =
                Limits { bytes: u32::MAX, nodes: u32::MAX, members: u32::MAX, key_bytes: u32::MAX, ..Limits::DEFAULT };
            let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
            scan(text.as_bytes(), &mut keys, &limits).ok()?;
        }
        Reply::kept(self)
    }
}

impl fmt::Debug for KeptReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptReply").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use callgate_core::json::Object;
    use callgate_core::tool::ToolOutput;
    use serde_json::json;

    use super::*;

    fn written(reply: &Reply) -> (String, String) {
        let (mut data, mut meta) = (String::new(), String::new());
        reply.write_data(&mut data).unwrap();
        let mut object = Object::begin(&mut meta).unwrap();
        reply.write_meta(&mut object).unwrap();
        object.end().unwrap();
        (data, meta)
    }

    /// What is given again is what was given: data, message, meta, and what became of it at its bounds.
    #[test]
    fn o2_a_result_comes_back_byte_for_byte() {
        #[derive(serde::Serialize)]
        struct Typed {
            z: u64,
            a: f64,
        }
        let mut cut = Reply::new(json!({"text": "x".repeat(500)})).with_meta("source", "s");
        cut.bound(100, true);
        let mut dropped = Reply::new(1).with_meta("much", "x".repeat(100_000));
        dropped.bound(1 << 20, true);
        for reply in [
            Reply::empty(),
            Reply::of(&Typed { z: u64::MAX, a: 1.5 }).unwrap().with_message("done"),
            Reply::new(json!({"b": [1, 2.5, null], "a": "\u{1f600}"})).with_meta("type", "own").with_meta("task_id", 3),
            cut,
            dropped,
        ] {
            let kept = reply.keep().unwrap();
            let again = kept.reply().unwrap();
            assert_eq!(written(&again), written(&reply));
            assert_eq!(again.message(), reply.message());
            assert_eq!((again.is_cut(), again.fault(100)), (reply.is_cut(), None), "it was bounded before");
            assert_eq!(again.keep(), Some(kept));
        }
    }

    /// F1: what is no result is none.
    #[test]
    fn f1_damaged_texts_are_no_result() {
        let kept = Reply::new(json!({"a": 1})).with_meta("b", 2).keep().unwrap();
        for damaged in [
            KeptReply { data: "{\"a\":1".to_owned(), ..kept.clone() },
            KeptReply { data: "1,\"meta\":{}".to_owned(), ..kept.clone() },
            KeptReply { data: String::new(), ..kept.clone() },
            KeptReply { meta: Some("[]".to_owned()), ..kept.clone() },
            KeptReply { meta: Some("{\"a\":1,\"a\":2}".to_owned()), ..kept.clone() },
        ] {
            assert!(damaged.reply().is_none());
        }
        assert!(kept.reply().is_some());
    }
}
