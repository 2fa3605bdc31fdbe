//! `fs.list`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use callgate::toolkit::fs::{ListArgs, list};
use serde_json::Value;

use crate::place::{Place, never};
use crate::read::reading;

pub(crate) fn listing(place: &Place, args: &ListArgs) -> Value {
    list(&place.root, args, never()).unwrap()
}

pub(crate) fn paths(answer: &Value) -> Vec<&str> {
    answer["entries"].as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect()
}

#[test]
fn a_directory_is_listed_in_order_with_what_is_known() {
    let place = Place::new();
    place.file("b.txt", "12345");
    place.file("a/inner", "");
    place.file(".hidden", "");
    place.link("b.txt", "link");
    place.fifo("pipe");
    let answer = listing(&place, &ListArgs::default());
    assert_eq!(paths(&answer), ["a", "b.txt", "link", "pipe"]);
    assert_eq!(answer["truncated"], false);
    let entries = answer["entries"].as_array().unwrap();
    let kinds: Vec<_> = entries.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["directory", "file", "symlink", "other"]);
    assert_eq!(entries[1]["size"], 5);
    assert!(entries[1]["modified"].as_str().unwrap().ends_with('Z'));
    assert_eq!(entries[0].get("size"), None);
}

#[test]
fn a_recursive_listing_gives_paths_that_can_be_read() {
    let place = Place::new();
    place.file("a/b/c.txt", "c");
    place.file("a/.git/config", "");
    place.file("d", "");
    let args = ListArgs { recursive: true, ..ListArgs::default() };
    assert_eq!(paths(&listing(&place, &args)), ["a", "a/b", "a/b/c.txt", "d"]);
    assert_eq!(reading(&place, "a/b/c.txt").unwrap()["content"], "c");
    let args = ListArgs { hidden: true, path: "./a//".to_owned(), ..args };
    assert_eq!(paths(&listing(&place, &args)), ["a/.git", "a/.git/config", "a/b", "a/b/c.txt"]);
}

#[test]
fn x6_a_listing_is_cut_at_its_bound_and_says_so() {
    let place = Place::new();
    for n in 0..30 {
        place.file(&format!("d{}/f{n:02}", n % 3), "");
    }
    let all = listing(&place, &ListArgs { recursive: true, ..ListArgs::default() });
    for max in [1, 2, 7, 32] {
        let answer = listing(&place, &ListArgs { recursive: true, max, ..ListArgs::default() });
        // The same entries as in the whole listing: the first ones.
        assert_eq!(paths(&answer), &paths(&all)[..max as usize], "max {max}");
        assert_eq!(answer["truncated"], true);
    }
    assert_eq!(listing(&place, &ListArgs { recursive: true, max: 33, ..ListArgs::default() })["truncated"], false);
    // A body does not rely on the gate's clamp.
    assert_eq!(paths(&listing(&place, &ListArgs { max: 0, ..ListArgs::default() })).len(), 1);
    assert_eq!(paths(&listing(&place, &ListArgs { max: u32::MAX, ..ListArgs::default() })).len(), 3);
}

#[test]
fn x6_a_deep_tree_is_cut_and_not_followed_to_its_end() {
    let place = Place::new();
    let deep = "d/".repeat(80);
    fs::create_dir_all(place.inside().join(deep)).unwrap();
    let answer = listing(&place, &ListArgs { recursive: true, ..ListArgs::default() });
    assert_eq!(answer["truncated"], true);
    assert_eq!(paths(&answer).len(), 64);
}

#[test]
fn names_that_are_not_text_are_shown_escaped() {
    let place = Place::new();
    fs::write(place.inside().join(OsStr::from_bytes(b"bad\xffname")), "").unwrap();
    place.file("new\nline", "");
    let answer = listing(&place, &ListArgs::default());
    assert_eq!(paths(&answer), [r"bad\xffname", "new\nline"]);
    assert_eq!(answer["entries"][0]["escaped"], true);
    assert_eq!(answer["entries"][1].get("escaped"), None);
}
