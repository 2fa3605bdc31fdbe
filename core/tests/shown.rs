//! What the reader, the schemas, the context and the fixed stores show of themselves: each fault in words of its own (invariant F4), in
//! which nothing stands of what a caller sent (invariants L1, L4). No prose is compared.
#![cfg(test)]

use std::collections::BTreeSet;
use std::fmt::Debug;

use callgate_core::args::{Args, Edit, Edits, MAX_CLAMPS, Replacement};
use callgate_core::clamp::{Bound, Clamp, ClampError, ClampFault};
use callgate_core::confirm::DecideError;
use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::entropy::{Entropy, EntropyError};
use callgate_core::fields::FieldFault;
use callgate_core::fixed::{AuditRing, Buffer, CallBudget, Confirmations, DecideFault, Limiter, OutcomeTooLong};
use callgate_core::inspect::{Presence, Role};
use callgate_core::json::{
    Event, Full, KeySlot, KeysFull, Kind, Limits, Number, ReadError, ReadErrorKind, Scanned, Text, Value, scan,
};
use callgate_core::name::NameError;
use callgate_core::request::{Request, Settings};
use callgate_core::schema::{Literal, Types};
use callgate_core::tool::Violation;

#[track_caller]
fn each_of_its_own<D: ToString>(all: &[D]) {
    let texts: BTreeSet<String> = all.iter().map(ToString::to_string).collect();
    assert!(texts.iter().all(|text| text.trim().len() > 2), "{texts:?}");
    assert_eq!(texts.len(), all.len(), "{texts:?}");
}

const READ: [ReadErrorKind; 23] = [
    ReadErrorKind::UnexpectedEnd,
    ReadErrorKind::ByteOrderMark,
    ReadErrorKind::NotUtf8,
    ReadErrorKind::TrailingBytes,
    ReadErrorKind::ExpectedValue,
    ReadErrorKind::ExpectedKey,
    ReadErrorKind::ExpectedColon,
    ReadErrorKind::ExpectedCommaOrEnd,
    ReadErrorKind::InvalidEscape,
    ReadErrorKind::ControlCharacter,
    ReadErrorKind::LoneSurrogate,
    ReadErrorKind::InvalidNumber,
    ReadErrorKind::NumberOutOfRange,
    ReadErrorKind::NumberInexact,
    ReadErrorKind::DuplicateKey,
    ReadErrorKind::TooLong { max: 77 },
    ReadErrorKind::TooDeep { max: 77 },
    ReadErrorKind::TooManyNodes { max: 77 },
    ReadErrorKind::TooManyMembers { max: 77 },
    ReadErrorKind::KeyTooLong { max: 77 },
    ReadErrorKind::NumberTooLong { max: 77 },
    ReadErrorKind::NoRoomForKeys,
    ReadErrorKind::NotAnObject,
];

#[test]
fn f4_each_fault_of_an_input_has_words_of_its_own() {
    each_of_its_own(&READ);
    each_of_its_own(&READ.map(ReadErrorKind::code));
    for kind in READ {
        let told = ReadError { at: 4_242, kind }.to_string();
        assert!(told.contains("4242") && told.contains(&kind.to_string()), "{told}");
        let bound = matches!(
            kind,
            ReadErrorKind::TooLong { .. }
                | ReadErrorKind::TooDeep { .. }
                | ReadErrorKind::TooManyNodes { .. }
                | ReadErrorKind::TooManyMembers { .. }
                | ReadErrorKind::KeyTooLong { .. }
                | ReadErrorKind::NumberTooLong { .. }
        );
        assert_eq!(kind.to_string().contains("77"), bound, "S5: {kind}");
        assert_eq!(kind.code().starts_with("max_"), bound, "S5: {kind}");
    }
    let clamps = [ClampFault::Idle, ClampFault::NotFinite, ClampFault::Empty];
    each_of_its_own(&clamps);
    each_of_its_own(&[ClampError::TooMany, ClampError::Unusable]);
    let fields = [
        FieldFault::TooMany,
        FieldFault::NoSlash,
        FieldFault::Tilde,
        FieldFault::TooDeep,
        FieldFault::Idle,
        FieldFault::ClampedRoot,
        FieldFault::Duplicate,
        FieldFault::Clamp(ClampFault::Idle),
        FieldFault::Clamp(ClampFault::Empty),
    ];
    each_of_its_own(&fields);
    assert_eq!(fields[7].to_string(), ClampFault::Idle.to_string());
    let names = [
        NameError::Empty,
        NameError::TooLong { max: 77 },
        NameError::Character { at: 7 },
        NameError::Character { at: 8 },
    ];
    each_of_its_own(&names);
    assert!(names[1].to_string().contains("77") && names[2].to_string().contains('7'));
    let decisions = [
        DecideFault::Unknown,
        DecideFault::Refused(DecideError::OwnRequest),
        DecideFault::Refused(DecideError::Expired),
        DecideFault::Full,
    ];
    each_of_its_own(&decisions);
    assert_eq!(decisions[1].to_string(), DecideError::OwnRequest.to_string());
    assert!(OutcomeTooLong { bytes: 4_242 }.to_string().contains("4242"));
    assert!(Full.to_string().contains(&MAX_CLAMPS.to_string()));
    assert!(KeysFull.to_string().len() > 2 && EntropyError.to_string().len() > 2);
}

