//! Strings: unescaped, compared, cut, and written again.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use callgate_core::json::write::{Writer, must_escape};
use callgate_core::json::{Limits, Text, scan};
use proptest::prelude::*;

use super::model::{self, Spelling};

fn with_text<R>(json: &str, look: impl FnOnce(Text<'_>) -> R) -> R {
    let scanned = scan(json.as_bytes(), &mut [], &Limits::DEFAULT).unwrap_or_else(|error| panic!("{json}: {error}"));
    look(scanned.value().as_text().expect("a string"))
}

fn hash(text: Text<'_>) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    // S1: a string is what serde_json says it is, in every spelling.
    #[test]
    fn s1_strings_unescape_as_serde_json_does(string in model::texts(), seed in any::<u64>()) {
        let mut json = String::new();
        Spelling::new(Some(seed)).text(&string, &mut json);
        prop_assert_eq!(&serde_json::from_str::<String>(&json).expect("good JSON"), &string);
        with_text(&json, |text| {
            prop_assert_eq!(text.chars().collect::<String>(), string.clone());
            prop_assert_eq!(text.bytes().collect::<Vec<_>>(), string.as_bytes());
            prop_assert_eq!(text.to_string(), string.clone());
            prop_assert_eq!(text.char_count(), string.chars().count());
            let (least, most) = text.chars().size_hint();
            prop_assert!(least <= text.char_count() && most.is_some_and(|most| text.char_count() <= most));
            prop_assert_eq!(text.byte_count(), string.len());
            prop_assert_eq!(text.is_empty(), string.is_empty());
            prop_assert!(text.eq_str(&string));
            prop_assert_eq!(text, Text::from(string.as_str()));
            if let Some(plain) = text.as_plain() {
                prop_assert_eq!(plain, &string);
            } else {
                prop_assert!(json.contains('\\'));
            }
            Ok(())
        })?;
    }

    // K2: a cut keeps the first characters, whole, and cutting again changes nothing.
    #[test]
    fn k2_a_cut_keeps_whole_characters(string in model::texts(), seed in any::<u64>(), chars in 0..50_u32) {
        let mut json = String::new();
        Spelling::new(Some(seed)).text(&string, &mut json);
        with_text(&json, |text| {
            let expected: String = string.chars().take(chars as usize).collect();
            prop_assert_eq!(text.cut(chars).to_string(), expected);
            prop_assert_eq!(text.cut(chars).cut(chars), text.cut(chars));
            prop_assert_eq!(text.cut(u32::MAX), text);
            Ok(())
        })?;
    }

    #[test]
    fn strings_are_ordered_by_their_characters(a in model::texts(), b in model::texts(), seed in any::<u64>()) {
        let mut spelling = Spelling::new(Some(seed));
        let (mut json_a, mut json_b) = (String::new(), String::new());
        spelling.text(&a, &mut json_a);
        spelling.text(&b, &mut json_b);
        with_text(&json_a, |text_a| {
            with_text(&json_b, |text_b| {
                prop_assert_eq!(text_a.cmp(&text_b), a.cmp(&b));
                prop_assert_eq!(text_a.partial_cmp(&text_b), Some(a.cmp(&b)));
                prop_assert_eq!(hash(text_a) == hash(text_b), a == b);
                prop_assert_eq!(hash(text_a), hash(Text::from(a.as_str())), "however it is spelled");
                prop_assert_eq!(text_a == text_b, a == b);
                prop_assert_eq!((text_a == *b.as_str(), text_a == b.as_str()), (a == b, a == b));
                prop_assert!(text_a == *a.as_str() && text_a == a.as_str());
                prop_assert_eq!(text_a.eq_str(&b), a == b);
                Ok(())
            })
        })?;
    }

    // D5, J9: what is written is one line of visible characters, and reads as what it was.
    #[test]
    fn j9_written_strings_are_safe_and_read_back(string in model::texts(), chars in proptest::collection::vec(any::<char>(), 0..20)) {
        let string: String = string.chars().chain(chars).collect();
        let mut json = String::new();
        Writer::new(&mut json).string(&string).expect("a string takes all");
        let inside = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).expect("quotes");
        prop_assert!(!inside.chars().any(|c| must_escape(c) && !matches!(c, '\\' | '"')), "{:?}", json);
        prop_assert_eq!(&serde_json::from_str::<String>(&json).expect("good JSON"), &string);
        with_text(&json, |text| {
            prop_assert!(text.eq_str(&string));
            Ok(())
        })?;
    }
}

// D5: one of each kind that must not reach a terminal.
#[test]
fn d5_what_moves_or_hides_text_is_escaped() {
    for c in [
        '\0',
        '\u{1b}',
        '\u{7f}',
        '\u{80}',
        '\u{9f}',
        '\u{ad}',
        '\u{61c}',
        '\u{200b}',
        '\u{200d}',
        '\u{200e}',
        '\u{2028}',
        '\u{2029}',
        '\u{202a}',
        '\u{202e}',
        '\u{2060}',
        '\u{2066}',
        '\u{2069}',
        '\u{feff}',
        '\u{e0001}',
        '\u{e007f}',
    ] {
        let mut json = String::new();
        Writer::new(&mut json).string(&format!("a{c}b")).expect("a string takes all");
        assert!(json.is_ascii() && json.contains("\\u"), "{json:?}");
        assert_eq!(serde_json::from_str::<String>(&json).expect("good JSON"), format!("a{c}b"));
    }
    for plain in ["é", "日本", "😀", "a\u{301}", "\u{2030}", "~"] {
        let mut json = String::new();
        Writer::new(&mut json).string(plain).expect("a string takes all");
        assert_eq!(json, format!("\"{plain}\""));
    }
}

#[test]
fn the_writer_refuses_what_the_reader_would() {
    let mut json = String::new();
    let mut writer = Writer::new(&mut json);
    for _ in 0..64 {
        writer.start_array().expect("64 are fine");
    }
    assert!(writer.start_array().is_err());
    assert!(writer.start_object().is_err());
}
