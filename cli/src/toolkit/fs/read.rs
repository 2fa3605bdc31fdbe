//! `fs.read`: the content of a file, or a part of it.

use std::io::{Read, Seek, SeekFrom};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use cap_fs_ext::FollowSymlinks;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::conceal::Concealed;
use super::path::RelPath;
use super::root::{Root, open_regular};
use crate::toolkit::deadline::Deadline;
use crate::toolkit::definition::ToolDef;
use crate::toolkit::error::{ToolError, ToolResult};

/// The most bytes of one answer.
pub const MAX_READ_BYTES: u64 = 262_144;
/// The longest encoding of a character in UTF-8.
const MAX_CHAR_BYTES: u64 = 4;

/// What `fs.read` says of itself.
#[must_use]
pub fn definition() -> ToolDef {
    ToolDef::reading(
        "fs.read",
        "Reads a file, or a part of it, as text or as base64. Tells where to go on when there is more.",
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,"required":["path"],"properties":{
"path":{"type":"string","minLength":1,"maxLength":4095,"description":"the file, relative to the root"},
"offset":{"type":"integer","minimum":0,"maximum":9007199254740991,"default":0,"description":"the first byte to read"},
"limit":{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991,"default":65536,"description":"the most bytes to read, from 1 to 262144"},
"encoding":{"type":"string","maxLength":6,"enum":["text","base64"],"default":"text","description":"text (UTF-8) or base64 (any bytes)"}}}"#,
    )
    .with_clamp("/limit", 1, MAX_READ_BYTES.cast_signed())
}

/// How a file's bytes are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// As text. Bytes that are not UTF-8 are refused, never replaced.
    #[default]
    Text,
    /// As base64 (RFC 4648 section 4).
    Base64,
}

/// Arguments of `fs.read`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadArgs {
    /// The file, relative to the root.
    pub path: String,
    /// The first byte to read.
    #[serde(default)]
    pub offset: u64,
    /// The most bytes to read, from 1 to [`MAX_READ_BYTES`].
    #[serde(default = "default_limit")]
    pub limit: u64,
    /// How the bytes are shown.
    #[serde(default)]
    pub encoding: Encoding,
}

const fn default_limit() -> u64 {
    65_536
}

/// Reads a file as `{"path", "content", "encoding", "offset", "bytes", "size", "truncated", "next_offset"}`.
///
/// `size` is the whole file's, `bytes` what `content` stands for. Text ends at the end of a character, so it can be a few bytes
/// shorter than the limit (and up to 4 bytes, when the limit is shorter than one character). `truncated` says that there
/// is more, from `next_offset` on.
///
/// # Errors
///
/// Refuses a path that leads out of the root, what [`Root::conceal`] names, whatever is not a regular file, and bytes that are not UTF-8 where text was asked.
pub fn read(root: &Root, args: &ReadArgs, deadline: Deadline<'_>) -> ToolResult {
    deadline.check()?;
    let path = RelPath::parse("path", &args.path)?;
    let concealed = Concealed::of(root);
    concealed.admits(root, &path)?;
    let (mut file, metadata) = open_regular("path", root.dir(), path.as_ref(), FollowSymlinks::Yes)?;
    let limit = args.limit.clamp(1, MAX_READ_BYTES);
    let failed = |error: std::io::Error| ToolError::failed_io("path", &error);
    if i64::try_from(args.offset).is_err() {
        return Err(ToolError::refused("offset: no file is that long"));
    }
    file.seek(SeekFrom::Start(args.offset)).map_err(failed)?;
    // A little more than the limit: tells whether there is more, and completes a character that crosses it.
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(MAX_CHAR_BYTES)).read_to_end(&mut bytes).map_err(failed)?;
    concealed.admits_file(root, &metadata)?;
    deadline.check()?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (content, used) = match args.encoding {
        Encoding::Text => text(&bytes, limit, args.offset)?,
        Encoding::Base64 => {
            let part = bytes.get(..limit).unwrap_or(&bytes);
            (BASE64_STANDARD.encode(part), part.len())
        }
    };
    let truncated = bytes.len() > used;
    let mut answer = Map::new();
    answer.insert("path".to_owned(), json!(path.as_str()));
    answer.insert("content".to_owned(), Value::String(content));
    answer.insert("encoding".to_owned(), json!(if args.encoding == Encoding::Text { "text" } else { "base64" }));
    answer.insert("offset".to_owned(), json!(args.offset));
    answer.insert("bytes".to_owned(), json!(used));
    answer.insert("size".to_owned(), json!(metadata.len()));
    answer.insert("truncated".to_owned(), json!(truncated));
    if truncated {
        let used = u64::try_from(used).unwrap_or(u64::MAX);
        answer.insert("next_offset".to_owned(), json!(args.offset.saturating_add(used)));
    }
    Ok(Value::Object(answer))
}

/// The longest text of at most `limit` bytes at the start of `bytes`, but at least one character; and its length in bytes.
fn text(bytes: &[u8], limit: usize, offset: u64) -> Result<(String, usize), ToolError> {
    let part = bytes.get(..limit).unwrap_or(bytes);
    let not_text = |at: usize| {
        let at = offset.saturating_add(u64::try_from(at).unwrap_or(u64::MAX));
        ToolError::refused(format!(
            "path: no UTF-8 text at byte {at}; ask with encoding base64, or from another offset"
        ))
    };
    match std::str::from_utf8(part) {
        Ok(text) => Ok((text.to_owned(), part.len())),
        Err(error) => {
            let valid = error.valid_up_to();
            let crosses_the_limit = error.error_len().is_none() && bytes.len() > part.len();
            if !crosses_the_limit {
                return Err(not_text(valid));
            }
            let first = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
            let taken = if valid > 0 {
                first.get(..valid)
            } else {
                first.get(..first.chars().next().map_or(0, char::len_utf8))
            };
            match taken {
                Some(text) if !text.is_empty() => Ok((text.to_owned(), text.len())),
                _ => Err(not_text(0)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // Reading on from `next_offset` gives the whole text, whatever the limit.
        #[test]
        fn pieces_make_up_the_text(whole in "\\PC{0,40}", limit in 1_usize..9) {
            let mut rest = whole.as_bytes();
            let mut joined = String::new();
            while !rest.is_empty() {
                let window = rest.get(..limit + 4).unwrap_or(rest);
                let (piece, used) = text(window, limit, 0).unwrap();
                prop_assert!(used > 0 && used <= limit.max(4));
                joined.push_str(&piece);
                rest = &rest[used..];
            }
            prop_assert_eq!(joined, whole);
        }
    }

    #[test]
    fn what_is_not_text_is_refused_never_replaced() {
        for (bytes, valid) in
            [(b"ab\xff".as_slice(), "ab"), (b"\x80", ""), (b"ab\xe2\x82", "ab"), (b"\xe2\x82\xff\xff", "")]
        {
            for limit in 1..8 {
                // Reading on from piece to piece ends at the fault, having given only what is before it.
                let mut from = 0;
                while let Ok((piece, used)) = text(&bytes[from..], limit, 0) {
                    assert_eq!(valid.get(from..from + used), Some(piece.as_str()), "{bytes:?} {limit}");
                    from += used;
                }
            }
        }
    }
}
