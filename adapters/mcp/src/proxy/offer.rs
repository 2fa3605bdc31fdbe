//! What a host says of the tools that servers offer, and what it is told of them.

use std::fmt;
use std::sync::Arc;

use callgate_std::tool::ToolBuilder;
use rmcp::model::Tool as Definition;

use crate::pins::Reason;
use crate::upstream::{Health, Promise};

/// A tool that a server offers.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Offer<'a> {
    /// The server.
    pub server: &'a str,
    /// The name that the tool has in the gate.
    pub name: &'a str,
    /// The tool, as the server defines it.
    pub definition: &'a Definition,
    /// Whether the tool counts as one that can change something. While a host is asked what it vouches for, as if it did not.
    pub mutating: bool,
}

/// What a host adds to the tools of a server.
pub trait Adjust: Send + Sync {
    /// What the operator vouches for.
    fn promise(&self, offer: Offer<'_>) -> Promise;

    /// The tool with what the operator asks for; `None` leaves it out.
    ///
    /// # Errors
    /// Why the tool can't be offered as the operator wants it. It is withheld then.
    fn adjust(&self, offer: Offer<'_>, tool: ToolBuilder) -> Result<Option<ToolBuilder>, String>;
}

/// Nothing is vouched for, and nothing asked.
impl Adjust for () {
    fn promise(&self, _: Offer<'_>) -> Promise {
        Promise::default()
    }

    fn adjust(&self, _: Offer<'_>, tool: ToolBuilder) -> Result<Option<ToolBuilder>, String> {
        Ok(Some(tool))
    }
}

impl<A: Adjust + ?Sized> Adjust for Arc<A> {
    fn promise(&self, offer: Offer<'_>) -> Promise {
        (**self).promise(offer)
    }

    fn adjust(&self, offer: Offer<'_>, tool: ToolBuilder) -> Result<Option<ToolBuilder>, String> {
        (**self).adjust(offer, tool)
    }
}

/// Something that an operator may want to know. Texts of servers are in it as they stand: whoever shows it makes them visible.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// How it stands with a server has changed.
    Server {
        /// The server.
        server: String,
        /// How it stands.
        health: Health,
    },
    /// A tool is withheld until somebody accepts it.
    Withheld {
        /// The server.
        server: String,
        /// The tool, by the server's own name.
        tool: String,
        /// Why.
        reason: Reason,
    },
    /// A tool can't be a tool of the gate.
    Unusable {
        /// The server.
        server: String,
        /// The tool, by the server's own name.
        tool: String,
        /// Why.
        reason: String,
    },
    /// Nothing of a server is offered, because pins can't be read or written.
    Pins {
        /// Why.
        reason: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { server, health: Health::Starting } => write!(f, "{server} is starting"),
            Self::Server { server, health: Health::Up } => write!(f, "{server} is there"),
            Self::Server { server, health: Health::Down(reason) } => write!(f, "{server}: {reason}"),
            Self::Server { server, health: Health::Ended } => write!(f, "{server} was ended"),
            Self::Withheld { server, tool, reason } => write!(f, "{server}.{tool} is withheld: it {reason}"),
            Self::Unusable { server, tool, reason } => write!(f, "{server}.{tool} is left out: {reason}"),
            Self::Pins { reason } => write!(f, "no tool of any server is offered: {reason}"),
        }
    }
}
