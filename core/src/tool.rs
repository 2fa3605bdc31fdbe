//! What a tool says of itself, and the seam through which the gate sees it.

use core::fmt;

use crate::args::Args;
use crate::clamp::Clamp;
use crate::context::Scopes;

/// The timeout of a tool that declares none, in milliseconds.
pub const DEFAULT_TIMEOUT_MS: u64 = 30_000;
/// What one call of a tool that changes nothing costs at the rate limiter.
pub const READ_COST: u32 = 1;
/// What one call of a mutating tool costs at the rate limiter.
pub const MUTATING_COST: u32 = 5;

/// Who has to confirm a call before it runs (design 4.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum ConfirmBy<'a> {
    /// Nobody.
    #[default]
    Nobody,
    /// The same caller repeats the call with the token it was given; recorded as self-confirmed.
    Caller,
    /// Another principal that holds `scope` approves; the requester can never do it (invariant A2).
    Approver {
        /// The scope an approver needs.
        scope: &'a str,
    },
}

/// What holds for one field of the arguments, beside the schema: a clamp, or that its value is a secret.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FieldRule<'a> {
    /// Where the field is: a JSON Pointer (RFC 6901) from the arguments' root, in which a segment `*` stands for every
    /// item of an array and every member of an object. `/max`, `/filter/limit`, `/rows/*/price`.
    pub path: &'a str,
    /// The bounds that a value of the fitting type is brought into.
    pub clamp: Option<Clamp>,
    /// Whether the value is a secret: never written to a record, a log or a plan.
    pub secret: bool,
}

impl<'a> FieldRule<'a> {
    /// Brings the field at `path` into `clamp`.
    #[must_use]
    pub const fn clamp(path: &'a str, clamp: Clamp) -> Self {
        Self { path, clamp: Some(clamp), secret: false }
    }

    /// Keeps the field at `path` out of every record.
    #[must_use]
    pub const fn secret(path: &'a str) -> Self {
        Self { path, clamp: None, secret: true }
    }
}

/// The description of a tool. Everything here is part of its definition digest (invariant G4).
///
/// ```
/// use callgate_core::tool::ToolSpec;
/// let spec = ToolSpec::new("valve.move", "Moves a valve").mutating().with_version("2");
/// assert_eq!(spec.cost(), 5);
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ToolSpec<'a> {
    /// The name that calls use, byte for byte.
    pub name: &'a str,
    /// What the tool does, for the model.
    pub description: &'a str,
    /// The version that the tool declares.
    pub version: Option<&'a str>,
    /// The arguments' schema as JSON Schema 2020-12 text; `None` accepts any object.
    pub input_schema: Option<&'a str>,
    /// The result's schema as JSON Schema 2020-12 text.
    pub output_schema: Option<&'a str>,
    /// Clamps and secrets.
    pub fields: &'a [FieldRule<'a>],
    /// The caller must hold one of these; none asked when empty.
    pub scopes: Scopes<'a>,
    /// What the host must provide for the tool to run, such as `network`; see [`crate::policy`].
    pub requirements: Scopes<'a>,
    /// Whether a call can change something.
    pub mutating: bool,
    /// A hint: the tool changes nothing. It never loosens a check.
    pub read_only: bool,
    /// A hint: a call can do damage that cannot be undone.
    pub dangerous: bool,
    /// Whether repeating a call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// Who confirms.
    pub confirm: ConfirmBy<'a>,
    /// How long one call may take, in milliseconds.
    pub timeout_ms: u64,
    /// The cost of one call at the rate limiter, where it is not the usual one.
    pub cost: Option<u32>,
}

impl<'a> ToolSpec<'a> {
    /// A tool that changes nothing, needs no scope and accepts any object.
    #[must_use]
    pub const fn new(name: &'a str, description: &'a str) -> Self {
        Self {
            name,
            description,
            version: None,
            input_schema: None,
            output_schema: None,
            fields: &[],
            scopes: Scopes::NONE,
            requirements: Scopes::NONE,
            mutating: false,
            read_only: false,
            dangerous: false,
            idempotent: false,
            confirm: ConfirmBy::Nobody,
            timeout_ms: DEFAULT_TIMEOUT_MS,
            cost: None,
        }
    }

