//! The inspection says what the pipeline does: both are run and compared.

use callgate_core::code::{Code, Station};
use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::inspect::{Inspection, Presence, Wiring};
use callgate_core::policy::{ChannelPolicy, ChannelTable, PolicyGate};
use callgate_core::tool::{ConfirmBy, Tool};
use proptest::prelude::*;

use crate::world::{Host, Probe, Sent, World};

const WIRED: Wiring = Wiring { rate_limiter: true, interceptors: true, rule_provider: false, audit: true };

const CHANNELS: &[ChannelPolicy<'static>] = &[
    ChannelPolicy::new("strict").blocking_mutating(),
    ChannelPolicy::new("consent").without_auth().requiring_consent(),
    ChannelPolicy::new("careful").confirmed_by_approver().confirming_mutating(),
];

fn callers() -> impl Strategy<Value = CallContext<'static>> {
    let channel = prop::sample::select(&["cli", "mcp", "web", "telegram", "strict", "consent", "careful", "fax"][..]);
    let principal = prop::sample::select(&[None, Some(""), Some("u1")][..]);
    let scopes = prop::sample::select(&["", "*", "admin", "read"][..]);
    (channel, principal, scopes, any::<bool>()).prop_map(|(channel, principal, scopes, plan)| {
        let mut caller = CallContext::new(channel, "r-1").with_scopes(Scopes::new(scopes));
        caller.principal = principal;
        caller.mode = if plan { Mode::Plan } else { Mode::Execute };
        caller
    })
}

fn worlds() -> impl Strategy<Value = World> {
    let confirm =
        prop::sample::select(&[ConfirmBy::Nobody, ConfirmBy::Caller, ConfirmBy::Approver { scope: "approve" }][..]);
    (any::<bool>(), confirm, prop::sample::select(&["", "admin", "admin read"][..]))
        .prop_map(|(mutating, confirm, scopes)| World { mutating, confirm, scopes, ..World::good() })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn an_inspection_tells_what_the_pipeline_does(world in worlds(), caller in callers()) {
        let mut host = Host::new(world);
        host.channels = ChannelTable::over_defaults(CHANNELS);
        let inspection = Inspection { tool: &host.tool, caller, gate: PolicyGate::new(host.channels), wiring: WIRED };
        let sent = Sent { tool: "probe", arguments: br#"{"path":"a"}"#, token: None, caller };
        let (code, station, asks) = host.linear(&sent, |outcome| (outcome.code(), outcome.station(), outcome.asks()));

        // What would be refused before rules is refused, with this text; block_mutating comes after the rules.
        if inspection.refusal().is_some() {
            prop_assert_eq!((code, station), (Some(Code::Forbidden), Station::Authorize));
        }
        if station == Station::Authorize {
            let blocked = host.tool.spec().mutating && inspection.gate.channel(caller.channel).policy.block_mutating;
            prop_assert!(inspection.refusal().is_some() || blocked);
        }
        // A confirmation that is announced is asked for, and no other.
        let confirm = inspection.step(Station::Confirm).presence;
        if asks {
            prop_assert_eq!(confirm, Presence::Conditional);
        } else if code.is_none() && caller.mode == Mode::Execute {
            prop_assert_eq!(confirm, Presence::Dormant);
        }
        // The cost that is announced is the cost that is charged.
        let charge = format!("charge {} ", host.tool.spec().cost());
        let charged = host.transcript.borrow().iter().any(|entry| entry.starts_with(&charge));
        prop_assert_eq!(charged, station > Station::Authorize);
        let source = inspection.step(Station::RateLimit).source().to_string();
        let announced = format!("costs {} ", host.tool.spec().cost());
        prop_assert!(source.contains(&announced));
        // What a plan does not reach is not announced as active.
        if caller.mode == Mode::Plan && code.is_none() {
            prop_assert_eq!(station, Station::PlanMode);
            prop_assert_eq!(inspection.step(Station::Execute).presence, Presence::Skipped);
        }
        // Nothing was run or asked by inspecting.
        let before = host.transcript.borrow().len();
        let mut text = String::new();
        inspection.write_json(&mut text).expect("a string takes all");
        prop_assert_eq!(host.transcript.borrow().len(), before);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }
}

/// The twelve steps, in the order of the gate.
#[test]
fn there_are_twelve_steps_and_one_holds_another() {
    let host = Host::new(World { mutating: true, ..World::good() });
    let caller = CallContext::cli("r-1");
    let inspection =
        Inspection::<Probe> { tool: &host.tool, caller, gate: PolicyGate::new(ChannelTable::DEFAULTS), wiring: WIRED };
    let steps: Vec<_> = inspection.steps().map(|step| step.station).collect();
    assert_eq!(steps, Station::ALL);
    let holder: Vec<_> = inspection.steps().filter_map(|step| step.wraps.map(|held| (step.station, held))).collect();
    assert_eq!(holder, [(Station::ContainException, Station::Execute)]);
    let bare = Inspection::<Probe> { wiring: Wiring::default(), ..inspection };
    assert_eq!(bare.step(Station::RateLimit).presence, Presence::Skipped);
    assert_eq!(bare.step(Station::Clamp).presence, Presence::Active);
    assert!(bare.step(Station::Execute).mutates);
}
