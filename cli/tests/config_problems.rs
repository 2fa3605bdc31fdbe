//! What is wrong with a configuration is found, all of it, at its place, with what would be right.

use std::fmt::Write;
use std::path::Path;

use callgate::config::{Config, ConfigError, TEMPLATE};
use proptest::prelude::*;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("callgate.toml"))
}

/// Each case of `config_problems.txt`. The groups there name the rules that they hold.
#[test]
fn each_fault_is_found_at_its_place_with_what_would_be_right() {
    let mut failed = String::new();
    let mut cases = 0;
    for case in include_str!("config_problems.txt").split("\n\n").filter(|case| case.contains("\n=> ")) {
        cases += 1;
        let (text, expected) = case.split_once("\n=> ").unwrap();
        let expected: Vec<_> = expected.trim_end().split("\n=> ").collect();
        let Err(error) = parse(&format!("version = 1\n{text}\n")) else {
            writeln!(failed, "{text}\nis accepted\n").unwrap();
            continue;
        };
        let found = error.problems();
        let as_expected = |(found, expected): (&callgate::config::Problem, &&str)| {
            let (place, texts) = expected.split_once(' ').unwrap();
            let (message, help) = texts.split_once(" ;;").unwrap();
            let location = found.location.unwrap();
            place == format!("{}:{}", location.line - 1, location.column)
                && found.message.contains(message)
                && found.help.as_deref().unwrap_or_default().contains(help.trim())
        };
        if found.len() != expected.len() || !found.iter().zip(&expected).all(as_expected) {
            writeln!(failed, "{text}\nshould give\n{}\nand gives\n{error}\n", expected.join("\n")).unwrap();
        }
    }
    assert!(failed.is_empty(), "{failed}");
    assert!(cases > 90, "{cases}");
}

#[test]
fn f7_the_version_is_stated_and_is_one_that_is_known() {
    for (text, message) in [
        ("", "the file has no `version`"),
        ("root = \".\"", "the file has no `version`"),
        ("version = 2", "this program reads version 1"),
        ("version = \"1\"", "`version` is a string"),
        ("version = 1.0", "this program reads version 1"),
    ] {
        let error = parse(text).expect_err(text);
        assert!(error.problems().iter().any(|problem| problem.message.contains(message)), "{text}: {error}");
    }
}

/// N6: by the rules of this version a file of another would be full of faults that are none.
#[test]
fn n6_a_file_of_another_version_is_not_judged() {
    let error = parse("version = 2\nhue = 1\n[channels.web]\nrequire_auth = 3\n").unwrap_err();
    assert_eq!(error.problems().len(), 1, "{error}");
}

#[test]
fn a_builtin_channel_can_be_replaced_in_so_many_words() {
    assert!(parse("version = 1\n[channels.telegram]\nrequire_confirmation_for_mutating = false").is_ok());
    assert!(parse("version = 1\n[channels.mcp]").is_ok(), "a channel asks for a principal unless it says otherwise");
}

/// X1: values may reach a script as its arguments.
#[test]
fn x1_a_script_gets_its_values_as_arguments() {
    let exec = r#"[[exec]]
        name = "x"
        description = "d"
        program = "sh"
        args = ["-c", "awk '{{print}}' \"$1\"", "sh", "{a}"]"#;
    assert!(parse(&format!("version = 1\n{exec}")).is_ok());
}

/// F5: reaching a bound refuses.
#[test]
fn f5_lists_texts_and_depth_are_bounded() {
    let rule = |id: usize| format!("[[rules]]\nid = {}\neffect = \"deny\"\nmutating = true\n", id + 1);
    let rules = |count| format!("version = 1\n{}", (0..count).map(rule).collect::<String>());
    assert!(parse(&rules(1000)).is_ok());
    assert!(parse(&rules(1001)).unwrap_err().to_string().contains("more than 1000 entries"));

    let root = |length| parse(&format!("version = 1\nroot = \"{}\"", "x".repeat(length)));
    assert!(root(4096).is_ok());
    assert!(root(4097).unwrap_err().to_string().contains("longer than 4096 bytes"));

    let depth = |depth| format!("version = 1\nroot = {}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(&depth(50_000)).is_err());
    let schema = |depth| {
        let exec = "[[exec]]\nname = \"x\"\ndescription = \"d\"\nprogram = \"p\"\nschema = { type = \"object\", not = ";
        parse(&format!("version = 1\n{exec}{}1{} }}", "[".repeat(depth), "]".repeat(depth)))
    };
    assert!(schema(30).is_ok());
    assert!(schema(31).unwrap_err().to_string().contains("nests deeper than 32"));
}

#[test]
fn f5_more_problems_than_anybody_reads_are_counted() {
    let keys: String = (0..500).map(|number| format!("key{number} = 1\n")).collect();
    let error = parse(&format!("version = 1\n{keys}")).unwrap_err();
    assert_eq!(error.problems().len(), 500);
    assert!(error.to_string().ends_with("500 problems, the first 50 shown"));
}

proptest! {
    /// F7: any text either gives a configuration or says what is wrong; nothing panics, and nothing of the text reaches the
    /// message that a terminal would act on (D5).
    #[test]
    fn f7_any_text_is_read_or_refused(text in "[\\[\\]{}=.,\"'#a-z0-9 \\n\\t\u{e9}\u{202e}\u{1b}\\\\-]{0,200}") {
        if let Err(error) = parse(&text) {
            prop_assert!(!error.problems().is_empty());
            let shown = error.to_string();
            let acted_on = shown.contains(['\u{202e}', '\u{1b}', '\t']);
            prop_assert!(!acted_on, "{}", shown);
        }
    }

    /// The same for texts near a right one: the template, its examples put to use, with one piece put elsewhere.
    #[test]
    fn f7_any_edit_is_read_or_refused(from in 0..12_000_usize, len in 0..40_usize, to in 0..12_000_usize) {
        let mut text = TEMPLATE.replace("\n#", "\n");
        let piece: String = text.chars().skip(from).take(len).collect();
        let to = text.char_indices().nth(to).map_or(0, |(index, _)| index);
        text.insert_str(to, &piece);
        if let Err(error) = parse(&text) {
            prop_assert!(!error.problems().is_empty());
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
