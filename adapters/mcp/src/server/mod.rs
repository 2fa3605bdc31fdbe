//! A gate as an MCP server, on both eras of the protocol at once: the handshake of 2025-11-25 and before, and the stateless
//! requests of 2026-07-28.
//!
//! [`McpServer`] is a handler of the official SDK: it tells the tools of a gate, and passes each `tools/call` through the gate.
//! [`Lines`] carries it over standard input and output, [`crate::http`] over HTTP.

mod call;
mod caller;
pub(crate) mod frame;
mod lines;
mod listing;
mod question;
mod result;
mod serve;
mod state;

use std::sync::Arc;
use std::time::Duration;

use callgate_async::gate::Gate;
use callgate_core::confirm::DEFAULT_TTL_MS;
use callgate_std::entropy::{OsEntropy, SharedEntropy};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, ErrorData, Extensions,
    Implementation, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
    Tool as McpTool,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::watch;

pub use caller::Caller;
pub use frame::{Arguments, MAX_FRAME};
pub use lines::{Closed, Lines};
pub use result::{OUTCOME_META, RESULT_KIND, reply};
pub use serve::ServeError;

use state::StateKey;

/// The tools of one page of a listing, where a host sets no other number.
pub const DEFAULT_PAGE: usize = 100;

/// The member of a request's `_meta` that holds a confirmation token: beside the arguments, where a program can put it.
pub const TOKEN_META: &str = "callgate/confirm_token";

/// The member of a request's `_meta` that holds the id of the operation that the call is one of; see [`callgate_std::journal`].
pub const OPERATION_META: &str = "callgate/operation";

/// A gate as an MCP server. Cheap to clone; clones share everything.
///
/// Who calls is said by the transport, in the extensions of each message, or else is the one [`caller`](Self::with_caller) of the
/// server. Where neither says anything, nothing is served (invariant F2).
#[derive(Clone)]
pub struct McpServer(Arc<Parts>);

#[derive(Clone)]
struct Parts {
    gate: Gate,
    caller: Option<Caller>,
    page: usize,
    instructions: Option<String>,
    implementation: Implementation,
    /// What names of tools start with in the gate and not on the wire.
    prefix: String,
    changes: Option<watch::Receiver<u64>>,
    state: StateKey,
    entropy: SharedEntropy,
    /// How long a question may stay open.
    patience: Duration,
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer").field("gate", &self.0.gate).field("caller", &self.0.caller).finish_non_exhaustive()
    }
}

impl McpServer {
    /// The server of a gate. `state_key` seals what clients bring back with an answer; processes that serve the same clients have the
    /// same one. It must come from a cryptographic random generator, or be derived from what does.
    #[must_use]
    pub fn new(gate: Gate, state_key: [u8; 32]) -> Self {
        Self(Arc::new(Parts {
            gate,
            caller: None,
            page: DEFAULT_PAGE,
            instructions: None,
            prefix: String::new(),
            changes: None,
            implementation: Implementation::new("callgate", env!("CARGO_PKG_VERSION")),
            state: StateKey::new(state_key),
            entropy: OsEntropy::shared(),
            patience: Duration::from_millis(DEFAULT_TTL_MS),
        }))
    }

    /// The same server, all of whose messages are this caller's, unless the transport says another.
    #[must_use]
    pub fn with_caller(self, caller: Caller) -> Self {
        self.with(|parts| parts.caller = Some(caller))
    }

    /// The same server with so many tools a page, at least one.
    #[must_use]
    pub fn with_page(self, tools: usize) -> Self {
        self.with(|parts| parts.page = tools.max(1))
    }

    /// The same server, which tells clients how it is meant to be used.
    #[must_use]
    pub fn with_instructions(self, instructions: impl Into<String>) -> Self {
        let instructions = instructions.into();
        self.with(|parts| parts.instructions = Some(instructions))
    }

