//! Requests over HTTP, without the connections.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callgate_core::digest::Digest;
use callgate_mcp::auth::{Authenticator, KnownToken};
use callgate_mcp::http::{Endpoint, Hosts};
use callgate_mcp::server::MAX_FRAME;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::{Value, json};

use crate::world::{World, world};

const ANN: &str = "cg_ann";
const BOB: &str = "cg_bob";

fn endpoint(world: &World) -> Arc<Endpoint> {
    let known = |token: &str, principal| {
        KnownToken::new(Digest::of_bytes(token.as_bytes()), principal, None, ["notes"]).unwrap()
    };
    let authenticator = Authenticator::new().with_known([known(ANN, "ann"), known(BOB, "bob")]);
    Arc::new(Endpoint::new(world.server.clone(), authenticator))
}

/// What came back.
struct Heard {
    status: u16,
    session: Option<String>,
    challenge: Option<String>,
    text: String,
}

impl Heard {
    async fn of(answer: Response<http_body_util::combinators::BoxBody<Bytes, Infallible>>) -> Self {
        let header = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (status, session, challenge) =
            (answer.status().as_u16(), header("mcp-session-id"), header("www-authenticate"));
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        Self { status, session, challenge, text: String::from_utf8(body.to_vec()).unwrap() }
    }

    /// The last message, as it stands or as an event.
    fn message(&self) -> Value {
        let mut events = self.text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
        let text = events.rfind(|event| !event.is_empty()).unwrap_or(&self.text);
        serde_json::from_str(text).unwrap_or_else(|_| panic!("no message: {}", self.text))
    }
}

/// A request that is all right, with these headers instead of its own or beside them.
fn request(body: &Value, headers: &[(&str, &str)]) -> Request<Full<Bytes>> {
    let usual = [
        ("host", "localhost:8642"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("authorization", "Bearer cg_ann"),
    ];
    let mut request = Request::post("/mcp");
    for (name, value) in usual.iter().filter(|(name, _)| !headers.iter().any(|(given, _)| given == name)) {
        request = request.header(*name, *value);
    }
    for (name, value) in headers.iter().filter(|(_, value)| *value != "-") {
        request = request.header(*name, *value);
    }
    request.body(Full::new(body.to_string().into())).unwrap()
}

async fn ask(endpoint: &Endpoint, body: &Value, headers: &[(&str, &str)]) -> Heard {
    Heard::of(endpoint.answer(request(body, headers), None).await).await
}

fn stateless(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

const VERSION: (&str, &str) = ("mcp-protocol-version", "2026-07-28");
const CALLS: (&str, &str) = ("mcp-method", "tools/call");
const ADD: (&str, &str) = ("mcp-name", "math.add");

fn add() -> Value {
    stateless("tools/call", json!({"name": "math.add", "arguments": {"a": 1, "b": 2}}))
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}
    }})
}

#[tokio::test]
async fn a_stateless_call_needs_nothing_before_it() {
    let world = world();
    let heard = ask(&endpoint(&world), &add(), &[VERSION, CALLS, ADD]).await;
    assert_eq!(heard.status, 200, "{}", heard.text);
    assert_eq!(heard.message()["result"]["structuredContent"], json!({"sum": 3}));
    assert_eq!(heard.message()["result"]["_meta"]["callgate/outcome"]["principal"], "ann");
}

#[tokio::test]
async fn t3_a_conversation_is_its_beginners_alone() {
    let (world, call) = (
        world(),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "math.add", "arguments": {"a": 1, "b": 2}
        }}),
    );
    let endpoint = endpoint(&world);
    let begun = ask(&endpoint, &initialize(), &[]).await;
    let id = begun.session.clone().expect("a conversation");
    let session = ("mcp-session-id", id.as_str());
    assert_eq!(begun.message()["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(
        ask(&endpoint, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), &[session]).await.status,
        202
    );
    assert_eq!(ask(&endpoint, &call, &[session]).await.message()["result"]["structuredContent"]["sum"], 3);
    // For anybody else there is no such conversation, whatever they want of it.
    let bob = ("authorization", "Bearer cg_bob");
    assert_eq!(ask(&endpoint, &call, &[session, bob]).await.status, 404);
    let others = |method: &str| {
        Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "localhost")
            .header("authorization", "Bearer cg_bob")
            .header("accept", "text/event-stream")
            .header("mcp-session-id", &id)
            .body(Full::<Bytes>::default())
            .unwrap()
    };
    for method in ["GET", "DELETE"] {
        assert_eq!(endpoint.answer(others(method), None).await.status(), 404, "{method}");
    }
    // It is still there for who began it, and never without a token.
    assert_eq!(ask(&endpoint, &call, &[session]).await.status, 200);
    assert_eq!(ask(&endpoint, &call, &[session, ("authorization", "-")]).await.status, 401);
    let mut end = others("DELETE");
    end.headers_mut().insert("authorization", "Bearer cg_ann".parse().unwrap());
    assert!(endpoint.answer(end, None).await.status().is_success());
    assert_eq!(ask(&endpoint, &call, &[session]).await.status, 404);
}

