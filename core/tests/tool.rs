//! What a tool says of itself, what its results are written as, and the seams of the core behind a pointer.
#![cfg(test)]

use callgate_core::args::Args;
use callgate_core::code::{Code, Effect};
use callgate_core::confirm::LEASE_SLACK_MS;
use callgate_core::context::{CallContext, Scopes};
use callgate_core::digest::DigestKey;
use callgate_core::json::{KeySlot, Limits, Object};
use callgate_core::request::{Context, Envelope, Request, Settings};
use callgate_core::schema::Schema;
use callgate_core::time::{Clock, Instant, Now, Timestamp};
use callgate_core::tool::{
    ConfirmBy, DEFAULT_TIMEOUT_MS, FieldRule, MUTATING_COST, READ_COST, Tool, ToolFailure, ToolOutput, ToolSpec,
    Violation,
};

const SPEC: ToolSpec<'static> = ToolSpec::new("valve.move", "Moves a valve");

#[test]
fn each_word_of_a_description_sets_its_own_field() {
    const FIELDS: &[FieldRule<'static>] = &[FieldRule::secret("/a")];
    assert_eq!((SPEC.name, SPEC.description, SPEC.version), ("valve.move", "Moves a valve", None));
    assert_eq!(SPEC.mutating(), ToolSpec { mutating: true, ..SPEC });
    assert_eq!(SPEC.with_version("2"), ToolSpec { version: Some("2"), ..SPEC });
    assert_eq!(SPEC.with_input_schema("{}"), ToolSpec { input_schema: Some("{}"), ..SPEC });
    assert_eq!(SPEC.with_fields(FIELDS), ToolSpec { fields: FIELDS, ..SPEC });
    assert_eq!(SPEC.with_scopes(Scopes::new("a")), ToolSpec { scopes: Scopes::new("a"), ..SPEC });
    assert_eq!(SPEC.with_confirm(ConfirmBy::Caller), ToolSpec { confirm: ConfirmBy::Caller, ..SPEC });
    assert_eq!(SPEC.with_approvals(2), ToolSpec { approvals: 2, ..SPEC });
    assert_eq!(SPEC.with_timeout_ms(9), ToolSpec { timeout_ms: 9, ..SPEC });
    assert_eq!(SPEC.in_background(77), ToolSpec { background_ms: Some(77), ..SPEC });
}

/// X2, R2: how long a call may take, when it counts as lost, and what it costs.
#[test]
fn x2_a_description_says_how_long_and_how_much() {
    assert_eq!(SPEC.deadline_ms(), DEFAULT_TIMEOUT_MS);
    assert_eq!(SPEC.with_timeout_ms(9).deadline_ms(), 9);
    assert_eq!(SPEC.with_timeout_ms(9).in_background(77).deadline_ms(), 77);
    assert_eq!(SPEC.with_timeout_ms(9).lease_ms(), 9 + LEASE_SLACK_MS);
    assert_eq!(SPEC.in_background(u64::MAX).lease_ms(), u64::MAX);
    assert_eq!([SPEC.cost(), SPEC.mutating().cost()], [READ_COST, MUTATING_COST]);
    assert_eq!(ToolSpec { cost: Some(3), ..SPEC.mutating() }.cost(), 3);
}

fn data(output: &impl ToolOutput) -> String {
    let mut text = String::new();
    output.write_data(&mut text).expect("a string takes all");
    text
}

#[test]
fn results_are_written_as_json() {
    assert_eq!(data(&()), "null");
    assert_eq!([data(&true), data(&false)], ["true", "false"]);
    assert_eq!([data(&7_u8), data(&7_u16), data(&7_u32), data(&u64::MAX)], ["7", "7", "7", "18446744073709551615"]);
    assert_eq!([data(&-7_i32), data(&i64::MIN), data(&5_i64)], ["-7", "-9223372036854775808", "5"]);
    assert_eq!(data(&"a\"\n"), r#""a\"\n""#);
    assert_eq!(().message(), None);
    let mut text = String::new();
    let mut meta = Object::begin(&mut text).expect("a string takes all");
    assert!(().write_meta(&mut meta).is_ok() && meta.end().is_ok());
    assert_eq!(text, "{}", "nothing more than the gate's own");
}

/// L4: a text as a failure tells nobody but the record, and claims nothing.
#[test]
fn l4_a_text_as_a_failure_goes_to_the_record_alone() {
    let failure = "the disk is gone";
    assert_eq!(failure.detail(), "the disk is gone");
    assert_eq!((failure.code(), failure.public_text(), failure.effect()), (Code::InternalError, None, Effect::Unknown));
}

struct Probe(Schema<'static>);

impl Tool for Probe {
    type Output = u8;
    type Failure = &'static str;

    fn spec(&self) -> &ToolSpec<'_> {
        &SPEC
    }

    fn definition(&self) -> callgate_core::digest::Digest {
        callgate_core::digest::Digest::from_bytes([9; 32])
    }

    fn validate(&self, _: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
        report(Violation { field: &"a", reason: &"b" });
    }

    fn schema(&self) -> Option<&Schema<'_>> {
        Some(&self.0)
    }

    fn validate_output(&self, output: &u8, report: &mut dyn FnMut(Violation<'_>)) {
        report(Violation { field: &"out", reason: output });
    }
}

/// G2: a tool behind a pointer is the tool.
#[test]
fn g2_a_tool_behind_a_pointer_is_the_tool() {
    fn everything(tool: impl Tool<Output = u8>) -> (String, Vec<u8>, bool, Vec<String>) {
        let mut told = Vec::new();
        tool.validate(Args::EMPTY, &mut |violation| told.push(violation.to_string()));
        tool.validate_output(&7, &mut |violation| told.push(violation.to_string()));
        let schema = tool.schema().is_some_and(|schema| schema.accepts(Args::EMPTY));
        (tool.spec().name.to_owned(), tool.definition().as_bytes().to_vec(), schema, told)
    }
    let probe = || Probe(Schema::object(&[]));
    let tool = probe();
    let told = everything(&tool);
    assert_eq!(told, (String::from(SPEC.name), vec![9; 32], true, vec![String::from("a: b"), String::from("out: 7")]));
    #[cfg(feature = "alloc")]
    assert_eq!(everything(std::sync::Arc::new(probe())), told);
}

/// N1: a context behind a pointer is the context, and what was sent beside a token is inert once the snapshot is there.
#[test]
fn n1_a_context_behind_a_pointer_is_the_context() {
    fn everything<C: Context>(mut context: C, snapshot: C::Snapshot) {
        assert_eq!(context.caller().request_id, "r-1");
        assert!(context.caller_in_place().is_some_and(|caller| caller.request_id == "r-1"));
        assert_eq!((context.request().tool, context.text()), ("probe", Some("{\"a\":1}")));
        assert_eq!(context.settings().max_depth, 3);
        assert!(context.edits().is_empty());
        let none = format!("{:?}", context.facts());
        assert_eq!(format!("{:?}", context.facts_mut()), none);
        let parts = context.parts();
        assert_eq!((parts.request.tool, parts.text, parts.keys.len()), ("probe", Some("{\"a\":1}"), 5));
        context.adopt(snapshot);
        assert_eq!((context.request().arguments, context.text()), (&b"[]"[..], Some("[]")));
        assert_eq!(context.parts().text, Some("[]"));
    }
    let key = DigestKey::new([1; 32]);
    let settings = Settings { max_depth: 3, ..Settings::new(&key) };
    let request = Request { tool: "probe", arguments: br#"{"a":1}"#, token: None };
    let mut keys = [KeySlot::default(); 5];
    everything(&mut Envelope::new(CallContext::cli("r-1"), request, settings, &mut keys), b"[]");
    everything(Envelope::new(CallContext::cli("r-1"), request, settings, &mut keys).with_texts::<String>(), b"[]");
    #[cfg(feature = "alloc")]
    everything(Box::new(Envelope::new(CallContext::cli("r-1"), request, settings, &mut keys)), b"[]");
    let broken = Request { arguments: b"\xff", ..request };
    assert_eq!(Envelope::new(CallContext::cli("r-1"), broken, settings, &mut keys).text(), None);
}

/// C1, N3: a clock that says no more than what it must, and one behind a reference.
#[test]
fn c1_a_clock_behind_a_reference_is_the_clock() {
    struct Plain;
    impl Clock for Plain {
        fn now(&self) -> Now {
            Now { monotonic: Instant::from_nanos(5), wall: Timestamp::from_unix_millis(6) }
        }
    }
    struct Rough;
    impl Clock for Rough {
        fn now(&self) -> Now {
            Now::ZERO
        }

        fn monotonic(&self) -> Instant {
            Instant::from_nanos(7)
        }

        fn monotonic_within(&self, slack: u64) -> Instant {
            Instant::from_nanos(slack)
        }
    }
    fn times(clock: impl Clock) -> [u64; 4] {
        let now = clock.now();
        let wall = now.wall.as_unix_millis();
        [now.monotonic.as_nanos(), wall, clock.monotonic().as_nanos(), clock.monotonic_within(9).as_nanos()]
    }
    assert_eq!([times(Plain), times(&Plain)], [[5, 6, 5, 5]; 2]);
    assert_eq!([times(Rough), times(&Rough)], [[0, 0, 7, 9]; 2]);
    let instant = Instant::from_nanos(5);
    assert_eq!(instant.saturating_add_nanos(4).nanos_since(instant), 4);
    assert_eq!(instant.saturating_add_nanos(u64::MAX).as_nanos(), u64::MAX);
    let stamp = Timestamp::from_unix_millis(6);
    assert_eq!(stamp.saturating_add_millis(4).as_unix_millis(), 10);
    assert_eq!(stamp.saturating_add_millis(u64::MAX).as_unix_millis(), u64::MAX);
}

#[test]
fn v4_arguments_are_empty_when_they_have_no_member() {
    let empty = |text: &str| {
        let mut keys = [KeySlot::default(); 2];
        Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).expect("an object").is_empty()
    };
    assert_eq!([empty(""), empty("{ }"), empty(r#"{"a":{}}"#)], [true, true, false]);
    assert!(Args::EMPTY.is_empty() && Args::EMPTY.sent() == "{}");
}
