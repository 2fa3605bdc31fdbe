//! A server's tool as a tool of the gate.

use std::time::Duration;

use callgate_core::name::check_tool_name;
use callgate_std::tool::{Tool, ToolBuilder};
use rmcp::model::{Tool as Definition, ToolAnnotations};
use serde_json::Value;

use super::{Upstream, schema};
use crate::pins;

/// What an operator says of a server's tool, whatever the server says of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Promise {
    /// The operator vouches that it changes nothing.
    pub read_only: bool,
}

impl Promise {
    /// That it changes nothing, or not.
    #[must_use]
    pub const fn read_only(read_only: bool) -> Self {
        Self { read_only }
    }
}

/// Why a server's tool is no tool of the gate.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolFault {
    /// Its name is none, or makes none.
    #[error("its name {0}")]
    Name(callgate_core::name::NameError),
    /// The gate can't take it.
    #[error("{0}")]
    Unusable(String),
}

/// Starts the definition of a server's tool as a tool of the gate, under the name `name`.
///
/// What the server says of it counts as far as it makes the gate stricter: a tool can change something unless the operator
/// vouches that it does not, and the server does not say the contrary; one that it calls destructive is called dangerous; that it
/// calls a tool idempotent counts for nothing. The schema of the arguments has to be one that the gate can check.
///
/// # Errors
/// The tool can't be called by this name.
pub fn define(
    upstream: &Upstream,
    definition: &Definition,
    name: &str,
    promise: Promise,
) -> Result<ToolBuilder, ToolFault> {
    check_tool_name(&definition.name).map_err(ToolFault::Name)?;
    check_tool_name(name).map_err(ToolFault::Name)?;
    let digest = pins::definition_digest(definition);
    let description = match definition.description.as_deref().filter(|text| !text.trim().is_empty()) {
        Some(text) => text.to_owned(),
        None => format!("{} of the server {}", definition.name, upstream.name()),
    };
    let mut builder = Tool::builder(name)
        .description(description)
        // Whatever of the definition the gate has no place for is a part of the tool all the same (invariant G4).
        .version(digest.to_string())
        .json_schema(Value::Object((*definition.input_schema).clone()))
        .max_output(upstream.0.settings.max_message);
    if let Some(declared) = &definition.output_schema {
        builder = builder.output_schema(schema::of_results(declared));
    }
    let annotations = definition.annotations.as_ref();
    builder = if mutates(definition, promise) { builder.mutating() } else { builder.read_only() };
    if annotations.and_then(|annotations| annotations.destructive_hint) == Some(true) {
        builder = builder.dangerous();
    }
    let (upstream, tool) = (upstream.clone(), definition.name.to_string());
    Ok(builder.timeout(DEFAULT_TIMEOUT).async_handler(move |call| {
        let (upstream, tool) = (upstream.clone(), tool.clone());
        async move { upstream.call(&tool, digest, &call).await }
    }))
}

/// How long a call may take where nobody says anything else.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Whether a server's tool counts as one that can change something.
#[must_use]
pub fn mutates(definition: &Definition, promise: Promise) -> bool {
    !promise.read_only || contradicts(definition.annotations.as_ref())
}

/// Whether a server says that a tool changes something.
fn contradicts(annotations: Option<&ToolAnnotations>) -> bool {
    annotations.is_some_and(|annotations| {
        annotations.read_only_hint == Some(false) || annotations.destructive_hint == Some(true)
    })
}
