//! The connection to one server: made, kept, and made anew when it ends.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use callgate_core::digest::Digest;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerResult, Tool};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, PeerRequestOptions, RoleClient, RunningService, ServiceError,
    serve_client_with_lifecycle,
};
use rmcp::transport::Transport;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::child::{Child, Complaints};
use super::face::Face;
use super::lines::Lines;
use super::reach::Reach;
use super::watched::{Sent, Watched};
use crate::pins::definition_digest;

/// How long a server may take to start: one from a package registry is fetched first.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long a page of the list of tools may take.
const LIST_LIMIT: Duration = Duration::from_secs(20);
/// How many pages a list of tools may have.
const MAX_PAGES: usize = 100;
/// How many tools a server may have.
pub const MAX_TOOLS: usize = 1000;
/// After this time the list is asked for again, whether the server says that it changed or not.
const REFRESH: Duration = Duration::from_secs(300);
/// How long is waited before the first attempt to connect again; after each that fails, twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A connection that held so long is a good one: the next pause is the first again.
const STEADY: Duration = Duration::from_secs(60);

/// How it stands with a server.
#[derive(Clone)]
pub(super) enum State {
    /// It is being started for the first time.
    Starting,
    /// It answers.
    Up(Arc<Live>),
    /// It does not, for this reason. It is started again.
    Down(Arc<str>),
    /// It was ended, for good.
    Ended,
}

/// A connection that works.
pub(super) struct Live {
    pub(super) peer: Peer<RoleClient>,
    pub(super) sent: Sent,
    pub(super) face: Face,
    /// The tools as the server listed them last.
    pub(super) tools: Arc<Vec<Tool>>,
    /// The digest of what each of them is, by its name. Of two of one name neither is there.
    digests: HashMap<String, Digest>,
}

impl Live {
    fn new(peer: Peer<RoleClient>, sent: Sent, face: Face, tools: Vec<Tool>) -> Self {
        let mut digests = HashMap::new();
        let mut twice = Vec::new();
        for tool in &tools {
            if digests.insert(tool.name.to_string(), definition_digest(tool)).is_some() {
                twice.push(tool.name.to_string());
            }
        }
        for name in twice {
            let _ = digests.remove(&name);
        }
        Self { peer, sent, face, tools: Arc::new(tools), digests }
    }

    /// What the tool of this name is now.
    pub(super) fn digest(&self, tool: &str) -> Option<Digest> {
        self.digests.get(tool).copied()
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) struct Broken(String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Broken {
    fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }

    /// With what the program complained of last.
    fn with(mut self, complaints: &Complaints) -> Self {
        for line in complaints.take() {
            self.0.push_str("\n  ");
            self.0.push_str(&line);
        }
        self
    }
}

/// Keeps the connection until `stop`.
pub(super) async fn keep(reach: Reach, max_message: usize, state: watch::Sender<State>, stop: CancellationToken) {
    let mut pause = FIRST_PAUSE;
    loop {
        let complaints = Complaints::default();
        let connected = tokio::select! {
            connected = tokio::time::timeout(START_LIMIT, connect(&reach, max_message, &complaints)) => {
                connected.unwrap_or_else(|_| Err(Broken::new("it does not answer")))
            }
            () = stop.cancelled() => break,
        };
        let started = tokio::time::Instant::now();
        let broken = match connected {
            Ok(connection) => connection.serve(&state, &stop).await,
            Err(broken) => broken,
        };
        if stop.is_cancelled() {
            break;
        }
        if started.elapsed() >= STEADY {
            pause = FIRST_PAUSE;
        }
        drop(state.send_replace(State::Down(broken.with(&complaints).0.into())));
        tokio::select! {
            () = tokio::time::sleep(pause) => pause = pause.saturating_mul(2).min(LONGEST_PAUSE),
            () = stop.cancelled() => break,
        }
    }
    drop(state.send_replace(State::Ended));
}

/// A connection whose handshake is over.
struct Connection {
    running: RunningService<RoleClient, Face>,
    child: Option<Child>,
    sent: Sent,
    face: Face,
}

async fn connect(reach: &Reach, max_message: usize, complaints: &Complaints) -> Result<Connection, Broken> {
    // Servers of today greet by handshake; one that knows only the newer protocol, which has none, says that it does not
    // understand. A program that was asked what it does not understand may not go on: it is started anew.
    match greet(reach, max_message, complaints, ClientLifecycleMode::Initialize).await {
        Err(Greeting::Refused(_)) => {
            let discover = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
            greet(reach, max_message, complaints, discover).await.map_err(Greeting::into_broken)
        }
        other => other.map_err(Greeting::into_broken),
    }
}

enum Greeting {
    /// The server answers, and does not take the greeting.
    Refused(Box<ClientInitializeError>),
    Failed(Broken),
}

impl Greeting {
    fn into_broken(self) -> Broken {
        match self {
            Self::Refused(error) => Broken::new(told(&error)),
            Self::Failed(broken) => broken,
        }
    }
}

/// What an error says, without the messages of the server that some of them carry.
fn told(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::JsonRpcError(error) => format!("it refuses the handshake (code {})", error.code.0),
        ClientInitializeError::ConnectionClosed(_) => "it ended before it answered".to_owned(),
        ClientInitializeError::TransportError { error, .. } => format!("it cannot be reached: {}", error.error),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "it speaks no version that is spoken here".to_owned()
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => told(fallback),
        _ => "it does not answer as a server does".to_owned(),
    }
}

