//! The other end of the protocol: any subject of this crate, behind a pair of streams.

use std::io::{self, BufRead, Write};

use crate::subject::{Begun, PROTOCOL, Subject, SubjectFault};
use crate::wire::{Answer, Request};

/// Serves `subject` until the runner says goodbye or closes its stream.
///
/// # Errors
/// A stream broke.
pub fn serve(subject: &mut dyn Subject, input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    for line in input.lines() {
        let answer = match serde_json::from_str(&line?) {
            Ok(Request::Bye {}) => break,
            Ok(request) => answer(subject, request).unwrap_or_else(|fault| Answer::Error(fault.to_string())),
            Err(error) => Answer::Error(format!("not a line of the protocol: {error}")),
        };
        let mut line = serde_json::to_string(&answer)?;
        line.push('\n');
        output.write_all(line.as_bytes())?;
        output.flush()?;
    }
    Ok(())
}

fn answer(subject: &mut dyn Subject, request: Request) -> Result<Answer, SubjectFault> {
    Ok(match request {
        Request::Hello(hello) if hello.protocol != PROTOCOL => {
            Answer::Error(format!("protocol {} is not known here; this is {PROTOCOL}", hello.protocol))
        }
        Request::Hello(_) => Answer::Declare(Box::new(subject.declaration().clone())),
        Request::World(begin) => match subject.begin(&begin.world, begin.seed)? {
            Begun::Ready => Answer::Ready {},
            Begun::Unsupported(why) => Answer::Unsupported(why),
            Begun::Refused(why) => Answer::Refused(why),
        },
        Request::Event(event) => match subject.event(&event) {
            Err(SubjectFault::Unsupported(why)) => Answer::Unsupported(why),
            seen => Answer::Seen(Box::new(seen?)),
        },
        Request::Bye {} => Answer::Ready {},
    })
}
