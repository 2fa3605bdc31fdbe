//! Other MCP servers, whose tools become tools of a gate.
//!
//! An [`Upstream`] keeps the connection to one server: it starts the program or connects, lists the tools, and does so again when
//! the connection ends, after pauses that grow. A call is sent at most once (invariant X5). What is known of it when something goes
//! wrong is what happened: a call that never left has no effect, one that left and was not answered has an unknown one.
//!
//! Everything that a server decides is bounded (invariant X6): messages, tools, pages, requests of its own, calls in flight.

mod call;
mod child;
mod face;
mod http;
mod lines;
mod link;
mod reach;
mod schema;
mod tool;
mod watched;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use callgate_core::name::{NameError, check_tool_name};
use rmcp::model::Tool as Definition;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use link::MAX_TOOLS;
pub use reach::{Ends, Http, Open, Program, Reach, Reader, Writer};
pub use schema::declared_output_schema;
pub use tool::{Promise, ToolFault, define, mutates};

use link::State;

/// How many bytes a message may have where a host says nothing else.
pub const DEFAULT_MAX_MESSAGE: usize = 4 << 20;
/// How many calls may be in flight at once where a host says nothing else.
pub const DEFAULT_MAX_IN_FLIGHT: usize = 64;

/// What a host says of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The name.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// How many bytes one message of the server may have. A longer one ends the connection.
    pub max_message: usize,
    /// How many calls may be in flight at once. As many again wait; one more is turned away.
    pub max_in_flight: usize,
}

impl Settings {
    /// The server `name`, reached so.
    ///
    /// # Errors
    /// The name can't start the name of a tool.
    pub fn new(name: impl Into<String>, reach: Reach) -> Result<Self, NameError> {
        let name = name.into();
        check_tool_name(&name)?;
        Ok(Self { name, reach, max_message: DEFAULT_MAX_MESSAGE, max_in_flight: DEFAULT_MAX_IN_FLIGHT })
    }

    /// The same with this bound on messages, in bytes.
    #[must_use]
    pub const fn with_max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    /// The same with this bound on calls in flight; at least 1.
    #[must_use]
    pub fn with_max_in_flight(mut self, calls: usize) -> Self {
        self.max_in_flight = calls.max(1);
        self
    }
}

/// A server that is kept connected. Cheap to clone; clones share the connection, which ends when the last one is dropped.
#[derive(Clone)]
pub struct Upstream(Arc<Shared>);

struct Shared {
    settings: Settings,
    state: watch::Receiver<State>,
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    stop: CancellationToken,
    keeper: std::sync::Mutex<Option<JoinHandle<()>>>,
}

/// How it stands with a server, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "whoever shows it shows each")]
pub enum Health {
    /// It is being started for the first time.
    Starting,
    /// It answers.
    Up,
    /// It does not, for this reason; it is started again.
    Down(String),
    /// It was ended, for good.
    Ended,
}

impl Upstream {
    /// Starts to connect. Has to be called on a runtime of tokio, with timers.
    #[must_use]
    pub fn start(settings: Settings) -> Self {
        let (sender, state) = watch::channel(State::Starting);
        let stop = CancellationToken::new();
        let keeper = tokio::spawn(link::keep(settings.reach.clone(), settings.max_message, sender, stop.clone()));
        Self(Arc::new(Shared {
            places: Arc::new(Semaphore::new(settings.max_in_flight.min(Semaphore::MAX_PERMITS))),
            waiting: AtomicUsize::new(0),
            settings,
            state,
            stop,
            keeper: std::sync::Mutex::new(Some(keeper)),
        }))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.settings.name
    }

    /// How it stands.
    #[must_use]
    pub fn health(&self) -> Health {
        match &*self.0.state.borrow() {
            State::Starting => Health::Starting,
            State::Up(_) => Health::Up,
            State::Down(reason) => Health::Down(reason.to_string()),
            State::Ended => Health::Ended,
        }
    }

    /// The tools as the server listed them last, if it answers.
    #[must_use]
    pub fn definitions(&self) -> Option<Arc<Vec<Definition>>> {
        match &*self.0.state.borrow() {
            State::Up(live) => Some(Arc::clone(&live.tools)),
            State::Starting | State::Down(_) | State::Ended => None,
        }
    }

    /// What tells when it stands otherwise with the server, or its tools have changed.
    pub(crate) fn watch(&self) -> Watch {
        Watch(self.0.state.clone())
    }

    /// Has the connection end, and the program, without waiting for it.
    pub fn stop(&self) {
        self.0.stop.cancel();
    }

    /// Ends the connection, and the program. Waits until both are gone.
    pub async fn end(&self) {
        self.0.stop.cancel();
        let keeper = self.0.keeper.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(keeper) = keeper {
            drop(keeper.await);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("name", &self.name()).field("health", &self.health()).finish_non_exhaustive()
    }
}

/// Waits for changes of a server.
pub(crate) struct Watch(watch::Receiver<State>);

impl Watch {
    /// Waits for the next change; for ever when there will be none.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
