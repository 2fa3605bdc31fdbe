//! A server that does what a test says.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use callgate_mcp::upstream::{Open, Reader, Writer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, split};
use tokio::sync::Notify;

/// What a server does with the call of a tool.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// It answers with this result.
    Result(Value),
    /// It answers with this error.
    Error(i64, &'static str),
    /// It writes these lines as they stand; `ID` stands for the id of the request.
    Lines(Vec<String>),
    /// It reports progress, and then answers that it is done.
    Progress(Vec<Value>),
    /// It does not answer.
    Nothing,
    /// It hangs up.
    HangUp,
}

/// A server, across all its connections.
#[derive(Clone, Default)]
pub(crate) struct Script(Arc<Inner>);

#[derive(Default)]
struct Inner {
    tools: Mutex<Vec<Value>>,
    acts: Mutex<Vec<(String, Act)>>,
    /// What it was sent.
    seen: Mutex<Vec<Value>>,
    connections: AtomicUsize,
    /// How often it can't be reached, from now on.
    away: AtomicUsize,
    changed: Notify,
    greeting: Mutex<VecDeque<Value>>,
    /// Whether it knows the stateless revision and no other.
    stateless: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A tool that takes any object.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}"), "inputSchema": {"type": "object"}})
}

impl Script {
    /// A server with these tools, which answer with their arguments as a text.
    pub(crate) fn new(tools: impl IntoIterator<Item = Value>) -> Self {
        let script = Self::default();
        script.set_tools(tools);
        script
    }

    /// The same, which does so with calls of the tool.
    pub(crate) fn on(self, tool: &str, act: Act) -> Self {
        locked(&self.0.acts).push((tool.to_owned(), act));
        self
    }

    pub(crate) fn set_tools(&self, tools: impl IntoIterator<Item = Value>) {
        *locked(&self.0.tools) = tools.into_iter().collect();
    }

    /// Tells its client that the tools have changed.
    pub(crate) fn tell_changed(&self) {
        self.0.changed.notify_one();
    }

    /// Can't be reached for so many attempts.
    pub(crate) fn go_away(&self, attempts: usize) {
        self.0.away.store(attempts, Ordering::SeqCst);
    }

    /// Answers the next handshake so instead.
    pub(crate) fn greet_with(&self, answer: Value) {
        locked(&self.0.greeting).push_back(answer);
    }

    /// Speaks the revision 2026-07-28, which has no handshake, and no other.
    pub(crate) fn stateless(self) -> Self {
        self.0.stateless.store(true, Ordering::SeqCst);
        self
    }

    /// How often it was connected to.
    pub(crate) fn connections(&self) -> usize {
        self.0.connections.load(Ordering::SeqCst)
    }

    /// The messages of this method that it was sent.
    pub(crate) fn seen(&self, method: &str) -> Vec<Value> {
        locked(&self.0.seen).iter().filter(|message| message["method"] == method).cloned().collect()
    }

    /// The answers that it was sent to its own questions.
    pub(crate) fn answers(&self) -> Vec<Value> {
        locked(&self.0.seen).iter().filter(|message| message.get("method").is_none()).cloned().collect()
    }

    /// How a gate reaches it.
    pub(crate) fn open(&self) -> Open {
        let script = self.clone();
        Arc::new(move || {
            let away = script.0.away.load(Ordering::SeqCst);
            if away > 0 {
                script.0.away.store(away - 1, Ordering::SeqCst);
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            script.0.connections.fetch_add(1, Ordering::SeqCst);
            let (gate, server) = tokio::io::duplex(1 << 16);
            let (read, write) = split(server);
            drop(tokio::spawn(script.clone().serve(read, write)));
            let (read, write) = split(gate);
            Ok((Box::new(read) as Box<dyn Reader>, Box::new(write) as Box<dyn Writer>))
        })
    }

    async fn serve(self, read: ReadHalf<DuplexStream>, mut write: WriteHalf<DuplexStream>) {
        let mut lines = BufReader::new(read).lines();
        loop {
            let line = tokio::select! {
                line = lines.next_line() => line,
                () = self.0.changed.notified() => {
                    let told = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                    send(&mut write, &told).await;
                    continue;
                }
            };
            let Ok(Some(line)) = line else { return };
            let message: Value = serde_json::from_str(&line).expect("the gate writes JSON");
            locked(&self.0.seen).push(message.clone());
            if message.get("id").is_none() || message.get("method").is_none() {
                continue;
            }
            if !self.answer(&message, &mut write).await {
                return;
            }
        }
    }

    /// Whether it goes on.
    async fn answer(&self, message: &Value, write: &mut WriteHalf<DuplexStream>) -> bool {
        let id = message["id"].clone();
        let stateless = self.0.stateless.load(Ordering::SeqCst);
        let mut result = match message["method"].as_str().expect("a method") {
            "server/discover" if stateless => json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "script", "version": "1"}},
            }),
            "initialize" if !stateless => {
                let greeting = locked(&self.0.greeting).pop_front();
                let usual = json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": "script", "version": "1"},
                });
                greeting.unwrap_or(usual)
            }
            "tools/list" => json!({"tools": locked(&self.0.tools).clone()}),
            "tools/call" => return self.call(message, write).await,
            _ => {
                send(write, &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}})).await;
                return true;
            }
        };
        if stateless {
            result["resultType"] = "complete".into();
            result["ttlMs"] = 0.into();
            result["cacheScope"] = "private".into();
        }
        send(write, &json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
        true
    }

    async fn call(&self, message: &Value, write: &mut WriteHalf<DuplexStream>) -> bool {
        let (id, params) = (&message["id"], &message["params"]);
        let name = params["name"].as_str().expect("a name");
        let act = locked(&self.0.acts).iter().rev().find(|(tool, _)| tool == name).map(|(_, act)| act.clone());
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        let mut result = match act {
            None => text(&params["arguments"].to_string()),
            Some(Act::Result(result)) => result,
            Some(Act::Error(code, text)) => {
                send(write, &json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})).await;
                return true;
            }
            Some(Act::Lines(lines)) => {
                for line in lines {
                    let line = line.replace("ID", &id.to_string());
                    if write.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                        return false;
                    }
                }
                return true;
            }
            Some(Act::Progress(reports)) => {
                for mut report in reports {
                    report["progressToken"] = params["_meta"]["progressToken"].clone();
                    let told = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": report});
                    send(write, &told).await;
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                }
                text("done")
            }
            Some(Act::Nothing) => return true,
            Some(Act::HangUp) => return false,
        };
        if self.0.stateless.load(Ordering::SeqCst) {
            result["resultType"] = "complete".into();
        }
        send(write, &json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
        true
    }
}

async fn send(write: &mut WriteHalf<DuplexStream>, message: &Value) {
    // Whoever hung up does not hear it.
    drop(write.write_all(format!("{message}\n").as_bytes()).await);
}