/// The names that stand on the wire, in records and in inspections.
#[test]
fn f4_names_on_the_wire_are_told_apart() {
    let kinds = [Kind::Null, Kind::Bool, Kind::Number, Kind::String, Kind::Array, Kind::Object];
    assert_eq!(kinds.map(Kind::as_str), ["null", "boolean", "number", "string", "array", "object"]);
    assert_eq!(kinds.map(|kind| kind.to_string()), kinds.map(Kind::as_str));
    assert_eq!([Mode::Execute, Mode::Plan].map(Mode::as_str), ["execute", "plan"]);
    assert_eq!([Mode::Execute, Mode::Plan].map(|mode| mode.to_string()), ["execute", "plan"]);
    let roles =
        [Role::Guard, Role::Transform, Role::Branch, Role::Hook, Role::Execution, Role::Boundary, Role::Outcome];
    assert_eq!(roles.map(Role::as_str), ["guard", "transform", "branch", "hook", "execution", "boundary", "outcome"]);
    let presences = [Presence::Active, Presence::Conditional, Presence::Dormant, Presence::Skipped];
    assert_eq!(presences.map(Presence::as_str), ["active", "conditional", "dormant", "skipped"]);
}

const CANARY: &str = "C4N4RY-f00d";

#[track_caller]
fn hides(shown: &dyn Debug) {
    for shown in [format!("{shown:?}"), format!("{shown:#?}")] {
        assert!(shown.len() > 1 && !shown.contains(CANARY) && !shown.contains("4242"), "{shown}");
    }
}

/// L1: whatever holds what a caller sent says what it is and not what it holds.
#[test]
fn l1_what_was_read_shows_nothing_of_what_it_holds() {
    let text = format!(r#"{{"{CANARY}": ["{CANARY}", 4242, true, null, {{"\u0061": "{CANARY}\n"}}]}}"#);
    let mut keys = [KeySlot::default(); 4];
    let scanned: Scanned<'_> = scan(text.as_bytes(), &mut keys, &Limits::DEFAULT).expect("good text");
    let args = Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).expect("an object");
    hides(&scanned);
    hides(&args);
    hides(&args.value());
    hides(&args.members());
    assert_eq!(format!("{:?}", args.members()), "Members(..)");
    hides(&args.events());
    let list = args.get(CANARY).expect("a member");
    hides(&list.items());
    let first = list.items().next().and_then(Value::as_text).expect("a text");
    hides(&first);
    hides(&first.chars());
    hides(&first.bytes());
    let mut kinds = BTreeSet::new();
    for (_, event) in args.events() {
        hides(&event);
        kinds.insert(format!("{event:?}"));
    }
    assert_eq!(kinds.len(), 9, "each kind of event by its name: {kinds:?}");
    hides(&Event::Key(Text::from(CANARY)));
    #[cfg(feature = "alloc")]
    hides(&callgate_core::args::SharedArgs::from(args));
    hides(&callgate_core::json::write::Writer::new(&mut String::from(CANARY)));

    let request = Request { tool: "probe", arguments: text.as_bytes(), token: Some(CANARY) };
    hides(&request);
    let shown = format!("{request:?}");
    assert!(shown.contains("probe") && shown.contains(&text.len().to_string()), "{shown}");
    assert_ne!(shown, format!("{:?}", Request { token: None, ..request }));
    let key = callgate_core::digest::DigestKey::new([42; 32]);
    let settings = Settings::new(&key);
    hides(&settings);
    assert!(format!("{settings:?}").contains('8'), "how deep calls may stand");

    let mut buffer = Buffer::<64>::new();
    std::fmt::Write::write_str(&mut buffer, CANARY).expect("there is room");
    hides(&buffer);
    assert!(format!("{buffer:?}").contains("11") && format!("{buffer:?}").contains("64"));
}

