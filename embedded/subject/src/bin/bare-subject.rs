//! The gate without a heap as a subject in a process: `callgate conformance run -- bare-subject`.

use std::fmt;
use std::io::{self, BufRead, BufReader, Write};

use callgate_subject::{LINE, Subject};

/// Writes to the standard output as it is asked to.
struct Out(io::Stdout);

impl fmt::Write for Out {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_all(text.as_bytes()).map_err(|_| fmt::Error)
    }
}

fn main() -> io::Result<()> {
    let mut input = BufReader::new(io::stdin());
    let mut output = Out(io::stdout());
    let mut subject = Box::new(Subject::new());
    let mut line = Vec::new();
    loop {
        line.clear();
        // One byte more than is taken, so that a longer line is refused, as a device has to.
        let read = io::Read::take(&mut input, LINE as u64 + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let answered = if line.pop() == Some(b'\n') {
            subject.answer(&line, &mut output)
        } else {
            input.skip_until(b'\n')?;
            fmt::Write::write_str(&mut output, r#"{"unsupported":"the line is too long"}"#).map(|()| true)
        };
        match answered {
            Ok(true) => {
                output.0.write_all(b"\n")?;
                output.0.flush()?;
            }
            Ok(false) => return Ok(()),
            Err(fmt::Error) => return Err(io::Error::other("the answer could not be written")),
        }
    }
}
