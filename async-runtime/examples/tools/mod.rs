//! The same tools for every example: one registry serves every gate.

use std::time::Duration;

use callgate_core::schema::{Property, Schema};
use callgate_core::tool::ConfirmBy;
use callgate_std::output::Reply;
use callgate_std::registry::{Registry, RegistryError};
use callgate_std::tool::Tool;
use callgate_std::update::Progress;
use serde::Deserialize;

#[derive(Deserialize)]
struct Count {
    to: u64,
}

const COUNT: Schema<'static> =
    Schema::object(&[Property::required("to", Schema::integer().describe("the last number"))]);

const MOVE: Schema<'static> = Schema::object(&[Property::required("percent", Schema::integer())]);

/// A tool that waits, one that blocks, and one that changes something and asks before.
pub(crate) fn registry() -> Result<Registry, RegistryError> {
    let count = Tool::builder("count")
        .description("Counts, and tells how far it is")
        .const_schema(COUNT)
        .clamp("/to", 1..=5)
        .timeout(Duration::from_secs(2))
        .async_typed(|call, Count { to }| async move {
            for number in 1..=to {
                call.progress(Progress::count(number).of(to)).await;
            }
            Ok(Reply::new(to))
        });
    let square = Tool::builder("square")
        .description("Computes a square")
        .const_schema(COUNT)
        .typed(|_call, Count { to }| Ok(Reply::new(to.saturating_mul(to))));
    let valve = Tool::builder("valve.move")
        .description("Moves a valve")
        .const_schema(MOVE)
        .clamp("/percent", 0..=100)
        .mutating()
        .confirm(ConfirmBy::Caller)
        .handler(|call| Ok(Reply::new(call.args().get("percent").and_then(|it| it.as_number()?.as_u64()))));
    Registry::builder().add(count).add(square).add(valve).build()
}

/// The token of an outcome that asks for a confirmation.
pub(crate) fn token(outcome: &str) -> Option<String> {
    let outcome: serde_json::Value = serde_json::from_str(outcome).ok()?;
    Some(outcome.pointer("/data/confirm_token")?.as_str()?.to_owned())
}
