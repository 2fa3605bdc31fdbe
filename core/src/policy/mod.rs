//! Who may call what.

/// A grant of a session, standing for the consent of its principal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConsentGrant<'a> {
    /// The tool.
    pub tool: &'a str,
}
