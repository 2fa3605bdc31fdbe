//! Tools: an owned definition and a body, shared by reference.

mod advertise;
mod body;
mod builder;
mod definition;
mod error;
mod field;
mod handle;
mod nested;
mod owned;
mod place;
mod source;
mod toolkit;

use std::fmt;
use std::sync::Arc;

use callgate_core::args::Args;
use callgate_core::digest::Digest;
use callgate_core::schema::Schema;
use callgate_core::tool::{Tool as Described, ToolSpec, Violation};

pub use body::{Held, Host, ToolCall, run};
pub use builder::{IntoClamp, MAX_DESCRIPTION, MAX_VERSION, ToolBuilder};
pub use error::{DemandProblem, FieldProblem, Problem, SchemaProblem, TextProblem, ToolError};
pub use handle::{Cancelled, Reporter};
pub use nested::{NestedCalls, NestedOutcome};
pub use owned::{AsyncNestedCalls, BlockingRun, OwnedCall, OwnedHost, Run, WaitingRun, start};
pub use source::SchemaSource;
pub use toolkit::Toolkit;

use self::advertise::Advertised;
use self::body::Body;
use self::definition::Definition;
use self::source::Checker;
use crate::failure::Failure;
use crate::output::Reply;
use crate::slots::Slots;

/// A tool: what it says of itself, how its arguments are checked, and its body.
///
/// Built once by [`Tool::builder`], which refuses what can't be used, and never changed (invariant G2). Registries and calls
/// share it behind an [`Arc`]. The body is reached only with a permit of the gate, through [`run`] (invariant G1).
///
/// ```
/// use callgate_std::output::Reply;
/// use callgate_std::tool::Tool;
/// use callgate_core::schema::{Property, Schema};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Search {
///     pattern: String,
///     max: u32,
/// }
///
/// const SEARCH: Schema<'static> = Schema::object(&[
///     Property::required("pattern", Schema::string().min_length(1).max_length(200)),
///     Property::required("max", Schema::integer().describe("the most notes")),
/// ]);
///
/// let tool = Tool::builder("notes.search")
///     .description("Finds notes that contain a text")
///     .const_schema(SEARCH)
///     .clamp("/max", 1..=100)
///     .scopes(["notes:read"])
///     .read_only()
///     .typed(|_call, args: Search| Ok(Reply::new(format!("{} at most {}", args.pattern, args.max))))
///     .build()?;
/// assert_eq!(tool.spec().name, "notes.search");
/// # Ok::<(), callgate_std::tool::ToolError>(())
/// ```
pub struct Tool {
    definition: Arc<Definition>,
    digest: Digest,
    checker: Checker,
    output: Checker,
    max_output: usize,
    advertised: Advertised,
    slots: Option<Arc<Slots>>,
    body: Body,
}

impl Tool {
    /// Starts the definition of the tool `name`: 1 to 128 of `A-Z a-z 0-9 _ . -`.
    pub fn builder(name: impl Into<String>) -> ToolBuilder {
        ToolBuilder::new(name.into())
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.spec().name
    }

    /// What the tool says of itself.
    #[must_use]
    pub fn spec(&self) -> &ToolSpec<'_> {
        self.definition.spec()
    }

    /// The digest of the definition (invariant G4), computed when the tool was built.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The most bytes of JSON text that a result may have.
    #[must_use]
    pub const fn max_output(&self) -> usize {
        self.max_output
    }

    /// The bound on how many calls of the tool run at once, if it has one of its own.
    #[must_use]
    pub const fn slots(&self) -> Option<&Arc<Slots>> {
        self.slots.as_ref()
    }

    /// The description for a model: the tool's own, and what its clamps do where the schema has no place for it.
    #[must_use]
    pub fn advertised_description(&self) -> &str {
        self.advertised.description(self.spec())
    }

    /// The arguments' schema for a model, as JSON Schema text: the tool's own, with a note in the description of each field
    /// that is clamped. `{"type":"object"}` for a tool that accepts any object.
    #[must_use]
    pub fn advertised_schema(&self) -> &str {
        self.advertised.schema(self.spec())
    }
}

impl Described for Tool {
    type Output = Reply;
    type Failure = Failure;

    fn spec(&self) -> &ToolSpec<'_> {
        self.definition.spec()
    }

    fn definition(&self) -> Digest {
        self.digest
    }

    fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
        self.checker.validate(args, report);
    }

    fn schema(&self) -> Option<&Schema<'_>> {
        self.checker.schema()
    }

    fn validate_output(&self, output: &Reply, report: &mut dyn FnMut(Violation<'_>)) {
        match output.fault(self.max_output) {
            Some(fault) => report(Violation { field: &"", reason: &fault }),
            None => self.output.validate_output(output, report),
        }
    }
}

impl AsRef<Self> for Tool {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("spec", self.spec()).field("digest", &self.digest).finish_non_exhaustive()
    }
}

/// Tools are shared by many threads.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Arc<Tool>>();
};
