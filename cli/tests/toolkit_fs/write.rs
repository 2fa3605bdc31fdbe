//! `fs.write`.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use callgate::toolkit::fs::{Root, WriteArgs, write};
use callgate::toolkit::{Fault, ToolError};
use serde_json::{Value, json};

use crate::place::{Place, never};
use crate::race::{until_each, while_swapping};

fn writing(place: &Place, args: Value) -> Result<Value, ToolError> {
    write(&place.root, &serde_json::from_value::<WriteArgs>(args).unwrap(), never())
}

fn content(place: &Place, path: &str) -> String {
    fs::read_to_string(place.inside().join(path)).unwrap()
}

/// The names in the root, to see that nothing else is left behind.
fn names(place: &Place) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(place.inside()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_default_is_a_new_file_and_nothing_else() {
    let place = Place::new();
    let answer = writing(&place, json!({"path": "a.txt", "content": "grüße"})).unwrap();
    assert_eq!(answer, json!({"path": "a.txt", "bytes_written": 7, "created": true, "size": 7}));
    let again = writing(&place, json!({"path": "a.txt", "content": "other"})).unwrap_err();
    assert_eq!(again.fault, Fault::Refused);
    assert_eq!(content(&place, "a.txt"), "grüße");
    assert_eq!(names(&place), ["a.txt"]);
    assert_eq!(fs::metadata(place.inside().join("a.txt")).unwrap().nlink(), 1);
}

#[test]
fn a_file_is_replaced_as_a_whole_and_keeps_its_permissions() {
    let place = Place::new();
    place.file("run.sh", "a long old content");
    let path = place.inside().join("run.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4_751)).unwrap();
    let old = fs::File::open(&path).unwrap();
    let answer = writing(&place, json!({"path": "run.sh", "content": "new", "mode": "overwrite"})).unwrap();
    assert_eq!((&answer["created"], &answer["size"]), (&json!(false), &json!(3)));
    assert_eq!(content(&place, "run.sh"), "new");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7_777, 0o751);
    // Whoever had it open still has the old content whole.
    assert_eq!(std::io::read_to_string(old).unwrap(), "a long old content");
    assert_eq!(writing(&place, json!({"path": "new", "content": "", "mode": "overwrite"})).unwrap()["created"], true);
    assert_eq!(names(&place), ["new", "run.sh"]);
}

#[test]
fn text_is_added_to_the_end() {
    let place = Place::new();
    let append = |text: &str| writing(&place, json!({"path": "log", "content": text, "mode": "append"})).unwrap();
    assert_eq!(append("one\n")["created"], true);
    assert_eq!(append("two\n"), json!({"path": "log", "bytes_written": 4, "created": false, "size": 8}));
    assert_eq!(content(&place, "log"), "one\ntwo\n");
}

#[test]
fn missing_directories_are_made_when_asked() {
    let place = Place::new();
    place.file("real/x", "");
    place.link("real", "alias");
    assert!(writing(&place, json!({"path": "a/b/c", "content": "x"})).is_err());
    assert!(!place.inside().join("a").exists());
    writing(&place, json!({"path": "a/b/c", "content": "x", "create_dirs": true})).unwrap();
    writing(&place, json!({"path": "a/b/d", "content": "y", "create_dirs": true})).unwrap();
    assert_eq!(content(&place, "a/b/c") + &content(&place, "a/b/d"), "xy");
    writing(&place, json!({"path": "alias/new/f", "content": "z", "create_dirs": true})).unwrap();
    assert_eq!(content(&place, "real/new/f"), "z");
}

#[test]
fn s7_nothing_is_written_outside_of_the_root() {
    let place = Place::new();
    place.file("f", "f");
    place.link("../outside", "dir");
    place.link("../outside/secret", "file");
    place.link("../outside/new", "dangling");
    place.link("loop", "loop");
    place.fifo("pipe");
    fs::hard_link(place.all.path().join("outside/secret"), place.inside().join("hard")).unwrap();
    for path in [
        "../outside/new",
        "/tmp/callgate-never",
        "dir/new",
        "dir/secret",
        "dir/sub/new",
        "file",
        "dangling",
        "dangling/x",
        "loop",
        "loop/x",
        "pipe",
        "f/x",
        ".",
        "",
        "a\0b",
    ] {
        for mode in ["create", "overwrite", "append"] {
            let args = json!({"path": path, "content": "EVIL", "mode": mode, "create_dirs": true});
            assert!(writing(&place, args).is_err(), "{mode} {path:?}");
        }
    }
    // A second name for a file outside: appending would change that file, replacing changes only the name inside.
    assert!(writing(&place, json!({"path": "hard", "content": "EVIL", "mode": "append"})).is_err());
    writing(&place, json!({"path": "hard", "content": "EVIL", "mode": "overwrite"})).unwrap();
    assert_eq!(fs::read_to_string(place.all.path().join("outside/secret")).unwrap(), "CANARY");
    assert_eq!(fs::read_dir(place.all.path().join("outside")).unwrap().count(), 1);
    assert_eq!(content(&place, "f"), "f");
    assert_eq!(names(&place), ["dangling", "dir", "f", "file", "hard", "loop", "pipe"]);
}

/// S7 under a race: a directory of the path, and the file itself, are swapped for links out of the root all the time.
#[test]
fn s7_a_racing_swapper_gets_nothing_written_outside() {
    let place = Place::new();
    place.file("real/x", "");
    place.link("real", "turn");
    fs::write(place.all.path().join("outside/target"), "CANARY").unwrap();
    let inside = place.inside();
    let mut outside = true;
    let swap = || {
        symlink(if outside { "../outside" } else { "real" }, inside.join("next")).unwrap();
        fs::rename(inside.join("next"), inside.join("turn")).unwrap();
        if outside {
            symlink("../../outside/target", inside.join("real/next")).unwrap();
        } else {
            fs::write(inside.join("real/next"), "").unwrap();
        }
        fs::rename(inside.join("real/next"), inside.join("real/target")).unwrap();
        outside = !outside;
    };
    while_swapping(swap, || {
        let [_refused, written] = until_each(100, |n| {
            let mode = ["append", "overwrite", "create"][n % 3];
            let args = json!({"path": "turn/target", "content": "EVIL", "mode": mode, "create_dirs": n % 2 == 0});
            usize::from(writing(&place, args).is_ok())
        });
        assert!(written > 0, "no write came through, so this run shows nothing");
    });
    assert_eq!(fs::read_to_string(place.all.path().join("outside/target")).unwrap(), "CANARY");
    assert_eq!(fs::read_dir(place.all.path().join("outside")).unwrap().count(), 2);
}

/// A write looks at its deadline when the draft is complete, just before it takes the file's place. Whatever is changed right
/// then: `meanwhile` does it.
fn writing_while(place: &Place, args: Value, meanwhile: impl Fn()) -> Result<Value, ToolError> {
    let looks = Cell::new(0);
    let second_look = || {
        if looks.replace(looks.get() + 1) == 1 {
            meanwhile();
        }
        false
    };
    let answer = write(&place.root, &serde_json::from_value(args).unwrap(), never().or_when(&second_look));
    assert!(looks.get() > 1, "the write never looked at its deadline");
    answer
}

#[test]
fn s7_a_file_that_appears_meanwhile_is_not_overwritten() {
    let place = Place::new();
    let args = json!({"path": "new", "content": "mine"});
    let error = writing_while(&place, args, || place.file("new", "theirs")).unwrap_err();
    assert_eq!((error.fault, error.message.as_str()), (Fault::Refused, "path: it exists already"));
    assert_eq!(content(&place, "new"), "theirs");
    assert_eq!(names(&place), ["new"]);
}

#[test]
fn s7_a_link_that_appears_meanwhile_is_replaced_and_not_followed() {
    let place = Place::new();
    place.file("file", "old");
    let args = json!({"path": "file", "content": "new", "mode": "overwrite"});
    writing_while(&place, args, || {
        fs::remove_file(place.inside().join("file")).unwrap();
        place.link("../outside/secret", "file");
    })
    .unwrap();
    assert_eq!(fs::read_to_string(place.all.path().join("outside/secret")).unwrap(), "CANARY");
    assert_eq!(content(&place, "file"), "new");
}

#[test]
fn s7_a_directory_that_is_swapped_meanwhile_takes_the_file_with_it() {
    for mode in ["create", "overwrite"] {
        let place = Place::new();
        place.file("dir/x", "");
        let args = json!({"path": "dir/file", "content": "new", "mode": mode});
        writing_while(&place, args, || {
            fs::rename(place.inside().join("dir"), place.inside().join("moved")).unwrap();
            place.link("../outside", "dir");
        })
        .unwrap();
        assert_eq!(content(&place, "moved/file"), "new");
        assert_eq!(fs::read_dir(place.all.path().join("outside")).unwrap().count(), 1);
    }
}

/// Appending writes to the file that was looked at, also when the name turns into a link to another file below the root.
#[test]
#[cfg(target_os = "linux")]
fn s7_nothing_is_appended_through_a_link_that_was_a_file() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let place = Place::new();
    place.file("turn", "");
    place.file("victim", "VICTIM");
    place.link("victim", "twin");
    let inside = place.inside();
    let (turn, twin) = (inside.join("turn"), inside.join("twin"));
    while_swapping(
        || renameat_with(CWD, &turn, CWD, &twin, RenameFlags::EXCHANGE).unwrap(),
        || {
            let args = json!({"path": "turn", "content": "EVIL", "mode": "append"});
            let [refused, written] = until_each(300, |_| usize::from(writing(&place, args.clone()).is_ok()));
            assert!(refused > 0 && written > 0, "nothing was swapped, so this run shows nothing");
        },
    );
    assert_eq!(content(&place, "victim"), "VICTIM");
}

