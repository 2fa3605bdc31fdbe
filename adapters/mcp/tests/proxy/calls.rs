//! Calls that go right, or wrong in an ordinary way.

use callgate_async::gate::CallOptions;
use callgate_core::code::Effect;
use callgate_core::tool::ConfirmBy;
use callgate_mcp::proxy::{Adjust, Offer};
use callgate_mcp::upstream::Promise;
use callgate_std::cancellation::Cancellation;
use callgate_std::tool::ToolBuilder;
use callgate_std::update::Update;
use serde_json::json;

use crate::script::{Act, Script, tool};
use crate::world::{Plan, data, failure, settings};

#[tokio::test(start_paused = true)]
async fn a_call_passes_with_its_arguments_and_nothing_else() {
    let script = Script::new([tool("echo")]);
    let world = Plan::new().server("files", &script).start().await;
    assert_eq!(world.tools(), ["files.echo"]);
    let outcome = world.call("files.echo", r#"{"b":18446744073709551615,"a":[1.5,null,"é"]}"#).await;
    assert!(outcome.success(), "{}", outcome.to_json().expect("JSON"));
    assert_eq!(data(&outcome)["content"][0]["text"], r#"{"a":[1.5,null,"é"],"b":18446744073709551615}"#);
    let calls = script.seen("tools/call");
    assert_eq!(calls.len(), 1);
    let params = calls[0]["params"].as_object().expect("an object");
    // T2: nothing of the caller goes along, only the token for progress.
    assert_eq!(params.keys().collect::<Vec<_>>(), ["_meta", "arguments", "name"]);
    assert_eq!(params["_meta"].as_object().expect("an object").keys().collect::<Vec<_>>(), ["progressToken"]);
    assert_eq!(world.ends(), [("done".to_owned(), "done".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn results_arrive_whole() {
    let result = json!({
        "content": [
            {"type": "text", "text": "a", "annotations": {"priority": 0.5}},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///x", "name": "x"},
            {"type": "resource", "resource": {"uri": "file:///y", "text": "y"}},
        ],
        "structuredContent": {"n": 1},
        "_meta": {"io.modelcontextprotocol/x": 1},
    });
    let script = Script::new([tool("mixed")]).on("mixed", Act::Result(result.clone()));
    let world = Plan::new().server("u", &script).start().await;
    let outcome = world.call("u.mixed", "{}").await;
    let mut expected = result;
    expected.as_object_mut().expect("an object").remove("_meta");
    assert_eq!(data(&outcome), expected);
}

#[tokio::test(start_paused = true)]
async fn o1_a_result_that_breaks_its_schema_is_contained() {
    let declared = json!({
        "name": "count", "description": "Counts", "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"], "$defs": {"n": {"type": "integer"}}},
    });
    let content = json!([{"type": "text", "text": "x"}]);
    for (structured, good) in [(Some(json!({"n": 1})), true), (Some(json!({"n": "1"})), false), (None, false)] {
        let mut result = json!({"content": content});
        if let Some(structured) = structured {
            result["structuredContent"] = structured;
        }
        let script = Script::new([declared.clone()]).on("count", Act::Result(result));
        let world = Plan::new().server("u", &script).start().await;
        let outcome = world.call("u.count", "{}").await;
        assert_eq!(outcome.success(), good, "{}", outcome.to_json().expect("JSON"));
        assert_eq!(outcome.effect(), Effect::Done);
        if !good {
            assert_eq!(failure(&outcome).0, "OUTPUT_INVALID");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_fails_is_a_failure_of_unknown_effect() {
    let failed = json!({"isError": true, "content": [{"type": "text", "text": "no such file"}, {"type": "text", "text": "at all"}]});
    let script = Script::new([tool("fails"), tool("refuses"), tool("asks"), tool("odd")])
        .on("fails", Act::Result(failed))
        .on("refuses", Act::Error(-32602, "no"))
        .on("asks", Act::Result(json!({"resultType": "input_required", "requestState": "x"})))
        .on("odd", Act::Result(json!({"hello": 1})));
    let world = Plan::new().server("u", &script).start().await;
    for (tool, text) in [
        ("fails", "no such file\nat all"),
        ("refuses", "The server u refused the call: no"),
        ("asks", "The server u asks its caller a question, which the gate does not pass on"),
        ("odd", "The server u gave an answer that is no result of a tool"),
    ] {
        let (code, effect, error) = failure(&world.call(&format!("u.{tool}"), "{}").await);
        assert_eq!((code.as_str(), effect.as_str(), error.as_str()), ("INTERNAL_ERROR", "unknown", text), "{tool}");
    }
}

// S1, S6, K1: the gate checks and clamps what a server declares before anything is sent.
#[tokio::test(start_paused = true)]
async fn s6_arguments_are_checked_and_clamped_before_they_leave() {
    struct Clamp;
    impl Adjust for Clamp {
        fn promise(&self, _: Offer<'_>) -> Promise {
            Promise::default()
        }

        fn adjust(&self, offer: Offer<'_>, tool: ToolBuilder) -> Result<Option<ToolBuilder>, String> {
            assert_eq!((offer.server, offer.name), ("u", "u.take"));
            Ok(Some(tool.clamp("/n", 1..=10).secret("/s")))
        }
    }
    let take = json!({
        "name": "take", "description": "Takes", "inputSchema": {
            "type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}},
            "required": ["n"], "additionalProperties": false
        }
    });
    let script = Script::new([take]);
    let world = Plan::new().adjusted(settings("u", &script), Clamp).start().await;
    for wrong in ["{}", r#"{"n":"1"}"#, r#"{"n":1,"x":2}"#, r#"{"n":1,"n":2}"#] {
        let (code, effect, _) = failure(&world.call("u.take", wrong).await);
        assert_eq!((code.as_str(), effect.as_str()), ("VALIDATION_ERROR", "none"), "{wrong}");
    }
    assert!(script.seen("tools/call").is_empty());
    let outcome = world.call("u.take", r#"{"n":5000,"s":"canary"}"#).await;
    assert_eq!(data(&outcome)["content"][0]["text"], r#"{"n":10,"s":"canary"}"#);
    // L2: the operator says what is a secret, and the record holds none.
    let lines = world.audit.lines().join("\n");
    assert!(lines.contains("\"n\":10") && !lines.contains("canary"), "{lines}");
}

#[tokio::test(start_paused = true)]
async fn what_a_server_says_of_its_tools_only_tightens() {
    struct Vouch;
    impl Adjust for Vouch {
        fn promise(&self, offer: Offer<'_>) -> Promise {
            Promise::read_only(offer.definition.name.starts_with("vouched"))
        }

        fn adjust(&self, _: Offer<'_>, tool: ToolBuilder) -> Result<Option<ToolBuilder>, String> {
            Ok(Some(tool.confirm(ConfirmBy::Nobody)))
        }
    }
    let annotated = |name: &str, annotations: serde_json::Value| {
        let mut tool = tool(name);
        tool["annotations"] = annotations;
        tool
    };
    let script = Script::new([
        tool("plain"),
        annotated("claims", json!({"readOnlyHint": true, "idempotentHint": true})),
        tool("vouched"),
        annotated("vouched_claims", json!({"readOnlyHint": true})),
        annotated("vouched_not", json!({"readOnlyHint": false})),
        annotated("vouched_bad", json!({"destructiveHint": true})),
    ]);
    let world = Plan::new().adjusted(settings("u", &script), Vouch).start().await;
    let registry = world.fleet.registry().load();
    let spec = |name: &str| {
        let tool = registry.get(&format!("u.{name}")).expect("a tool");
        (tool.spec().mutating, tool.spec().dangerous, tool.spec().idempotent)
    };
    assert_eq!(spec("plain"), (true, false, false));
    assert_eq!(spec("claims"), (true, false, false), "a claim loosens nothing");
    assert_eq!(spec("vouched"), (false, false, false));
    assert_eq!(spec("vouched_claims"), (false, false, false));
    assert_eq!(spec("vouched_not"), (true, false, false), "the stricter of the two counts");
    assert_eq!(spec("vouched_bad"), (true, true, false));
}

#[tokio::test(start_paused = true)]
async fn progress_is_told_on() {
    let reports = vec![json!({"progress": 1, "total": 4}), json!({"progress": 0.5, "total": 1.0, "message": "half"})];
    let script = Script::new([tool("work")]).on("work", Act::Progress(reports));
    let world = Plan::new().server("u", &script).start().await;
    let (sender, updates) = async_channel::bounded(8);
    let outcome = world.call_with("u.work", "{}", CallOptions::new().with_updates(sender)).await;
    assert!(outcome.success());
    let mut told = Vec::new();
    while let Ok(Update::Progress(progress)) = updates.try_recv() {
        told.push(progress.to_string());
    }
    assert_eq!(told, ["1 of 4", "500 of 1000: half"]);
}

// X4: whoever stops waiting has the server told, once.
#[tokio::test(start_paused = true)]
async fn x4_a_call_that_is_cancelled_is_cancelled_at_the_server() {
    let script = Script::new([tool("slow")]).on("slow", Act::Nothing);
    let world = Plan::new().server("u", &script).start().await;
    let cancellation = Cancellation::new();
    let call = world.call_with("u.slow", "{}", CallOptions::new().cancelled_by(cancellation.clone()));
    let cancel = async {
        world.until("the call", |_| script.seen("tools/call").len() == 1).await;
        cancellation.cancel();
    };
    let (outcome, ()) = tokio::join!(call, cancel);
    assert_eq!((failure(&outcome).0.as_str(), outcome.effect()), ("CANCELLED", Effect::Unknown));
    world.until("the word", |_| script.seen("notifications/cancelled").len() == 1).await;
    let id = &script.seen("tools/call")[0]["id"];
    assert_eq!(&script.seen("notifications/cancelled")[0]["params"]["requestId"], id);
    // X2: and so is one whose time is over.
    let outcome = world.call("u.slow", "{}").await;
    assert_eq!((failure(&outcome).0.as_str(), outcome.effect()), ("TIMEOUT", Effect::Unknown));
    world.until("the word", |_| script.seen("notifications/cancelled").len() == 2).await;
}

// X6: so many at once, so many in line, and whoever comes then is turned away without effect.
#[tokio::test(start_paused = true)]
async fn x6_calls_in_flight_are_bounded() {
    let script = Script::new([tool("slow")]).on("slow", Act::Nothing);
    let world = Plan::new().adjusted(settings("u", &script).with_max_in_flight(2), ()).start().await;
    let calls: Vec<_> = (0..5).map(|_| world.call("u.slow", "{}")).collect();
    let mut ended = Vec::new();
    for call in futures(calls).await {
        let (code, effect, error) = failure(&call);
        ended.push((code, effect));
        assert!(!error.contains("too many") || ended.last().is_some_and(|end| end.1 == "none"), "{error}");
    }
    ended.sort();
    let end = |code: &str, effect: &str| (code.to_owned(), effect.to_owned());
    assert_eq!(ended.iter().filter(|ended| **ended == end("INTERNAL_ERROR", "none")).count(), 1, "{ended:?}");
    assert_eq!(ended.iter().filter(|ended| ended.0 == "TIMEOUT").count(), 4);
    assert_eq!(script.seen("tools/call").len(), 2, "those in line waited out their time there");
}

async fn futures<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|cx| {
        for (future, output) in &mut pending {
            if output.is_none()
                && let std::task::Poll::Ready(ready) = future.as_mut().poll(cx)
            {
                *output = Some(ready);
            }
        }
        if pending.iter().all(|(_, output)| output.is_some()) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    pending.into_iter().filter_map(|(_, output)| output).collect()
}
