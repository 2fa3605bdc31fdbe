//! Arguments that are checked while they are read fare as those that are read first and checked afterwards.

#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod generate;

use callgate_core::args::Args;
use callgate_core::call::{Call, Load, Lookup};
use callgate_core::clamp::Clamp;
use callgate_core::context::CallContext;
use callgate_core::digest::DigestKey;
use callgate_core::json::{Edit, KeySlot};
use callgate_core::request::{Context, Envelope, Request, Settings};
use callgate_core::schema::{Property, Schema};
use callgate_core::time::Now;
use callgate_core::tool::{FieldRule, Tool, ToolSpec, Violation};
use generate::Choices;
use proptest::prelude::*;

struct Checked<'t> {
    spec: ToolSpec<'t>,
    schema: Schema<'t>,
    while_reading: bool,
}

impl Tool for Checked<'_> {
    type Output = &'static str;
    type Failure = &'static str;

    fn spec(&self) -> &ToolSpec<'_> {
        &self.spec
    }

    fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
        self.schema.validate(args, report);
    }

    fn schema(&self) -> Option<&Schema<'_>> {
        self.while_reading.then_some(&self.schema)
    }
}

/// How a call with these arguments ends, or goes on; and its clamps.
fn fare(schema: Schema<'_>, fields: &[FieldRule<'_>], text: &[u8], while_reading: bool) -> (String, Vec<Edit>) {
    let tool = Checked { spec: ToolSpec::new("tool", "A tool").with_fields(fields), schema, while_reading };
    let key = DigestKey::new([7; 32]);
    let mut keys = [KeySlot::default(); 64];
    let request = Request { tool: "tool", arguments: text, token: None };
    let envelope = Envelope::new(CallContext::cli("r1"), request, Settings::new(&key), &mut keys);
    let Ok(Load::Fresh(call)) = Call::request(envelope, Now::default()).resolve(Lookup::Found(&tool)) else {
        panic!("a call of a tool that is there")
    };
    match call.validate() {
        Ok(call) => {
            let mut shown = String::new();
            call.args().write_json(&mut shown).expect("a string takes all");
            (shown, call.context().edits().as_slice().to_vec())
        }
        Err(ended) => {
            let end = format!("{:?} {:?}", ended.station(), ended.end());
            let outcome = ended.close(Now::default()).audited(Ok(()));
            (format!("{end} {:?}", outcome.to_json_or_none()), outcome.context().edits().as_slice().to_vec())
        }
    }
}

/// The outcome's text, which names what was wrong.
trait ToJson {
    fn to_json_or_none(&self) -> Option<String>;
}

impl<C: Context, T: Tool> ToJson for callgate_core::outcome::Outcome<C, T> {
    fn to_json_or_none(&self) -> Option<String> {
        let mut text = String::new();
        self.write_json(&mut text).ok().map(|()| text)
    }
}

/// A text, and what is left of it after somebody changed a byte or two.
fn damaged() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    let byte = prop_oneof![prop::sample::select(b"{}[],:\"\\ 0a-.e".to_vec()), any::<u8>()];
    prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec((any::<prop::sample::Index>(), byte), 1..3)]
}

fn rules() -> impl Strategy<Value = Vec<FieldRule<'static>>> {
    let path = prop::sample::select(vec!["/a", "/b", "/*", "/ab", "/a_", "/a/b", "/a/*", "/~0", "/*/*", "/nobody"]);
    let clamp = prop::sample::select(vec![
        Some(Clamp::range(-1, 2)),
        Some(Clamp::max(0)),
        Some(Clamp::min(5)),
        Some(Clamp::max_length(2)),
        Some(Clamp { max_length: Some(1), ..Clamp::range(1, 9) }),
        None,
    ]);
    let rule = (path, clamp).prop_map(|(path, clamp)| FieldRule { path, clamp, secret: clamp.is_none() });
    prop::collection::vec(rule, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// S1, S5, K1: one walk or several, the call ends alike, tells the same reasons, and is clamped alike.
    #[test]
    fn s1_one_walk_finds_what_several_find(
        schema in generate::argument_schemas(),
        fields in rules(),
        seed in any::<u64>(),
        damage in damaged(),
    ) {
        let document = generate::document(&schema);
        let mut text = generate::instance(&document, &mut Choices::new(seed), 0).to_string().into_bytes();
        for (at, byte) in damage {
            let at = at.index(text.len());
            text[at] = byte;
        }
        prop_assert_eq!(
            fare(schema, &fields, &text, true),
            fare(schema, &fields, &text, false),
            "{} {:?}", document, String::from_utf8_lossy(&text)
        );
    }
}

/// K3, F5: nothing is left of the clamps of a call that was refused.
#[test]
fn f5_refused_calls_have_no_clamps() {
    const ANY: Schema<'static> = Schema::integer();
    let schema = Schema::map(&ANY);
    let fields = [FieldRule::clamp("/*", Clamp::max(5))];
    let many: Vec<String> = (0..17).map(|n| format!(r#""p{n}":9"#)).collect();
    for text in [r#"{"a":9,"b":"x"}"#.to_owned(), r#"{"a":9"#.to_owned(), format!("{{{}}}", many.join(","))] {
        for while_reading in [true, false] {
            assert_eq!(fare(schema, &fields, text.as_bytes(), while_reading).1, [], "{text}");
        }
    }
    assert_eq!(fare(schema, &fields, br#"{"a":9}"#, true).0, r#"{"a":5}"#);
    for blank in ["", " \n", "{}"] {
        assert_eq!(fare(schema, &fields, blank.as_bytes(), true).0, "{}");
    }
}

/// K4: a clamp names a member of the root, and no member of that name further within.
#[test]
fn k4_members_further_within_are_not_clamped() {
    let fields = [FieldRule::clamp("/a", Clamp { max_length: Some(1), ..Clamp::max(5) })];
    let text = r#"{"b":{"a":9},"c":[{"a":"xy"},9],"a":{"a":9},"d":9}"#;
    for while_reading in [true, false] {
        let (shown, edits) = fare(Schema::object(&[]).open(), &fields, text.as_bytes(), while_reading);
        assert_eq!((shown.as_str(), edits), (text, vec![]));
    }
}

/// S5, K1: what is nested more deeply than most schemas are is walked to its ground.
#[test]
fn s5_a_deep_schema_is_walked_to_its_ground() {
    const GROUND: Schema<'static> = Schema::integer();
    const TWO: Schema<'static> = Schema::array(&Schema::array(&GROUND));
    const FOUR: Schema<'static> = Schema::array(&Schema::array(&TWO));
    const EIGHT: Schema<'static> = Schema::array(&Schema::array(&Schema::array(&Schema::array(&FOUR))));
    for (inner, depth) in [(TWO, 2), (FOUR, 4), (EIGHT, 8)] {
        let properties = [Property::required("a", inner)];
        for (value, fits) in [("1", true), ("\"x\"", false), ("[1]", false)] {
            let text = format!(r#"{{"a":{}{value}{}}}"#, "[".repeat(depth), "]".repeat(depth));
            let (told, _) = fare(Schema::object(&properties), &[], text.as_bytes(), true);
            assert_eq!(told == text, fits, "{told}");
            assert_eq!(told, fare(Schema::object(&properties), &[], text.as_bytes(), false).0);
        }
    }
}
