//! Who asks, through which channel, with which scopes and in which mode. Always given, never assumed.

use core::fmt;

use crate::name::{NameError, check_label, check_principal, check_scope};
use crate::policy::ConsentGrant;

/// What the caller wants: the effect, or only to be told what would happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a host must decide for each mode; a new one is a breaking change")]
pub enum Mode {
    /// Run the tool.
    Execute,
    /// Say what would run; nothing is executed, issued, redeemed or charged (invariant R4).
    Plan,
}

impl Mode {
    /// The name on the wire: `execute` or `plan`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Execute => "execute",
            Self::Plan => "plan",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of scopes, written as one string with a space between two of them (as OAuth 2.0 writes them, RFC 6749 section 3.3).
///
/// The empty set grants nothing and never widens access (invariant F2).
///
/// ```
/// use callgate_core::context::Scopes;
/// let held = Scopes::new("notes:read notes:write");
/// assert!(held.contains("notes:read"));
/// assert!(held.has_any(Scopes::new("admin notes:write")));
/// assert!(!held.has_any(Scopes::NONE));
/// assert!(Scopes::ALL.contains("anything"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Scopes<'a>(&'a str);

impl<'a> Scopes<'a> {
    /// No scope at all.
    pub const NONE: Self = Self("");
    /// The wildcard: every scope. Only the scope `*` itself is a wildcard; `notes:*` is a plain name.
    pub const ALL: Self = Self("*");

    /// The scopes in `list`, separated by spaces.
    #[must_use]
    pub const fn new(list: &'a str) -> Self {
        Self(list)
    }

    /// The list as it was given.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// The scopes one by one, in the order given.
    pub fn iter(self) -> impl Iterator<Item = &'a str> + Clone {
        // Searching for a `char` goes through a slice that can panic as far as the compiler sees (invariant N4).
        #[expect(clippy::manual_pattern_char_comparison, reason = "the shorter form links a panic")]
        self.0.split(|c: char| c == ' ').filter(|scope| !scope.is_empty())
    }

    /// Whether there is no scope in the set.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.iter().next().is_none()
    }

    /// Whether the set holds `scope` or the wildcard. Exact and case-sensitive.
    #[must_use]
    pub fn contains(self, scope: &str) -> bool {
        self.iter().any(|held| held == "*" || held == scope)
    }

    /// Whether the set holds at least one of `wanted`; false when `wanted` is empty.
    #[must_use]
    pub fn has_any(self, wanted: Scopes<'_>) -> bool {
        wanted.iter().any(|scope| self.contains(scope))
    }

    /// Checks each scope against the grammar (invariant S3).
    ///
    /// # Errors
    /// Says what is wrong with the first scope outside the grammar.
    #[cfg_attr(not(callgate_small), inline)]
    pub fn check(self) -> Result<(), NameError> {
        self.iter().try_for_each(check_scope)
    }
}

/// Lists the scopes with `, ` between them, or `(none)`.
impl fmt::Display for Scopes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for scope in self.iter() {
            write!(f, "{separator}{scope}")?;
            separator = ", ";
        }
        if separator.is_empty() { f.write_str("(none)") } else { Ok(()) }
    }
}

/// A signature that a host has verified, naming one call. It counts as consent for exactly that call: the same tool and
/// the same arguments (invariants A3, A7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignedConsent<'a> {
    /// Who signed, as the verifier names the key.
    pub signer: &'a str,
    /// The tool that the signed operation names.
    pub tool: &'a str,
    /// The digest of the arguments that were signed, as [`crate::digest`] makes it.
    pub arguments: crate::digest::Digest,
}