#[tokio::test]
async fn t4_an_id_that_is_in_flight_in_a_conversation_is_not_taken_again() {
    let world = world();
    let endpoint = endpoint(&world);
    let call = |id: u64, tool: &str, arguments: Value| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    let (one, two) = (ask(&endpoint, &initialize(), &[]).await, ask(&endpoint, &initialize(), &[]).await);
    let [one, two] = [one, two].map(|begun| begun.session.expect("a conversation"));
    let waiting = endpoint.answer(request(&call(1, "notes.wait", json!({})), &[("mcp-session-id", &one)]), None).await;
    world.started.cancelled().await;
    let add = |id| call(id, "math.add", json!({"a": 1, "b": 2}));
    let heard = ask(&endpoint, &add(1), &[("mcp-session-id", &one)]).await;
    assert_eq!((heard.status, &heard.message()["error"]["code"]), (400, &json!(-32600)));
    // Another id, and the same one in another conversation.
    for (session, id) in [(&one, 2), (&two, 1)] {
        let heard = ask(&endpoint, &add(id), &[("mcp-session-id", session)]).await;
        assert_eq!(heard.message()["result"]["structuredContent"]["sum"], 3, "{}", heard.text);
    }
    drop(waiting);
}

#[tokio::test]
async fn x6_there_are_so_many_conversations_and_no_more() {
    let world = world();
    let Ok(endpoint) = Arc::try_unwrap(endpoint(&world)) else { panic!("nobody else has it") };
    let endpoint = endpoint.with_sessions(2);
    for status in [200, 200, 503] {
        assert_eq!(ask(&endpoint, &initialize(), &[]).await.status, status);
    }
    assert_eq!(ask(&endpoint, &add(), &[VERSION, CALLS, ADD]).await.status, 200, "who needs none is served");
}

#[tokio::test]
async fn t1_host_and_origin_are_looked_at_one_by_one_before_anything_else() {
    let world = world();
    let endpoint = endpoint(&world);
    for (headers, status) in [
        (vec![("host", "evil.example")], 403),
        (vec![("origin", "http://evil.example")], 403),
        (vec![("origin", "http://localhost:8643")], 403),
        (vec![("origin", "http://localhost:8642")], 401),
        (vec![("origin", "null")], 403),
        (vec![("host", "evil.example"), ("origin", "http://evil.example")], 403),
        (vec![("host", "-")], 400),
    ] {
        // Before that neither the token nor the body was looked at: both are junk.
        let headers: Vec<_> = headers.into_iter().chain([("authorization", "Bearer junk")]).collect();
        let heard = ask(&endpoint, &json!("junk"), &headers).await;
        assert_eq!(heard.status, status, "{headers:?}");
    }
    let Ok(endpoint) = Arc::try_unwrap(endpoint) else { panic!("nobody else has it") };
    let endpoint = endpoint.with_hosts(Hosts::loopback().with("gate.example").unwrap());
    assert_eq!(ask(&endpoint, &add(), &[VERSION, CALLS, ADD, ("host", "gate.example")]).await.status, 200);
    assert_eq!(world.ends().len(), 1);
}

