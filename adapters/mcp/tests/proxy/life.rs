//! Servers that come and go.

use callgate_core::code::Effect;
use callgate_mcp::upstream::Health;
use serde_json::json;

use crate::script::{Act, Script, tool};
use crate::world::{Plan, failure};

#[tokio::test(start_paused = true)]
async fn many_servers_stand_beside_each_other() {
    let (one, two) = (Script::new([tool("echo")]), Script::new([tool("say")]));
    let world = Plan::new().server("one", &one).server("two", &two).start().await;
    assert_eq!(world.tools(), ["one.echo", "two.say"]);
    assert!(world.call("two.say", "{}").await.success());
    assert_eq!((one.seen("tools/call").len(), two.seen("tools/call").len()), (0, 1));
}

// F4, X5: what was sent and not answered has an unknown effect and is not sent again; what was not sent has none.
#[tokio::test(start_paused = true)]
async fn x5_a_server_that_dies_in_a_call_leaves_it_unknown_and_is_started_again() {
    let script = Script::new([tool("die"), tool("echo")]).on("die", Act::HangUp);
    let world = Plan::new().server("u", &script).start().await;
    script.go_away(3);
    let outcome = world.call("u.die", "{}").await;
    let (code, effect, error) = failure(&outcome);
    assert_eq!((code.as_str(), effect.as_str()), ("INTERNAL_ERROR", "unknown"));
    assert_eq!(error, "The server u ended before it answered");
    let outcome = world.call("u.echo", "{}").await;
    assert_eq!(outcome.effect(), Effect::None, "{}", failure(&outcome).2);
    assert!(failure(&outcome).2.contains("is not there; it is started again"), "{}", failure(&outcome).2);
    assert_eq!(world.tools(), ["u.die", "u.echo"], "its tools stay known");
    world.until("the server", |world| world.fleet.upstreams()[0].health() == Health::Up).await;
    assert_eq!(script.connections(), 2);
    assert!(world.call("u.echo", "{}").await.success());
    assert_eq!(script.seen("tools/call").len(), 2, "nothing was sent twice");
    assert_eq!(world.ends().len(), 3, "J1: a record for each");
}

#[tokio::test(start_paused = true)]
async fn pauses_between_attempts_grow() {
    let script = Script::new([tool("echo")]);
    script.go_away(6);
    let started = tokio::time::Instant::now();
    let world = Plan::new().server("u", &script).start().await;
    assert!(world.tools().is_empty());
    assert!(world.told().iter().any(|told| told.starts_with("u: it cannot be started")), "{:?}", world.told());
    world.until("the server", |world| world.tools() == ["u.echo"]).await;
    // 0.25 + 0.5 + 1 + 2 + 4 + 8 s.
    let seconds = started.elapsed().as_secs_f64();
    assert!((15.7..18.0).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_changes_is_followed() {
    let script = Script::new([tool("a")]);
    let world = Plan::new().server("u", &script).start().await;
    let changes = world.fleet.changes();
    let before = *changes.borrow();
    script.set_tools([tool("a"), tool("b")]);
    script.tell_changed();
    world.until("the tool", |world| world.tools() == ["u.a", "u.b"]).await;
    assert_eq!(*changes.borrow(), before + 1);
    script.set_tools([tool("b")]);
    script.tell_changed();
    world.until("the end of the tool", |world| world.tools() == ["u.b"]).await;
    // Also when the server does not say so.
    script.set_tools([]);
    world.until("the end of the other", |world| world.tools().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_the_old_greeting_is_greeted_anew() {
    let script = Script::new([tool("a")]);
    script.greet_with(json!({"nonsense": true}));
    let world = Plan::new().server("u", &script).start().await;
    assert!(world.told().iter().any(|told| told.contains("does not answer as a server does")), "{:?}", world.told());
    world.until("the server", |world| world.tools() == ["u.a"]).await;
}

/// A server of the newer revision alone is spoken to without a handshake, by the same gate.
#[tokio::test(start_paused = true)]
async fn a_server_without_a_handshake_is_asked_what_it_is() {
    let script = Script::new([tool("a")]).stateless();
    let world = Plan::new().server("u", &script).start().await;
    assert_eq!(world.tools(), ["u.a"], "{:?}", world.told());
    assert!(world.call("u.a", r#"{"n":1}"#).await.success());
    let called = script.seen("tools/call");
    assert_eq!(called.len(), 1);
    assert_eq!(called[0]["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(world.ends().len(), 1, "J1");
}

#[tokio::test(start_paused = true)]
async fn what_is_ended_is_gone() {
    let script = Script::new([tool("a")]);
    let world = Plan::new().server("u", &script).start().await;
    world.fleet.end().await;
    assert_eq!(world.fleet.upstreams()[0].health(), Health::Ended);
    let outcome = world.call("u.a", "{}").await;
    assert_eq!((outcome.effect(), failure(&outcome).2.as_str()), (Effect::None, "The server u was ended"));
}