    /// The same server, which waits so long for the answer to a question that it asked; as long as a token is good.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        self.with(|parts| parts.patience = patience)
    }

    /// The same server with this source of request ids.
    #[must_use]
    pub fn with_entropy(self, entropy: SharedEntropy) -> Self {
        self.with(|parts| parts.entropy = entropy)
    }

    /// The same server, which leaves this out where names of tools begin: a client of one other server that is behind the gate goes on
    /// with the names that it knows. All tools of the gate have to have it.
    #[must_use]
    pub fn with_prefix(self, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        self.with(|parts| parts.prefix = prefix)
    }

    /// The same server, which tells clients that the list of tools has changed whenever this does.
    #[must_use]
    pub fn with_changes(self, changes: watch::Receiver<u64>) -> Self {
        self.with(|parts| parts.changes = Some(changes))
    }

    fn with(self, change: impl FnOnce(&mut Parts)) -> Self {
        let mut parts = Arc::unwrap_or_clone(self.0);
        change(&mut parts);
        Self(Arc::new(parts))
    }

    /// The gate.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.0.gate
    }

    /// Who sent a message.
    ///
    /// # Errors
    /// Nobody said.
    pub fn caller_of(&self, extensions: &Extensions) -> Result<Caller, ErrorData> {
        extension::<Caller>(extensions)
            .or(self.0.caller.as_ref())
            .cloned()
            .ok_or_else(|| ErrorData::internal_error("the transport says of nobody who calls", None))
    }
}

/// Whether a request is of the era in which each stands for itself, and servers ask nothing but in results.
fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// What a transport put beside a message: directly, or into the HTTP request that it came in.
pub(crate) fn extension<T: Send + Sync + 'static>(extensions: &Extensions) -> Option<&T> {
    extensions.get::<T>().or_else(|| extensions.get::<::http::request::Parts>()?.extensions.get::<T>())
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder().enable_tools().build();
        if let Some(tools) = capabilities.tools.as_mut().filter(|_| self.0.changes.is_some()) {
            tools.list_changed = Some(true);
        }
        let mut info = ServerConfig::new(capabilities).with_server_info(self.0.implementation.clone());
        info.instructions.clone_from(&self.0.instructions);
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller_of(&context.extensions)?;
        // Nothing is called: the id names nothing.
        let listing = self.0.gate.listing(&caller.context("tools-list"));
        let cursor = request.as_ref().and_then(|request| request.cursor.as_deref());
        let mut page = listing::page(listing.into_tools(), cursor, self.0.page)?;
        for tool in &mut page.tools {
            if let Some(name) = tool.name.strip_prefix(self.0.prefix.as_str()) {
                tool.name = name.to_owned().into();
            }
        }
        Ok(page)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(mut changes) = self.0.changes.clone() else { return };
        changes.mark_unchanged();
        drop(tokio::spawn(async move {
            while changes.changed().await.is_ok() && context.peer.notify_tool_list_changed().await.is_ok() {}
        }));
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !self.0.prefix.is_empty() {
            request.name = format!("{}{}", self.0.prefix, request.name).into();
        }
        call::call(&self.0, self.caller_of(&context.extensions)?, request, context).await
    }

    /// For the headers that a schema asks for (`x-mcp-header`), which the SDK compares with the body before it knows who calls. Tools
    /// that ask for none are not told of.
    fn get_tool(&self, name: &str) -> Option<McpTool> {
        let registry = self.0.gate.tools().registry();
        let tool = registry.get(&format!("{}{name}", self.0.prefix))?;
        tool.advertised_schema().contains("x-mcp-header").then(|| listing::told(tool))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // The SDK takes a known method whose params do not fit for an unknown one. The stateless era has no handshake.
        match request.method.as_str() {
            "tools/call" | "tools/list" | "server/discover" => {
                Err(ErrorData::invalid_params("the params of this request do not fit its method", None))
            }
            "initialize" | "ping" if !is_stateless(&context) => {
                Err(ErrorData::invalid_params("the params of this request do not fit its method", None))
            }
            _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "there is no such method here", None)),
        }
    }
}
