//! The lines of the protocol, and the files of vectors.

use std::io::Cursor;

use serde_json::Value;

use crate::library::Library;
use crate::serve::serve;
use crate::subject::Subject;
use crate::subjects::{Blocking, Steps};
use crate::vector::VectorFile;
use crate::wire::{Answer, Request};

/// How many lines of one script are played.
const LINES: usize = 12;

/// Invariants N1, S1, X3: each line gets one answer, which is one line; what was understood is written again as the same; the blocking
/// gate and the core fed by hand answer every script alike; what is no file of vectors is refused. The input is a script of lines, or
/// such a file.
pub fn wire(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    vectors(&text);
    let lines: Vec<&str> = text.lines().filter(|line| line.len() < 1 << 16).take(LINES).collect();
    let mut script = String::new();
    for line in &lines {
        let Ok(request) = serde_json::from_str::<Request>(line) else {
            script.push_str(line);
            script.push('\n');
            continue;
        };
        let request = heard_alike(request);
        let again = serde_json::to_string(&request).expect("a request can be written");
        assert_eq!(serde_json::from_str::<Request>(&again).expect("and read"), request, "{again}");
        script.push_str(&again);
        script.push('\n');
    }
    let one = answers(&mut Blocking::new(), &script);
    let other = answers(&mut Steps::new(), &script);
    assert_eq!(one.len(), other.len());
    let ends = lines.iter().position(|line| matches!(serde_json::from_str(line), Ok(Request::Bye {})));
    assert_eq!(one.len(), ends.unwrap_or(lines.len()), "one answer for each line");
    for (one, other) in one.iter().zip(&other) {
        if !matches!(one, Answer::Declare(_)) {
            assert_eq!(one, other, "{script}");
        }
    }
}

/// The request without what only one of the two subjects has.
fn heard_alike(mut request: Request) -> Request {
    if let Request::World(begin) = &mut request {
        begin.world.listener = None;
    }
    request
}

fn answers(subject: &mut dyn Subject, script: &str) -> Vec<Answer> {
    let mut output = Vec::new();
    serve(subject, Cursor::new(script), &mut output).expect("streams in memory hold");
    let output = String::from_utf8(output).expect("an answer is text");
    output
        .lines()
        .map(|line| {
            let answer: Answer = serde_json::from_str(line).expect("an answer is of the protocol");
            let again = serde_json::to_string(&answer).expect("it can be written");
            assert_eq!(again, line, "written again it is the same");
            answer
        })
        .collect()
}

fn vectors(text: &str) {
    let Ok(file) = serde_json::from_str::<VectorFile>(text) else {
        assert!(Library::of([("fuzzed".to_owned(), text.to_owned())]).is_err());
        return;
    };
    let again = serde_json::to_string(&file).expect("a file can be written");
    assert_eq!(serde_json::from_str::<VectorFile>(&again).expect("and read"), file);
    let library = Library::of([("fuzzed".to_owned(), text.to_owned())]);
    assert!(library.is_err() || library.is_ok_and(|library| library.vectors().len() == file.vectors.len()));
    // X: nothing that is not of the format is passed over.
    let Ok(mut value) = serde_json::from_str::<Value>(&again) else { return };
    if let Some(members) = value.as_object_mut() {
        members.insert("surplus".to_owned(), Value::Null);
        assert!(serde_json::from_value::<VectorFile>(value).is_err());
    }
}
