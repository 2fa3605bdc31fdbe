//! One `tools/call`, through the gate.

use std::sync::Arc;

use callgate_async::gate::{CallOptions, Outcome};
use callgate_core::call::End;
use callgate_core::confirm::{By, Token};
use callgate_core::request::Request;
use callgate_std::cancellation::Cancellation;
use callgate_std::context::random_request_id;
use callgate_std::update::{PENDING_UPDATES, Update};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;

use super::question::{self, Answer};
use super::state::Bound;
use super::{Arguments, Caller, OPERATION_META, Parts, TOKEN_META, extension, is_stateless, result};

/// Stands in for a token where what a client brought is none: the gate refuses it, and records that it did.
const NO_TOKEN: &str = "invalid";

/// Stands in for the id of an operation where what a client brought is none: the gate refuses it as well.
const NO_OPERATION: &str = "";

const DECLINED: &str = "CONFIRMATION_INVALID: the user declined this call. Nothing has run. Do not ask for the same again unless the user wants it.";
const UNANSWERED: &str = "CONFIRMATION_INVALID: the confirmation was not answered. Nothing has run.";

/// Serves one call.
pub(super) async fn call(
    server: &Parts,
    caller: Caller,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let call = ToolCall { server, caller, arguments: arguments(&request, &context)?, request, context };
    call.serve().await
}

struct ToolCall<'s> {
    server: &'s Parts,
    caller: Caller,
    request: CallToolRequestParams,
    arguments: Arc<str>,
    context: RequestContext<RoleServer>,
}

impl ToolCall<'_> {
    async fn serve(self) -> Result<CallToolResponse, ErrorData> {
        let answered = match &self.request.request_state {
            Some(state) => self.answered(state).await?,
            None => None,
        };
        if let Some(result) = answered {
            return Ok(CallToolResponse::Complete(result));
        }
        let token = self.context.meta.0.0.get(TOKEN_META).map(|token| token.as_str().unwrap_or(NO_TOKEN));
        let outcome = self.pass(token).await?;
        let End::Asked { token, by: By::Caller, .. } = *outcome.end() else {
            return result::result(&outcome).map(CallToolResponse::Complete);
        };
        if !question::can_ask(self.context.client_capabilities().as_ref()) {
            return result::result(&outcome).map(CallToolResponse::Complete);
        }
        let summary = outcome.message().map(|summary| summary.to_string()).unwrap_or_default();
        if is_stateless(&self.context) {
            let state = self.server.state.seal(token, &self.bound());
            let state = state.ok_or_else(|| ErrorData::internal_error("the request can't be sealed", None))?;
            return Ok(CallToolResponse::InputRequired(question::input_required(&summary, state)));
        }
        self.ask(token, &summary).await.map(CallToolResponse::Complete)
    }

    fn bound(&self) -> Bound<'_> {
        Bound { caller: self.caller.context(""), tool: &self.request.name, arguments: &self.arguments }
    }

    /// Goes on with what the client brought back. `None` when that is no answer: then the call is a new one, which asks anew.
    async fn answered(&self, state: &str) -> Result<Option<CallToolResult>, ErrorData> {
        let Some(token) = self.server.state.open(state, &self.bound()) else {
            // Forged, or sealed for something else: the record says so, and the client learns no more than that.
            drop(self.pass(Some(NO_TOKEN)).await?);
            return Err(ErrorData::invalid_params("the requestState is not good for this request", None));
        };
        match Answer::among(self.request.input_responses.as_ref()) {
            Answer::Yes => result::result(&self.pass(Some(&token.to_string())).await?).map(Some),
            Answer::No => self.decline(token).await.map(Some),
            Answer::None => {
                self.withdraw(token).await;
                Ok(None)
            }
        }
    }

    /// Has the client ask its user, and goes on with the answer.
    async fn ask(&self, token: Token, summary: &str) -> Result<CallToolResult, ErrorData> {
        let asked =
            self.context.peer.create_elicitation_with_timeout(question::form(summary), Some(self.server.patience));
        let answer = tokio::select! {
            answer = asked => answer,
            () = self.context.ct.cancelled() => return self.decline(token).await,
        };
        match answer.as_ref().map(Answer::of) {
            Ok(Answer::Yes) => result::result(&self.pass(Some(&token.to_string())).await?),
            Ok(_) => self.decline(token).await,
            Err(error) => {
                tracing::debug!(%error, "a confirmation was not answered");
                self.withdraw(token).await;
                result::refused(&self.pass(Some(&token.to_string())).await?, UNANSWERED)
            }
        }
    }

    /// The user said no: the token is worth nothing any more, and the record says that somebody tried.
    async fn decline(&self, token: Token) -> Result<CallToolResult, ErrorData> {
        self.withdraw(token).await;
        result::refused(&self.pass(Some(&token.to_string())).await?, DECLINED)
    }

    async fn withdraw(&self, token: Token) {
        if let Err(error) = self.server.gate.withdraw(token).await {
            // It expires; what follows is refused or not by the store's own answer.
            tracing::warn!(%error, "a confirmation that was declined could not be withdrawn");
        }
    }

    /// Passes the call through the gate, to its end: a call that is cancelled ends as such, and is recorded, before this does.
    async fn pass(&self, token: Option<&str>) -> Result<Outcome, ErrorData> {
        let request_id = random_request_id(&*self.server.entropy)
            .map_err(|_| ErrorData::internal_error("there is no randomness to name the call with", None))?;
        let cancellation = Cancellation::new();
        let mut options = CallOptions::new().cancelled_by(cancellation.clone());
        if let Some(operation) = self.context.meta.0.0.get(OPERATION_META) {
            options = options.of_operation(operation.as_str().unwrap_or(NO_OPERATION));
        }
        let mut progress = None;
        if let Some(told) = self.context.meta.get_progress_token() {
            let (sender, receiver) = async_channel::bounded(PENDING_UPDATES);
            options = options.with_updates(sender);
            progress = Some((told, receiver));
        }
        let request = Request { tool: &self.request.name, arguments: self.arguments.as_bytes(), token };
        let called = self.server.gate.call_with(&self.caller.context(&request_id), request, options);
        let telling = async {
            if let Some((token, updates)) = progress {
                tokio::select! {
                    () = tell(&self.context.peer, token, updates) => {}
                    () = self.context.ct.cancelled() => {}
                }
            }
        };
        let both = async { tokio::join!(called, telling).0 };
        tokio::pin!(both);
        tokio::select! {
            outcome = &mut both => Ok(outcome),
            () = self.context.ct.cancelled() => {
                cancellation.cancel();
                Ok(both.await)
            }
        }
    }
}

