//! Operations: one effect for an id, however often it is asked for.

use callgate_core::call::Ended;
use callgate_core::code::Code;
use callgate_core::context::{CallContext, Mode};
use callgate_core::journal::OperationState;
use callgate_core::outcome::Outcome;
use callgate_core::request::Envelope;
use callgate_core::tool::ConfirmBy;

use crate::world::{Answer, Body, Host, Probe, Says, Sent, World, shell};

const ARGUMENTS: &[u8] = br#"{"path":"a","max":5000}"#;

/// Both doors to the pipeline.
type Door = fn(&Host, &Sent<'_>) -> Told;

#[derive(Clone, PartialEq, Eq, Debug)]
struct Told {
    code: Option<Code>,
    effect: &'static str,
    replayed: bool,
    json: String,
}

fn told(outcome: &Outcome<Envelope<'_>, &Probe>) -> Told {
    Told {
        code: outcome.code(),
        effect: outcome.effect().as_str(),
        replayed: outcome.replayed(),
        json: crate::world::json(outcome),
    }
}

const DOORS: [Door; 2] = [|host, sent| host.linear(sent, told), |host, sent| host.stepped(sent, told)];

fn good() -> World {
    World { mutating: true, ..World::good() }
}

fn host(world: World) -> Host {
    let host = Host::new(world);
    host.operation.set(Some("op-1"));
    host
}

fn sent<'a>(arguments: &'a [u8], token: Option<&'a str>) -> Sent<'a> {
    Sent { tool: "probe", arguments, token, caller: shell(Mode::Execute) }
}

fn last_line(host: &Host) -> String {
    host.lines.borrow().last().cloned().unwrap_or_default()
}

/// The second call of an operation has the result of the first and no effect of its own: it is authorized, charged, recorded and marked,
/// and what it is told says what the operation did. J7, R7.
#[test]
fn j3_an_operation_runs_once_and_is_replayed() {
    for door in DOORS {
        let host = host(good());
        let first = door(&host, &sent(ARGUMENTS, None));
        assert_eq!((first.code, first.effect, first.replayed), (None, "done", false), "{}", first.json);
        assert!(first.json.contains(r#""operation":"op-1","attempt":1"#), "{}", first.json);
        let intent = host.lines.borrow().first().cloned().unwrap_or_default();
        assert!(intent.contains(r#""operation":"op-1","attempt":1"#), "J7: {intent}");
        assert_eq!(host.operations(), [(OperationState::Completed, 1)]);
        host.transcript.borrow_mut().clear();
        let second = door(&host, &sent(ARGUMENTS, None));
        assert_eq!((second.code, second.effect, second.replayed), (None, "done", true), "{}", second.json);
        assert!(
            second.json.contains(r#""data":"done""#) && second.json.contains(r#""replayed":true"#),
            "{}",
            second.json
        );
        assert_eq!(host.effects.get(), 1);
        let asked = host.transcript.borrow().clone();
        assert_eq!(
            asked,
            ["find", "decide", "charge 5 Take", "recall", "refund 4", "record terminal"],
            "authorized and charged again, and neither judged nor announced"
        );
        let line = last_line(&host);
        assert!(line.contains(r#""end":"replayed","effect":"none""#), "the record is of what this call did: {line}");
        assert!(line.contains(r#""operation":"op-1""#) && !line.contains("attempt"), "{line}");
    }
}

/// J8: an outcome says whether the journal knows of it.
#[test]
fn j8_an_outcome_says_whether_the_journal_knows_of_it() {
    for (keeps, unkept) in [(Answer::Good, false), (Answer::Fails, true)] {
        let host = host(World { keeps, ..good() });
        assert_eq!(
            host.linear(&sent(ARGUMENTS, None), |outcome| (outcome.unkept(), outcome.success())),
            (unkept, true)
        );
    }
}

/// P7: who may not make the call any more does not get its result either.
#[test]
fn p7_a_replay_is_authorized_under_the_policy_of_now() {
    for door in DOORS {
        for (change, code) in [
            ((|world| world.policy = Some(Answer::Refuses)) as fn(&mut World), Code::Forbidden),
            (|world| world.limiter = Answer::Refuses, Code::RateLimited),
            (|world| world.recalls = Answer::Fails, Code::StoreUnavailable),
        ] {
            let mut host = host(good());
            assert_eq!(door(&host, &sent(ARGUMENTS, None)).code, None);
            change(&mut host.world);
            let again = door(&host, &sent(ARGUMENTS, None));
            assert_eq!((again.code, again.effect), (Some(code), "none"));
            assert!(!again.json.contains(r#""data":"done""#), "{}", again.json);
        }
    }
}

/// The id of one call is none for another, and what differs is said.
#[test]
fn a4_an_operation_is_bound_to_its_call() {
    for door in DOORS {
        let first = host(good());
        assert_eq!(door(&first, &sent(ARGUMENTS, None)).code, None);
        let other = door(&first, &sent(br#"{"path":"b"}"#, None));
        assert_eq!(other.code, Some(Code::OperationConflict));
        assert!(other.json.contains("with other arguments"), "{}", other.json);
        assert!(last_line(&first).contains(r#""check":"other_arguments""#));
        let first = first.with_tool(|spec| spec.with_version("2"));
        let other = door(&first, &sent(ARGUMENTS, None));
        assert_eq!((other.code, other.effect), (Some(Code::OperationConflict), "none"));
        assert!(other.json.contains("another tool, or for an earlier version"), "{}", other.json);
        assert_eq!(first.effects.get(), 1);
        // What the clamps make of the arguments counts, and not their text.
        let spaced = host(good());
        assert_eq!(door(&spaced, &sent(ARGUMENTS, None)).code, None);
        assert!(door(&spaced, &sent(br#"{ "max": 100, "path": "a" }"#, None)).replayed, "K4");
    }
}

/// P2: another principal's operation is as good as none; nobody has operations.
#[test]
fn p2_ids_belong_to_a_principal_and_tenant() {
    for door in DOORS {
        let host = host(good());
        assert_eq!(door(&host, &sent(ARGUMENTS, None)).code, None);
        for caller in
            [shell(Mode::Execute).with_principal("mallory"), CallContext { tenant: Some("t2"), ..shell(Mode::Execute) }]
        {
            let fresh = Host::new(good());
            fresh.operation.set(Some("op-1"));
            let of_another = Sent { caller, ..sent(br#"{"path":"theirs"}"#, None) };
            let (seen, unknown) = (door(&host, &of_another), door(&fresh, &of_another));
            assert_eq!(seen, unknown, "an id of somebody else's is told from none");
            assert_eq!(seen.code, None);
        }
        // Another session or channel of the same principal finds it.
        let elsewhere = CallContext { channel: "tui", session: Some("s2"), ..shell(Mode::Execute) };
        assert!(door(&host, &Sent { caller: elsewhere, ..sent(ARGUMENTS, None) }).replayed);
        let nobody = CallContext { principal: None, ..shell(Mode::Execute) };
        let refused = door(&host, &Sent { caller: nobody, ..sent(ARGUMENTS, None) });
        assert_eq!(refused.code, Some(Code::OperationUnsupported), "{}", refused.json);
    }
}

/// F1: a journal that fails runs nothing before the effect, and changes nothing of what is told after it (J8).
#[test]
fn f1_a_journal_that_fails_runs_nothing() {
    for door in DOORS {
        for (world, code) in [
            (World { recalls: Answer::Fails, ..good() }, Code::StoreUnavailable),
            (World { recalls: Answer::Refuses, ..good() }, Code::StoreUnavailable),
            (World { takes: Answer::Fails, ..good() }, Code::StoreUnavailable),
            (World { takes: Answer::Refuses, ..good() }, Code::StoreUnavailable),
        ] {
            let host = host(world);
            let refused = door(&host, &sent(ARGUMENTS, None));
            assert_eq!((refused.code, refused.effect, host.effects.get()), (Some(code), "none", 0));
            assert!(host.lines.borrow().iter().all(|line| !line.contains(r#""kind":"intent""#)), "J2");
        }
        let mut host = host(World { keeps: Answer::Fails, ..good() });
        let done = door(&host, &sent(ARGUMENTS, None));
        assert_eq!((done.code, done.effect), (None, "done"), "J8");
        assert!(done.json.contains(r#""journal_pending":true"#), "{}", done.json);
        host.world.keeps = Answer::Good;
        let again = door(&host, &sent(ARGUMENTS, None));
        assert_eq!((again.code, again.effect), (Some(Code::OperationInProgress), "unknown"));
        // J4: after its lease it is in doubt, and nothing runs it again.
        host.now.set(host.now.get() + 1_000_000);
        let lost = door(&host, &sent(ARGUMENTS, None));
        assert_eq!((lost.code, lost.effect), (Some(Code::UnknownOutcome), "unknown"), "{}", lost.json);
        assert_eq!(host.effects.get(), 1);
    }
}

/// What is known to have had no effect may be tried again; what is not, may not.
#[test]
fn j4_only_what_had_no_effect_is_tried_again() {
    for door in DOORS {
        for (world, state) in [
            (World { intent: Answer::Fails, ..good() }, OperationState::Open),
            (World { body: Body::Fails, ..good() }, OperationState::InDoubt),
            (World { body: Body::Panics, ..good() }, OperationState::InDoubt),
            (World { body: Body::TimesOut, ..good() }, OperationState::InDoubt),
            (World { body: Body::IsCancelled, ..good() }, OperationState::InDoubt),
            (World { body: Body::ReturnsBadOutput, ..good() }, OperationState::Completed),
        ] {
            let mut host = host(world);
            assert!(door(&host, &sent(ARGUMENTS, None)).code.is_some());
            assert_eq!(host.operations(), [(state, 1)]);
            let before = host.effects.get();
            host.world = good();
            let again = door(&host, &sent(ARGUMENTS, None));
            let expected = match state {
                OperationState::Open => None,
                OperationState::Completed => Some(Code::ResultNotKept),
                _ => Some(Code::UnknownOutcome),
            };
            assert_eq!(again.code, expected, "{}", again.json);
            assert_eq!(host.effects.get() - before, u32::from(expected.is_none()));
            if expected.is_none() {
                assert_eq!(host.operations(), [(OperationState::Completed, 2)]);
                assert!(again.json.contains(r#""attempt":2"#), "{}", again.json);
            }
        }
        // An interceptor that answers or vetoes comes before the claim: nothing is claimed for it.
        for says in [Says::Answer, Says::Veto] {
            let host = host(World { says, ..good() });
            drop(door(&host, &sent(ARGUMENTS, None)));
            assert_eq!(host.operations(), []);
        }
    }
}

/// An operation that needed a yes is replayed without one: there is nothing to say yes to. A token that is brought all the same is used up.
#[test]
fn a5_a_replay_needs_no_confirmation() {
    for door in DOORS {
        let host = host(World { confirm: ConfirmBy::Caller, ..good() });
        let token = |told: &Told| -> String {
            let (_, rest) = told.json.split_once(r#""confirm_token":""#).expect("a question");
            rest.chars().take(32).collect()
        };
        let spare = token(&door(&host, &sent(ARGUMENTS, None)));
        let used = token(&door(&host, &sent(ARGUMENTS, None)));
        assert_eq!(host.operations(), [], "nothing is claimed by a question");
        assert_eq!(door(&host, &sent(ARGUMENTS, Some(&used))).code, None);
        assert!(door(&host, &sent(ARGUMENTS, None)).replayed);
        assert_eq!(door(&host, &sent(ARGUMENTS, Some(&used))).code, Some(Code::ConfirmationInvalid));
        assert!(door(&host, &sent(ARGUMENTS, Some(&spare))).replayed);
        host.operation.set(Some("op-2"));
        assert_eq!(door(&host, &sent(ARGUMENTS, Some(&spare))).code, Some(Code::ConfirmationInvalid));
        assert_eq!(host.effects.get(), 1);
    }
}

/// O1, F1: what a journal gives as a result has to be one.
#[test]
fn o1_a_forged_result_is_not_handed_out() {
    for door in DOORS {
        let host = host(good());
        assert_eq!(door(&host, &sent(ARGUMENTS, None)).code, None);
        host.forge_results("bad");
        assert_eq!(door(&host, &sent(ARGUMENTS, None)).code, Some(Code::StoreUnavailable));
    }
}

/// S3: an id outside its grammar is refused before anything else, and written nowhere.
#[test]
fn s3_an_id_has_a_grammar() {
    for door in DOORS {
        for bad in ["", "a b", "a\nb", "a,b", "\u{e9}", "\"x\""] {
            let host = host(good());
            host.operation.set(Some(bad));
            let refused = door(&host, &sent(ARGUMENTS, None));
            assert_eq!(refused.code, Some(Code::ValidationError), "{bad:?}");
            assert!(!refused.json.contains(r#""operation":"#) && !last_line(&host).contains(r#""operation":"#));
            assert_eq!(host.transcript.borrow().as_slice(), ["find", "attempt", "record terminal"]);
        }
    }
}

/// R4: a plan asks no journal.
#[test]
fn r4_a_plan_asks_no_journal() {
    for door in DOORS {
        let host = host(good());
        assert_eq!(door(&host, &Sent { caller: shell(Mode::Plan), ..sent(ARGUMENTS, None) }).code, None);
        assert!(host.transcript.borrow().iter().all(|asked| asked != "recall"));
        assert_eq!(host.operations(), []);
    }
}

/// A driver that never heard of a journal refuses the call of an operation, wherever it leaves the questions out.
#[test]
fn f1_a_driver_without_a_journal_refuses() {
    use callgate_core::call::{Call, Load, Lookup, Operate};
    use callgate_core::digest::DigestKey;
    use callgate_core::intercept::Interception;
    use callgate_core::journal::Recalled;
    use callgate_core::json::KeySlot;
    use callgate_core::limit::Allowance;
    use callgate_core::policy::{ChannelTable, PolicyGate};
    use callgate_core::request::{Request, Settings};
    use callgate_core::time::Now;

    type End<'a> = Ended<Envelope<'a>, &'a Probe>;

    let host = Host::new(good());
    let key = DigestKey::new([1; 32]);
    let drive = |recalls: bool, keys: &mut [KeySlot]| {
        let request = Request { tool: "probe", arguments: ARGUMENTS, token: None };
        let envelope = Envelope::new(shell(Mode::Execute), request, Settings::new(&key), keys).of_operation("op-1");
        let stages = || -> Result<(), End<'_>> {
            let Load::Fresh(call) = Call::request(envelope, Now::default()).resolve(Lookup::Found(&host.tool))? else {
                panic!("there is no token")
            };
            let call = call.validate()?;
            let decision = PolicyGate::new(ChannelTable::DEFAULTS).decide(&call.subject());
            let call = call.authorize(decision)?.admit(Ok(Allowance::Unlimited))?.unless_planning()?;
            let call = match (recalls, call.recall()?) {
                (true, Operate::Ask(operating)) => {
                    operating.recalled(Ok(Ok(Recalled::Free(std::num::NonZeroU32::MIN))))?
                }
                (false, Operate::Ask(operating)) => return Err(operating.unsupported()),
                (_, Operate::NotNeeded(call)) => call,
            };
            let callgate_core::call::Confirm::NotNeeded(call) = call.confirm()? else { panic!("nobody is asked") };
            drop(call.intercept(Interception::Continue)?.announce(Ok(()))?);
            panic!("announced")
        };
        let Err(ended) = stages() else { panic!("announced") };
        (ended.end().code(), ended.station().as_str())
    };
    let unsupported = Some(Code::OperationUnsupported);
    assert_eq!(drive(false, &mut [KeySlot::default(); 8]), (unsupported, "confirm"));
    assert_eq!(drive(true, &mut [KeySlot::default(); 8]), (unsupported, "emit_executing"), "it was never claimed");
}
