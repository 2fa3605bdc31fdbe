//! The log as a text.

use std::fmt;
use std::io::{self, BufRead, Read};

use callgate_core::audit::chain::Head;

use crate::audit::{begin, recorded};
use crate::database::Database;
use crate::error::DatabaseError;

/// How many bytes are fetched at once; one line may be longer.
const PAGE: usize = 256 << 10;

/// The lines of the log up to where it ended when this was made, each with its line break.
///
/// Fetched page by page: whoever writes is kept waiting for a page, not for the log.
pub struct Lines<'d> {
    database: &'d Database,
    head: Head,
    begin: Head,
    /// The last line of this reading, and the last one that was fetched.
    last: i64,
    fetched: i64,
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
        // Whatever is there is read, whether or not it ends where it should: to find that out is what it is read for.
        let found = database.step(|link| {
            let last = link.one("SELECT ifnull(max(seq), 0) FROM audit", [], |row| row.get(0))?;
            Ok((recorded(link)?, begin(link)?, last))
        });
        let (head, begin, last) = found.map_err(|error| told(database, error))?;
        let fetched = i64::try_from(seq).unwrap_or(i64::MAX);
        Ok(Self { database, head, begin, last, fetched, page: Vec::new(), at: 0 })
    }

    /// The end of the log as the file keeps it.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// Behind which line the log begins here: the end of its last segment.
    #[must_use]
    pub fn begin(&self) -> Head {
        self.begin
    }

    fn fetch(&mut self) -> io::Result<()> {
        let Self { database, last, fetched, page, at, .. } = self;
        page.clear();
        *at = 0;
        let sql = "SELECT seq, line FROM audit WHERE seq > ?1 AND seq <= ?2 ORDER BY seq";
        let result = database.step(|link| {
            let mut reached = *fetched;
            link.each(sql, (*fetched, *last), |row| {
                reached = row.get(0)?;
                page.extend_from_slice(row.get_ref(1)?.as_str()?.as_bytes());
                page.push(b'\n');
                Ok(page.len() < PAGE)
            })?;
            *fetched = reached;
            Ok(())
        });
        result.map_err(|error| told(database, error))
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
