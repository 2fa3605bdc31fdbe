//! Tools of functions where there is no heap.

use core::fmt;

use crate::args::Args;
use crate::call::Permit;
use crate::code::{Code, Effect};
use crate::context::CallContext;
use crate::json::DeErrorKind;
use crate::request::Context;
use crate::schema::Schema;
use crate::tool::{Tool, ToolFailure, ToolOutput, ToolSpec, Violation};

/// What runs: it is given who asks, the arguments, and room for texts with escapes.
type Body<O, F> = for<'a> fn(&CallContext<'_>, Args<'a>, &'a mut [u8]) -> Result<O, Failed<F>>;

/// A tool that is a constant: what it says of itself, the check, and a function. `#[tool(no_std)]` makes one of a function, as
/// `name::TOOL`. All tools that a host holds in one table give back the same `O` and fail with the same `F`.
pub struct BareTool<O, F> {
    spec: ToolSpec<'static>,
    schema: Schema<'static>,
    body: Body<O, F>,
}

impl<O, F> BareTool<O, F> {
    /// A tool. `schema` is what the text in `spec` says.
    #[must_use]
    pub const fn new(spec: ToolSpec<'static>, schema: Schema<'static>, body: Body<O, F>) -> Self {
        Self { spec, schema, body }
    }
}

impl<O: ToolOutput, F: ToolFailure> BareTool<O, F> {
    /// Runs the body of the tool that `permit` was minted for (invariant G1). The permit is spent. Texts with escapes need
    /// `room`; the length of the arguments' text always suffices.
    ///
    /// # Errors
    /// The body's failure, or that the arguments have not the function's types.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is spent by the call that it permits")]
    pub fn run<C: Context>(permit: Permit<'_, C, &Self>, room: &mut [u8]) -> Result<O, Failed<F>> {
        (permit.tool().body)(&permit.caller(), permit.args(), room)
    }
}

impl<O: ToolOutput, F: ToolFailure> Tool for BareTool<O, F> {
    type Output = O;
    type Failure = Failed<F>;

    fn spec(&self) -> &ToolSpec<'_> {
        &self.spec
    }

    fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
        self.schema.validate(args, report);
    }

    fn schema(&self) -> Option<&Schema<'_>> {
        Some(&self.schema)
    }
}

impl<O, F> fmt::Debug for BareTool<O, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BareTool").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

/// Why a [`BareTool`] failed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Failed<F> {
    /// The arguments fit the schema and not the function's types: a number that the type does not hold exactly, or a text with
    /// escapes for which there was no room. Only the kind: the whole error would be the largest part of a call that is parked.
    Arguments(DeErrorKind),
    /// The function's own reason.
    Body(F),
}

/// What a function that can't fail fails with.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "there is nothing to be")]
pub enum Never {}

impl ToolFailure for Never {
    fn detail(&self) -> &str {
        match *self {}
    }
}

impl<F: ToolFailure> ToolFailure for Failed<F> {
    fn code(&self) -> Code {
        match self {
            Self::Arguments(_) => Code::ValidationError,
            Self::Body(failure) => failure.code(),
        }
    }

    fn public_text(&self) -> Option<&str> {
        match self {
            Self::Arguments(_) => Some(self.detail()),
            Self::Body(failure) => failure.public_text(),
        }
    }

    fn detail(&self) -> &str {
        match self {
            Self::Arguments(_) => "an argument is not one that the tool's types hold",
            Self::Body(failure) => failure.detail(),
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Self::Arguments(_) => Effect::None,
            Self::Body(failure) => failure.effect(),
        }
    }
}