/// Tells progress until the call is over. What is no progress is left out: the protocol has no parts of results.
async fn tell(peer: &Peer<RoleServer>, token: ProgressToken, updates: async_channel::Receiver<Update>) {
    let mut told = None;
    while let Ok(update) = updates.recv().await {
        let Update::Progress(progress) = update else { continue };
        // The protocol has it increase every time.
        if told.is_some_and(|told| told >= progress.done) {
            continue;
        }
        told = Some(progress.done);
        #[expect(clippy::cast_precision_loss, reason = "the protocol counts in floating point")]
        let mut notice = ProgressNotificationParam::new(token.clone(), progress.done as f64);
        #[expect(clippy::cast_precision_loss, reason = "the protocol counts in floating point")]
        let total = progress.total.map(|total| total as f64);
        notice.total = total;
        notice.message = progress.message;
        if let Err(error) = peer.notify_progress(notice).await {
            tracing::debug!(%error, "progress could not be told");
            return;
        }
    }
}

/// The text of the arguments: as the gate's reader found it in the message, where one of our transports read it.
fn arguments(request: &CallToolRequestParams, context: &RequestContext<RoleServer>) -> Result<Arc<str>, ErrorData> {
    if let Some(arguments) = extension::<Arguments>(&context.extensions) {
        return Ok(Arc::clone(&arguments.0));
    }
    let Some(arguments) = &request.arguments else { return Ok(Arc::from("{}")) };
    serde_json::to_string(&Value::Object(arguments.clone()))
        .map(Arc::from)
        .map_err(|_| ErrorData::invalid_params("unreadable arguments", None))
}
