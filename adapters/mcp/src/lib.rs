//! The gate in front of the Model Context Protocol, on the official SDK.
//!
//! [`server`] tells a gate's tools to MCP clients and passes every `tools/call` through the gate; [`http`] carries it over
//! streamable HTTP, for callers that [`auth`] knows. [`upstream`] makes the tools of other MCP servers tools of a gate, [`pins`]
//! remembers what they looked like, [`proxy`] puts a gate in front of one server. Nothing here decides: the rules are the gate's.
#![forbid(unsafe_code)]

pub mod auth;
pub mod http;
pub mod pins;
pub mod proxy;
pub mod server;
pub mod upstream;
