//! A gate with a few tools, served to clients of the official SDK and to one that writes lines.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate_async::gate::Gate;
use callgate_async::runtime::Tokio;
use callgate_async::seam::Immediate;
use callgate_core::tool::ConfirmBy;
use callgate_mcp::server::{Caller, McpServer, ServeError};
use callgate_std::audit::MemoryAudit;
use callgate_std::cancellation::Cancellation;
use callgate_std::failure::Failure;
use callgate_std::journal::MemoryJournal;
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::Tool;
use callgate_std::update::Progress;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split};
use tokio::task::JoinHandle;

/// A served gate.
pub(crate) struct World {
    pub(crate) server: McpServer,
    pub(crate) audit: MemoryAudit,
    /// How often `notes.delete` ran.
    pub(crate) deleted: Arc<AtomicUsize>,
    /// Given when `notes.wait` has started.
    pub(crate) started: Cancellation,
}

#[derive(Deserialize)]
struct Terms {
    a: i64,
    b: i64,
}

pub(crate) fn world() -> World {
    let (deleted, started) = (Arc::new(AtomicUsize::new(0)), Cancellation::new());
    let (deletes, starts) = (Arc::clone(&deleted), started.clone());
    let integer = json!({"type": "integer", "minimum": -1000, "maximum": 1000});
    let registry = Registry::builder()
        .add(
            Tool::builder("math.add")
                .description("Adds")
                .json_schema(json!({
                    "type": "object",
                    "properties": {"a": integer, "b": integer},
                    "required": ["a", "b"],
                    "additionalProperties": false
                }))
                .output_schema(json!({
                    "type": "object",
                    "properties": {"sum": {"type": "integer"}},
                    "required": ["sum"]
                }))
                .typed(|_, terms: Terms| Ok(Reply::new(json!({"sum": terms.a + terms.b})))),
        )
        .add(
            Tool::builder("notes.delete")
                .description("Deletes")
                .mutating()
                .dangerous()
                .confirm(ConfirmBy::Caller)
                .handler(move |_| {
                    deletes.fetch_add(1, Ordering::SeqCst);
                    Ok(Reply::new("deleted"))
                }),
        )
        .add(Tool::builder("notes.fail").description("Fails").handler(|_| Err(Failure::new("a secret of the inside"))))
        .add(Tool::builder("notes.wait").description("Waits for ever").mutating().async_handler(move |_| {
            starts.cancel();
            pending()
        }))
        .add(Tool::builder("notes.count").description("Counts").async_handler(|call| async move {
            for done in [1, 2, 2, 1, 3] {
                call.progress(Progress::count(done).of(3).with_message("counting")).await;
            }
            Ok(Reply::new(json!([1, 2, 3])))
        }))
        .add(Tool::builder("admin.only").description("Hidden").scopes(["admin"]).handler(|_| Ok(Reply::empty())))
        .build()
        .unwrap();
    let audit = MemoryAudit::new();
    let gate = Gate::builder(registry, Tokio::current().unwrap())
        .journal(Immediate(MemoryJournal::default()))
        .audit(Immediate(audit.clone()))
        .accept_reserved_argument()
        .unlimited()
        .build()
        .unwrap();
    let server =
        McpServer::new(gate, [7; 32]).with_caller(Caller::new("mcp").with_principal("ann").with_scopes(["notes"]));
    World { server, audit, deleted, started }
}

impl World {
    /// The end of a stream that is served, and what becomes of serving it.
    pub(crate) fn connect(&self) -> (DuplexStream, JoinHandle<Result<(), ServeError>>) {
        let (client, server) = duplex(1 << 12);
        let (read, write) = split(server);
        (client, tokio::spawn(self.server.clone().serve_lines(read, write, pending())))
    }

    /// A client that writes lines, past the handshake.
    pub(crate) async fn raw(&self) -> Raw {
        let mut raw = self.raw_silent();
        let answer = raw
            .ask(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "raw", "version": "0"}
            }}))
            .await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        raw.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()).await;
        raw
    }

    /// A client that writes lines, and has said nothing yet.
    pub(crate) fn raw_silent(&self) -> Raw {
        let (client, serving) = self.connect();
        let (read, write) = split(client);
        Raw { lines: BufReader::new(read).lines(), write, serving }
    }

    /// The terminal records, as tool and outcome.
    pub(crate) fn ends(&self) -> Vec<(String, String)> {
        let records = self.audit.lines().into_iter().map(|line| serde_json::from_str::<Value>(&line).unwrap());
        let terminal = records.filter(|record| record["kind"] != "intent");
        let text = |value: &Value| value.as_str().unwrap_or("ok").to_owned();
        terminal.map(|record| (text(&record["tool"]), text(&record["code"]))).collect()
    }
}

/// A client that says what it likes.
pub(crate) struct Raw {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    pub(crate) serving: JoinHandle<Result<(), ServeError>>,
}

impl Raw {
    pub(crate) async fn say(&mut self, line: &str) {
        self.write.write_all(line.as_bytes()).await.unwrap();
        self.write.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn hear(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("an answer");
        serde_json::from_str(&line).unwrap()
    }

    pub(crate) async fn ask(&mut self, message: Value) -> Value {
        self.say(&message.to_string()).await;
        self.hear().await
    }

    /// Says nothing more, and reads until the server is done.
    pub(crate) async fn leave(mut self) -> Vec<Value> {
        self.write.shutdown().await.unwrap();
        let mut rest = Vec::new();
        while let Some(line) = self.lines.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        self.serving.await.unwrap().unwrap();
        rest
    }
}

/// A call as a line.
pub(crate) fn call(id: u64, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}
