//! The typed stages of a call.

/// The only way to a tool's body.
#[derive(Debug)]
pub struct Permit;
