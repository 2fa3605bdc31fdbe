//! `#[toolkit]` on an `impl` block.

use std::sync::{Arc, Mutex};

use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_macros::toolkit;
use callgate_std::failure::Failure;
use callgate_std::gate::Gate;
use callgate_std::registry::Registry;
use callgate_std::tool::ToolCall;
use serde_json::json;

use crate::drive::call;

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

#[toolkit(prefix = "notes.")]
impl Notes {
    const MOST: usize = 10;

    /// Adds a note and tells how many there are
    #[tool(mutating)]
    fn add(&self, running: &ToolCall<'_>, #[param(length(..=5))] text: &str) -> Result<u32, Failure> {
        assert_eq!(running.spec().name, "notes.add");
        let mut notes = self.0.lock().map_err(|_| Failure::new("poisoned"))?;
        if notes.len() >= Self::MOST {
            return Err(Failure::invalid("too many notes").public());
        }
        notes.push(text.to_owned());
        Ok(u32::try_from(notes.len())?)
    }

    /// Lists the notes
    #[tool(name = "notes.list")]
    fn all(&self) -> Vec<String> {
        self.0.lock().map(|notes| notes.clone()).unwrap_or_default()
    }

    /// Tells what a note may hold
    #[tool]
    fn limit() -> u32 {
        5
    }

    /// Is not there
    #[tool]
    #[cfg(any())]
    fn absent(&self) -> Absent {}

    /// Counts the notes, in its own time
    #[tool]
    async fn count(&self) -> usize {
        std::future::ready(self.helper()).await
    }

    fn helper(&self) -> usize {
        self.0.lock().map_or(0, |notes| notes.len())
    }
}

struct Held<S>(S);

#[toolkit]
impl<S: AsRef<str> + Send + Sync + 'static> Held<S> {
    /// Shows what is held
    #[tool]
    fn show(&self) -> String {
        self.0.as_ref().to_owned()
    }
}

#[test]
fn the_tools_of_a_block_share_one_value() {
    let notes = Arc::new(Notes::default());
    let registry = Registry::builder().toolkit(&notes).toolkit(&Arc::new(Held("x"))).build().unwrap();
    let names: Vec<_> = registry.iter().map(|tool| tool.name().to_owned()).collect();
    assert_eq!(names, ["notes.add", "notes.list", "notes.limit", "notes.count", "show"]);
    assert_eq!(call(&registry, "notes.add", r#"{"text": "one"}"#)["data"], 1);
    assert_eq!(call(&registry, "notes.add", r#"{"text": "two"}"#)["data"], 2);
    assert_eq!(call(&registry, "notes.add", r#"{"text": "too long"}"#)["meta"]["code"], "VALIDATION_ERROR");
    assert_eq!(call(&registry, "notes.list", "{}")["data"], json!(["one", "two"]));
    assert_eq!(call(&registry, "notes.limit", "{}")["data"], 5);
    assert_eq!(call(&registry, "show", "{}")["data"], "x");
    assert_eq!(notes.helper(), 2);
    let gate = Gate::builder(registry).build().unwrap();
    let outcome = gate.call(&CallContext::cli("r1"), Request { tool: "notes.count", arguments: b"", token: None });
    assert_eq!(outcome.output().map(|reply| reply.data().to_string()).as_deref(), Some("2"));
}
