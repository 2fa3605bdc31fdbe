//! The server over streamable HTTP.
//!
//! What a request has to pass, in this order: an allowed `Host`, an allowed `Origin`, the path, a bearer token that stands for
//! somebody, a conversation of that caller, bounds of size and time, the gate's reader. Only then does the SDK see it, without the
//! token (invariants T1, T2, T3, X6). Headers that the protocol has repeat what the message says are compared by the SDK (invariant T5).

mod admission;
mod body;
mod endpoint;
mod flight;
mod listen;
mod sessions;
mod timed;

pub use admission::{Hosts, Origins, UnusableName};
pub use endpoint::{Answer, Endpoint};
pub use listen::{Limits, serve};
