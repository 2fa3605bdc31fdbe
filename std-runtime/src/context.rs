//! A context that owns its texts, for hosts that do not keep them elsewhere.

use std::sync::Arc;

use callgate_core::context::{CallContext, LOCAL_SHELL, Mode, Scopes};

use crate::entropy::{Entropy, EntropyError};

/// Who asks, owned. Borrow it as a [`CallContext`] to call: `gate.call(&owned.borrow(), ...)`.
///
/// ```
/// use callgate_std::context::OwnedContext;
/// let context = OwnedContext::new("web", "request-1").with_principal("user:42").with_scopes(["posts:read", "posts:write"]);
/// assert!(context.borrow().scopes.contains("posts:read"));
/// ```
#[derive(Clone, Debug)]
pub struct OwnedContext {
    tenant: Option<Arc<str>>,
    principal: Option<Arc<str>>,
    channel: Arc<str>,
    scopes: Arc<str>,
    request_id: Arc<str>,
    session: Option<Arc<str>>,
    ip: Option<Arc<str>>,
    user_agent: Option<Arc<str>>,
    mode: Mode,
}

impl OwnedContext {
    /// A context on any channel: no principal, no scopes, mode execute.
    #[must_use]
    pub fn new(channel: impl Into<Arc<str>>, request_id: impl Into<Arc<str>>) -> Self {
        Self {
            tenant: None,
            principal: None,
            channel: channel.into(),
            scopes: Arc::from(""),
            request_id: request_id.into(),
            session: None,
            ip: None,
            user_agent: None,
            mode: Mode::Execute,
        }
    }

    /// A local command line: principal `local-shell`, every scope.
    #[must_use]
    pub fn cli(request_id: impl Into<Arc<str>>) -> Self {
        Self::new("cli", request_id).with_principal(LOCAL_SHELL).with_scopes(["*"])
    }

    /// A Telegram chat: the user, or `chat:ID` where only the chat is known; scopes `read` and `write`.
    #[must_use]
    pub fn telegram(request_id: impl Into<Arc<str>>, chat_id: &str, user_id: Option<&str>) -> Self {
        let principal = user_id.map_or_else(|| format!("chat:{chat_id}"), str::to_owned);
        Self::new("telegram", request_id).with_principal(principal).with_scopes(["read", "write"])
    }

    /// The same context with this principal.
    #[must_use]
    pub fn with_principal(mut self, principal: impl Into<Arc<str>>) -> Self {
        self.principal = Some(principal.into());
        self
    }

    /// The same context in this tenant.
    #[must_use]
    pub fn with_tenant(mut self, tenant: impl Into<Arc<str>>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// The same context in this session.
    #[must_use]
    pub fn with_session(mut self, session: impl Into<Arc<str>>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// The same context with exactly these scopes.
    #[must_use]
    pub fn with_scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        let scopes: Vec<_> = scopes.into_iter().map(|scope| scope.as_ref().to_owned()).collect();
        self.scopes = scopes.join(" ").into();
        self
    }

    /// The same context with what is known of the peer; recorded, never used for a decision.
    #[must_use]
    pub fn with_peer(mut self, ip: Option<&str>, user_agent: Option<&str>) -> Self {
        self.ip = ip.map(Arc::from);
        self.user_agent = user_agent.map(Arc::from);
        self
    }

    /// The same context in this mode.
    #[must_use]
    pub const fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The same context for a planned call.
    #[must_use]
    pub const fn as_plan(self) -> Self {
        self.with_mode(Mode::Plan)
    }

    /// The context as the gate takes it.
    #[must_use]
    pub fn borrow(&self) -> CallContext<'_> {
        CallContext {
            tenant: self.tenant.as_deref(),
            principal: self.principal.as_deref(),
            scopes: Scopes::new(&self.scopes),
            session: self.session.as_deref(),
            ip: self.ip.as_deref(),
            user_agent: self.user_agent.as_deref(),
            mode: self.mode,
            ..CallContext::new(&self.channel, &self.request_id)
        }
    }
}

/// A fresh request id: 128 random bits as 32 lower-case hexadecimal digits.
///
/// # Errors
/// The source of randomness failed.
pub fn random_request_id(entropy: &(impl Entropy + ?Sized)) -> Result<String, EntropyError> {
    let mut bits = [0; 16];
    entropy.fill(&mut bits)?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_without_a_user_is_its_own_principal() {
        assert_eq!(OwnedContext::telegram("r", "77", None).borrow().principal, Some("chat:77"));
        let named = OwnedContext::telegram("r", "77", Some("u1"));
        assert_eq!(named.borrow().principal, Some("u1"));
        assert!(named.borrow().scopes.contains("write") && !named.borrow().scopes.contains("admin"));
    }

    #[test]
    fn f2_no_scopes_is_no_scope() {
        let context = OwnedContext::new("web", "r").with_scopes(Vec::<String>::new());
        assert!(context.borrow().scopes.is_empty());
    }
}
