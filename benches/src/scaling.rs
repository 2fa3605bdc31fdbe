//! What must not grow: with long arguments, and with many confirmations that nobody has answered yet.

use std::hint::black_box;
use std::sync::Arc;

use callgate_core::call::End;
use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_core::tool::ConfirmBy;
use callgate_std::clock::SystemClock;
use callgate_std::confirmations::{Capacity, MemoryConfirmations};
use callgate_std::entropy::OsEntropy;
use callgate_std::gate::Gate;
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::tool::Tool;

use crate::call::ARGUMENTS;

/// Arguments of the measured tool with a text of so many bytes.
#[must_use]
pub fn arguments_of(bytes: usize) -> Vec<u8> {
    format!(r#"{{"path":"{}","max":40}}"#, "x".repeat(bytes)).into_bytes()
}

/// A gate whose one tool asks its caller for a confirmation, with so many questions that nobody has answered.
#[must_use]
pub fn pending(count: usize) -> Gate {
    let capacity = Capacity { entries: count + 1_000, bytes: 1 << 30, per_principal: count + 1_000 };
    let store = MemoryConfirmations::with(capacity, SystemClock::shared(), OsEntropy::shared());
    let tool = Tool::builder("ask").description("Asks").confirm(ConfirmBy::Caller).handler(|_| Ok(Reply::empty()));
    let gate = Gate::builder(Registry::builder().add(tool).build().expect("a good tool"))
        .confirmations(Arc::new(store))
        .confirmation_ttl_ms(3_600_000)
        .unlimited()
        .digest_when_needed()
        .build()
        .expect("a gate");
    for _ in 0..count {
        assert!(gate.call(&CallContext::cli("r"), asking(None)).asks(), "the store has room");
    }
    gate
}

const fn asking(token: Option<&str>) -> Request<'_> {
    Request { tool: "ask", arguments: ARGUMENTS, token }
}

/// A token that no other gate knows.
#[must_use]
pub fn foreign_token() -> String {
    let gate = pending(0);
    let outcome = gate.call(&CallContext::cli("r"), asking(None));
    match outcome.end() {
        End::Asked { token, .. } => token.to_string(),
        _ => unreachable!("the tool asks"),
    }
}

/// Presents a token, which has to be looked for among all that are pending.
pub fn present(gate: &Gate, token: &str) {
    black_box(gate.call(&CallContext::cli("r"), asking(Some(token))).code());
}
