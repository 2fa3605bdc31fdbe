//! The anchor of a log: how far it has come, kept outside it, so that a log that was cut off shows (invariant J10).
//!
//! The file `<log>.head` has two slots of one line each, and each write goes to the slot that is not the newest. A write that
//! is torn by a crash spoils one slot; the other still holds, one record behind. That spares a second wait for the disk
//! with every record: the log itself was made durable before.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use callgate_core::audit::chain::Head;
use callgate_core::digest::Digest;
use serde::Deserialize;

/// A slot, its line break included.
const SLOT: usize = 192;
const VERSION: u64 = 1;

/// How far a log has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Anchor {
    /// The end of the chain.
    pub head: Head,
    /// The length of the log up to there, in bytes.
    pub bytes: u64,
}

impl Anchor {
    /// The anchor of an empty log.
    pub const EMPTY: Self = Self { head: Head::EMPTY, bytes: 0 };
}

impl Default for Anchor {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// An anchor file's content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Anchored {
    /// There is nothing in it: it was just made.
    Blank,
    /// The newer slot, and where the next one goes.
    At(Anchor, Slot),
    /// No slot holds.
    Damaged,
}

/// Which of the two slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Slot {
    #[default]
    First,
    Second,
}

impl Slot {
    const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

/// Reads the file from its beginning.
pub(super) fn read(file: &File) -> io::Result<Anchored> {
    let mut file = file;
    file.seek(SeekFrom::Start(0))?;
    let mut text = Vec::new();
    file.take(2 * SLOT as u64 + 1).read_to_end(&mut text)?;
    if text.is_empty() {
        return Ok(Anchored::Blank);
    }
    let (first, second) = text.split_at_checked(SLOT).unwrap_or((&text, &[]));
    Ok(match (parse(first), parse(second)) {
        (Some(one), Some(two)) if two.head.seq > one.head.seq => Anchored::At(two, Slot::First),
        (Some(one), _) => Anchored::At(one, Slot::Second),
        (None, Some(two)) => Anchored::At(two, Slot::First),
        (None, None) => Anchored::Damaged,
    })
}

/// Writes `anchor` to `slot` and gives the slot for the next one.
pub(super) fn write(file: &File, anchor: &Anchor, slot: Slot) -> io::Result<Slot> {
    let mut file = file;
    file.seek(SeekFrom::Start(match slot {
        Slot::First => 0,
        Slot::Second => SLOT as u64,
    }))?;
    file.write_all(render(anchor).as_bytes())?;
    Ok(slot.other())
}

fn render(Anchor { head, bytes }: &Anchor) -> String {
    let Head { seq, hash } = head;
    let mut line = format!("{{\"v\":{VERSION},\"seq\":{seq},\"bytes\":{bytes},\"hash\":\"{hash}\"");
    let sum = Digest::of_bytes(line.as_bytes()).to_string();
    line.push_str(SUM);
    line.extend(sum.chars().take(SUM_DIGITS));
    line.push_str("\"}");
    format!("{line:<width$}\n", width = SLOT - 1)
}

const SUM: &str = ",\"sum\":\"";
const SUM_DIGITS: usize = 16;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    v: u64,
    seq: u64,
    bytes: u64,
    hash: &'a str,
    #[expect(dead_code, reason = "compared with the whole line that it makes")]
    sum: &'a str,
}

fn parse(slot: &[u8]) -> Option<Anchor> {
    let text = str::from_utf8(slot).ok()?;
    let line: Line<'_> = serde_json::from_str(text.strip_suffix('\n')?).ok()?;
    let anchor = Anchor { head: Head { seq: line.seq, hash: line.hash.parse().ok()? }, bytes: line.bytes };
    // One anchor has one text: whatever else was changed in it shows as well.
    (line.v == VERSION && render(&anchor) == text).then_some(anchor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn anchor(seq: u64, bytes: u64) -> Anchor {
        Anchor { head: Head { seq, hash: Digest::of_bytes(&seq.to_be_bytes()) }, bytes }
    }

    fn file(content: &[u8]) -> File {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(content).expect("written");
        file
    }

    #[test]
    fn the_newer_slot_counts_and_the_older_is_written_over() {
        let file = file(b"");
        assert_eq!(read(&file).expect("read"), Anchored::Blank);
        let mut slot = Slot::First;
        for seq in 0..5 {
            slot = write(&file, &anchor(seq, seq * 10), slot).expect("written");
            assert_eq!(read(&file).expect("read"), Anchored::At(anchor(seq, seq * 10), slot));
        }
    }

    #[test]
    fn j10_a_torn_or_changed_slot_never_gives_another_anchor() {
        let both = [render(&anchor(7, 70)), render(&anchor(8, 80))].concat().into_bytes();
        for at in 0..both.len() {
            for bit in [1, 0x20, 0x80] {
                let mut bad = both.clone();
                bad[at] ^= bit;
                let expected = if at < SLOT { anchor(8, 80) } else { anchor(7, 70) };
                match read(&file(&bad)).expect("read") {
                    Anchored::At(found, _) => assert_eq!(found, expected, "byte {at}"),
                    other => panic!("byte {at}: {other:?}"),
                }
            }
        }
        assert_eq!(read(&file(&both[..SLOT - 1])).expect("read"), Anchored::Damaged);
        assert_eq!(read(&file(&[0; 2 * SLOT])).expect("read"), Anchored::Damaged);
    }

    proptest! {
        #[test]
        fn every_anchor_fits_its_slot_and_reads_back(seq: u64, bytes: u64) {
            let text = render(&anchor(seq, bytes));
            prop_assert_eq!(text.len(), SLOT);
            prop_assert_eq!(parse(text.as_bytes()), Some(anchor(seq, bytes)));
        }
    }
}
