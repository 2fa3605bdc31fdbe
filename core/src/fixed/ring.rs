//! An audit log that keeps its latest lines in memory.

use core::cell::RefCell;
use core::fmt;

use crate::audit::chain::Head;
use crate::audit::{Audit, AuditFault, Record};
use crate::digest::Digest;

/// The latest lines of an audit log, in `BYTES` bytes. A record takes some 500 to 900 of them.
///
/// Lines are linked as in every other log ([`crate::audit::chain`]). When there is no room the oldest are overwritten, whole: how
/// many were is [counted](Self::overwritten), and [`before`](Self::before) is the last of them. So a dump is a chain from
/// `before` to [`head`](Self::head), and shows what is missing: its first line has the number after the overwritten ones.
/// `callgate audit verify --after` checks it.
///
/// Memory is what it is durable in: an intent that is recorded here is lost with the power (invariant J2 holds as far as the
/// memory does). A host whose effects outlive it dumps the ring into what lasts, and remembers the head.
pub struct AuditRing<const BYTES: usize> {
    bytes: [u8; BYTES],
    /// Where the oldest line starts.
    start: usize,
    len: usize,
    before: Head,
    head: Head,
}

impl<const BYTES: usize> AuditRing<BYTES> {
    /// The longest line that is taken, in bytes, its line break included: longer ones would leave the ring to one caller.
    pub const LONGEST: usize = BYTES / 2;

    /// An empty log.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; BYTES], start: 0, len: 0, before: Head::EMPTY, head: Head::EMPTY }
    }

    /// Writes one record.
    ///
    /// # Errors
    /// Its line is longer than [`Self::LONGEST`]. Lines that it would have overwritten may be gone; they are counted.
    pub fn record(&mut self, record: &Record<'_>) -> Result<(), AuditFault> {
        let head = self.head;
        let mut line = Line { ring: self, len: 0 };
        let next = head.append(record, &mut line).and_then(|head| line.push(b"\n").map(|()| head));
        let written = line.len;
        self.head = next.map_err(|_| AuditFault)?;
        self.len = self.len.saturating_add(written);
        Ok(())
    }

    /// The end of the chain. Kept elsewhere, it shows a log that was written anew (invariant J10).
    #[must_use]
    pub const fn head(&self) -> Head {
        self.head
    }

    /// The last line that was overwritten; [`Head::EMPTY`] while none was.
    #[must_use]
    pub const fn before(&self) -> Head {
        self.before
    }

    /// How many lines were overwritten.
    #[must_use]
    pub const fn overwritten(&self) -> u64 {
        self.before.seq
    }

    /// How many lines there are.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.head.seq.saturating_sub(self.before.seq)
    }

    /// Gives the lines to `sink`, the oldest first, each with its line break, in pieces that end anywhere.
    pub fn dump(&self, mut sink: impl FnMut(&[u8])) {
        let (front, back) = self.halves();
        sink(front);
        if !back.is_empty() {
            sink(back);
        }
    }

    /// What is kept, in the order in which it was written: up to the end of the memory, and on from its start.
    fn halves(&self) -> (&[u8], &[u8]) {
        let (behind, from) = self.bytes.split_at_checked(self.start).unwrap_or_default();
        match from.get(..self.len) {
            Some(front) => (front, &[]),
            None => (from, behind.get(..self.len.saturating_sub(from.len())).unwrap_or_default()),
        }
    }

    fn kept(&self) -> impl Iterator<Item = u8> {
        let (front, back) = self.halves();
        front.iter().chain(back).copied()
    }

    /// Overwrites the oldest line. False where there is none.
    fn drop_oldest(&mut self) -> bool {
        let Some(end) = self.kept().position(|byte| byte == b'\n') else { return false };
        // A line ends with `<64 digits>"}`, its own hash.
        let mut digits = [0; 64];
        let skipped = end.saturating_sub(64 + 2);
        digits.iter_mut().zip(self.kept().skip(skipped)).for_each(|(to, from)| *to = from);
        let hash = core::str::from_utf8(&digits).ok().and_then(|digits| digits.parse().ok());
        self.before =
            Head { seq: self.before.seq.saturating_add(1), hash: hash.unwrap_or(Digest::from_bytes([0; 32])) };
        let length = end.saturating_add(1);
        self.start = wrapped::<BYTES>(self.start.saturating_add(length));
        self.len = self.len.saturating_sub(length);
        true
    }
}

/// A place in a ring, for a number that is less than twice as great.
const fn wrapped<const BYTES: usize>(at: usize) -> usize {
    match at.checked_sub(BYTES) {
        Some(at) => at,
        None => at,
    }
}

/// A line that is being written behind what a ring keeps. It is there when it is whole.
struct Line<'r, const BYTES: usize> {
    ring: &'r mut AuditRing<BYTES>,
    len: usize,
}

impl<const BYTES: usize> Line<'_, BYTES> {
    fn push(&mut self, mut bytes: &[u8]) -> fmt::Result {
        let len = self.len.saturating_add(bytes.len());
        if len > AuditRing::<BYTES>::LONGEST {
            return Err(fmt::Error);
        }
        while BYTES.saturating_sub(self.ring.len) < len {
            if !self.ring.drop_oldest() {
                return Err(fmt::Error);
            }
        }
        let at = wrapped::<BYTES>(self.ring.start.saturating_add(self.ring.len));
        let mut at = wrapped::<BYTES>(at.saturating_add(self.len));
        while !bytes.is_empty() {
            let room = self.ring.bytes.get_mut(at..).unwrap_or_default();
            let (now, later) = bytes.split_at_checked(room.len()).unwrap_or((bytes, &[]));
            room.iter_mut().zip(now).for_each(|(to, from)| *to = *from);
            (bytes, at) = (later, 0);
        }
        self.len = len;
        Ok(())
    }
}

impl<const BYTES: usize> fmt::Write for Line<'_, BYTES> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes())
    }
}

/// A ring as a sink for whoever shares it on one thread. Asked while it is already writing, it fails.
impl<const BYTES: usize> Audit for RefCell<AuditRing<BYTES>> {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        self.try_borrow_mut().map_err(|_| AuditFault)?.record(record)
    }
}

impl<const BYTES: usize> Default for AuditRing<BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BYTES: usize> fmt::Debug for AuditRing<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditRing")
            .field("lines", &self.lines())
            .field("overwritten", &self.overwritten())
            .field("bytes", &format_args!("{} of {BYTES}", self.len))
            .finish_non_exhaustive()
    }
}
