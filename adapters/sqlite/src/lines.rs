//! The log as a text.

use std::fmt;
use std::io::{self, BufRead, Read};

use callgate_core::audit::chain::Head;
use callgate_std::audit::Segments;
use callgate_std::audit::segment::{Segment, SegmentLines};

use crate::audit::{begin, recorded, unreadable};
use crate::database::Database;
use crate::error::DatabaseError;

/// How many bytes are fetched at once; one line may be longer.
const PAGE: usize = 256 << 10;

/// The lines of the log up to where it ended when this was made, each with its line break: those of its segments first, then those in
/// the file.
///
/// Fetched page by page: whoever writes is kept waiting for a page, not for the log. What is put aside meanwhile is read on in its
/// segment, so that no line is missed and none is read twice, however often the log is rotated.
pub struct Lines<'d> {
    database: &'d Database,
    head: Head,
    begin: Head,
    /// The last line of this reading, and the last one that was fetched.
    last: u64,
    fetched: u64,
    /// The first line that was there when this was made, and the segments from it on.
    from: u64,
    before: Vec<Segment>,
    /// Whether only what is in the file is read.
    here: bool,
    /// The segment that is being read, and the first line of the last one that was read to its end.
    segment: Option<SegmentLines>,
    reading: u64,
    page: Vec<u8>,
    at: usize,
}

impl<'d> Lines<'d> {
    /// All of them.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn all(database: &'d Database) -> io::Result<Self> {
        Self::after(database, 0)
    }

    /// Those behind the line of this number.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn after(database: &'d Database, seq: u64) -> io::Result<Self> {
        let segments = Segments::of(database.path());
        // Whatever is there is read, whether or not it ends where it should: to find that out is what it is read for.
        let found = database.step(|link| {
            let last: i64 = link.one("SELECT ifnull(max(seq), 0) FROM audit", [], |row| row.get(0))?;
            let begin = begin(link)?;
            // That a segment is removed is recorded before: here, or behind what is read.
            let before = if seq < begin.seq { segments.before(begin.seq.saturating_add(1)) } else { Ok(Vec::new()) };
            Ok((recorded(link)?, begin, last.unsigned_abs(), before.map_err(|error| unreadable(&segments, error))?))
        });
        let (head, begin, last, before) = found.map_err(|error| told(database, error))?;
        let next = seq.saturating_add(1);
        let here = if seq < begin.seq { begin.seq.saturating_add(1) } else { next };
        Ok(Self {
            database,
            head,
            begin,
            last: last.max(begin.seq),
            fetched: seq,
            from: before.first().map_or(here, |oldest| next.max(oldest.first)),
            before,
            here: false,
            segment: None,
            reading: 0,
            page: Vec::new(),
            at: 0,
        })
    }

    /// Those in the file alone, which a rotation takes away.
    pub(crate) fn here(database: &'d Database) -> io::Result<Self> {
        Ok(Self { here: true, ..Self::all(database)? })
    }

    /// The segments that there were when this was made, of the lines that are read.
    pub(crate) fn before(&self) -> &[Segment] {
        &self.before
    }

    /// The end of the log as the file keeps it.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// Behind which line the log begins in the file: the end of its last segment.
    #[must_use]
    pub fn begin(&self) -> Head {
        self.begin
    }

    /// The number of the last line that this reads.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.last
    }

    fn fetch(&mut self) -> io::Result<()> {
        self.page.clear();
        self.at = 0;
        while self.page.is_empty() && self.fetched < self.last {
            if self.segment.is_some() {
                self.fetch_aside()?;
                continue;
            }
            let begin = self.fetch_here().map_err(|error| told(self.database, error))?;
            if let Some(begin) = begin {
                self.look_aside(begin)?;
            } else if self.page.is_empty() {
                // Lines that should be here are not.
                self.fetched = self.last;
            }
        }
        Ok(())
    }

    /// A page of what is in the file; or behind which line that begins, where the next line was put aside before.
    fn fetch_here(&mut self) -> Result<Option<u64>, DatabaseError> {
        let Self { database, last, fetched, here, page, .. } = self;
        let number = |seq| i64::try_from(seq).unwrap_or(i64::MAX);
        let sql = "SELECT seq, line FROM audit WHERE seq > ?1 AND seq <= ?2 ORDER BY seq";
        database.step(|link| {
            let begin = begin(link)?.seq;
            if !*here && *fetched < begin {
                return Ok(Some(begin));
            }
            let mut reached = *fetched;
            link.each(sql, (number(*fetched), number(*last)), |row| {
                reached = row.get::<_, i64>(0)?.unsigned_abs();
                page.extend_from_slice(row.get_ref(1)?.as_str()?.as_bytes());
                page.push(b'\n');
                Ok(page.len() < PAGE)
            })?;
            *fetched = reached;
            Ok(None)
        })
    }

    /// A page of the segment that is being read.
    fn fetch_aside(&mut self) -> io::Result<()> {
        let Some(segment) = &mut self.segment else { return Ok(()) };
        while self.page.len() < PAGE && self.fetched < self.last {
            if segment.read_until(b'\n', &mut self.page)? == 0 {
                self.segment = None;
                return Ok(());
            }
            self.fetched = self.fetched.saturating_add(1);
        }
        Ok(())
    }

    /// Finds the segment of the next line, among those before the line `begin`.
    fn look_aside(&mut self, begin: u64) -> io::Result<()> {
        let segments = Segments::of(self.database.path()).before(begin.saturating_add(1))?;
        let next = self.fetched.saturating_add(1);
        let oldest = segments.first().map_or(begin.saturating_add(1), |oldest| oldest.first);
        if oldest > next.max(self.from) {
            return Err(io::Error::other(format!(
                "the lines up to {} were removed while they were read: read it again",
                oldest.saturating_sub(1)
            )));
        }
        // One that is shorter than it should be is not read again.
        let mut unread: Vec<_> = segments.into_iter().filter(|segment| segment.first > self.reading).collect();
        unread.drain(..unread.iter().rposition(|segment| segment.first <= next).unwrap_or_default());
        let Some(segment) = unread.into_iter().next() else {
            self.fetched = begin;
            return Ok(());
        };
        self.reading = segment.first;
        self.fetched = self.fetched.max(segment.first.saturating_sub(1));
        let mut lines = SegmentLines::of(vec![segment]);
        let mut line = Vec::new();
        for _ in self.reading..self.fetched.saturating_add(1) {
            lines.read_until(b'\n', &mut line)?;
            line.clear();
        }
        self.segment = Some(lines);
        Ok(())
    }
}

fn told(database: &Database, error: DatabaseError) -> io::Error {
    database.report(&error);
    io::Error::other(error)
}

impl fmt::Debug for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("head", &self.head).finish_non_exhaustive()
    }
}

impl BufRead for Lines<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.page.len() && self.fetched < self.last {
            self.fetch()?;
        }
        Ok(self.page.get(self.at..).unwrap_or_default())
    }

    fn consume(&mut self, count: usize) {
        self.at = self.at.saturating_add(count);
    }
}

impl Read for Lines<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}
