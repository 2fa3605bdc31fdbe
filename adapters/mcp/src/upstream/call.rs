//! One call of a server's tool.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use callgate_core::digest::Digest;
use callgate_std::failure::Failure;
use callgate_std::output::Reply;
use callgate_std::tool::OwnedCall;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotification, CancelledNotificationParam,
    ClientRequest, ContentBlock, JsonObject, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};

use super::link::{Live, State};
use super::{Upstream, schema};

impl Upstream {
    /// Calls the tool that the server calls `tool`, if it still defines it as `definition` says.
    ///
    /// # Errors
    /// Why there is no result, and whether anything may have happened.
    pub(super) async fn call(&self, tool: &str, definition: Digest, call: &OwnedCall) -> Result<Reply, Failure> {
        let arguments: JsonObject = call.arguments()?;
        let _place = self.place().await?;
        let live = self.live().await?;
        // What was validated, judged and confirmed is the tool as it was then.
        match live.digest(tool) {
            Some(now) if now == definition => {}
            Some(_) => return Err(self.nothing_sent("has changed what this tool is since it was looked at")),
            None => return Err(self.nothing_sent("does not have this tool any more")),
        }
        let result = self.ask(&live, tool, arguments, call).await?;
        self.reply(result)
    }

    /// A place among the calls in flight.
    async fn place(&self) -> Result<tokio::sync::OwnedSemaphorePermit, Failure> {
        let places = Arc::clone(&self.0.places);
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            return Ok(place);
        }
        let _line =
            Line::join(self).ok_or_else(|| self.nothing_sent("has too many calls in flight; try again later"))?;
        places.acquire_owned().await.map_err(|_| self.nothing_sent("was ended"))
    }

    /// The connection. Waits only while the server is started for the first time.
    async fn live(&self) -> Result<Arc<Live>, Failure> {
        let mut state = self.0.state.clone();
        let known = state.wait_for(|state| !matches!(state, State::Starting)).await;
        match known.as_deref() {
            Ok(State::Up(live)) => Ok(Arc::clone(live)),
            Ok(State::Ended) | Err(_) => Err(self.nothing_sent("was ended")),
            Ok(State::Starting | State::Down(_)) => {
                Err(self.nothing_sent("is not there; it is started again. Try again later"))
            }
        }
    }

    /// Sends the request, once, and waits for its answer. Whoever stops waiting has the server told.
    async fn ask(
        &self,
        live: &Live,
        tool: &str,
        arguments: JsonObject,
        call: &OwnedCall,
    ) -> Result<CallToolResult, Failure> {
        // Nothing of what the caller sent beside the arguments goes along (invariant T2).
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = live.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
        let handle = handle.map_err(|_| self.nothing_sent("ended before it was asked"))?;
        let mut followed = live.face.followers().follow(handle.progress_token.clone());
        let mut open = OpenRequest { live, id: handle.id.clone(), answered: false };
        let mut answer = handle.rx;
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut answer => break answer,
                Some(progress) = followed.next() => call.progress(progress).await,
            }
        };
        open.answered = true;
        match answer {
            Ok(Ok(ServerResult::CallToolResult(result))) => Ok(result),
            Ok(Ok(ServerResult::InputRequiredResult(_))) => {
                Err(self.failed("asks its caller a question, which the gate does not pass on"))
            }
            Ok(Ok(_)) => Err(self.failed("gave an answer that is no result of a tool")),
            Ok(Err(ServiceError::McpError(error))) => {
                let text = format!("The server {} refused the call: {}", self.name(), error.message);
                Err(Failure::new(text).public().with_detail(&format!("code {}", error.code.0)))
            }
            Ok(Err(error)) => {
                live.face.broken().notify_one();
                let sent = open.was_sent() && !never_connected(&error);
                let what = if sent { "ended before it answered" } else { "could not be asked" };
                let failure = self.failed(what).with_detail(&error.to_string());
                Err(if sent { failure } else { failure.without_effect() })
            }
            Err(_) if open.was_sent() => Err(self.failed("ended before it answered")),
            Err(_) => Err(self.nothing_sent("ended before it was asked")),
        }
    }

    fn reply(&self, mut result: CallToolResult) -> Result<Reply, Failure> {
        result.result_type = None;
        // What a server says to the client's machinery is not for it to say through the gate.
        result.meta = None;
        if result.is_error == Some(true) {
            let text = texts(&result.content);
            let text =
                if text.is_empty() { format!("The server {} says that the tool failed", self.name()) } else { text };
            return Err(Failure::new(text).public());
        }
        schema::reply(&result)
            .map_err(|error| self.failed("gave a result that can't be written").with_detail(&error.to_string()))
    }

    /// A failure of a call that never left.
    fn nothing_sent(&self, what: &str) -> Failure {
        self.failed(what).without_effect()
    }

    /// A failure of a call that may have had an effect.
    fn failed(&self, what: &str) -> Failure {
        Failure::new(format!("The server {} {what}", self.name())).public()
    }
}

/// Whether a request over HTTP ended before there was a connection to send it on.
fn never_connected(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(error) = error else { return false };
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error.error.as_ref());
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<reqwest::Error>() {
            return error.is_connect();
        }
        source = error.source();
    }
    false
}

/// The texts of a result, a line each.
fn texts(content: &[ContentBlock]) -> String {
    let text = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => Some(text.text.clone()),
        _ => None,
    };
    content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

/// A call in line for a place.
struct Line<'u>(&'u Upstream);

impl<'u> Line<'u> {
    fn join(upstream: &'u Upstream) -> Option<Self> {
        let shared = &upstream.0;
        let room = |waiting: usize| (waiting < shared.settings.max_in_flight).then(|| waiting.saturating_add(1));
        shared.waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).ok()?;
        Some(Self(upstream))
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let _ = self.0.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A request whose answer is waited for. Dropped without one, it is cancelled at the server.
struct OpenRequest<'l> {
    live: &'l Live,
    id: RequestId,
    answered: bool,
}

impl OpenRequest<'_> {
    /// Whether the request has left, or begun to. Asked once, when it is over.
    fn was_sent(&self) -> bool {
        self.live.sent.end(&self.id)
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        let _ = self.live.sent.end(&self.id);
        if !self.answered {
            drop(tokio::spawn(cancel(self.live.peer.clone(), self.id.clone())));
        }
    }
}

async fn cancel(peer: Peer<RoleClient>, id: RequestId) {
    let params = CancelledNotificationParam::new(Some(id), Some("the caller does not wait any more".to_owned()));
    if let Err(error) = peer.send_notification(CancelledNotification::new(params).into()).await {
        tracing::debug!(%error, "a server could not be told that a call was cancelled");
    }
}