    /// The same tool, mutating.
    #[must_use]
    pub const fn mutating(mut self) -> Self {
        self.mutating = true;
        self
    }

    /// The same tool with this version.
    #[must_use]
    pub const fn with_version(mut self, version: &'a str) -> Self {
        self.version = Some(version);
        self
    }

    /// The same tool with this input schema (JSON Schema text).
    #[must_use]
    pub const fn with_input_schema(mut self, schema: &'a str) -> Self {
        self.input_schema = Some(schema);
        self
    }

    /// The same tool with these clamps and secrets.
    #[must_use]
    pub const fn with_fields(mut self, fields: &'a [FieldRule<'a>]) -> Self {
        self.fields = fields;
        self
    }

    /// The same tool, asking for one of these scopes.
    #[must_use]
    pub const fn with_scopes(mut self, scopes: Scopes<'a>) -> Self {
        self.scopes = scopes;
        self
    }

    /// The same tool, confirmed by `confirm`.
    #[must_use]
    pub const fn with_confirm(mut self, confirm: ConfirmBy<'a>) -> Self {
        self.confirm = confirm;
        self
    }

    /// The same tool with this timeout, in milliseconds.
    #[must_use]
    pub const fn with_timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.timeout_ms = timeout_ms;
        self
    }

    /// What one call costs at the rate limiter: the declared cost, else 5 for a mutating tool and 1 for another.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        match (self.cost, self.mutating) {
            (Some(cost), _) => cost,
            (None, true) => MUTATING_COST,
            (None, false) => READ_COST,
        }
    }

    /// Whether any field is clamped.
    #[must_use]
    pub fn clamps(&self) -> bool {
        self.fields.iter().any(|field| field.clamp.is_some())
    }
}

/// One thing that is wrong with a value: where, and why. Never holds the value itself (invariant L4).
#[derive(Clone, Copy)]
pub struct Violation<'v> {
    /// The field, as a path such as `filter.limit` or `rows[3]`; empty for the root.
    pub field: &'v dyn fmt::Display,
    /// What is wrong and what would be right.
    pub reason: &'v dyn fmt::Display,
}

impl fmt::Debug for Violation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// `field: reason`, or the reason alone when it concerns the whole value.
impl fmt::Display for Violation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut empty = IsEmpty(true);
        fmt::Write::write_fmt(&mut empty, format_args!("{}", self.field))?;
        if !empty.0 {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "{}", self.reason)
    }
}

/// Tells whether anything was written to it.
struct IsEmpty(bool);

impl fmt::Write for IsEmpty {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 &= text.is_empty();
        Ok(())
    }
}

/// A tool as the gate sees it. The body is not here: a host runs it, and only with a [`crate::call::Permit`].
pub trait Tool {
    /// What the body returns when it succeeds.
    type Output;

    /// The tool's description. The same for as long as the value lives (invariant G2).
    fn spec(&self) -> &ToolSpec<'_>;

    /// Checks arguments against the tool's schema and tells `report` of each violation, in a stable order. Changes and
    /// coerces nothing (invariant S9). Called again when somebody wants the text of a refusal, so it must give the same
    /// answer for the same arguments.
    fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>));

    /// Checks a result against the declared output schema.
    fn validate_output(&self, output: &Self::Output, report: &mut dyn FnMut(Violation<'_>)) {
        let _ = (output, report);
    }
}

impl<T: Tool + ?Sized> Tool for &T {
    type Output = T::Output;

    fn spec(&self) -> &ToolSpec<'_> {
        (**self).spec()
    }

    fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
        (**self).validate(args, report);
    }

    fn validate_output(&self, output: &Self::Output, report: &mut dyn FnMut(Violation<'_>)) {
        (**self).validate_output(output, report);
    }
}
