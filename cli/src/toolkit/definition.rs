//! What a tool says of itself.

/// Numbers outside of this range are brought into it before the tool sees them (invariants K1 to K3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClampRange {
    /// JSON Pointer (RFC 6901) of the field, from the root of the arguments.
    pub pointer: String,
    /// The least number that reaches the tool.
    pub min: i64,
    /// The greatest number that reaches the tool.
    pub max: i64,
}

/// The description of a tool: all that a registry needs beside its body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolDef {
    /// The name, in the grammar of tool names (1 to 128 of `A-Z a-z 0-9 _ . -`).
    pub name: String,
    /// What the tool does, for the model.
    pub description: String,
    /// The arguments' schema: JSON Schema 2020-12 text, every object closed, every string, list and number bounded.
    ///
    /// A field with a clamp has no narrower `minimum` or `maximum` here than its clamp: a schema that refused what the clamp
    /// mends would make the clamp useless.
    pub input_schema: String,
    /// Clamps, by field.
    pub clamps: Vec<ClampRange>,
    /// JSON Pointers of the fields whose values are secrets, which no record may hold.
    pub secrets: Vec<String>,
    /// Whether a call can change something.
    pub mutating: bool,
    /// A hint: a call changes nothing. It never loosens a check.
    pub read_only: bool,
    /// Whether the caller has to confirm each call by repeating it with a token.
    pub confirm_by_caller: bool,
    /// The caller must hold one of these scopes; none is asked when empty.
    pub scopes: Vec<String>,
    /// How long one call may take, in milliseconds.
    pub timeout_ms: u64,
}

impl ToolDef {
    /// A tool that changes nothing.
    pub(crate) fn reading(name: &str, description: &str, input_schema: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: input_schema.to_owned(),
            clamps: Vec::new(),
            secrets: Vec::new(),
            mutating: false,
            read_only: true,
            confirm_by_caller: false,
            scopes: Vec::new(),
            timeout_ms: callgate_core::tool::DEFAULT_TIMEOUT_MS,
        }
    }

    /// The same tool with one clamp more.
    pub(crate) fn with_clamp(mut self, pointer: &str, min: i64, max: i64) -> Self {
        self.clamps.push(ClampRange { pointer: pointer.to_owned(), min, max });
        self
    }
}
