//! What the record of a call says of it, however it ended.
#![cfg(test)]
#![expect(clippy::result_large_err, reason = "a test's host favours plain code")]

use callgate_core::args::Args;
use callgate_core::audit::{Kind, Record};
use callgate_core::call::{Call, Confirm, Ended, Load, Lookup};
use callgate_core::clamp::Clamp;
use callgate_core::confirm::LEASE_SLACK_MS;
use callgate_core::context::{CallContext, SignedConsent};
use callgate_core::digest::DigestKey;
use callgate_core::intercept::Interception;
use callgate_core::json::{KeySlot, Limits};
use callgate_core::limit::Allowance;
use callgate_core::policy::{ChannelPolicy, ChannelTable, ConsentGrant, GrantedArgs, PolicyGate, RuleDef, RuleSet};
use callgate_core::request::{Envelope, Request, Settings};
use callgate_core::schema::{Property, Schema};
use callgate_core::time::Now;
use callgate_core::tool::{ConfirmBy, FieldRule, Tool, ToolSpec, Violation};

const PROPERTIES: &[Property<'static>] =
    &[Property::optional("n", Schema::integer()), Property::optional("list", Schema::array(&Schema::integer()))];
const SCHEMA: Schema<'static> = Schema::object(PROPERTIES);
const FIELDS: &[FieldRule<'static>] = &[FieldRule::clamp("/list/*", Clamp::range(1, 2))];

struct Probe {
    spec: ToolSpec<'static>,
    lenient: bool,
}

impl Tool for Probe {
    type Output = &'static str;
    type Failure = &'static str;

    fn spec(&self) -> &ToolSpec<'_> {
        &self.spec
    }

    fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
        if !self.lenient {
            SCHEMA.validate(args, report);
        }
    }
}

type Ends<'a, 't> = Ended<Envelope<'a>, &'t Probe>;

/// One call, and what is odd about it.
#[derive(Clone, Copy)]
struct Odd {
    spec: ToolSpec<'static>,
    caller: CallContext<'static>,
    arguments: &'static str,
    keys: usize,
    digest_all: bool,
    lenient: bool,
}

fn plain() -> Odd {
    Odd {
        spec: ToolSpec::new("probe", "A tool under test").with_fields(FIELDS),
        caller: CallContext::cli("r-1"),
        arguments: "{}",
        keys: 16,
        digest_all: true,
        lenient: false,
    }
}

fn json(record: &Record<'_>) -> String {
    let mut text = String::new();
    record.write_json(&mut text).expect("a string takes all");
    text
}

/// The records of a call: its intent, if it has one, and its last.
fn records(odd: Odd) -> (Option<String>, String) {
    let probe = Probe { spec: odd.spec, lenient: odd.lenient };
    let key = DigestKey::new([7; 32]);
    let mut keys = vec![KeySlot::default(); odd.keys];
    let request = Request { tool: "probe", arguments: odd.arguments.as_bytes(), token: None };
    let settings = Settings { digest_all: odd.digest_all, ..Settings::new(&key) };
    let call = Call::request(Envelope::new(odd.caller, request, settings, &mut keys), Now::ZERO);
    let mut intent = None;
    let (Ok(ended) | Err(ended)) = stages(call.resolve(Lookup::Found(&probe)), &mut intent);
    (intent, json(&ended.close(Now::ZERO).record()))
}

