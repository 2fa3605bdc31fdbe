//! One request, from its headers to the SDK.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callgate_core::digest::Digest;
use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, COOKIE, PROXY_AUTHORIZATION, USER_AGENT, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::Body;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use rmcp::model::{ClientJsonRpcMessage, ErrorData, GetExtensions, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;

use super::admission::{Hosts, Origins, Refusal, check_host, check_origin};
use super::body;
use super::flight::{Flight, Flights, Landing};
use super::sessions::Sessions;
use crate::auth::{Authenticator, Unauthenticated};
use crate::server::frame::{self, FrameError};
use crate::server::{Arguments, Caller, MAX_FRAME, McpServer};

/// Where the server is.
const PATH: &str = "/mcp";
/// Where it says who issues its tokens (RFC 9728).
const METADATA: &str = "/.well-known/oauth-protected-resource";
/// How long a body may take to come, where a host says nothing else.
const BODY_TIME: Duration = Duration::from_secs(10);
/// How many conversations of the older era there may be, where a host says nothing else.
const SESSIONS: usize = 256;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Headers of the protocol, each of which a request has once at most: of two, somebody on the way may go by the other one.
const ONCE: [&str; 5] = ["mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id"];
/// What proves who sent a request, and is nobody's business afterwards (invariant T2).
const CREDENTIALS: [HeaderName; 3] = [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE];

/// The answer to a request.
pub type Answer = Response<BoxBody<Bytes, Infallible>>;

/// A server behind HTTP, without the connections.
pub struct Endpoint {
    hosts: Hosts,
    origins: Origins,
    authenticator: Authenticator,
    sessions: Sessions,
    flights: Flights,
    manager: Arc<LocalSessionManager>,
    service: StreamableHttpService<McpServer, LocalSessionManager>,
    body_time: Duration,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .field("authenticator", &self.authenticator)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// The server, for whom `authenticator` knows. It answers to the names of this machine for itself, and to no page.
    #[must_use]
    pub fn new(server: McpServer, authenticator: Authenticator) -> Self {
        let manager = Arc::new(LocalSessionManager::default());
        // Both are checked before, and more strictly.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(MAX_FRAME);
        let service = StreamableHttpService::new(move || Ok(server.clone()), Arc::clone(&manager), config);
        Self {
            hosts: Hosts::loopback(),
            origins: Origins::default(),
            authenticator,
            sessions: Sessions::new(SESSIONS),
            flights: Flights::default(),
            manager,
            service,
            body_time: BODY_TIME,
        }
    }

    /// The same, answering to these names.
    #[must_use]
    pub fn with_hosts(mut self, hosts: Hosts) -> Self {
        self.hosts = hosts;
        self
    }

    /// The same, for pages of these origins, too.
    #[must_use]
    pub fn with_origins(mut self, origins: Origins) -> Self {
        self.origins = origins;
        self
    }

    /// The same, with at most so many conversations of the older era at once. One more is refused.
    #[must_use]
    pub fn with_sessions(mut self, at_most: usize) -> Self {
        self.sessions = Sessions::new(at_most);
        self
    }

    /// The same, which waits so long for a body.
    #[must_use]
    pub const fn with_body_time(mut self, within: Duration) -> Self {
        self.body_time = within;
        self
    }

    /// Ends conversations and streams.
    pub fn stop(&self) {
        self.service.config.cancellation_token.cancel();
    }

    /// Answers one request of the peer at `ip`.
    pub async fn answer<B>(&self, request: Request<B>, ip: Option<IpAddr>) -> Answer
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.admit(request, ip).await.unwrap_or_else(|refused| *refused)
    }

    async fn admit<B>(&self, request: Request<B>, ip: Option<IpAddr>) -> Result<Answer, Box<Answer>>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (headers, uri) = (request.headers(), request.uri());
        check_host(&self.hosts, headers, uri).map_err(refusal)?;
        check_origin(&self.origins, headers).map_err(refusal)?;
        if let Some(metadata) = self.metadata(request.method(), uri) {
            return Ok(metadata);
        }
        if uri.path() != PATH {
            return Err(refusal((StatusCode::NOT_FOUND, "there is nothing here; the server is at /mcp")));
        }
        let caller = self.authenticator.authenticate(headers).map_err(|error| Box::new(self.challenge(error)))?;
        if ONCE.iter().any(|name| headers.get_all(*name).iter().nth(1).is_some()) {
            let error = ErrorData::header_mismatch("a header of the protocol is there twice", None);
            return Err(Box::new(told(StatusCode::BAD_REQUEST, FrameError { error, id: None })));
        }
        let session = session(headers).map_err(refusal)?;
        if let Some(id) = &session
            && !self.sessions.is_of(id, &caller)
        {
            return Err(refusal((StatusCode::NOT_FOUND, "there is no such conversation")));
        }
        let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).map(str::to_owned);
        let ip = ip.map(|ip| ip.to_string());
        let known = caller.clone().with_peer(ip.as_deref(), agent.as_deref());
        let known = match &session {
            // The handle itself is in no record.
            Some(id) => known.with_session(name_of(id)),
            None => known,
        };
        let request = self.read(request, known, session.as_deref()).await?;
        self.pass(request, session, &caller).await
    }

    /// Reads the body, and hands on what the SDK may see.
    async fn read<B>(&self, request: Request<B>, caller: Caller, session: Option<&str>) -> Result<Inner, Box<Answer>>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut parts, sent) = request.into_parts();
        for credential in CREDENTIALS {
            while parts.headers.remove(&credential).is_some() {}
        }
        drop(parts.extensions.insert(caller));
        if parts.method != Method::POST {
            return Ok(Inner {
                request: Request::from_parts(parts, Empty::new().boxed()),
                begins: false,
                flight: None,
            });
        }
        if parts.headers.contains_key(CONTENT_ENCODING) {
            return Err(refusal((StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body may not be encoded")));
        }
        let text = body::read(sent, MAX_FRAME, self.body_time).await.map_err(refusal)?;
        let message = frame::read(&text).map_err(|error| Box::new(told(StatusCode::BAD_REQUEST, error)))?;
        let begins = begins(&message);
        let mut flight = None;
        if let JsonRpcMessage::Request(request) = message {
            if let Some(session) = session {
                let Some(taken) = self.flights.take(session, &request.id) else {
                    let error = ErrorData::invalid_request("a request with this id is in flight already", None);
                    return Err(Box::new(told(StatusCode::BAD_REQUEST, FrameError { error, id: None })));
                };
                flight = Some(taken);
            }
            if let Some(arguments) = request.request.extensions().get::<Arguments>() {
                drop(parts.extensions.insert(arguments.clone()));
            }
        }
        Ok(Inner { request: Request::from_parts(parts, Full::new(text).boxed()), begins, flight })
    }

    /// Has the SDK answer.
    async fn pass(&self, inner: Inner, session: Option<String>, caller: &Caller) -> Result<Answer, Box<Answer>> {
        let Inner { request, begins, flight } = inner;
        if begins && session.is_none() && self.sessions.are_full() {
            self.forget_the_dead().await;
            if self.sessions.are_full() {
                let busy = "there are as many conversations as there may be; come back later";
                return Err(refusal((StatusCode::SERVICE_UNAVAILABLE, busy)));
            }
        }
        let ends = request.method() == Method::DELETE;
        let answer = self.service.handle(request).await;
        if let Some(id) = answer.headers().get(SESSION).and_then(|id| id.to_str().ok()) {
            self.sessions.begin(id, caller);
        }
        if let Some(id) = session
            && (ends || answer.status() == StatusCode::NOT_FOUND)
            && !self.lives(&id).await
        {
            self.sessions.end(&id);
        }
        Ok(match flight {
            Some(_) => answer.map(|body| Landing { body, flight }.boxed()),
            None => answer,
        })
    }

    async fn lives(&self, id: &str) -> bool {
        self.manager.has_session(&id.to_owned().into()).await.unwrap_or(true)
    }

    /// Conversations end by themselves when nothing is said in them.
    async fn forget_the_dead(&self) {
        for id in self.sessions.ids() {
            if !self.lives(&id).await {
                self.sessions.end(&id);
            }
        }
    }

    /// Says that a token is needed, and where to get one.
    fn challenge(&self, error: Unauthenticated) -> Answer {
        let mut challenge = String::from("Bearer");
        let mut separator = " ";
        if error == Unauthenticated::Invalid {
            challenge.push_str(" error=\"invalid_token\"");
            separator = ", ";
        }
        if let Some((origin, path)) = self.authenticator.issuer().and_then(|issuer| resource(issuer.audience())) {
            challenge.push_str(&format!("{separator}resource_metadata=\"{origin}{METADATA}{path}\""));
        }
        let mut answer = text(StatusCode::UNAUTHORIZED, &error.to_string());
        if let Ok(challenge) = HeaderValue::try_from(challenge) {
            drop(answer.headers_mut().insert(WWW_AUTHENTICATE, challenge));
        }
        answer
    }

    /// Who issues tokens for this server, for clients that look (RFC 9728). No secret.
    fn metadata(&self, method: &Method, uri: &Uri) -> Option<Answer> {
        let issuer = self.authenticator.issuer()?;
        let path = uri.path().strip_prefix(METADATA)?;
        let known = resource(issuer.audience())?;
        if method != Method::GET || (!path.is_empty() && path != known.1) {
            return None;
        }
        let metadata = json!({
            "resource": issuer.audience(),
            "authorization_servers": [issuer.name()],
            "bearer_methods_supported": ["header"],
        });
        Some(answer(StatusCode::OK, metadata.to_string()))
    }
}

/// What the SDK may see of a request.
struct Inner {
    request: Request<BoxBody<Bytes, Infallible>>,
    /// Whether it begins a conversation.
    begins: bool,
    flight: Option<Flight>,
}

fn begins(message: &ClientJsonRpcMessage) -> bool {
    use rmcp::model::ClientRequest::InitializeRequest;
    matches!(message, JsonRpcMessage::Request(request) if matches!(request.request, InitializeRequest(_)))
}

/// The handle of a conversation.
fn session(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    headers
        .get(SESSION)
        .map(|id| {
            id.to_str().map(str::to_owned).map_err(|_| (StatusCode::BAD_REQUEST, "the Mcp-Session-Id is no text"))
        })
        .transpose()
}

/// The name of a conversation in records.
fn name_of(id: &str) -> String {
    Digest::of_bytes(id.as_bytes()).to_string().chars().take(32).collect()
}

/// An audience that is an address: up to its path, and its path.
fn resource(audience: &str) -> Option<(String, String)> {
    let uri: Uri = audience.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    let path = if uri.path() == "/" { "" } else { uri.path() };
    Some((format!("{scheme}://{authority}"), path.to_owned()))
}

fn refusal((status, why): Refusal) -> Box<Answer> {
    Box::new(text(status, why))
}

/// A fault of HTTP, which is no answer to a message.
fn text(status: StatusCode, why: &str) -> Answer {
    answer(status, json!({"error": why}).to_string())
}

/// A fault of the message.
fn told(status: StatusCode, error: FrameError) -> Answer {
    let message: ServerJsonRpcMessage = error.into_message();
    answer(status, serde_json::to_string(&message).unwrap_or_default())
}

fn answer(status: StatusCode, body: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)).boxed());
    *answer.status_mut() = status;
    drop(answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json")));
    answer
}

#[cfg(test)]
mod tests {
    use callgate_async::gate::Gate;
    use callgate_async::runtime::Tokio;
    use callgate_std::registry::Registry;

    use super::*;

    #[tokio::test]
    async fn t2_what_proves_who_sent_a_request_goes_no_further() {
        let gate = Gate::builder(Registry::builder().build().unwrap(), Tokio::current().unwrap()).build().unwrap();
        let endpoint = Endpoint::new(McpServer::new(gate, [0; 32]), Authenticator::new());
        let mut request = Request::post(PATH).header("x-kept", "1");
        for name in ["authorization", "cookie", "cookie", "proxy-authorization"] {
            request = request.header(name, "canary");
        }
        let body = Full::<Bytes>::from(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        let ann = Caller::new("mcp").with_principal("ann");
        let inner = endpoint.read(request.body(body).unwrap(), ann.clone(), None).await.unwrap();
        assert!(!format!("{:?}", inner.request.headers()).contains("canary"));
        assert_eq!(inner.request.headers()["x-kept"], "1");
        assert_eq!(inner.request.extensions().get::<Caller>(), Some(&ann));
    }
}
