//! Who listens to a gate: somebody who breaks, or somebody who shows what it is told.

use callgate_core::code::Code;
use callgate_std::observer::{Event, Observers};
use serde_json::{Value, json};

use super::surroundings::Surroundings;
use super::watched::panics;
use crate::world::Listener;

/// The listeners of a world, if it has any.
pub(super) fn observers(around: &Surroundings) -> Option<Observers> {
    let watch = around.watch.clone();
    let listens = match around.world.listener? {
        Listener::Panic => Observers::new().on("tool.*", |_: &Event<'_>| panics("a listener")),
        Listener::Listen => Observers::new().on("tool.*", move |event: &Event<'_>| watch.told(shown(event))),
    };
    Some(listens.unwrap_or_default())
}

/// What a listener is told, as it is shown.
fn shown(event: &Event<'_>) -> Value {
    let args = event.args().and_then(|args| serde_json::from_str::<Value>(&args.to_string()).ok());
    json!({
        "event": event.name(), "tool": event.tool, "request_id": event.caller.request_id, "effect": event.effect.as_str(),
        "code": event.code.map(Code::as_str), "cache_served": event.cache_served, "args": args,
        "detail": event.detail().map(ToString::to_string),
    })
}