/// What is kept for a device says how full it is.
#[test]
fn what_has_bounds_shows_how_full_it_is() {
    let mut budget = CallBudget::<3>::new(7);
    budget.take(&CallContext::cli("r")).expect("there is one");
    let shown = format!("{budget:?}");
    assert!(shown.contains('7') && shown.contains('1'), "{shown}");
    assert!(format!("{:?}", Confirmations::<9, 8>::new()).contains('9'));
    assert!(format!("{:?}", Limiter::<9>::new(None, None)).contains('9'));
    assert!(format!("{:?}", AuditRing::<123>::new()).contains("123"));
}

/// L4: what is wrong with a value is told with the field before it, where there is one.
#[test]
fn l4_a_violation_names_its_field() {
    let shown = |field: &str| Violation { field: &field, reason: &"too long" }.to_string();
    assert_eq!([shown("a.b"), shown("")], ["a.b: too long", "too long"]);
    assert_eq!(format!("{:?}", Violation { field: &"a", reason: &"b" }), "a: b");
}

/// A11: a reference to a source is the source.
#[test]
fn a11_a_source_behind_a_reference_is_the_source() {
    struct Fixed;
    impl Entropy for Fixed {
        fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
            bytes.fill(7);
            Ok(())
        }
    }
    fn draw(source: impl Entropy) -> [u8; 3] {
        let mut bytes = [0; 3];
        source.fill(&mut bytes).expect("it never fails");
        bytes
    }
    assert_eq!(draw(&Fixed), [7; 3]);
}

/// K2: a clamp is told apart by each of its bounds.
#[test]
fn k2_each_way_to_write_a_clamp_sets_its_own_bound() {
    let none = Clamp { min: None, max: None, max_length: None };
    let (low, high) = (Some(Bound::Integer(-3)), Some(Bound::Integer(9)));
    assert_eq!(Clamp::range(-3, 9), Clamp { min: low, max: high, ..none });
    assert_eq!(Clamp::min(-3), Clamp { min: low, ..none });
    assert_eq!(Clamp::max(9), Clamp { max: high, ..none });
    assert_eq!(Clamp::max_length(5), Clamp { max_length: Some(5), ..none });
    assert_eq!(none.check(), Err(ClampFault::Idle), "F7");
    let infinite = Some(Bound::Float(f64::INFINITY));
    for one in [Clamp::min(-3), Clamp::max(9), Clamp::max_length(5), Clamp::range(-3, 9), Clamp::range(9, 9)] {
        assert_eq!(one.check(), Ok(()), "{one:?}");
        assert_eq!(Clamp { min: infinite, ..one }.check(), Err(ClampFault::NotFinite));
        assert_eq!(Clamp { max: infinite, ..one }.check(), Err(ClampFault::NotFinite));
    }
    assert_eq!(Clamp::range(9, 8).check(), Err(ClampFault::Empty));
}

/// K1: clamps stand in the order of their places, however they came.
#[test]
fn k1_clamps_stand_in_the_order_of_their_places() {
    let cut = |at: u32, chars: u32| Edit { at, to: Replacement::Cut { chars } };
    let mut edits = Edits::default();
    assert!(edits.is_empty());
    for at in [9, 3, 7, 5, 1, 8] {
        edits.push(cut(at, at)).expect("there is room");
    }
    edits.push(cut(7, 70)).expect("its place is there already");
    assert!(!edits.is_empty());
    let places = [cut(1, 1), cut(3, 3), cut(5, 5), cut(7, 70), cut(8, 8), cut(9, 9)];
    assert_eq!(edits.as_slice(), places);
    for at in 10..20 {
        edits.push(cut(at, 0)).expect("16 have room");
    }
    assert_eq!(edits.as_slice().len(), MAX_CLAMPS);
    assert_eq!(edits.push(cut(99, 0)), Err(Full), "F5");
    assert_eq!(edits.push(Edit { at: 1, to: Replacement::Number(Number::U64(1)) }), Ok(()));
    edits.clear();
    assert!(edits.is_empty() && edits.as_slice().is_empty());
}

