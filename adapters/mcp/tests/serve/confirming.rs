//! Questions on the wire.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
    ElicitResult, ElicitationAction, ErrorData, Implementation, InputRequiredResult, InputResponses, ProtocolVersion,
};
use rmcp::service::{RequestContext, RunningService};
use rmcp::{ClientHandler, ClientLifecycleMode, RoleClient, ServiceError, ServiceExt, serve_client_with_lifecycle};
use serde_json::{Value, json};

use crate::world::{World, call, world};

/// Answers every question alike, and counts them.
#[derive(Clone)]
struct Answers {
    action: ElicitationAction,
    content: Value,
    asked: Arc<AtomicUsize>,
}

impl Answers {
    fn with(action: ElicitationAction, content: Value) -> Self {
        Self { action, content, asked: Arc::default() }
    }

    fn yes() -> Self {
        Self::with(ElicitationAction::Accept, json!({"confirm": true}))
    }
}

impl ClientHandler for Answers {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("answers", "0"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else { panic!("it is a form") };
        assert!(message.contains(r#"notes.delete({"id":1})"#), "{message}");
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(ElicitResult::new(self.action.clone()).with_content(self.content.clone()))
    }
}

async fn old(world: &World, answers: &Answers) -> RunningService<RoleClient, Answers> {
    answers.clone().serve(world.connect().0).await.unwrap()
}

async fn new(world: &World, answers: &Answers) -> RunningService<RoleClient, Answers> {
    let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    serve_client_with_lifecycle(answers.clone(), world.connect().0, mode).await.unwrap()
}

fn delete(id: u64) -> CallToolRequestParams {
    CallToolRequestParams::new("notes.delete").with_arguments(json!({"id": id}).as_object().cloned().unwrap())
}

fn text(result: &CallToolResult) -> &str {
    &result.content.first().and_then(|block| block.as_text()).unwrap().text
}

fn codes(world: &World) -> Vec<String> {
    world.ends().into_iter().map(|(_, code)| code).collect()
}

#[tokio::test]
async fn a2_who_says_yes_runs_it_once_in_both_eras() {
    let world = world();
    let answers = Answers::yes();
    for (runs, client) in [(1, old(&world, &answers).await), (2, new(&world, &answers).await)] {
        let result = client.call_tool(delete(1)).await.unwrap();
        assert_eq!((text(&result), result.is_error), ("deleted", Some(false)));
        assert_eq!(result.meta.as_ref().unwrap().0["callgate/outcome"]["confirmed_by"], "self");
        assert_eq!((world.deleted.load(Ordering::SeqCst), answers.asked.load(Ordering::SeqCst)), (runs, runs));
        client.cancel().await.unwrap();
    }
    assert_eq!(codes(&world), ["ok"; 4], "a question and a run, twice");
}

#[tokio::test]
async fn a9_who_says_no_or_nothing_runs_nothing_in_both_eras() {
    let world = world();
    for answers in [
        Answers::with(ElicitationAction::Decline, Value::Null),
        Answers::with(ElicitationAction::Cancel, Value::Null),
        Answers::with(ElicitationAction::Accept, json!({})),
        Answers::with(ElicitationAction::Accept, json!({"confirm": false})),
    ] {
        for client in [old(&world, &answers).await, new(&world, &answers).await] {
            let result = client.call_tool(delete(1)).await.unwrap();
            assert!(text(&result).starts_with("CONFIRMATION_INVALID: the user declined"), "{}", text(&result));
            assert_eq!(result.is_error, Some(true));
            client.cancel().await.unwrap();
        }
    }
    assert_eq!(world.deleted.load(Ordering::SeqCst), 0);
    assert_eq!(codes(&world).chunks(2).collect::<Vec<_>>(), [["ok", "CONFIRMATION_INVALID"]; 8]);
}

/// Asks, and gives the state.
async fn asked(client: &RunningService<RoleClient, Answers>) -> String {
    match client.call_tool_once(delete(1)).await.unwrap() {
        CallToolResponse::InputRequired(InputRequiredResult { request_state: Some(state), .. }) => state,
        other => panic!("it asks: {other:?}"),
    }
}

fn answered(call: CallToolRequestParams, state: &str) -> CallToolRequestParams {
    let yes = json!({"action": "accept", "content": {"confirm": true}});
    let mut call = call.with_input_responses(InputResponses::from([("confirm".to_owned(), yes)]));
    call.request_state = Some(state.to_owned());
    call
}

/// The state is not taken.
async fn no_state(client: &RunningService<RoleClient, Answers>, call: CallToolRequestParams) {
    let Err(ServiceError::McpError(error)) = client.call_tool_once(call).await else {
        panic!("a fault of the protocol")
    };
    assert_eq!(error.code.0, -32602);
}

#[tokio::test]
async fn t7_a_state_is_good_once_for_its_own_call_of_its_own_caller() {
    let world = world();
    let answers = Answers::yes();
    let client = new(&world, &answers).await;
    let state = asked(&client).await;
    // Other arguments, another tool, a changed text.
    no_state(&client, answered(delete(2), &state)).await;
    no_state(&client, answered(CallToolRequestParams::new("notes.count"), &state)).await;
    no_state(&client, answered(delete(1), &format!("{state}0"))).await;
    // Another principal.
    let bob = callgate_mcp::server::Caller::new("mcp").with_principal("bob").with_scopes(["notes"]);
    let others = World { server: world.server.clone().with_caller(bob), ..self::world() };
    no_state(&new(&others, &answers).await, answered(delete(1), &state)).await;
    assert_eq!(world.deleted.load(Ordering::SeqCst), 0);
    let tried = codes(&world).into_iter().filter(|code| code == "CONFIRMATION_INVALID").count();
    assert_eq!(tried, 4, "each try is recorded");
    // None of this has spent it.
    let CallToolResponse::Complete(result) = client.call_tool_once(answered(delete(1), &state)).await.unwrap() else {
        panic!("it is over");
    };
    assert_eq!(text(&result), "deleted");
    // A5: and now it is spent.
    let CallToolResponse::Complete(result) = client.call_tool_once(answered(delete(1), &state)).await.unwrap() else {
        panic!("it is over");
    };
    assert!(text(&result).starts_with("CONFIRMATION_INVALID: "), "{}", text(&result));
    assert_eq!(world.deleted.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn t7_without_an_answer_it_asks_anew_and_the_old_state_is_worth_nothing() {
    let world = world();
    let client = new(&world, &Answers::yes()).await;
    let state = asked(&client).await;
    let mut unanswered = delete(1);
    unanswered.request_state = Some(state.clone());
    let CallToolResponse::InputRequired(again) = client.call_tool_once(unanswered).await.unwrap() else {
        panic!("it asks again");
    };
    assert_ne!(again.request_state.as_ref(), Some(&state));
    let CallToolResponse::Complete(result) = client.call_tool_once(answered(delete(1), &state)).await.unwrap() else {
        panic!("it is over");
    };
    assert!(text(&result).starts_with("CONFIRMATION_INVALID: "), "{}", text(&result));
    assert_eq!(world.deleted.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a5_of_many_answers_at_once_one_counts() {
    let world = world();
    let client = new(&world, &Answers::yes()).await;
    let state = asked(&client).await;
    let calls = (0..16).map(|_| client.call_tool_once(answered(delete(1), &state)));
    let ended = futures_util::future::join_all(calls).await;
    let ran = ended.into_iter().filter(|ended| match ended {
        Ok(CallToolResponse::Complete(result)) => text(result) == "deleted",
        other => panic!("{other:?}"),
    });
    assert_eq!((ran.count(), world.deleted.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn a_client_that_cannot_ask_gets_a_token_to_come_back_with() {
    let world = world();
    let mut raw = world.raw().await;
    for beside in [true, false] {
        let before = world.deleted.load(Ordering::SeqCst);
        raw.say(&call(1, "notes.delete", r#"{"id":1}"#)).await;
        let result = &raw.hear().await["result"];
        assert_eq!(
            (&result["isError"], &result["structuredContent"]["requires_confirmation"]),
            (&json!(false), &json!(true))
        );
        let token = result["structuredContent"]["confirm_token"].as_str().unwrap();
        assert_eq!(world.deleted.load(Ordering::SeqCst), before);
        let again = if beside {
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
                "name": "notes.delete", "arguments": {"id": 1}, "_meta": {"callgate/confirm_token": token}
            }})
        } else {
            serde_json::from_str(&call(2, "notes.delete", &json!({"id": 1, "confirm_token": token}).to_string()))
                .unwrap()
        };
        assert_eq!(raw.ask(again).await["result"]["content"][0]["text"], "deleted");
        assert_eq!(world.deleted.load(Ordering::SeqCst), before + 1);
    }
}

/// J3: a client that asks again under the id of an operation gets its result, and nothing runs twice; what is no id is refused, not ignored.
#[tokio::test]
async fn j3_a_client_that_asks_again_gets_the_result() {
    let world = world();
    let mut raw = world.raw().await;
    let call = |id: u64, operation: Value, token: Option<&str>| {
        let mut meta = json!({"callgate/operation": operation});
        if let Some(token) = token {
            meta["callgate/confirm_token"] = token.into();
        }
        let params = json!({"name": "notes.delete", "arguments": {"id": 1}, "_meta": meta});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let asked = raw.ask(call(1, json!("o-1"), None)).await;
    let token = asked["result"]["structuredContent"]["confirm_token"].as_str().unwrap().to_owned();
    let first = raw.ask(call(2, json!("o-1"), Some(&token))).await;
    // Whoever asks again needs no token.
    let again = raw.ask(call(3, json!("o-1"), None)).await;
    assert_eq!(first["result"]["content"], again["result"]["content"]);
    assert_eq!(again["result"]["content"][0]["text"], "deleted");
    assert_eq!(again["result"]["_meta"]["callgate/outcome"]["replayed"], true, "{again}");
    for (id, operation) in [(4, json!("no id")), (5, json!(7))] {
        let refused = raw.ask(call(id, operation, None)).await;
        assert_eq!(refused["result"]["isError"], true, "{refused}");
    }
    assert_eq!(world.deleted.load(Ordering::SeqCst), 1);
}
