//! The format: the schema and the types agree on every vector, and both refuse what neither knows.
#![cfg(test)]

use std::collections::BTreeSet;
use std::path::Path;

use callgate_conformance::library::{FILES, Library};
use callgate_conformance::vector::VectorFile;
use serde_json::{Value, json};

fn schema() -> jsonschema::Validator {
    let text = include_str!("../schema/vector.schema.json");
    jsonschema::validator_for(&serde_json::from_str(text).unwrap()).unwrap()
}

fn files() -> impl Iterator<Item = (&'static str, Value)> {
    FILES.iter().map(|(name, text)| (*name, serde_json::from_str(text).unwrap()))
}

#[test]
fn every_file_fits_the_schema() {
    let schema = schema();
    for (name, file) in files() {
        let faults: Vec<_> = schema.iter_errors(&file).map(|error| error.to_string()).collect();
        assert!(faults.is_empty(), "{name}: {faults:#?}");
    }
}

#[test]
fn every_file_of_the_directory_is_built_in() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    assert_eq!(Library::read(&directory).unwrap(), Library::built_in().unwrap());
}

#[test]
fn a_file_that_is_read_and_written_is_the_same() {
    for (name, file) in files() {
        let read: VectorFile = serde_json::from_value(file.clone()).unwrap();
        let again: VectorFile = serde_json::from_value(serde_json::to_value(&read).unwrap()).unwrap();
        assert_eq!(read, again, "{name}");
    }
}

/// All objects within `value`, by their paths.
fn objects(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            found.insert(path.to_owned());
            members.iter().for_each(|(name, value)| objects(value, &format!("{path}/{name}"), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| objects(item, &format!("{path}/{at}"), found));
        }
        _ => {}
    }
}

/// A member that nobody knows is refused wherever the format has an object of its own: by the schema and by the types alike.
#[test]
fn n6_unknown_members_are_refused_everywhere() {
    let schema = schema();
    let mut tried = 0;
    // Each vector in a file of its own: a file is checked once for each object in it.
    let apart = |(name, file): (&'static str, Value)| {
        let vectors = file["vectors"].as_array().unwrap().clone();
        vectors.into_iter().map(move |vector| {
            let mut file = file.clone();
            file["vectors"] = json!([vector]);
            (name, file)
        })
    };
    for (name, file) in files().flat_map(apart) {
        let mut paths = BTreeSet::new();
        objects(&file, "", &mut paths);
        for path in paths {
            let mut file = file.clone();
            let object = file.pointer_mut(&path).unwrap().as_object_mut().unwrap();
            object.insert("unheard-of".to_owned(), json!(1));
            let read = serde_json::from_value::<VectorFile>(file.clone()).is_ok();
            // What a vector leaves to a gate (values, schemas) is anything to the types; the schema looks into schemas, too.
            let fits = schema.is_valid(&file);
            assert!(read || !fits, "{name}{path}: the schema takes it, and the types do not");
            let free = [
                "/arguments",
                "/data",
                "/meta",
                "/records/",
                "/told/",
                "/inspection",
                "/args",
                "/return",
                "/answer",
                "schema",
                "/callers",
            ];
            if !free.iter().any(|part| path.contains(part)) {
                assert!(!read && !fits, "{name}{path}");
                tried += 1;
            }
        }
    }
    assert!(tried > 1_000, "{tried}");
}

fn refused(change: impl Fn(&mut Value)) -> String {
    let text = FILES.iter().find(|(name, _)| *name == "ordering/confirm").unwrap().1;
    let mut file: Value = serde_json::from_str(text).unwrap();
    change(&mut file);
    Library::of([("a file".to_owned(), file.to_string())]).expect_err("it was changed for the worse").to_string()
}

#[test]
fn a_vector_that_says_nonsense_is_refused() {
    type Case = (fn(&mut Value), &'static str);
    let cases: [Case; 10] = [
        (|file| file["format"] = json!(2), "format 2"),
        (|file| file["vectors"][1]["id"] = file["vectors"][0]["id"].clone(), "twice"),
        (|file| file["vectors"][0]["rules"] = json!([]), "needs a reason"),
        (|file| file["vectors"][0]["rules"] = json!(["a5"]), "not the number of an invariant"),
        (|file| file["vectors"][0]["script"][0]["call"]["caller"] = json!("nobody"), "no caller `nobody`"),
        (|file| file["vectors"][0]["script"][1]["redeem"]["ask"] = json!("other"), "no call `other`"),
        (|file| file["vectors"][0]["script"][0]["expect"] = json!({}), "expected of every call"),
        (|file| file["vectors"][0]["script"][0]["advance"] = json!(1), "exactly one act"),
        (|file| file["vectors"][0]["script"][0]["expect"]["outcome"]["code"] = json!("X"), "a success has none"),
        (|file| file["vectors"][0]["world"]["quota"] = json!({"limit": 7, "window_ms": 60_000}), "multiple"),
    ];
    for (change, says) in cases {
        let text = refused(change);
        assert!(text.contains(says), "{text} does not say `{says}`");
    }
}
