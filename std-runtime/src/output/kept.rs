//! How a journal keeps a reply, and has it again.

use std::sync::OnceLock;

use super::{Bounds, Data, Extra, Reply, Whole};
use crate::journal::KeptReply;
use crate::value_text::write_value;

impl Reply {
    /// The reply in texts; `None` where it cannot be written.
    pub(crate) fn keep(&self) -> Option<KeptReply> {
        let data = self.data_text().ok()?.into_owned();
        let mut kept = KeptReply { data, message: None, meta: None, meta_dropped: false, cut: None };
        if let Some(extra) = &self.extra {
            kept.message.clone_from(&extra.message);
            kept.meta_dropped = extra.meta_dropped;
            if !extra.meta.is_empty() {
                let mut meta = String::new();
                write_value(&extra.meta.clone().into(), &mut meta).ok()?;
                kept.meta = Some(meta);
            }
        }
        if let Bounds::Cut(whole) = &self.bounds {
            kept.cut = Some((u64::try_from(whole.bytes).unwrap_or(u64::MAX), whole.digest));
        }
        Some(kept)
    }

    /// The reply of these texts, which are JSON; `None` where its meta is no object. It was brought into its bounds when it was made.
    pub(crate) fn kept(kept: &KeptReply) -> Option<Self> {
        let KeptReply { data, message, meta, meta_dropped, cut } = kept;
        let meta = match meta {
            Some(meta) => serde_json::from_str(meta).ok()?,
            None => serde_json::Map::new(),
        };
        let extra = Extra { message: message.clone(), meta, meta_dropped: *meta_dropped };
        Some(Self {
            data: Data::Text { text: data.clone(), value: OnceLock::new() },
            bounds: match cut {
                Some((bytes, digest)) => Bounds::Cut(Box::new(Whole {
                    bytes: usize::try_from(*bytes).unwrap_or(usize::MAX),
                    digest: *digest,
                })),
                None => Bounds::Within,
            },
            extra: (extra != Extra::default()).then(|| Box::new(extra)),
        })
    }
}