#[test]
fn p6_no_tool_writes_what_the_gate_goes_by() {
    let Place { all, root } = Place::new();
    let inside = all.path().join("inside");
    fs::create_dir_all(inside.join("state/deep")).unwrap();
    fs::write(inside.join("audit.jsonl"), "AUDIT").unwrap();
    fs::hard_link(inside.join("audit.jsonl"), inside.join("second-name")).unwrap();
    symlink("state", inside.join("alias")).unwrap();
    let root =
        root.protect(inside.join("callgate.toml")).protect(inside.join("audit.jsonl")).protect(inside.join("state"));
    let place = Place { all, root };
    for path in [
        "callgate.toml",
        "./callgate.toml",
        "CallGate.toml",
        "audit.jsonl",
        "second-name",
        "state/x",
        "state/deep/x",
        "state/new/x",
        "alias/x",
        "alias/new/x",
        "callgate.toml/x",
    ] {
        for mode in ["create", "overwrite", "append"] {
            let args = json!({"path": path, "content": "EVIL", "mode": mode, "create_dirs": true});
            let error = writing(&place, args).unwrap_err();
            assert_eq!(error.fault, Fault::Refused, "{mode} {path}");
        }
    }
    assert_eq!(content(&place, "audit.jsonl"), "AUDIT");
    assert_eq!(names(&place), ["alias", "audit.jsonl", "second-name", "state"]);
    assert!(!place.inside().join("state/new").exists());
    // The same names elsewhere are anybody's.
    writing(&place, json!({"path": "sub/callgate.toml", "content": "", "create_dirs": true})).unwrap();
}

