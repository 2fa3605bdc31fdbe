//! The reader against nst/JSONTestSuite: every `y_` accepted, every `n_` refused, every `i_` decided here.

use std::path::PathBuf;

use callgate_core::json::{KeySlot, Limits, key_capacity, scan};

/// What this reader decides where RFC 8259 leaves the choice: the code of the refusal, or `ok`. `docs/reader.md` gives
/// the reasons.
const DECIDED: [(&str, &str); 35] = [
    ("i_number_double_huge_neg_exp.json", "number_inexact"),
    ("i_number_huge_exp.json", "max_number_bytes"),
    ("i_number_neg_int_huge_exp.json", "number_out_of_range"),
    ("i_number_pos_double_huge_exp.json", "number_out_of_range"),
    ("i_number_real_neg_overflow.json", "number_out_of_range"),
    ("i_number_real_pos_overflow.json", "number_out_of_range"),
    ("i_number_real_underflow.json", "number_inexact"),
    ("i_number_too_big_neg_int.json", "number_out_of_range"),
    ("i_number_too_big_pos_int.json", "number_out_of_range"),
    ("i_number_very_big_negative_int.json", "number_out_of_range"),
    ("i_object_key_lone_2nd_surrogate.json", "lone_surrogate"),
    ("i_string_1st_surrogate_but_2nd_missing.json", "lone_surrogate"),
    ("i_string_1st_valid_surrogate_2nd_invalid.json", "lone_surrogate"),
    ("i_string_UTF-16LE_with_BOM.json", "not_utf8"),
    ("i_string_UTF-8_invalid_sequence.json", "not_utf8"),
    ("i_string_UTF8_surrogate_U+D800.json", "not_utf8"),
    ("i_string_incomplete_surrogate_and_escape_valid.json", "lone_surrogate"),
    ("i_string_incomplete_surrogate_pair.json", "lone_surrogate"),
    ("i_string_incomplete_surrogates_escape_valid.json", "lone_surrogate"),
    ("i_string_invalid_lonely_surrogate.json", "lone_surrogate"),
    ("i_string_invalid_surrogate.json", "lone_surrogate"),
    ("i_string_invalid_utf-8.json", "not_utf8"),
    ("i_string_inverted_surrogates_U+1D11E.json", "lone_surrogate"),
    ("i_string_iso_latin_1.json", "not_utf8"),
    ("i_string_lone_second_surrogate.json", "lone_surrogate"),
    ("i_string_lone_utf8_continuation_byte.json", "not_utf8"),
    ("i_string_not_in_unicode_range.json", "not_utf8"),
    ("i_string_overlong_sequence_2_bytes.json", "not_utf8"),
    ("i_string_overlong_sequence_6_bytes.json", "not_utf8"),
    ("i_string_overlong_sequence_6_bytes_null.json", "not_utf8"),
    ("i_string_truncated-utf-8.json", "not_utf8"),
    ("i_string_utf16BE_no_BOM.json", "not_utf8"),
    ("i_string_utf16LE_no_BOM.json", "not_utf8"),
    ("i_structure_500_nested_arrays.json", "max_depth"),
    ("i_structure_UTF-8_BOM_empty_object.json", "byte_order_mark"),
];

fn suite() -> PathBuf {
    std::env::var_os("CALLGATE_SUITES")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/suites")), PathBuf::from)
        .join("json-test-suite/test_parsing")
}

fn decision(text: &[u8]) -> &'static str {
    let mut keys = vec![KeySlot::default(); key_capacity(text)];
    scan(text, &mut keys, &Limits::DEFAULT).map_or_else(|error| error.kind.code(), |_| "ok")
}

/// S1, S2, S4; V14, V16: grammar, encodings, duplicates and limits as one public suite sees them.
#[test]
fn s1_json_test_suite() {
    let dir = suite();
    if !dir.is_dir() {
        println!("skipped: no JSONTestSuite at {}; set CALLGATE_SUITES", dir.display());
        return;
    }
    let mut wrong = Vec::new();
    let (mut accepted, mut refused, mut decided) = (0, 0, 0);
    for entry in dir.read_dir().expect("the suite can be listed") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let decision = decision(&std::fs::read(&path).expect("a readable case"));
        match name.get(..2) {
            // RFC 8259 says that the names in an object SHOULD be unique and the suite lets a parser decide otherwise;
            // here they must be (S2, V16).
            Some("y_")
                if matches!(&*name, "y_object_duplicated_key.json" | "y_object_duplicated_key_and_value.json") =>
            {
                accepted += 1;
                if decision != "duplicate_key" {
                    wrong.push((name, decision));
                }
            }
            Some("y_") => {
                accepted += 1;
                if decision != "ok" {
                    wrong.push((name, decision));
                }
            }
            Some("n_") => {
                refused += 1;
                if decision == "ok" {
                    wrong.push((name, decision));
                }
            }
            Some("i_") => {
                decided += 1;
                if !DECIDED.contains(&(&name, decision)) {
                    wrong.push((name, decision));
                }
            }
            _ => {}
        }
    }
    println!("JSONTestSuite: {accepted} y_, {refused} n_, {decided} i_");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!((accepted, refused, decided), (95, 188, 35));
}
