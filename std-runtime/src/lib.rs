//! The blocking front-end of callgate: tools, stores, sinks, and the gate that a program embeds.
//!
//! ```
//! use callgate_core::context::CallContext;
//! use callgate_core::request::Request;
//! use callgate_std::gate::Gate;
//! use callgate_std::output::Reply;
//! use callgate_std::registry::Registry;
//! use callgate_std::tool::Tool;
//! use callgate_core::schema::{Property, Schema};
//! use serde_json::json;
//!
//! const TERMS: &[Property<'static>] =
//!     &[Property::required("a", Schema::integer()), Property::required("b", Schema::integer())];
//!
//! #[derive(serde::Deserialize)]
//! struct Terms {
//!     a: i64,
//!     b: i64,
//! }
//!
//! let add = Tool::builder("math.add")
//!     .description("Adds two integers")
//!     .const_schema(Schema::object(TERMS))
//!     .clamp("/a", 0..=1000)
//!     .typed(|_call, terms: Terms| Ok(Reply::new(terms.a + terms.b)));
//! let gate = Gate::builder(Registry::builder().add(add).build()?).build()?;
//!
//! let request = Request { tool: "math.add", arguments: br#"{"a": 5000, "b": 2}"#, token: None };
//! let outcome = gate.call(&CallContext::cli("request-1"), request);
//! assert_eq!(outcome.output().map(Reply::data), Some(&json!(1002)), "5000 was brought to 1000");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod audit;
pub mod batch;
pub mod budget;
pub mod cache;
pub mod cancellation;
pub mod captured;
pub mod clock;
pub mod common;
pub mod confirmations;
pub mod contain;
pub mod context;
#[doc(hidden)]
pub mod desk;
pub mod digest_key;
pub mod entropy;
pub mod envelope;
pub mod failure;
pub mod future;
pub mod gate;
pub mod guarantee;
pub mod interceptors;
pub mod journal;
pub mod limiter;
pub mod listing;
mod lock;
pub mod nonces;
pub mod observer;
pub mod output;
pub mod policy;
pub mod private_file;
pub mod provider;
pub mod registry;
pub mod render;
mod reserved;
pub mod schema;
pub mod settings;
pub mod slots;
pub mod task;
pub mod tool;
mod typed_text;
pub mod update;
mod value_text;
pub mod verification;
pub mod view;
