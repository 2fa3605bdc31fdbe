//! What holds for all file tools: nothing outside of the root, nothing without end.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use callgate::toolkit::fs::{ListArgs, ReadArgs, list, read};
use callgate::toolkit::{Deadline, Fault};
use serde_json::json;

use crate::list::{listing, paths};
use crate::place::{Counting, Place, never};
use crate::race::{until_each, while_swapping};
use crate::read::{args, reading};

#[test]
fn s7_no_path_leads_out_of_the_root() {
    let place = Place::new();
    place.file("dir/in", "in");
    place.link(place.all.path().join("outside"), "absolute");
    place.link("../outside", "relative");
    place.link("../../outside/secret", "dir/file");
    place.link("relative", "twice");
    place.link("loop", "loop");
    let outside = place.all.path().join("outside/secret");
    for path in [
        "..",
        "../outside/secret",
        "dir/../../outside/secret",
        "absolute/secret",
        "relative/secret",
        "twice/secret",
        "dir/file",
        "loop",
        "loop/x",
        "dir/in/x",
        "/etc/passwd",
        outside.to_str().unwrap(),
        "dir\0/in",
        "",
    ] {
        let error = reading(&place, path).unwrap_err();
        assert_eq!(error.fault, Fault::Refused, "{path:?}");
        assert!(!error.message.contains("CANARY") && !error.message.contains("outside"), "{path:?}: {}", error.message);
        for recursive in [false, true] {
            let args = ListArgs { path: path.to_owned(), recursive, ..ListArgs::default() };
            assert!(list(&place.root, &args, never()).is_err(), "{path:?}");
        }
    }
    let all = listing(&place, &ListArgs { recursive: true, ..ListArgs::default() });
    assert_eq!(paths(&all), ["absolute", "dir", "dir/file", "dir/in", "loop", "relative", "twice"]);
}

#[test]
fn s7_links_that_stay_inside_are_followed() {
    let place = Place::new();
    place.file("real/file", "here");
    place.link("real", "alias");
    place.link("../real/file", "real/self");
    assert_eq!(reading(&place, "alias/file").unwrap()["content"], "here");
    assert_eq!(reading(&place, "alias/self").unwrap()["content"], "here");
    assert_eq!(
        paths(&listing(&place, &ListArgs { path: "alias".to_owned(), ..ListArgs::default() })),
        ["alias/file", "alias/self"]
    );
}

/// S7 under a race: while somebody swaps a directory for a link out of the root, a read gives what is inside or an error, and a
/// listing never shows what is outside.
#[test]
fn s7_a_racing_swapper_gains_nothing() {
    let place = Place::new();
    place.file("real/secret", "inside");
    place.link("real", "turn");
    fs::create_dir(place.all.path().join("outside/only-outside")).unwrap();
    let inside = place.inside();
    let mut targets = ["../outside", "real"].into_iter().cycle();
    let swap = || {
        symlink(targets.next().unwrap(), inside.join("next")).unwrap();
        fs::rename(inside.join("next"), inside.join("turn")).unwrap();
    };
    while_swapping(swap, || {
        let turn = ListArgs { path: "turn".to_owned(), recursive: true, ..ListArgs::default() };
        let [refused, read] = until_each(1_500, |_| {
            if let Ok(answer) = list(&place.root, &turn, never()) {
                assert_eq!(paths(&answer), ["turn/secret"]);
            }
            let answer = reading(&place, "turn/secret");
            if let Ok(answer) = &answer {
                assert_eq!(answer["content"], "inside");
            }
            usize::from(answer.is_ok())
        });
        assert!(refused + read > 0 && read > 0, "no read came through, so this run shows nothing");
    });
}

/// A walk goes into directories only, also when one turns into a link between the look and the step.
#[test]
#[cfg(target_os = "linux")]
fn s7_a_walk_follows_no_link_that_was_a_directory() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let place = Place::new();
    place.file("turn/own", "");
    place.file("other/foreign", "");
    place.link("other", "twin");
    let inside = place.inside();
    let (turn, twin) = (inside.join("turn"), inside.join("twin"));
    while_swapping(
        || renameat_with(CWD, &turn, CWD, &twin, RenameFlags::EXCHANGE).unwrap(),
        || {
            let all = ListArgs { recursive: true, ..ListArgs::default() };
            let [as_link, as_directory] = until_each(500, |_| {
                let answer = listing(&place, &all);
                assert!(!paths(&answer).iter().any(|path| ["turn/foreign", "twin/foreign"].contains(path)));
                usize::from(paths(&answer).contains(&"turn/own"))
            });
            assert!(as_link > 0 && as_directory > 0, "nothing was swapped, so this run shows nothing");
        },
    );
}

#[test]
fn s7_the_root_is_the_directory_that_was_opened() {
    let place = Place::new();
    place.file("file", "first");
    fs::rename(place.inside(), place.all.path().join("moved")).unwrap();
    fs::create_dir(place.inside()).unwrap();
    place.file("file", "second");
    assert_eq!(reading(&place, "file").unwrap()["content"], "first");
}

#[test]
fn x2_work_stops_at_the_deadline() {
    let place = Place::new();
    for n in 0..20 {
        place.file(&format!("f{n}"), "");
    }
    let clock = Counting(Cell::new(0));
    let error = list(&place.root, &ListArgs::default(), Deadline::within(&clock, Duration::from_secs(10))).unwrap_err();
    assert_eq!(error.fault, Fault::TimedOut);
    assert!(clock.0.get() < 15_000_000_000, "it went on after the deadline");
    let gone = || true;
    let error = read(&place.root, &args("f0"), never().or_when(&gone)).unwrap_err();
    assert_eq!(error.fault, Fault::Cancelled);
}

#[test]
fn s8_unknown_arguments_are_refused() {
    assert!(serde_json::from_value::<ListArgs>(json!({"path": ".", "pathh": "."})).is_err());
    assert!(serde_json::from_value::<ReadArgs>(json!({"path": ".", "confirm_token": "x"})).is_err());
    assert!(serde_json::from_value::<ReadArgs>(json!({})).is_err());
}