/// S6: the least set of types of each value that a schema names, and the names of sets.
#[test]
fn s6_types_are_named_as_json_schema_names_them() {
    let table = [
        (Literal::Null, Types::NULL, "null"),
        (Literal::Bool(true), Types::BOOLEAN, "boolean"),
        (Literal::integer(-1), Types::INTEGER, "integer"),
        (Literal::float(2.0), Types::INTEGER, "integer"),
        (Literal::float(2.5), Types::NUMBER, "number"),
        (Literal::Text("a"), Types::STRING, "string"),
    ];
    for (literal, types, name) in table {
        assert_eq!(literal.types(), types);
        assert_eq!(types.to_string(), name);
        assert!(Types::ANY.contains(types) && !types.is_empty());
    }
    assert_eq!(Types::NONE.to_string(), "nothing");
    assert!(
        Types::NONE.is_empty() && Types::NUMBER.contains(Types::INTEGER) && !Types::INTEGER.contains(Types::NUMBER)
    );
    assert_eq!(Types::ANY.to_string(), "null or boolean or number or string or array or object");
    assert_eq!(Types::NULL.or(Types::INTEGER).names().collect::<Vec<_>>(), ["null", "integer"]);
}

/// F2, S3: who is who: contexts for each channel, and a wrong field by its name.
#[test]
fn s3_each_channel_has_its_own_context_and_each_field_its_grammar() {
    let scopes = Scopes::new("a b");
    let table = [
        (CallContext::new("x", "r"), "x", None, Scopes::NONE),
        (CallContext::cli("r"), "cli", Some("local-shell"), Scopes::ALL),
        (CallContext::tui("r"), "tui", Some("local-shell"), Scopes::ALL),
        (CallContext::stdio("r"), "mcp", Some("stdio"), Scopes::ALL),
        (CallContext::mcp("r", Some("u"), scopes), "mcp", Some("u"), scopes),
        (CallContext::mcp("r", None, scopes), "mcp", None, scopes),
        (CallContext::web("r", Some("u"), scopes), "web", Some("u"), scopes),
        (CallContext::telegram("r", "chat:1"), "telegram", Some("chat:1"), Scopes::new("read write")),
    ];
    for (context, channel, principal, scopes) in table {
        assert_eq!((context.channel, context.principal, context.scopes), (channel, principal, scopes));
        assert_eq!((context.request_id, context.mode, context.depth, context.tenant), ("r", Mode::Execute, 0, None));
        assert_eq!(context.check(), Ok(()));
    }
    assert_eq!(CallContext::cli("r").with_mode(Mode::Plan).mode, Mode::Plan);
    let good = CallContext::cli("r");
    let wrong = [
        ("channel", CallContext { channel: "a b", ..good }),
        ("tenant", CallContext { tenant: Some("a b"), ..good }),
        ("session", CallContext { session: Some(""), ..good }),
        ("principal", CallContext { principal: Some("a\n"), ..good }),
        ("request_id", CallContext { request_id: "", ..good }),
        ("parent", CallContext { parent: Some("\u{7f}"), ..good }),
        ("scopes", CallContext { scopes: Scopes::new("a b,c"), ..good }),
    ];
    for (field, context) in wrong {
        let error = context.check().expect_err(field);
        assert_eq!(error.field, field);
        assert!(error.to_string().contains(field) && error.to_string().contains(&error.reason.to_string()), "{error}");
    }
    // G8: a child is where its parent is.
    let parent = CallContext { tenant: Some("t"), session: Some("s"), ip: Some("i"), user_agent: Some("a"), ..good };
    let child = parent.child("r-2", Scopes::new("x")).expect("it asks for what its parent holds");
    assert_eq!(child.scopes, Scopes::new("x"));
    assert_eq!(
        (child.tenant, child.principal, child.session, child.ip, child.user_agent, child.channel),
        (Some("t"), Some("local-shell"), Some("s"), Some("i"), Some("a"), "cli")
    );
    assert_eq!((child.request_id, child.parent, child.depth), ("r-2", Some("r"), 1));
    assert_eq!(scopes.to_string(), "a, b");
    assert_eq!(Scopes::NONE.to_string(), "(none)");
    assert_eq!((scopes.as_str(), scopes.is_empty(), Scopes::new(" ").is_empty()), ("a b", false, true));
    assert_eq!(scopes.iter().collect::<Vec<_>>(), ["a", "b"]);
}
