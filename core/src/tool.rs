//! What a tool says of itself, and the seam through which the gate sees it.

use core::fmt;

use crate::args::Args;
use crate::clamp::{Bound, Clamp};
use crate::code::{Code, Effect};
use crate::context::Scopes;
use crate::digest::{Digest, DigestBuilder, TOOL_DOMAIN};
use crate::json::write::Writer;
use crate::json::{Number, Object};
use crate::schema::Schema;

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

impl FieldRule<'_> {
    fn add_to(&self, digest: &mut DigestBuilder) {
        let Self { path, clamp, secret } = self;
        digest.str(path).bool(*secret).option(clamp.is_some());
        if let Some(Clamp { min, max, max_length }) = clamp {
            for bound in [min, max] {
                digest.option(bound.is_some());
                match bound {
                    Some(Bound::Integer(value)) => drop(digest.i64(*value)),
                    Some(Bound::Float(value)) => drop(digest.f64(*value)),
                    None => {}
                }
            }
            digest.option(max_length.is_some());
            if let Some(max_length) = max_length {
                digest.u64(u64::from(*max_length));
            }
        }
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
    /// How many distinct approvers have to say yes, where approvers confirm: 1, or more for a quorum. None counts as one.
    pub approvals: u8,
    /// How long one call may take, in milliseconds.
    pub timeout_ms: u64,
    /// The tool is accepted at once and goes on in the background, for at most so many milliseconds; `None` for a tool whose
    /// caller waits.
    pub background_ms: Option<u64>,
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
            approvals: 1,
            timeout_ms: DEFAULT_TIMEOUT_MS,
            background_ms: None,
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

    /// The same tool, for which so many distinct approvers have to say yes.
    #[must_use]
    pub const fn with_approvals(mut self, approvals: u8) -> Self {
        self.approvals = approvals;
        self
    }

    /// The same tool with this timeout, in milliseconds.
    #[must_use]
    pub const fn with_timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.timeout_ms = timeout_ms;
        self
    }

    /// The same tool, accepted at once and run in the background for at most so many milliseconds.
    #[must_use]
    pub const fn in_background(mut self, at_most_ms: u64) -> Self {
        self.background_ms = Some(at_most_ms);
        self
    }

    /// How long the tool's body may take, in milliseconds: in the background or while its caller waits.
    #[must_use]
    pub const fn deadline_ms(&self) -> u64 {
        match self.background_ms {
            Some(at_most_ms) => at_most_ms,
            None => self.timeout_ms,
        }
    }

    /// How long a call may go on before it counts as lost, in milliseconds: the tool's time, and some more for the gate.
    #[must_use]
    pub const fn lease_ms(&self) -> u64 {
        self.deadline_ms().saturating_add(crate::confirm::LEASE_SLACK_MS)
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

    /// The digest of the whole definition (invariant G4): equal when a call is resolved, approved, executed and audited, or
    /// the call is refused. Plain SHA-256, domain [`TOOL_DOMAIN`].
    #[must_use]
    pub fn digest(&self) -> Digest {
        // Taken apart by name, so that a field added later cannot be left out.
        let Self {
            name,
            description,
            version,
            input_schema,
            output_schema,
            fields,
            scopes,
            requirements,
            mutating,
            read_only,
            dangerous,
            idempotent,
            confirm,
            approvals,
            timeout_ms,
            background_ms,
            cost,
        } = self;
        let mut digest = DigestBuilder::new(TOOL_DOMAIN);
        digest
            .str(name)
            .str(description)
            .option_str(*version)
            .option_str(*input_schema)
            .option_str(*output_schema)
            .list(fields.len());
        for field in *fields {
            field.add_to(&mut digest);
        }
        digest.str(scopes.as_str()).str(requirements.as_str());
        digest.bool(*mutating).bool(*read_only).bool(*dangerous).bool(*idempotent);
        match confirm {
            ConfirmBy::Nobody => digest.u64(0),
            ConfirmBy::Caller => digest.u64(1),
            ConfirmBy::Approver { scope } => digest.u64(2).str(scope),
        };
        digest.u64(*timeout_ms).option(cost.is_some());
        if let Some(cost) = cost {
            digest.u64(u64::from(*cost));
        }
        // Comes last and only where it is set: the digests of all other tools stay what they were. The encoding stays
        // injective, because nothing follows the cost otherwise.
        if let Some(at_most_ms) = background_ms {
            digest.u64(*at_most_ms);
        }
        // Likewise, and told from what comes before by its kind.
        if *approvals > 1 {
            digest.str("approvals").u64(u64::from(*approvals));
        }
        digest.finish()
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

/// What a tool's body returns when it succeeds, as the outcome shows it.
pub trait ToolOutput {
    /// Writes the data as one JSON text.
    ///
    /// # Errors
    /// Those of `out`.
    fn write_data(&self, out: &mut dyn fmt::Write) -> fmt::Result;

    /// A message for people.
    fn message(&self) -> Option<&str> {
        None
    }

    /// Writes more members of the outcome's meta, after those of the gate. A name of the gate's own is not to be written
    /// again: [`crate::outcome::is_reserved_meta`] tells.
    ///
    /// # Errors
    /// Those of the object.
    fn write_meta(&self, meta: &mut Object<'_>) -> fmt::Result {
        let _ = meta;
        Ok(())
    }
}

impl ToolOutput for () {
    fn write_data(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        out.write_str("null")
    }
}

impl ToolOutput for &str {
    fn write_data(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        Writer::new(out).string(self)
    }
}

macro_rules! scalar_output {
    ($($scalar:ty => $number:ident;)+) => {$(
        impl ToolOutput for $scalar {
            fn write_data(&self, out: &mut dyn fmt::Write) -> fmt::Result {
                Writer::new(out).number(Number::$number((*self).into()))
            }
        }
    )+};
}
scalar_output! {
    u8 => U64;
    u16 => U64;
    u32 => U64;
    u64 => U64;
}

impl ToolOutput for i64 {
    fn write_data(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        Writer::new(out).number(crate::schema::number::from_i64(*self))
    }
}

impl ToolOutput for i32 {
    fn write_data(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        i64::from(*self).write_data(out)
    }
}

impl ToolOutput for bool {
    fn write_data(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        Writer::new(out).bool(*self)
    }
}

/// Why a tool's body failed.
pub trait ToolFailure {
    /// The code: one of those that are free for tools ([`Code::NotFound`], [`Code::Unauthorized`],
    /// [`Code::ValidationError`]); any other counts as [`Code::InternalError`].
    fn code(&self) -> Code {
        Code::InternalError
    }

    /// What the caller may read; `None` keeps the text out of the answer (invariant L4).
    fn public_text(&self) -> Option<&str> {
        None
    }

    /// What the record says, after redaction.
    fn detail(&self) -> &str;

    /// What the failed run did. [`Effect::Unknown`] unless the tool knows better.
    fn effect(&self) -> Effect {
        Effect::Unknown
    }
}

impl ToolFailure for &str {
    fn detail(&self) -> &str {
        self
    }
}

/// A tool as the gate sees it. The body is not here: a host runs it, and only with a [`crate::call::Permit`].
pub trait Tool {
    /// What the body returns when it succeeds.
    type Output: ToolOutput;
    /// What the body returns when it fails.
    type Failure: ToolFailure;

    /// The tool's description. The same for as long as the value lives (invariant G2).
    fn spec(&self) -> &ToolSpec<'_>;

    /// The digest of the definition (invariant G4). Hosts that keep it beside the tool return it from there.
    fn definition(&self) -> Digest {
        self.spec().digest()
    }

    /// Checks arguments against the tool's schema and tells `report` of each violation, in a stable order. Changes and
    /// coerces nothing (invariant S9). Called again when somebody wants the text of a refusal, so it must give the same
    /// answer for the same arguments.
    fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>));

    /// The schema that [`validate`](Self::validate) checks, where it checks this one and nothing else: the gate then checks
    /// arguments while it reads them. `None` where `validate` has to be asked.
    fn schema(&self) -> Option<&Schema<'_>> {
        None
    }

    /// Checks a result against the declared output schema.
    fn validate_output(&self, output: &Self::Output, report: &mut dyn FnMut(Violation<'_>)) {
        let _ = (output, report);
    }
}