async fn greet(
    reach: &Reach,
    max_message: usize,
    complaints: &Complaints,
    mode: ClientLifecycleMode,
) -> Result<Connection, Greeting> {
    let io = |error: std::io::Error| Greeting::Failed(Broken::new(format!("it cannot be started: {error}")));
    match reach {
        Reach::Program(program) => {
            let (child, (read, write)) = Child::start(program, complaints).map_err(io)?;
            serve(Lines::new(read, write, max_message), Some(child), mode).await
        }
        Reach::Stream(open) => {
            let (read, write) = open().map_err(io)?;
            serve(Lines::new(read, write, max_message), None, mode).await
        }
        Reach::Http(http) => {
            let transport =
                super::http::transport(http, max_message).map_err(|error| Greeting::Failed(Broken::new(error)))?;
            serve(transport, None, mode).await
        }
    }
}

async fn serve<T: Transport<RoleClient> + 'static>(
    transport: T,
    child: Option<Child>,
    mode: ClientLifecycleMode,
) -> Result<Connection, Greeting> {
    let (sent, face) = (Sent::default(), Face::default());
    match serve_client_with_lifecycle(face.clone(), Watched::new(transport, sent.clone()), mode).await {
        Ok(running) => Ok(Connection { running, child, sent, face }),
        Err(error @ ClientInitializeError::JsonRpcError(_)) => Err(Greeting::Refused(Box::new(error))),
        Err(error) => Err(Greeting::Failed(Broken::new(told(&error)))),
    }
}

impl Connection {
    /// Lists the tools, tells of them, and stays until the connection ends or `stop` says so.
    async fn serve(self, state: &watch::Sender<State>, stop: &CancellationToken) -> Broken {
        let Self { running, child, sent, face } = self;
        let peer = running.peer().clone();
        // An answer from yesterday would hide that a definition has changed.
        peer.set_response_cache_config(rmcp::service::ClientCacheConfig::disabled()).await;
        let token = running.cancellation_token();
        let mut closed = std::pin::pin!(running.waiting());
        let reason = loop {
            let listed = tokio::select! {
                listed = list(&peer) => listed,
                _ = &mut closed => break Broken::new("it ended"),
                () = stop.cancelled() => break Broken::new("it was stopped"),
            };
            match listed {
                Ok(tools) => {
                    let live = Live::new(peer.clone(), sent.clone(), face.clone(), tools);
                    drop(state.send_replace(State::Up(Arc::new(live))));
                }
                // What it offers is not known, so nothing of it is called.
                Err(broken) => break broken,
            }
            tokio::select! {
                () = face.changed().notified() => {}
                () = tokio::time::sleep(REFRESH) => {}
                () = face.broken().notified() => break Broken::new("it can't be reached any more"),
                _ = &mut closed => break Broken::new("it ended"),
                () = stop.cancelled() => break Broken::new("it was stopped"),
            }
        };
        // Nobody calls through it any more; those who wait are told when the program is gone.
        let _ = state.send_if_modified(|state| {
            let up = matches!(state, State::Up(_));
            if up {
                *state = State::Down("it ended".into());
            }
            up
        });
        drop(peer);
        // Closes the program's standard input, which asks it to end.
        token.cancel();
        match child {
            None => reason,
            Some(child) => match child.end().await {
                Some(status) => Broken(format!("{reason} ({status})")),
                None => reason,
            },
        }
    }
}

/// All tools.
async fn list(peer: &Peer<RoleClient>) -> Result<Vec<Tool>, Broken> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ListToolsRequest::with_param(params);
        let asked = async {
            let options = PeerRequestOptions::with_timeout(LIST_LIMIT);
            peer.send_request_with_option(ClientRequest::ListToolsRequest(request), options)
                .await?
                .await_response()
                .await
        };
        let page = match asked.await {
            Ok(ServerResult::ListToolsResult(page)) => page,
            // A server without tools need not know the question.
            Err(ServiceError::McpError(error)) if error.code == rmcp::model::ErrorCode::METHOD_NOT_FOUND => {
                return Ok(Vec::new());
            }
            Ok(_) => return Err(Broken::new("its list of tools can't be understood")),
            Err(ServiceError::McpError(error)) => {
                return Err(Broken::new(format!("it does not list its tools (code {})", error.code.0)));
            }
            Err(ServiceError::Timeout { .. }) => return Err(Broken::new("it does not list its tools in time")),
            Err(_) => return Err(Broken::new("it ended while it listed its tools")),
        };
        tools.extend(page.tools);
        if tools.len() > MAX_TOOLS {
            return Err(Broken::new(format!("it has more than {MAX_TOOLS} tools")));
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(tools);
        }
    }
    Err(Broken::new(format!("its list of tools has more than {MAX_PAGES} pages")))
}
