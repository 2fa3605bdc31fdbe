//! Clients of the official SDK, of both eras, over lines.

use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, JsonObject, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion,
};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::{ClientHandler, ClientLifecycleMode, RoleClient, ServiceError, ServiceExt, serve_client_with_lifecycle};
use serde_json::{Value, json};

use crate::world::{World, world};

/// Progress: so much of a total, and a message.
type Told = (f64, Option<f64>, Option<String>);

/// Notes the progress that it is told.
#[derive(Clone, Default)]
pub(crate) struct Client(Arc<Mutex<Vec<Told>>>);

impl ClientHandler for Client {
    async fn on_progress(&self, told: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.0.lock().unwrap().push((told.progress, told.total, told.message));
    }

    fn get_info(&self) -> ClientConfig {
        ClientConfig::default()
    }
}

async fn old(world: &World) -> RunningService<RoleClient, Client> {
    Client::default().serve(world.connect().0).await.unwrap()
}

async fn new(world: &World) -> RunningService<RoleClient, Client> {
    let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    serve_client_with_lifecycle(Client::default(), world.connect().0, mode).await.unwrap()
}

fn params(tool: &'static str, arguments: &Value) -> CallToolRequestParams {
    let arguments: JsonObject = arguments.as_object().cloned().unwrap();
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

fn text(result: &CallToolResult) -> &str {
    &result.content.first().and_then(|block| block.as_text()).unwrap().text
}

#[tokio::test]
async fn both_eras_see_the_same_tools_and_get_the_same_results() {
    let world = world();
    for client in [old(&world).await, new(&world).await] {
        let tools = client.list_all_tools().await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["math.add", "notes.count", "notes.delete", "notes.fail", "notes.wait"]);
        let add = &tools[0];
        assert_eq!(add.input_schema["properties"]["a"]["maximum"], 1000);
        assert_eq!(add.output_schema.as_ref().unwrap()["required"], json!(["sum"]));
        let hints = add.annotations.as_ref().unwrap();
        assert_eq!((hints.read_only_hint, hints.destructive_hint), (Some(true), None));
        let hints = tools[2].annotations.as_ref().unwrap();
        assert_eq!(
            (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint),
            (Some(false), Some(true), Some(false))
        );

        let result = client.call_tool(params("math.add", &json!({"a": 2, "b": 3}))).await.unwrap();
        assert_eq!((result.is_error, result.structured_content.as_ref()), (Some(false), Some(&json!({"sum": 5}))));
        assert_eq!(text(&result), r#"{"sum":5}"#);
        let meta = &result.meta.as_ref().unwrap().0["callgate/outcome"];
        assert_eq!(
            (&meta["effect"], &meta["principal"], &meta["channel"]),
            (&json!("done"), &json!("ann"), &json!("mcp"))
        );
        client.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn bad_arguments_are_a_result_that_a_model_can_act_on() {
    let world = world();
    for client in [old(&world).await, new(&world).await] {
        for (arguments, field) in [
            (json!({"a": 2000, "b": 1}), "a: "),
            (json!({"a": "two", "b": 1}), "a: "),
            (json!({"a": 1}), ": b."),
            (json!({"a": 1, "b": 1, "c": 1}), "c"),
        ] {
            let result = client.call_tool(params("math.add", &arguments)).await.unwrap();
            assert_eq!(result.is_error, Some(true), "{arguments}");
            let said = text(&result);
            assert!(said.starts_with("VALIDATION_ERROR: ") && said.contains(field), "{arguments}: {said}");
            assert!(!said.contains("2000") && !said.contains("two"), "no value is told: {said}");
        }
        client.cancel().await.unwrap();
    }
    assert!(world.ends().iter().all(|(tool, code)| tool == "math.add" && code == "VALIDATION_ERROR"));
    assert_eq!(world.ends().len(), 8);
}

#[tokio::test]
async fn an_unknown_tool_is_a_fault_of_the_protocol_and_a_refused_one_a_result() {
    let world = world();
    let client = old(&world).await;
    // It can be found, but is not listed: the policy tells the caller what it lacks.
    let result = client.call_tool(params("admin.only", &json!({}))).await.unwrap();
    assert!(text(&result).starts_with("FORBIDDEN: "), "{result:?}");
    let Err(ServiceError::McpError(error)) = client.call_tool(params("no.such", &json!({}))).await else {
        panic!("an unknown tool is no result");
    };
    assert_eq!(error.code.0, -32602);
    assert_eq!(world.ends().last().unwrap(), &("no.such".to_owned(), "TOOL_NOT_FOUND".to_owned()));
}

#[tokio::test]
async fn l4_what_a_tool_says_of_its_inside_is_not_told() {
    let world = world();
    let client = old(&world).await;
    let result = client.call_tool(params("notes.fail", &json!({}))).await.unwrap();
    assert_eq!(result.is_error, Some(true));
    let whole = serde_json::to_string(&result).unwrap();
    assert!(text(&result).starts_with("INTERNAL_ERROR: ") && !whole.contains("secret"), "{whole}");
}

#[tokio::test]
async fn pages_go_on_where_the_last_one_ended() {
    let mut world = world();
    world.server = world.server.with_page(2);
    let client = old(&world).await;
    let (mut cursor, mut pages) = (None, Vec::new());
    loop {
        let page = client.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await.unwrap();
        pages.push(page.tools.iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>());
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(pages, [vec!["math.add", "notes.count"], vec!["notes.delete", "notes.fail"], vec!["notes.wait"]]);
    for unknown in ["2", "", "bm90ZXMu", "!!"] {
        let cursor = PaginatedRequestParams::default().with_cursor(Some(unknown.to_owned()));
        let answer = client.list_tools(Some(cursor)).await;
        // Any name is a place to go on from, but nothing else is.
        if unknown == "bm90ZXMu" {
            assert_eq!(answer.unwrap().tools.first().unwrap().name, "notes.count");
        } else {
            assert!(matches!(answer, Err(ServiceError::McpError(error)) if error.code.0 == -32602), "{unknown}");
        }
    }
}

#[tokio::test]
async fn progress_is_told_to_who_asks_and_only_ever_grows() {
    let world = world();
    for client in [old(&world).await, new(&world).await] {
        let result = client.call_tool(params("notes.count", &json!({}))).await.unwrap();
        assert_eq!(text(&result), "[1,2,3]");
        let told = client.service().0.lock().unwrap().clone();
        let said = |done: f64| (done, Some(3.0), Some("counting".to_owned()));
        assert_eq!(told, [said(1.0), said(2.0), said(3.0)], "told before the result");
        client.cancel().await.unwrap();
    }
}