/// Everything that the gate knows of a caller. Built by the host from what its transport has authenticated, never from the
/// arguments of a call (invariants A3, P2).
#[derive(Clone, Copy, Debug)]
pub struct CallContext<'a> {
    /// The tenant, when one gate serves several; every store key starts with it.
    pub tenant: Option<&'a str>,
    /// The authenticated caller; `None` and `""` both mean that nobody is known.
    pub principal: Option<&'a str>,
    /// Where the call came from: `cli`, `mcp`, `web` and so on.
    pub channel: &'a str,
    /// What the caller may do.
    pub scopes: Scopes<'a>,
    /// Names this call in records and answers; unique per call.
    pub request_id: &'a str,
    /// The conversation or session, if there is one.
    pub session: Option<&'a str>,
    /// The request id of the call whose tool made this call (invariant G8).
    pub parent: Option<&'a str>,
    /// How many calls stand above this one; 0 for a call from outside.
    pub depth: u8,
    /// The address of the peer; recorded, never used for a decision.
    pub ip: Option<&'a str>,
    /// The peer's software, for the host's own use: no record has it, and no decision uses it.
    pub user_agent: Option<&'a str>,
    /// Execute or plan.
    pub mode: Mode,
    /// A verified signature that names this call.
    pub signature: Option<SignedConsent<'a>>,
    /// Grants of this session.
    pub grants: &'a [ConsentGrant<'a>],
}

/// The principal of a local shell.
pub const LOCAL_SHELL: &str = "local-shell";

impl<'a> CallContext<'a> {
    /// A context on any channel: no principal, no scopes, mode [`Mode::Execute`].
    #[must_use]
    pub const fn new(channel: &'a str, request_id: &'a str) -> Self {
        Self {
            tenant: None,
            principal: None,
            channel,
            scopes: Scopes::NONE,
            request_id,
            session: None,
            parent: None,
            depth: 0,
            ip: None,
            user_agent: None,
            mode: Mode::Execute,
            signature: None,
            grants: &[],
        }
    }

    /// A local command line: principal `local-shell`, every scope.
    #[must_use]
    pub const fn cli(request_id: &'a str) -> Self {
        Self::new("cli", request_id).with_principal(LOCAL_SHELL).with_scopes(Scopes::ALL)
    }

    /// A local terminal program: principal `local-shell`, every scope.
    #[must_use]
    pub const fn tui(request_id: &'a str) -> Self {
        Self::new("tui", request_id).with_principal(LOCAL_SHELL).with_scopes(Scopes::ALL)
    }

    /// A child process whose process boundary is the trust boundary: channel `mcp`, principal `stdio`, every scope.
    #[must_use]
    pub const fn stdio(request_id: &'a str) -> Self {
        Self::new("mcp", request_id).with_principal("stdio").with_scopes(Scopes::ALL)
    }

    /// An MCP client. Without a principal the default policy refuses it: nobody is invented for it.
    #[must_use]
    pub const fn mcp(request_id: &'a str, principal: Option<&'a str>, scopes: Scopes<'a>) -> Self {
        let mut context = Self::new("mcp", request_id);
        context.principal = principal;
        context.scopes = scopes;
        context
    }

    /// A web request. Never has the wildcard unless `scopes` says so.
    #[must_use]
    pub const fn web(request_id: &'a str, principal: Option<&'a str>, scopes: Scopes<'a>) -> Self {
        let mut context = Self::new("web", request_id);
        context.principal = principal;
        context.scopes = scopes;
        context
    }

    /// A Telegram chat: scopes `read` and `write`. `principal` is the user, or `chat:ID` where only the chat is known.
    #[must_use]
    pub const fn telegram(request_id: &'a str, principal: &'a str) -> Self {
        Self::new("telegram", request_id).with_principal(principal).with_scopes(Scopes::new("read write"))
    }

    /// The same context with this principal.
    #[must_use]
    pub const fn with_principal(mut self, principal: &'a str) -> Self {
        self.principal = Some(principal);
        self
    }

    /// The same context with these scopes instead of its own.
    #[must_use]
    pub const fn with_scopes(mut self, scopes: Scopes<'a>) -> Self {
        self.scopes = scopes;
        self
    }