fn stages<'a, 't>(
    load: Result<Load<Envelope<'a>, &'t Probe>, Ends<'a, 't>>,
    intent: &mut Option<String>,
) -> Result<Ends<'a, 't>, Ends<'a, 't>> {
    let Load::Fresh(call) = load? else { panic!("it brings no token") };
    let call = call.validate()?;
    let rules = [
        RuleDef::deny(7).by_principal("mallory").described("not mallory"),
        RuleDef::allow(9).by_principal("alice"),
        RuleDef::allow(0).by_principal("bob"),
    ];
    let channels = [ChannelPolicy::new("locked").without_auth().requiring_rule()];
    let gate = PolicyGate::new(ChannelTable::over_defaults(&channels));
    let decision = gate.decide_with(&call.subject(), &RuleSet::new(&rules));
    let call = call.authorize(decision)?;
    let call = call.admit(Ok(Allowance::Unlimited))?.unless_planning()?;
    let call = match call.confirm()? {
        Confirm::NotNeeded(call) => call,
        Confirm::Ask(asking) => return Err(asking.no_approver()),
        Confirm::Redeem(redeeming) => redeeming.unknown()?,
    };
    let mut call = call.intercept(Interception::Continue)?;
    *intent = call.intent().map(|intent| {
        assert_eq!(intent.kind, Kind::Intent);
        json(&intent)
    });
    Ok(call.announce(Ok(()))?.cancel())
}