macro_rules! tool_behind {
    ($($(#[$meta:meta])* $pointer:ty;)+) => {$(
        $(#[$meta])*
        impl<T: Tool + ?Sized> Tool for $pointer {
            type Output = T::Output;
            type Failure = T::Failure;

            fn spec(&self) -> &ToolSpec<'_> {
                (**self).spec()
            }

            fn definition(&self) -> Digest {
                (**self).definition()
            }

            fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
                (**self).validate(args, report);
            }

            fn schema(&self) -> Option<&Schema<'_>> {
                (**self).schema()
            }

            fn validate_output(&self, output: &Self::Output, report: &mut dyn FnMut(Violation<'_>)) {
                (**self).validate_output(output, report);
            }
        }
    )+};
}

tool_behind! {
    &T;
    #[cfg(feature = "alloc")]
    alloc::sync::Arc<T>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    const FIELDS: &[FieldRule<'_>] = &[
        FieldRule::clamp(
            "/max",
            Clamp { min: Some(Bound::Integer(-5)), max: Some(Bound::Float(2.5)), max_length: Some(8) },
        ),
        FieldRule::secret("/key"),
    ];

    const SPEC: ToolSpec<'_> = ToolSpec::new("valve.move", "Moves a valve")
        .mutating()
        .with_version("2")
        .with_input_schema("{}")
        .with_scopes(Scopes::new("a b"))
        .with_confirm(ConfirmBy::Approver { scope: "ops" })
        .with_fields(FIELDS);

    // G4: a golden vector, made by another implementation of the encoding (Python's hashlib).
    #[test]
    fn g4_golden_vector_of_a_definition() {
        assert_eq!(SPEC.digest().to_string(), "57bef47dd936addcf18fbe23b75ee15cf44238aaa0ffc8e5e11c51ca5489786d");
    }

    // G4: no part of a definition can change without its digest.
    #[test]
    fn g4_every_field_counts() {
        let with = |change: &dyn Fn(&mut ToolSpec<'static>)| {
            let mut spec = SPEC;
            change(&mut spec);
            spec.digest()
        };
        let field = |change: &dyn Fn(&mut FieldRule<'static>)| {
            let mut fields = [FIELDS[0], FIELDS[1]];
            change(&mut fields[0]);
            ToolSpec { fields: &fields, ..SPEC }.digest()
        };
        let clamp = |clamp: Clamp| field(&|rule| rule.clamp = Some(clamp));
        let whole = Clamp { min: Some(Bound::Integer(-5)), max: Some(Bound::Float(2.5)), max_length: Some(8) };
        let digests = [
            SPEC.digest(),
            with(&|spec| spec.name = "valve.movf"),
            with(&|spec| spec.description = ""),
            with(&|spec| spec.version = None),
            with(&|spec| spec.version = Some("")),
            with(&|spec| spec.input_schema = None),
            with(&|spec| (spec.input_schema, spec.output_schema) = (None, Some("{}"))),
            with(&|spec| spec.fields = &[]),
            with(&|spec| spec.scopes = Scopes::NONE),
            with(&|spec| (spec.scopes, spec.requirements) = (Scopes::NONE, Scopes::new("a b"))),
            with(&|spec| spec.mutating = false),
            with(&|spec| spec.read_only = true),
            with(&|spec| spec.dangerous = true),
            with(&|spec| spec.idempotent = true),
            with(&|spec| spec.confirm = ConfirmBy::Nobody),
            with(&|spec| spec.confirm = ConfirmBy::Caller),
            with(&|spec| spec.confirm = ConfirmBy::Approver { scope: "op" }),
            with(&|spec| spec.timeout_ms += 1),
            with(&|spec| spec.approvals = 2),
            with(&|spec| spec.approvals = 3),
            with(&|spec| (spec.approvals, spec.background_ms) = (2, Some(2))),
            with(&|spec| spec.cost = Some(5)),
            with(&|spec| spec.cost = Some(0)),
            field(&|rule| rule.path = "/min"),
            field(&|rule| rule.secret = true),
            field(&|rule| rule.clamp = None),
            clamp(Clamp::default()),
            clamp(Clamp { min: None, ..whole }),
            clamp(Clamp { min: Some(Bound::Float(-5.0)), ..whole }),
            clamp(Clamp { max: None, ..whole }),
            clamp(Clamp { min: whole.max, max: whole.min, ..whole }),
            clamp(Clamp { max_length: None, ..whole }),
            clamp(Clamp { max_length: Some(0), ..whole }),
        ];
        for (place, one) in digests.iter().enumerate() {
            assert!(!digests[..place].contains(one), "number {place} equals an earlier one");
        }
    }
}
