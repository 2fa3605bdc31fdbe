//! Who stands behind a message.

use std::sync::Arc;

use callgate_core::context::{CallContext, Scopes};

/// Who calls, as the transport found it out: never from the body of a message (invariants A3, P2). Cheap to clone.
///
/// ```
/// use callgate_mcp::server::Caller;
/// let caller = Caller::new("mcp").with_principal("ann").with_scopes(["notes:read"]);
/// let context = caller.context("request-1");
/// assert_eq!((context.principal, context.channel), (Some("ann"), "mcp"));
/// assert!(!context.scopes.contains("notes:write"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    channel: Arc<str>,
    tenant: Option<Arc<str>>,
    principal: Option<Arc<str>>,
    scopes: Arc<str>,
    session: Option<Arc<str>>,
    ip: Option<Arc<str>>,
    user_agent: Option<Arc<str>>,
}

impl Caller {
    /// A caller on this channel: no principal, no scopes.
    #[must_use]
    pub fn new(channel: impl Into<Arc<str>>) -> Self {
        Self {
            channel: channel.into(),
            tenant: None,
            principal: None,
            scopes: Arc::from(""),
            session: None,
            ip: None,
            user_agent: None,
        }
    }

    /// The program that started this process and holds its standard input and output: channel `mcp`, principal `stdio`, every
    /// scope. The boundary of the process is the boundary of trust.
    #[must_use]
    pub fn stdio() -> Self {
        Self::new("mcp").with_principal("stdio").with_scopes(["*"])
    }

    /// The same caller, authenticated as this principal.
    #[must_use]
    pub fn with_principal(mut self, principal: impl Into<Arc<str>>) -> Self {
        self.principal = Some(principal.into());
        self
    }

    /// The same caller in this tenant.
    #[must_use]
    pub fn with_tenant(mut self, tenant: impl Into<Arc<str>>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// The same caller with exactly these scopes.
    #[must_use]
    pub fn with_scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        let scopes: Vec<_> = scopes.into_iter().map(|scope| scope.as_ref().to_owned()).collect();
        self.scopes = scopes.join(" ").into();
        self
    }

    /// The same caller in this conversation. A confirmation that is asked in one is not good in another (invariant A4).
    #[must_use]
    pub fn with_session(mut self, session: impl Into<Arc<str>>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// The same caller with what is known of the peer; recorded, never used for a decision.
    #[must_use]
    pub fn with_peer(mut self, ip: Option<&str>, user_agent: Option<&str>) -> Self {
        self.ip = ip.map(Arc::from);
        self.user_agent = user_agent.map(Arc::from);
        self
    }

    /// The principal, if one was authenticated.
    #[must_use]
    pub fn principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    /// The context of one call.
    #[must_use]
    pub fn context<'a>(&'a self, request_id: &'a str) -> CallContext<'a> {
        CallContext {
            tenant: self.tenant.as_deref(),
            principal: self.principal.as_deref(),
            scopes: Scopes::new(&self.scopes),
            session: self.session.as_deref(),
            ip: self.ip.as_deref(),
            user_agent: self.user_agent.as_deref(),
            ..CallContext::new(&self.channel, request_id)
        }
    }
}
