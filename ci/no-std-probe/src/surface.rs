//! What a host calls beside the pipeline: inspection, schemas, rules, redaction, texts. Linked in, it is held to the same
//! standard: no allocation, no panic.

use core::fmt::Write as _;

use callgate_core::args::Args;
use callgate_core::clamp::Clamp;
use callgate_core::code::{Code, Effect};
use callgate_core::confirm::{
    Asked, Binding, By, Decided, Presented, Ticket, Verdict, call_digest, caller_digest, principal_digest,
};
use callgate_core::context::{CallContext, Scopes};
use callgate_core::digest::{Digest, DigestBuilder, DigestKey};
use callgate_core::entropy::{Entropy, EntropyError};
use callgate_core::fields;
use callgate_core::fixed::{Buffer, Tools};
use callgate_core::inspect::{Inspection, Wiring};
use callgate_core::json::{KeySlot, Limits, Number, key_capacity};
use callgate_core::limit::{LimitExceeded, LimitKey, Quota};
use callgate_core::name::{check_scope, check_tool_name};
use callgate_core::nearest::nearest;
use callgate_core::policy::{
    ArgTest, ChannelPolicy, ChannelTable, ConsentGrant, GrantedArgs, PolicyGate, RuleDef, RuleSet, Subject,
};
use callgate_core::redact::{Redaction, Secrets};
use callgate_core::schema::{Literal, Property, Schema};
use callgate_core::time::Timestamp;
use callgate_core::tool::{FieldRule, Tool};
use serde::Deserialize;

use crate::buffer::Has as _;
use crate::checks::Check;
use crate::valve::{self, SCHEMA};
use crate::{Checked, unknown};

pub(crate) fn all() -> Checked {
    schemas()?;
    plans()?;
    texts()?;
    numbers()?;
    rules()?;
    faults()?;
    values()
}

fn ensure(holds: bool, check: Check) -> Checked {
    if holds { Ok(()) } else { Err(check) }
}