#[tokio::test]
async fn t2_without_a_good_token_nobody_comes_in() {
    let world = world();
    let endpoint = endpoint(&world);
    for (sent, invalid) in [
        ("-", false),
        ("Bearer cg_anna", true),
        ("Bearer ", true),
        ("Basic cg_ann", true),
        ("cg_ann", true),
        ("Bearer cg_ann, Bearer cg_bob", true),
        ("Bearer eyJhbGciOiJub25lIn0.e30.", true),
    ] {
        let heard = ask(&endpoint, &add(), &[VERSION, CALLS, ADD, ("authorization", sent)]).await;
        assert_eq!(heard.status, 401, "{sent}");
        assert_eq!(heard.challenge.unwrap().contains("invalid_token"), invalid, "{sent}");
    }
    let twice = [VERSION, CALLS, ADD, ("authorization", "Bearer cg_ann"), ("authorization", "Bearer cg_ann")];
    assert_eq!(ask(&endpoint, &add(), &twice).await.status, 401);
    assert_eq!(world.ends().len(), 0, "nothing was called");
}

#[tokio::test]
async fn t5_headers_that_say_another_thing_than_the_message_are_refused() {
    let world = world();
    let endpoint = endpoint(&world);
    for headers in [
        vec![VERSION, CALLS],
        vec![VERSION, ADD],
        vec![CALLS, ADD],
        vec![VERSION, CALLS, ("mcp-name", "notes.delete")],
        vec![VERSION, CALLS, ("mcp-name", "Math.add")],
        vec![VERSION, ("mcp-method", "tools/list"), ADD],
        vec![("mcp-protocol-version", "2025-11-25"), CALLS, ADD],
        vec![VERSION, CALLS, ADD, ADD],
        vec![VERSION, CALLS, ADD, ("mcp-name", "notes.delete")],
        vec![VERSION, VERSION, CALLS, ADD],
    ] {
        let heard = ask(&endpoint, &add(), &headers).await;
        assert_eq!((heard.status, &heard.message()["error"]["code"]), (400, &json!(-32020)), "{headers:?}");
    }
    assert_eq!(world.ends().len(), 0, "nothing was called");
}

#[tokio::test]
async fn what_is_no_message_is_told_so() {
    let world = world();
    let endpoint = endpoint(&world);
    let raw = |text: &str| {
        let mut raw = request(&Value::Null, &[]);
        *raw.body_mut() = Full::new(text.to_owned().into());
        raw
    };
    for (text, code) in [
        ("", -32700),
        ("{", -32700),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
    ] {
        let heard = Heard::of(endpoint.answer(raw(text), None).await).await;
        assert_eq!((heard.status, &heard.message()["error"]["code"]), (400, &json!(code)), "{text}");
    }
    let long = "x".repeat(MAX_FRAME + 1);
    assert_eq!(endpoint.answer(raw(&long), None).await.status(), 413);
    let mut encoded = raw("{}");
    encoded.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
    assert_eq!(endpoint.answer(encoded, None).await.status(), 415);
    let mut elsewhere = raw("{}");
    *elsewhere.uri_mut() = "/".parse().unwrap();
    assert_eq!(endpoint.answer(elsewhere, None).await.status(), 404);
}

#[tokio::test(start_paused = true)]
async fn x6_a_body_that_does_not_come_is_not_waited_for() {
    let world = world();
    let Ok(endpoint) = Arc::try_unwrap(endpoint(&world)) else { panic!("nobody else has it") };
    let endpoint = endpoint.with_body_time(Duration::from_secs(10));
    let never = futures_util::stream::pending::<Result<http_body::Frame<Bytes>, Infallible>>();
    let (parts, _) = request(&Value::Null, &[]).into_parts();
    let answer = endpoint.answer(Request::from_parts(parts, StreamBody::new(never)), None).await;
    assert_eq!(answer.status(), 408);
}

#[tokio::test]
async fn t6_who_drops_a_stateless_call_cancels_it() {
    let world = world();
    let endpoint = endpoint(&world);
    let wait = stateless("tools/call", json!({"name": "notes.wait", "arguments": {}}));
    let sent = request(&wait, &[VERSION, CALLS, ("mcp-name", "notes.wait")]);
    let answering = tokio::spawn(async move { endpoint.answer(sent, None).await });
    world.started.cancelled().await;
    answering.abort();
    drop(answering.await);
    let down = world.server.gate().shutdown(Duration::from_secs(60)).await;
    assert_eq!((down.running, world.ends()), (0, vec![("notes.wait".to_owned(), "CANCELLED".to_owned())]));
}
