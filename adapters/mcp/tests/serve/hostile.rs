//! Clients that do what no client should.

use serde_json::{Value, json};

use crate::world::{call, world};

#[tokio::test]
async fn bad_lines_are_answered_and_the_connection_goes_on() {
    let world = world();
    let mut raw = world.raw().await;
    for (line, code) in [
        ("{", -32700),
        ("nonsense", -32700),
        ("\u{feff}{}", -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#, -32700),
        ("[]", -32600),
        ("7", -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (&call(1, "math.add", r#"{"a":1,"a":2,"b":1}"#), -32700),
        (&call(1, "math.add", r#"{"a":1,"\u0061":2,"b":1}"#), -32700),
        (&call(1, "math.add", r#"{"a":1e999,"b":1}"#), -32700),
        (&call(1, "math.add", "[1,2]"), -32602),
        (&format!("{{\"a\":{}1{}}}", "[".repeat(100), "]".repeat(100)), -32700),
    ] {
        raw.say(line).await;
        let answer = raw.hear().await;
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    raw.say("").await;
    raw.say(&call(9, "math.add", r#"{"a":1,"b":2}"#)).await;
    assert_eq!(raw.hear().await["result"]["structuredContent"]["sum"], 3);
    assert_eq!(world.ends(), [("math.add".to_owned(), "ok".to_owned())], "only what was a call is recorded");
}

#[tokio::test]
async fn s2_the_gate_reads_the_arguments_as_they_were_sent() {
    let world = world();
    let mut raw = world.raw().await;
    // As a tree of the SDK it would be 9007199254740992.0, or the last of two.
    raw.say(&call(1, "math.add", r#"{"a":9007199254740993,"b":1}"#)).await;
    assert_eq!(raw.hear().await["result"]["isError"], true);
    raw.say(&call(2, "math.add", r#"{"a":-0,"b":1}"#)).await;
    assert_eq!(raw.hear().await["result"]["structuredContent"]["sum"], 1);
}

#[tokio::test]
async fn x6_a_line_without_end_takes_no_more_than_its_bound() {
    let world = world();
    let mut raw = world.raw().await;
    let part = "x".repeat(1 << 16);
    for _ in 0..20 {
        raw.say(&part).await;
        // Each part ends: junk, told so. The next one has no end for a long time.
        assert_eq!(raw.hear().await["error"]["code"], -32700);
    }
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(callgate_mcp::server::MAX_FRAME));
    raw.say(&long).await;
    assert_eq!(raw.hear().await["error"]["code"], -32600);
    raw.say(&call(9, "math.add", r#"{"a":1,"b":2}"#)).await;
    assert_eq!(raw.hear().await["result"]["structuredContent"]["sum"], 3);
}

#[tokio::test]
async fn t4_equal_ids_of_two_clients_do_not_meet() {
    let world = world();
    let (mut one, mut two) = (world.raw().await, world.raw().await);
    one.say(&call(1, "math.add", r#"{"a":1,"b":1}"#)).await;
    two.say(&call(1, "math.add", r#"{"a":2,"b":2}"#)).await;
    assert_eq!(two.hear().await["result"]["structuredContent"]["sum"], 4);
    assert_eq!(one.hear().await["result"]["structuredContent"]["sum"], 2);
    // One cancels under an id that the other uses as well.
    one.say(&call(2, "notes.wait", "{}")).await;
    world.started.cancelled().await;
    two.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}).to_string())
        .await;
    two.say(&call(3, "math.add", r#"{"a":3,"b":3}"#)).await;
    assert_eq!(two.hear().await["id"], 3);
    assert!(!world.ends().iter().any(|(tool, _)| tool == "notes.wait"), "it still waits");
}

#[tokio::test]
async fn t4_an_id_that_is_in_flight_is_not_taken_again() {
    let world = world();
    let mut raw = world.raw().await;
    raw.say(&call(1, "notes.wait", "{}")).await;
    world.started.cancelled().await;
    raw.say(&call(1, "math.add", r#"{"a":1,"b":1}"#)).await;
    let answer = raw.hear().await;
    assert_eq!((&answer["error"]["code"], answer.get("id").unwrap_or(&Value::Null)), (&json!(-32600), &Value::Null));
    raw.say(&call(2, "math.add", r#"{"a":1,"b":1}"#)).await;
    assert_eq!(raw.hear().await["id"], 2);
}

#[tokio::test]
async fn j1_a_cancelled_call_gets_no_answer_and_one_record() {
    let world = world();
    let mut raw = world.raw().await;
    raw.say(&call(1, "notes.wait", "{}")).await;
    world.started.cancelled().await;
    raw.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}).to_string())
        .await;
    // What comes back next is the answer to the next request, and nothing after it.
    raw.say(&call(2, "math.add", r#"{"a":1,"b":1}"#)).await;
    assert_eq!(raw.hear().await["id"], 2);
    assert_eq!(raw.leave().await, Vec::<Value>::new());
    let waits: Vec<_> = world.ends().into_iter().filter(|(tool, _)| tool == "notes.wait").collect();
    assert_eq!(waits, [("notes.wait".to_owned(), "CANCELLED".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn t6_a_client_that_drops_its_call_cancels_it() {
    let world = world();
    let mut raw = world.raw().await;
    raw.say(&call(1, "notes.wait", "{}")).await;
    world.started.cancelled().await;
    let serving = std::mem::replace(&mut raw.serving, tokio::spawn(async { Ok(()) }));
    drop(raw);
    serving.await.unwrap().unwrap();
    let down = world.server.gate().shutdown(std::time::Duration::from_secs(60)).await;
    assert_eq!(down.running, 0);
    assert_eq!(world.ends(), [("notes.wait".to_owned(), "CANCELLED".to_owned())]);
}
