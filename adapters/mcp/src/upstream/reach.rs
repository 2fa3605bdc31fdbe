//! How an upstream is reached.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

/// How a server is reached.
#[derive(Clone)]
#[expect(clippy::exhaustive_enums, reason = "whoever connects must decide for each")]
pub enum Reach {
    /// A program that is started, and speaks over its standard input and output.
    Program(Program),
    /// A server that runs, over streamable HTTP.
    Http(Http),
    /// A stream that the host opens, once for each connection.
    Stream(Open),
}

/// Opens a stream to a server.
pub type Open = Arc<dyn Fn() -> io::Result<Ends> + Send + Sync>;

/// Both ends of a stream to a server: what it writes, and what it reads.
pub type Ends = (Box<dyn Reader>, Box<dyn Writer>);

/// What a server writes.
pub trait Reader: AsyncRead + Send + Unpin {}
impl<R: AsyncRead + Send + Unpin> Reader for R {}

/// What a server reads.
pub trait Writer: AsyncWrite + Send + Unpin {}
impl<W: AsyncWrite + Send + Unpin> Writer for W {}

/// A program, with everything that it gets: its arguments as they stand, without a shell (invariant X1), and these environment
/// variables and no others.
#[derive(Clone)]
#[expect(clippy::exhaustive_structs, reason = "whoever starts a program says all of it")]
pub struct Program {
    /// The program: a path, or a name that is looked up in the `PATH` of this process.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its environment.
    pub env: Vec<(OsString, OsString)>,
    /// Where it runs; where this process does when `None`.
    pub cwd: Option<PathBuf>,
}

/// A server elsewhere.
#[derive(Clone)]
#[expect(clippy::exhaustive_structs, reason = "whoever connects says all of it")]
pub struct Http {
    /// Where it is.
    pub url: String,
    /// Headers of each request. Nothing that came from a caller is among them (invariant T2).
    pub headers: Vec<(String, String)>,
}

/// Values of variables and headers are secrets, and arguments may hold some (invariant L1).
impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(program) => f.debug_tuple("Program").field(&program.program).finish(),
            Self::Http(http) => f.debug_tuple("Http").field(&http.url).finish(),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("program", &self.program).finish_non_exhaustive()
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("url", &self.url).finish_non_exhaustive()
    }
}
