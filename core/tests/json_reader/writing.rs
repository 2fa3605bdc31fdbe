//! What is written: each method writes what it says, commas come by themselves, and an output that fails is told.

use std::fmt::{self, Write as _};

use callgate_core::json::write::{Writer, escape, must_escape};
use callgate_core::json::{Number, Object, Text};

/// Takes so many bytes and no more.
struct Short<'t>(usize, &'t mut String);

impl fmt::Write for Short<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.checked_sub(text.len()).ok_or(fmt::Error)?;
        self.1.write_str(text)
    }
}

fn everything(out: &mut dyn fmt::Write) -> fmt::Result {
    let mut json = Writer::new(out);
    json.start_object()?;
    json.key("empty")?;
    json.start_array()?;
    json.end_array()?;
    json.key("list")?;
    json.start_array()?;
    json.null()?;
    json.bool(true)?;
    json.bool(false)?;
    json.u64(7)?;
    json.number(Number::F64(1.5))?;
    json.number(Number::I64(-3))?;
    json.string("a\"b")?;
    json.text(Text::from("c"))?;
    json.display(&format_args!("{}-\n{}", 1, 2))?;
    json.raw(|out| out.write_str("[0]"))?;
    json.start_object()?;
    json.key_text(Text::from("k\\"))?;
    json.start_object()?;
    json.end_object()?;
    json.end_object()?;
    json.u64(8)?;
    json.end_array()?;
    json.key("last")?;
    json.raw(|out| {
        let mut object = Object::begin(out)?;
        object.text("text", "t")?;
        object.optional("some", Some("s"))?;
        object.optional("none", None)?;
        object.nullable("there", Some("x"))?;
        object.nullable("not there", None)?;
        object.display("shown", &"\u{202e}")?;
        object.number("most", u64::MAX)?;
        object.integer("least", i64::MIN)?;
        object.integer("zero", 0)?;
        object.integer("five", 5)?;
        object.boolean("yes", true)?;
        object.boolean("no", false)?;
        object.null("nothing")?;
        object.strings("many", ["a", "\u{1f}"])?;
        object.strings::<&str>("few", [])?;
        object.raw("more", |out| out.write_str("{}"))?;
        object.end()
    })?;
    json.end_object()
}

const EXPECTED: &str = concat!(
    r#"{"empty":[],"list":[null,true,false,7,1.5,-3,"a\"b","c","1-\n2",[0],{"k\\":{}},8],"last":"#,
    r#"{"text":"t","some":"s","there":"x","not there":null,"shown":"\u202e","most":18446744073709551615,"#,
    r#""least":-9223372036854775808,"zero":0,"five":5,"yes":true,"no":false,"nothing":null,"#,
    r#""many":["a","\u001f"],"few":[],"more":{}}}"#
);

#[test]
fn j9_each_method_writes_what_it_says() {
    let mut text = String::new();
    everything(&mut text).expect("a string takes all");
    assert_eq!(text, EXPECTED);
}

/// F5: an output that is full is told, wherever that happens; what it took is the start of the text.
#[test]
fn f5_an_output_that_is_full_is_told() {
    for room in 0..EXPECTED.len() {
        let mut text = String::new();
        assert!(everything(&mut Short(room, &mut text)).is_err(), "{room}");
        assert!(EXPECTED.starts_with(&text), "{text}");
    }
    assert!(everything(&mut Short(EXPECTED.len(), &mut String::new())).is_ok());
}

/// D5: every character that must be escaped is, as its UTF-16 units; others (some of each plane) stand as they are.
#[test]
fn d5_each_character_is_written_as_itself_or_as_its_units() {
    let mut json = String::new();
    for c in ('\0'..=char::MAX).filter(|c| must_escape(*c) || *c < '\u{100}' || u32::from(*c) % 61 == 0) {
        json.clear();
        escape(c.encode_utf8(&mut [0; 4]), &mut json).expect("a string takes all");
        let mut expected = String::new();
        match c {
            '"' | '\\' => expected.extend(['\\', c]),
            '\n' => expected.push_str("\\n"),
            '\r' => expected.push_str("\\r"),
            '\t' => expected.push_str("\\t"),
            _ if must_escape(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(expected, "\\u{unit:04x}").expect("a string takes all");
                }
            }
            _ => expected.push(c),
        }
        assert_eq!(json, expected, "{c:?}");
    }
}
