//! `fs.read`.

use callgate::toolkit::fs::{Encoding, ReadArgs, read};
use callgate::toolkit::{Fault, ToolError};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::place::{Place, never};

pub(crate) fn args(path: &str) -> ReadArgs {
    serde_json::from_value(json!({ "path": path })).unwrap()
}

pub(crate) fn reading(place: &Place, path: &str) -> Result<Value, ToolError> {
    read(&place.root, &args(path), never())
}

#[test]
fn what_is_no_file_is_refused_and_never_blocks() {
    let place = Place::new();
    place.fifo("pipe");
    place.file("dir/x", "");
    let socket = std::os::unix::net::UnixListener::bind(place.inside().join("socket")).unwrap();
    place.link("pipe", "to-pipe");
    for (path, why) in [
        ("pipe", "neither"),
        ("to-pipe", "neither"),
        ("socket", "neither"),
        ("dir", "a directory"),
        (".", "a directory"),
    ] {
        let error = reading(&place, path).unwrap_err();
        assert_eq!(error.fault, Fault::Refused);
        assert!(error.message.contains(why), "{path}: {}", error.message);
    }
    drop(socket);
    // A device, where the test may make one.
    if mknodat(
        CWD,
        place.inside().join("null"),
        FileType::CharacterDevice,
        Mode::from_raw_mode(0o600),
        rustix::fs::makedev(1, 3),
    )
    .is_ok()
    {
        assert!(reading(&place, "null").unwrap_err().message.contains("neither"));
    }
    let missing = reading(&place, "nothing").unwrap_err();
    assert_eq!((missing.fault, missing.message.as_str()), (Fault::Missing, "path: there is no such file or directory"));
}

#[test]
fn a_file_is_read_in_parts() {
    let place = Place::new();
    place.file("text", "grüße, welt");
    let whole = reading(&place, "text").unwrap();
    assert_eq!(
        whole,
        json!({"path": "text", "content": "grüße, welt", "encoding": "text", "offset": 0, "bytes": 13, "size": 13, "truncated": false})
    );
    // The third byte is in the middle of a character.
    let part = read(&place.root, &ReadArgs { limit: 3, ..args("text") }, never()).unwrap();
    assert_eq!((&part["content"], &part["truncated"], &part["next_offset"]), (&json!("gr"), &json!(true), &json!(2)));
    let rest = read(&place.root, &ReadArgs { offset: 2, ..args("text") }, never()).unwrap();
    assert_eq!(rest["content"], "üße, welt");
    let inside_a_character = read(&place.root, &ReadArgs { offset: 3, ..args("text") }, never()).unwrap_err();
    assert!(inside_a_character.message.contains("byte 3"));
    let beyond = read(&place.root, &ReadArgs { offset: 99, ..args("text") }, never()).unwrap();
    assert_eq!((&beyond["content"], &beyond["truncated"]), (&json!(""), &json!(false)));
    assert!(read(&place.root, &ReadArgs { offset: u64::MAX, ..args("text") }, never()).is_err());
}

#[test]
fn bytes_are_read_as_base64() {
    let place = Place::new();
    place.file("bytes", [0, 255, 1, 254, 2]);
    assert!(reading(&place, "bytes").unwrap_err().message.contains("base64"));
    let args = ReadArgs { encoding: Encoding::Base64, limit: 3, ..args("bytes") };
    let part = read(&place.root, &args, never()).unwrap();
    assert_eq!((&part["content"], &part["bytes"], &part["next_offset"]), (&json!("AP8B"), &json!(3), &json!(3)));
}

#[test]
fn x6_a_read_is_bounded_whatever_the_limit() {
    let place = Place::new();
    place.file("long", "x".repeat(300_000));
    for (limit, bytes) in [(u64::MAX, 262_144), (262_144, 262_144), (1, 1), (0, 1)] {
        let answer = read(&place.root, &ReadArgs { limit, ..args("long") }, never()).unwrap();
        assert_eq!((&answer["bytes"], &answer["truncated"]), (&json!(bytes), &json!(true)), "limit {limit}");
    }
}