fn schemas() -> Checked {
    let mut out = Buffer::<2_048>::new();
    let schema = unknown(SCHEMA);
    schema.write_json_schema(&mut out).map_err(|_| Check::Schemas)?;
    ensure(out.has(r#""additionalProperties":false"#), Check::Schemas)?;
    out.clear();
    let twice = [Property::required("a", Schema::string()), Property::optional("a", Schema::integer())];
    let twice = unknown(Schema::object(&twice));
    let fault = twice.check();
    if let Err(error) = fault {
        write!(out, "{error}").map_err(|_| Check::Schemas)?;
    }
    ensure(fault.is_err() && out.has("a"), Check::Schemas)?;

    let choices = [Literal::integer(unknown(3)), Literal::Null, Literal::Text("x")];
    let any = Schema::any();
    let open = Schema::object(&[]).open_to(&any);
    let within = [
        Property::required("n", Schema::number().above_f64(0.5).below(7)),
        Property::optional("rows", Schema::array(&open).min_items(1)),
    ];
    let nested = Schema::object(unknown(&within));
    let chosen = [Property::required("c", Schema::any().one_of(&choices)), Property::required("o", nested)];
    out.clear();
    let mut keys = [KeySlot::default(); 16];
    let text = unknown(r#"{"c":4.5,"o":{"n":0.5,"rows":[{"a":[1,{}]},7]}}"#);
    let args = Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).map_err(|_| Check::Schemas)?;
    let mut found = 0;
    Schema::object(&chosen).validate(args, &mut |violation| {
        found += i32::from(writeln!(out, "{violation}").is_ok());
    });
    ensure(found == 3 && out.has("o.rows[1]"), Check::Schemas)
}

fn plans() -> Checked {
    let tool = valve::ASKED;
    let caller = unknown(CallContext::telegram("r-1", "chat:7"));
    let wiring = Wiring { rate_limiter: true, interceptors: true, rule_provider: true, audit: true };
    let gate = PolicyGate::new(ChannelTable::DEFAULTS);
    let inspection = Inspection { tool: &tool, caller, gate, wiring };
    let mut out = Buffer::<8_192>::new();
    inspection.write_json(&mut out).map_err(|_| Check::Plans)?;
    for step in inspection.steps() {
        write!(out, "{}", step.source()).map_err(|_| Check::Plans)?;
    }
    ensure(out.has("contain_exception") && inspection.refusal().is_some(), Check::Plans)
}

fn texts() -> Checked {
    let mut out = Buffer::<1_024>::new();
    let secrets =
        "https://u:p@h/?token=abcdefgh&x=1 Bearer abcdefghijkl sk-0123456789abcdef0123 password=geheim \u{1b}[2J";
    let redaction = Redaction::DEFAULT.with_names(unknown(&["pin"]));
    redaction.write_text(unknown(secrets), Secrets::NONE, &mut out).map_err(|_| Check::Texts)?;
    let leaked = ["abcdefgh", "0123456789abcdef", "geheim", "u:p"].iter().any(|secret| out.has(secret));
    ensure(!leaked && out.has(callgate_core::redact::REPLACEMENT), Check::Texts)?;
    let near = nearest(unknown("fs.raed").chars(), unknown(["fs.read", "fs.write"]));
    ensure(near == Some("fs.read"), Check::Texts)?;

    let caller = unknown(CallContext::web("r", Some("u"), Scopes::new("a b")));
    let quota = Quota::new(unknown(5), 1_500, 5).map_err(|_| Check::Texts)?;
    let key = LimitKey::of_call(&caller, "t");
    out.clear();
    write!(out, "{} {}", LimitExceeded { key, quota }, caller.scopes).map_err(|_| Check::Texts)?;
    key.encode(&mut |piece| ensure(piece.len() < 64, Check::Texts).unwrap_or_default());
    ensure(out.has("max 5 tokens per 1500ms") && out.has("a, b"), Check::Texts)?;
    ensure(caller.child("r2", Scopes::new("a")).is_ok(), Check::Texts)?;
    out.clear();
    let bad = unknown(CallContext::new("we b", "r")).check();
    if let Err(error) = bad {
        write!(out, "{error}").map_err(|_| Check::Texts)?;
    }
    ensure(bad.is_err() && out.has("channel"), Check::Texts)
}

/// A type that takes what there is of JSON.
#[derive(Deserialize)]
struct Anything<'a> {
    #[serde(borrow)]
    text: &'a str,
    float: f32,
    signed: i64,
    unsigned: u64,
    list: [Option<bool>; 3],
    shape: Shape<'a>,
    unit: (),
    letter: char,
}

#[derive(Deserialize)]
enum Shape<'a> {
    Point { x: f64, y: f64 },
    Named(&'a str),
    Nothing,
}

fn numbers() -> Checked {
    let text = unknown(
        r#"{"text":"a\u0062","float":0.5,"signed":-9223372036854775808,"unsigned":18446744073709551615,"list":[true,null,false],"shape":{"Point":{"x":1.25,"y":2e0}},"unit":null,"letter":"\u00e9"}"#,
    );
    let mut keys = [KeySlot::default(); 32];
    ensure(key_capacity(text.as_bytes()) <= keys.len(), Check::Numbers)?;
    let args = Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).map_err(|_| Check::Numbers)?;
    let mut room = [0; 256];
    let all: Anything<'_> = args.deserialize(&mut room).map_err(|_| Check::Numbers)?;
    let () = all.unit;
    let point = match all.shape {
        Shape::Point { x, y } => x + y > 3.0,
        Shape::Named(name) => name.is_empty(),
        Shape::Nothing => false,
    };
    ensure(all.text == "ab" && all.float < 1.0 && all.signed == i64::MIN && all.unsigned == u64::MAX, Check::Numbers)?;
    ensure(point && all.list.len() == 3 && all.letter == 'é', Check::Numbers)?;

    // A type that does not take it says where.
    let mut out = Buffer::<512>::new();
    let mut room = [0; 64];
    if let Err(error) = args.deserialize::<Shape<'_>>(&mut room) {
        write!(out, "{error} {}", error.at()).map_err(|_| Check::Numbers)?;
    }
    ensure(!out.as_str().is_empty(), Check::Numbers)?;
    out.clear();
    args.write_json(&mut out).map_err(|_| Check::Numbers)?;
    ensure(out.has(r#""y":2"#) && out.has("-9223372036854775808"), Check::Numbers)?;

    let key = DigestKey::new(unknown([1; 32]));
    let digest = args.digest(&key, &mut keys).map_err(|_| Check::Numbers)?;
    let mut builder = DigestBuilder::keyed("probe", &key);
    builder.number(unknown(Number::F64(0.5))).i64(unknown(-1)).list(2).digest(&digest);
    out.clear();
    write!(out, "{}", builder.finish()).map_err(|_| Check::Numbers)?;
    ensure(out.as_str().parse::<Digest>().is_ok(), Check::Numbers)
}

fn rules() -> Checked {
    const TESTS: &[ArgTest<&str>] = &[
        ArgTest::text("valve", "a"),
        ArgTest::prefix("valve", "b").or(),
        ArgTest::min("percent", Number::U64(3)),
        ArgTest::absent("api_key"),
    ];
    const RULES: RuleSet<'static> =
        RuleSet::new(&[RuleDef::allow(7).with_arguments(TESTS).needing("x"), RuleDef::deny(8).for_mutating(true)]);
    const CHANNELS: &[ChannelPolicy<'static>] = &[ChannelPolicy::new("bus").requiring_rule().requiring_consent()];
    ensure(RULES.check().is_ok(), Check::Rules)?;
    let channels = ChannelTable::over_defaults(CHANNELS);
    ensure(channels.check().is_ok(), Check::Rules)?;

    let mut keys = [KeySlot::default(); 8];
    let text = unknown(r#"{"valve":"b1","percent":3.0}"#);
    let args = Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).map_err(|_| Check::Rules)?;
    let tool = valve::READ;
    let now = Timestamp::from_unix_millis(unknown(1_000));
    let grants = [ConsentGrant {
        tool: "valve.read",
        definition: tool.definition(),
        tenant: None,
        principal: "p",
        session: None,
        granted_at: Timestamp::from_unix_millis(0),
        expires_at: Timestamp::from_unix_millis(unknown(2_000)),
        uses_left: Some(1),
        arguments: GrantedArgs::Any,
        provenance: "probe",
    }];
    let mut caller = CallContext::new("bus", "r").with_principal("p");
    caller.grants = unknown(&grants);
    let subject = Subject { caller, spec: tool.spec(), definition: tool.definition(), args, arguments: None, now };
    ensure(callgate_core::policy::consent(&subject).is_some(), Check::Consent)?;

    let gate = PolicyGate::new(channels).providing(Scopes::new("network"));
    let mut out = Buffer::<1_024>::new();
    let denied = match gate.decide_with(&subject, unknown(&RULES)) {
        callgate_core::policy::Decision::Deny(denial) => {
            write!(out, "{}", denial.describe(tool.spec(), &caller)).map_err(|_| Check::Rules)?;
            true
        }
        callgate_core::policy::Decision::Allow(_) => false,
    };
    ensure(denied && out.has("rule #7"), Check::Rules)?;
    write!(out, "{} {}", gate.digest(), RULES.digest()).map_err(|_| Check::Rules)
}

/// The texts of what can be wrong with a registration, and an approver's part.
fn faults() -> Checked {
    let mut out = Buffer::<2_048>::new();
    let mut say = |fault: &dyn core::fmt::Display| writeln!(out, "{fault}").map_err(|_| Check::Faults);
    for name in unknown(["", "a b", "ä"]) {
        say(&check_tool_name(name).err().ok_or(Check::Faults)?)?;
        say(&check_scope(name).err().ok_or(Check::Faults)?)?;
    }
    let fields = unknown([FieldRule::clamp("/a/*/b", Clamp::range(1, 0)), FieldRule::secret("no slash")]);
    for rule in &fields {
        say(&fields::check(core::slice::from_ref(rule)).err().ok_or(Check::Faults)?.1)?;
    }
    let rules = unknown([RuleDef::allow(1).for_tools("a*b"), RuleDef::deny(1)]);
    say(&RuleSet::new(&rules).check().err().ok_or(Check::Faults)?)?;
    let channels = unknown([ChannelPolicy::new("a"), ChannelPolicy::new("a")]);
    say(&ChannelTable::new(&channels).check().err().ok_or(Check::Faults)?)?;
    say(&unknown("x").parse::<Digest>().err().ok_or(Check::Faults)?)?;
    say(&Tools::new(unknown(&[valve::READ, valve::READ])).err().ok_or(Check::Faults)?)?;
    for code in Code::ALL {
        ensure(Code::parse(unknown(code.as_str())) == Some(*code), Check::Faults)?;
    }

    let (asker, approver) = unknown((CallContext::cli("r"), CallContext::tui("s").with_principal("boss")));
    let digest = Digest::of_bytes(unknown(b"x"));
    let (caller, principal) = (caller_digest(&asker), principal_digest(&asker));
    let binding = Binding { tool: digest, arguments: digest, caller, principal };
    let now = Timestamp::from_unix_millis(unknown(1_000));
    let mut ticket = Ticket::issue(binding, By::Approver, now, unknown(1_000));
    say(&ticket.usable(now).err().ok_or(Check::Faults)?)?;
    let asked = Asked { tenant: None, scope: "approve", approved_by: unknown(&["other"][..]).iter().copied() };
    let of_another = Asked { tenant: Some("t"), ..asked.clone() };
    ticket = ticket.needing(unknown(2));
    say(&ticket.decide(Verdict::Approve, &asker, &asked, now).err().ok_or(Check::Faults)?)?;
    say(&ticket.decide(Verdict::Approve, &approver, &of_another, now).err().ok_or(Check::Faults)?)?;
    ensure(ticket.is_visible_to(&asker, &asked) && !ticket.is_expired(now), Check::Faults)?;
    ensure(ticket.decide(Verdict::Approve, &approver, &asked, now) == Ok(Decided::Approved), Check::Faults)?;
    let presented = Presented { binding, call: call_digest(asker.request_id), lease_ms: unknown(9) };
    ensure(ticket.claim(&presented, now).is_ok() && Dice.token().is_ok(), Check::Faults)?;
    say(&ticket.cancel_by(&asker).err().ok_or(Check::Faults)?)?;
    say(&ticket.finish(digest, Effect::Done).err().ok_or(Check::Faults)?)?;
    ensure(ticket.reap(now.saturating_add_millis(9)) && !ticket.is_forgettable(now), Check::Faults)?;
    say(&ticket.reconcile(Effect::Done, "", &approver, None).err().ok_or(Check::Faults)?)?;
    say(&ticket.state.as_str())?;
    ensure(out.has("own request"), Check::Faults)
}

struct Dice;

impl Entropy for Dice {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        bytes.fill(unknown(4));
        Ok(())
    }
}

/// Values as a policy of a host's own looks at them.
fn values() -> Checked {
    let text = unknown(r#"{"b\u0065d":[1,-2,0.5,"a\u00e9\ud83d\ude00z"],"pw":"4711-4711","deep":{"x":{"y":[{}]}}}"#);
    let mut keys = [KeySlot::default(); 16];
    let args = Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).map_err(|_| Check::Values)?;
    let bed = args.get(unknown("bed")).ok_or(Check::Values)?;
    let mut sum = 0;
    for item in bed.items() {
        match (item.as_number(), item.as_text()) {
            (Some(number), _) => sum += number.as_i64().unwrap_or_default(),
            (None, Some(text)) => {
                let cut = text.cut(unknown(2));
                ensure(cut.char_count() == 2 && cut.byte_count() == 3 && text > cut, Check::Values)?;
                ensure(text.bytes().count() == 8 && text.eq_str("aé😀z"), Check::Values)?;
            }
            (None, None) => return Err(Check::Values),
        }
    }
    ensure(sum == -1 && args.members().count() == 3 && args.events().count() > 9, Check::Values)?;

    let mut out = Buffer::<1_024>::new();
    let fields = unknown([FieldRule::secret("/pw"), FieldRule::secret("/deep/*/y")]);
    write!(out, "{}", Redaction::COARSE.args(args, &fields)).map_err(|_| Check::Values)?;
    Redaction::COARSE
        .write_text(unknown("it was 4711-4711"), Secrets::of(args, &fields), &mut out)
        .map_err(|_| Check::Values)?;
    ensure(!out.has("4711") && out.has("REDACTED"), Check::Values)
}