#[test]
fn p6_a_name_can_be_protected_wherever_it_is() {
    let Place { all, root } = Place::new();
    let place = Place { all, root: root.protect_name("callgate.toml") };
    place.file("sub/callgate.toml", "mine");
    for path in ["callgate.toml", "sub/callgate.toml", "sub/CALLGATE.TOML", "new/deep/callgate.toml", "callgate.toml/x"]
    {
        for mode in ["create", "overwrite", "append"] {
            let args = json!({"path": path, "content": "EVIL", "mode": mode, "create_dirs": true});
            assert_eq!(writing(&place, args).unwrap_err().fault, Fault::Refused, "{mode} {path}");
        }
    }
    assert_eq!(content(&place, "sub/callgate.toml"), "mine");
    assert_eq!(names(&place), ["sub"]);
    writing(&place, json!({"path": "my-callgate.toml", "content": ""})).unwrap();
}

#[test]
fn p6_a_whole_root_can_be_protected() {
    let Place { all, root } = Place::new();
    let root = root.protect(all.path().join("inside"));
    let place = Place { all, root };
    assert!(writing(&place, json!({"path": "x", "content": ""})).is_err());
    assert!(writing(&place, json!({"path": "a/x", "content": "", "create_dirs": true})).is_err());
    assert!(names(&place).is_empty());
}

#[test]
fn what_may_not_be_written_is_refused() {
    let place = Place::new();
    place.file("fixed", "old");
    fs::set_permissions(place.inside().join("fixed"), fs::Permissions::from_mode(0o444)).unwrap();
    let error = writing(&place, json!({"path": "fixed", "content": "new", "mode": "overwrite"})).unwrap_err();
    assert_eq!(error.message, "path: it is read-only");
    let long = "x".repeat((1 << 20) + 1);
    let error = writing(&place, json!({"path": "long", "content": long})).unwrap_err();
    assert_eq!(error.message, "content: is longer than 1 MiB");
    writing(&place, json!({"path": "long", "content": "x".repeat(1 << 20)})).unwrap();
}

#[test]
fn a_call_that_came_too_late_changes_nothing() {
    let place = Place::new();
    place.file("old", "old");
    for (path, mode) in [("old", "overwrite"), ("new/x", "create"), ("old", "append")] {
        let args =
            serde_json::from_value(json!({"path": path, "content": "new", "mode": mode, "create_dirs": true})).unwrap();
        let gone = || true;
        let error = write(&place.root, &args, never().or_when(&gone)).unwrap_err();
        assert_eq!(error.fault, Fault::Cancelled);
    }
    assert_eq!(content(&place, "old"), "old");
    assert_eq!(names(&place), ["old"]);
    // Cancelled when the draft is written and before it takes the file's place.
    let looks = Cell::new(0);
    let second_look = || looks.replace(looks.get() + 1) == 1;
    let args = serde_json::from_value(json!({"path": "old", "content": "new", "mode": "overwrite"})).unwrap();
    assert!(write(&place.root, &args, never().or_when(&second_look)).is_err());
    assert_eq!(content(&place, "old"), "old");
    assert_eq!(names(&place), ["old"]);
}

#[test]
fn a_root_that_is_no_directory_does_not_open() {
    let place = Place::new();
    place.file("f", "");
    assert!(Root::open(&place.inside().join("f")).is_err());
    assert!(Root::open(&place.inside().join("nothing")).is_err());
}