/// J7: a record says in the gate's own words why a call ended, and names the check and the rule that refused it.
#[test]
fn j7_a_record_says_why() {
    let clamped = r#"{"list":[9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9]}"#;
    let nested = r#"{"a":{"b":{"c":1}},"d":[{"e":1},{"f":2}]}"#;
    let asks = plain().spec.with_confirm(ConfirmBy::Caller);
    for (odd, end, detail, check) in [
        (Odd { caller: CallContext::new("bad channel", "r-1"), ..plain() }, "bad_context", "channel", Some("channel")),
        (Odd { arguments: "{\"n\"", ..plain() }, "malformed", "", None),
        (Odd { arguments: r#"{"n":"x"}"#, ..plain() }, "invalid", "n: ", None),
        (Odd { arguments: clamped, ..plain() }, "unclampable", "out of bounds", None),
        (Odd { arguments: nested, keys: 3, spec: asks, lenient: true, ..plain() }, "no_room", "", None),
        (
            Odd { caller: CallContext::cli("r-1").with_principal("mallory"), ..plain() },
            "denied",
            "not mallory",
            Some("rule"),
        ),
        (Odd { caller: CallContext::new("locked", "r-1"), ..plain() }, "denied", "require_rule", Some("rule")),
    ] {
        let (_, record) = records(odd);
        assert!(record.contains(&format!(r#""end":"{end}""#)), "{record}");
        let value: serde_json::Value = serde_json::from_str(&record).expect("a record is JSON");
        let text = |name: &str| value.get(name).and_then(serde_json::Value::as_str);
        assert!(text("detail").is_some_and(|said| said.len() > 8 && said.contains(detail)), "{record}");
        assert_eq!(text("check"), check, "{record}");
        assert_eq!(
            value.get("rule").and_then(serde_json::Value::as_i64),
            (detail == "not mallory").then_some(7),
            "{record}"
        );
    }
}

/// J7: the record of a call that a rule allowed names the rule, whatever its number is.
#[test]
fn j7_a_record_names_the_rule_that_allowed() {
    for (principal, rule) in [("alice", Some(9)), ("bob", Some(0)), ("carol", None)] {
        let spec = plain().spec.mutating();
        let (intent, last) =
            records(Odd { caller: CallContext::cli("r-1").with_principal(principal), spec, ..plain() });
        for record in [intent.expect("it changes something"), last] {
            let value: serde_json::Value = serde_json::from_str(&record).expect("a record is JSON");
            assert_eq!(value.get("rule").and_then(serde_json::Value::as_i64), rule, "{record}");
        }
    }
}

/// J7: a record tells the consent that the call brought, if it is one to this call, how deep it stands, and that nobody knows its channel,
/// also of a call that was refused: calls that differ in one of them alone are decided differently.
#[test]
fn j7_a_record_has_all_that_policy_looks_at() {
    let grant = |tool: &'static str| ConsentGrant {
        tool,
        definition: Probe { spec: plain().spec, lenient: false }.definition(),
        tenant: None,
        principal: "local-shell",
        session: None,
        granted_at: Now::ZERO.wall,
        expires_at: Now::ZERO.wall.saturating_add_millis(1),
        uses_left: None,
        arguments: GrantedArgs::Any,
        provenance: "asked once",
    };
    let leak = |grant| -> &'static [ConsentGrant<'static>] { Box::leak(Box::new([grant])) };
    let (covers, other) = (leak(grant("probe")), leak(grant("prove")));
    let mallorys = leak(ConsentGrant { principal: "mallory", ..grant("probe") });
    let key = DigestKey::new([7; 32]);
    let mut keys = [KeySlot::default(); 4];
    let args = Args::read(b"{}", &mut keys, &Limits::DEFAULT).expect("arguments");
    let arguments = args.digest(&key, &mut [KeySlot::default(); 4]).expect("room");
    let signed = |tool| Some(SignedConsent { signer: "k", tool, arguments });
    let shell = CallContext::cli("r-1");
    for (caller, members) in [
        (shell, vec![]),
        (CallContext { depth: 2, ..shell }, vec![r#""depth":2"#]),
        (CallContext { depth: 200, ..shell }, vec![r#""depth":200"#]),
        (CallContext { grants: covers, ..shell }, vec![r#""consent":"grant","provenance":"asked once""#]),
        (CallContext { grants: other, ..shell }, vec![]),
        (CallContext { signature: signed("probe"), ..shell }, vec![r#""consent":"signature""#]),
        (CallContext { signature: signed("prove"), ..shell }, vec![]),
        // Consent was looked for before a rule refused.
        (
            CallContext { grants: mallorys, principal: Some("mallory"), ..shell },
            vec![r#""consent":"grant""#, r#""check":"rule""#],
        ),
        (CallContext::new("fax", "r-1"), vec![r#""check":"require_auth""#, r#""unknown_channel":true"#]),
        (CallContext::new("fax", "r-1").with_principal("u"), vec![r#""unknown_channel":true"#]),
    ] {
        let (_, record) = records(Odd { caller, ..plain() });
        for member in ["depth", "consent", "provenance", "unknown_channel"] {
            let expected = members.iter().any(|text| text.contains(&format!(r#""{member}":"#)));
            assert!(
                member == "provenance" || record.contains(&format!(r#""{member}":"#)) == expected,
                "{member}: {record}"
            );
        }
        assert!(members.iter().all(|text| record.contains(text)), "{members:?}: {record}");
    }
}

/// L3, J7: the arguments are digested where the host or the tool wants it, once they were read, and never before.
#[test]
fn j7_arguments_are_digested_once_they_were_read() {
    for (mutating, digest_all, arguments, digested) in [
        (false, true, "{}", true),
        (false, false, "{}", false),
        (true, false, "{}", true),
        (false, true, r#"{"n":"x"}"#, true),
        (true, false, r#"{"n":"x"}"#, true),
        (true, true, "{", false),
        (true, true, "[]", false),
    ] {
        let mut spec = plain().spec;
        spec.mutating = mutating;
        let (_, record) = records(Odd { spec, digest_all, arguments, ..plain() });
        assert_eq!(record.contains(r#""args_digest":""#), digested, "{record}");
    }
}

/// J2, J4: an intent comes first for what changes something, and says until when the call is not lost.
#[test]
fn j2_an_intent_says_how_long_the_call_may_take() {
    let spec = plain().spec.with_timeout_ms(7_000);
    assert_eq!(records(Odd { spec, ..plain() }).0, None);
    let (intent, last) = records(Odd { spec: spec.mutating(), digest_all: false, ..plain() });
    let intent = intent.expect("it changes something");
    assert!(intent.contains(&format!(r#""lease_ms":{}"#, 7_000 + LEASE_SLACK_MS)), "{intent}");
    assert!(intent.contains(r#""end":"intent""#) && intent.contains(r#""args_digest":""#), "{intent}");
    assert!(!last.contains("lease_ms"), "{last}");
}