    /// The same context in this mode.
    #[must_use]
    pub const fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The context of a call that a tool makes while it runs for this one: the same principal on the same channel, one level
    /// deeper, with this call as its parent. Signatures and grants are not inherited, and `scopes` must all be held here
    /// (invariants G8, P3).
    ///
    /// # Errors
    /// Names the first scope that this context does not hold.
    pub fn child<'b>(&self, request_id: &'b str, scopes: Scopes<'b>) -> Result<CallContext<'b>, &'b str>
    where
        'a: 'b,
    {
        match scopes.iter().find(|scope| !self.scopes.contains(scope)) {
            Some(missing) => Err(missing),
            None => {
                // Taken apart by name, so that a field added later is inherited on purpose or not at all.
                let Self { tenant, principal, channel, session, ip, user_agent, .. } = *self;
                let (parent, depth) = (Some(self.request_id), self.depth.saturating_add(1));
                let new = CallContext::new(channel, request_id);
                Ok(CallContext { tenant, principal, scopes, session, parent, depth, ip, user_agent, ..new })
            }
        }
    }

    /// The principal, or `None` when it is absent or empty. The text `0` is a principal.
    #[must_use]
    #[cfg_attr(not(callgate_small), inline)]
    pub fn known_principal(&self) -> Option<&'a str> {
        self.principal.filter(|principal| !principal.is_empty())
    }

    /// Checks each name against its grammar (invariant S3).
    ///
    /// # Errors
    /// Names the first field outside its grammar and says what is wrong with it.
    #[cfg_attr(not(callgate_small), inline)]
    pub fn check(&self) -> Result<(), ContextError> {
        let label = |field, name: Option<&str>| match name {
            Some(name) => check_label(name).map_err(|reason| ContextError { field, reason }),
            None => Ok(()),
        };
        let text = |field, name: Option<&str>| match name {
            Some(name) => check_principal(name).map_err(|reason| ContextError { field, reason }),
            None => Ok(()),
        };
        label("channel", Some(self.channel))?;
        label("tenant", self.tenant)?;
        label("session", self.session)?;
        text("principal", self.known_principal())?;
        text("request_id", Some(self.request_id))?;
        text("parent", self.parent)?;
        self.scopes.check().map_err(|reason| ContextError { field: "scopes", reason })
    }
}

/// A field of a context that is outside its grammar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContextError {
    /// The field's name.
    pub field: &'static str,
    /// What is wrong with it.
    pub reason: NameError,
}

impl fmt::Display for ContextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.reason)
    }
}

impl core::error::Error for ContextError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_wildcard_is_only_the_star_itself() {
        assert!(!Scopes::new("notes:*").contains("notes:read"));
        assert!(Scopes::new("read *").has_any(Scopes::new("admin:super:secret")));
        assert!(!Scopes::new("read").has_any(Scopes::new("*")), "a tool may ask for the wildcard itself");
    }

    #[test]
    fn f2_an_empty_set_never_widens() {
        assert!(!Scopes::ALL.has_any(Scopes::NONE));
        assert!(!Scopes::NONE.contains(""));
        assert!(!Scopes::new("  ").has_any(Scopes::new(" ")));
        assert_eq!(Scopes::new(" ").to_string(), "(none)");
    }

    #[test]
    fn an_empty_principal_is_nobody_and_zero_is_somebody() {
        assert_eq!(CallContext::new("web", "r").with_principal("").known_principal(), None);
        assert_eq!(CallContext::new("web", "r").with_principal("0").known_principal(), Some("0"));
    }

    #[test]
    fn g8_a_child_has_no_more_than_its_parent() {
        let parent = CallContext::web("r-1", Some("u1"), Scopes::new("read write"));
        let child = parent.child("r-2", Scopes::new("read")).unwrap();
        assert_eq!((child.principal, child.parent, child.depth), (Some("u1"), Some("r-1"), 1));
        assert_eq!(parent.child("r-2", Scopes::new("read admin")).unwrap_err(), "admin");
        assert_eq!(parent.child("r-2", Scopes::ALL).unwrap_err(), "*");
    }

    #[test]
    fn s3_a_context_names_its_bad_field() {
        let bad = CallContext::cli("r1").with_principal("a\nb").check().unwrap_err();
        assert_eq!(bad.field, "principal");
        assert_eq!(CallContext::cli("r\0").check().unwrap_err().field, "request_id");
        assert_eq!(CallContext::new("we b", "r").check().unwrap_err().field, "channel");
        assert_eq!(CallContext::cli("r1").check(), Ok(()));
    }
}
