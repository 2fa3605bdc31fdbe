//! L1: nothing that these parts print shows what a caller sent or what a tool said.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use callgate_core::context::CallContext;
use callgate_core::request::{Context, Request};
use callgate_std::common::{Common, CommonBuilder};
use callgate_std::envelope::OwnedEnvelope;
use callgate_std::gate::Gate;
use callgate_std::output::Reply;
use callgate_std::settings::GateSettings;
use callgate_std::task::Completion;
use callgate_std::update::{Progress, Update};

use crate::world::{tool, world_with};

const CANARY: &str = "CANARY-7f3a";
const PLAIN: &[u8] = br#"{"path": "CANARY-7f3a"}"#;
const ARGUMENTS: &[u8] = br#"{"path": "CANARY-7f3a", "confirm_token": "CANARY-7f3a"}"#;

fn asking() -> Request<'static> {
    Request { tool: "t", arguments: ARGUMENTS, token: Some(CANARY) }
}

fn check(what: &str, shown: &str) {
    assert!(!shown.contains(CANARY), "{what}: {shown}");
    // A list of bytes is a text, too.
    assert!(!shown.contains("67, 65, 78"), "{what}: {shown}");
}

#[test]
fn l1_what_a_call_carries_is_not_shown() {
    let settings = Arc::new(GateSettings::new(callgate_core::digest::DigestKey::new([7; 32])));
    for accept_reserved in [true, false] {
        for request in [asking(), Request { token: None, ..asking() }] {
            let owned = OwnedEnvelope::new(&CallContext::cli("r1"), request, Arc::clone(&settings), accept_reserved);
            check("OwnedEnvelope", &format!("{owned:?} {owned:#?}"));
            assert_eq!(owned.request().token.is_some(), accept_reserved || request.token.is_some());
        }
    }
}

#[test]
fn l1_what_a_tool_tells_is_not_shown() {
    for update in [Update::Chunk(serde_json::json!(CANARY)), Update::Progress(Progress::count(1).with_message(CANARY))]
    {
        check("Update", &format!("{update:?} {update:#?}"));
    }
}

#[test]
fn l1_no_part_of_a_run_shows_it() {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let (blocks, waits) = (shown.clone(), shown.clone());
    let (sender, completions) = mpsc::channel();
    let world = world_with(
        [
            tool("blocks").handler(move |call| {
                blocks.lock().unwrap().push(format!("{call:?}"));
                Ok(Reply::new(CANARY))
            }),
            tool("waits").background(Duration::from_secs(1)).async_handler(move |call| {
                let shown = waits.clone();
                async move {
                    shown.lock().unwrap().push(format!("{call:?}"));
                    call.chunk(CANARY).await?;
                    Ok(Reply::new(CANARY))
                }
            }),
        ],
        |gate| gate.accept_reserved_argument().on_completion(move |completion| drop(sender.send(completion))),
    );
    // The last one is refused for its token, which is in the reserved argument.
    for (name, arguments) in [("blocks", PLAIN), ("waits", PLAIN), ("blocks", ARGUMENTS)] {
        let request = Request { tool: name, arguments, token: None };
        let outcome = world.gate.call(&CallContext::cli("r1"), request);
        assert_eq!(outcome.success(), arguments == PLAIN);
        check("Outcome", &format!("{outcome:?} {:?} {:?}", outcome.context(), outcome.output()));
    }
    let completion: Completion = completions.recv().expect("it ends");
    assert_eq!(completion.updates.len(), 1);
    check("Completion", &format!("{completion:?} {:?}", completion.outcome.context()));
    check("Gate", &format!("{:?}", world.gate));
    for text in &*shown.lock().unwrap() {
        check("call", text);
    }
}

#[test]
fn l1_a_gate_in_parts_shows_no_key() {
    let mut builder =
        CommonBuilder::new(Arc::new(callgate_std::registry::Registry::builder().build().expect("no tools")));
    builder.digest_key = Some([67; 32]);
    check("CommonBuilder", &format!("{builder:?}"));
    let common: Common = builder.build(callgate_std::clock::SystemClock::shared()).expect("a gate");
    let shown = format!("{common:?}");
    assert!(!shown.contains("67, 67"), "{shown}");
    assert!(
        format!("{:?}", Gate::builder(callgate_std::registry::Registry::builder().build().expect("no tools"))).len()
            < 100
    );
}
