//! How a tool is defined.

use std::fmt;
use std::future::Future;
use std::ops::{RangeFrom, RangeInclusive, RangeToInclusive};
use std::sync::Arc;
use std::time::Duration;

use callgate_core::clamp::{Bound, Clamp};
use callgate_core::json::write::must_escape;
use callgate_core::name::{check_scope, check_tool_name};
use callgate_core::schema::Schema;
use callgate_core::tool::{ConfirmBy, DEFAULT_TIMEOUT_MS};
use callgate_core::typed::{Arguments, Output, Read};
use serde::de::DeserializeOwned;

use super::advertise::Advertised;
use super::body::{Body, ToolCall};
use super::definition::{Confirm, Definition, Field, Texts};
use super::error::{DemandProblem, Problem, SchemaProblem, TextProblem, ToolError};
use super::owned::OwnedCall;
use super::source::{Prepared, SchemaSource};
use super::{Tool, field};
use crate::failure::Failure;
use crate::output::{DEFAULT_MAX_OUTPUT, Reply};
use crate::schema::Profile;
use crate::slots::Slots;

/// The most bytes of a description.
pub const MAX_DESCRIPTION: usize = 16 << 10;
/// The most bytes of a version.
pub const MAX_VERSION: usize = 128;

/// What the bounds of a clamp can be written as: a [`Clamp`], or a range such as `1..=100`, `0.0..=1.0`, `1..`, `..=100`.
pub trait IntoClamp {
    /// The clamp.
    fn into_clamp(self) -> Clamp;
}

impl IntoClamp for Clamp {
    fn into_clamp(self) -> Clamp {
        self
    }
}

macro_rules! ranges {
    ($($number:ty => $bound:ident;)+) => {$(
        impl IntoClamp for RangeInclusive<$number> {
            fn into_clamp(self) -> Clamp {
                let (min, max) = self.into_inner();
                Clamp { min: Some(Bound::$bound(min)), max: Some(Bound::$bound(max)), max_length: None }
            }
        }

        impl IntoClamp for RangeFrom<$number> {
            fn into_clamp(self) -> Clamp {
                Clamp { min: Some(Bound::$bound(self.start)), ..Clamp::default() }
            }
        }

        impl IntoClamp for RangeToInclusive<$number> {
            fn into_clamp(self) -> Clamp {
                Clamp { max: Some(Bound::$bound(self.end)), ..Clamp::default() }
            }
        }
    )+};
}
ranges! {
    i64 => Integer;
    f64 => Float;
}

/// Defines a tool, part by part; [`build`](Self::build) tells everything that is wrong at once. A part that is given twice
/// counts as it was given last, except that clamps and secrets add up.
///
/// A name, a description and a body are needed. Without more, a tool changes nothing, accepts any object, asks for no
/// scope and no confirmation, and may take 30 seconds.
#[must_use = "a definition does nothing until it is built"]
pub struct ToolBuilder {
    name: String,
    description: String,
    version: Option<String>,
    input: Option<SchemaSource>,
    output: Option<SchemaSource>,
    strict: bool,
    fields: Vec<Field>,
    scopes: Option<Vec<String>>,
    requirements: Option<Vec<String>>,
    mutating: bool,
    read_only: bool,
    dangerous: bool,
    idempotent: bool,
    confirm: Confirm,
    approvals: u8,
    timeout: Option<Duration>,
    background: Option<Duration>,
    cost: Option<u32>,
    max_output: usize,
    concurrency: Option<(usize, usize)>,
    body: Option<Body>,
}

impl ToolBuilder {
    pub(super) const fn new(name: String) -> Self {
        Self {
            name,
            description: String::new(),
            version: None,
            input: None,
            output: None,
            strict: false,
            fields: Vec::new(),
            scopes: None,
            requirements: None,
            mutating: false,
            read_only: false,
            dangerous: false,
            idempotent: false,
            confirm: Confirm::Nobody,
            approvals: 1,
            timeout: None,
            background: None,
            cost: None,
            max_output: DEFAULT_MAX_OUTPUT,
            concurrency: None,
            body: None,
        }
    }

    /// What the tool does, for the model: up to 16 KiB, without characters that nobody sees.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// The version that the tool declares. Another version is another definition (invariant G4).
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// The arguments' schema: JSON Schema as text or as a value; see [`JsonSchema`](crate::schema::JsonSchema) for what is
    /// admitted. What it leaves open is open: write `"additionalProperties": false` to have misspelt names refused.
    pub fn json_schema(mut self, schema: impl Into<SchemaSource>) -> Self {
        self.input = Some(schema.into());
        self
    }

    /// The arguments' schema as a constant of the core. Checked faster, and closed unless it says otherwise. Its clamps and
    /// secrets count as if they had been given one by one.
    pub fn const_schema(self, schema: Schema<'static>) -> Self {
        self.json_schema(schema)
    }

    /// The arguments' schema, clamps and secrets, as the type `A` says them; see [`typed`](callgate_core::typed).
    pub fn arguments<A: Arguments>(self) -> Self {
        self.const_schema(A::SCHEMA)
    }

    /// The result's schema, as the type `R` says it. A result that does not fit is contained as `OUTPUT_INVALID` (invariant
    /// O1).
    pub fn returns<R: Output>(self) -> Self {
        self.output_schema(R::SCHEMA)
    }

    /// There has to be a schema of the arguments, and it has to put a bound on everything, as [`Profile::STRICT`] says. For
    /// tools that come from others.
    pub const fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// The result's schema. A result that does not fit is contained as `OUTPUT_INVALID` (invariant O1).
    pub fn output_schema(mut self, schema: impl Into<SchemaSource>) -> Self {
        self.output = Some(schema.into());
        self
    }

    /// The most bytes of JSON text that a result may have; see [`Reply`]. Not a part of the definition's digest.
    pub const fn max_output(mut self, bytes: usize) -> Self {
        self.max_output = bytes;
        self
    }

    /// Brings the field at `path` into bounds: numbers of it, or lengths of texts. `path` is a JSON Pointer in which `*`
    /// stands for every item and member: `/max`, `/rows/*/price`. The schema has to admit what the clamp is to mend.
    pub fn clamp(mut self, path: impl Into<String>, clamp: impl IntoClamp) -> Self {
        self.fields.push(Field { path: path.into(), clamp: Some(clamp.into_clamp()), secret: false });
        self
    }

    /// Keeps the field at `path`, and all within it, out of records, plans and logs. The path is written as for
    /// [`clamp`](Self::clamp).
    pub fn secret(mut self, path: impl Into<String>) -> Self {
        self.fields.push(Field { path: path.into(), clamp: None, secret: true });
        self
    }

    /// A caller has to hold one of these scopes.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = Some(scopes.into_iter().map(Into::into).collect());
        self
    }

    /// The host has to provide all of these, such as `network`.
    pub fn requires<S: Into<String>>(mut self, requirements: impl IntoIterator<Item = S>) -> Self {
        self.requirements = Some(requirements.into_iter().map(Into::into).collect());
        self
    }

    /// A call can change something: its intent is recorded before it runs, and it costs 5 at the rate limiter.
    pub const fn mutating(mut self) -> Self {
        self.mutating = true;
        self
    }

    /// A hint for models: the tool changes nothing. It loosens no check.
    pub const fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// A hint for models and people: a call can do damage that cannot be undone.
    pub const fn dangerous(mut self) -> Self {
        self.dangerous = true;
        self
    }

    /// Repeating a call with the same arguments changes nothing more.
    pub const fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Who confirms a call before it runs.
    pub fn confirm(mut self, by: ConfirmBy<'_>) -> Self {
        self.confirm = Confirm::from(by);
        self
    }

    /// How many distinct approvers have to say yes, where approvers confirm; 1 by default.
    pub const fn approvals(mut self, approvals: u8) -> Self {
        self.approvals = approvals;
        self
    }

    /// How long one call may take: 1 ms or more, in whole milliseconds; more exact times are rounded down.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// A call is answered at once with the id of a task, and the body goes on in the background: for 1 ms or more and at
    /// most this long, in place of the [timeout](Self::timeout). What becomes of it is recorded when it is over.
    pub const fn background(mut self, at_most: Duration) -> Self {
        self.background = Some(at_most);
        self
    }

    /// What one call costs at the rate limiter: 1 or more.
    pub const fn cost(mut self, cost: u32) -> Self {
        self.cost = Some(cost);
        self
    }

    /// At most `at_once` calls run at the same time, 1 or more, and at most `line` calls wait for a place; others are turned
    /// away as `OVERLOADED`. Not a part of the definition's digest.
    pub const fn concurrency(mut self, at_once: usize, line: usize) -> Self {
        self.concurrency = Some((at_once, line));
        self
    }

    /// The body. One that has to wait is better written with [`async_handler`](Self::async_handler): this one keeps a thread
    /// busy while it waits, and cannot be stopped.
    pub fn handler<F>(mut self, body: F) -> Self
    where
        F: Fn(&ToolCall<'_>) -> Result<Reply, Failure> + Send + Sync + 'static,
    {
        self.body = Some(Body::Blocking(Arc::new(body)));
        self
    }

    /// A body that waits. Every gate runs it: the async one as it is, the blocking one on the thread of the call. It is stopped
    /// where it waits when its time is up or its caller is gone.
    ///
    /// ```
    /// use callgate_std::output::Reply;
    /// use callgate_std::tool::Tool;
    /// let tool = Tool::builder("greet")
    ///     .description("Greets")
    ///     .async_handler(|call| async move { Ok(Reply::new(format!("hello, {}", call.caller().channel))) })
    ///     .build()?;
    /// # Ok::<(), callgate_std::tool::ToolError>(())
    /// ```
    pub fn async_handler<F, R>(mut self, body: F) -> Self
    where
        F: Fn(OwnedCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Reply, Failure>> + Send + 'static,
    {
        self.body = Some(Body::Waiting(Arc::new(move |call| Box::pin(body(call)))));
        self
    }

    /// A body that waits and whose arguments have a type; see [`typed`](Self::typed).
    pub fn async_typed<A, F, R>(self, body: F) -> Self
    where
        A: DeserializeOwned + Send,
        F: Fn(OwnedCall, A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Reply, Failure>> + Send + 'static,
    {
        let body = Arc::new(body);
        self.async_handler(move |call| {
            let body = Arc::clone(&body);
            async move {
                let arguments = call.arguments()?;
                body(call, arguments).await
            }
        })
    }

    /// A body whose arguments have a type. Arguments that fit the schema and not the type are refused before the body
    /// runs, as `VALIDATION_ERROR` and without effect.
    pub fn typed<A, F>(self, body: F) -> Self
    where
        A: DeserializeOwned,
        F: Fn(&ToolCall<'_>, A) -> Result<Reply, Failure> + Send + Sync + 'static,
    {
        self.handler(move |call| body(call, call.arguments()?))
    }

    /// A body whose arguments say themselves what they are: [`arguments`](Self::arguments) and a body in one.
    ///
    /// ```
    /// use callgate_macros::Arguments;
    /// use callgate_std::{output::Reply, tool::Tool};
    ///
    /// #[derive(Arguments)]
    /// struct Page {
    ///     /// How many to give back
    ///     #[param(clamp(1..=100), default = 20)]
    ///     size: u32,
    /// }
    ///
    /// let tool = Tool::builder("notes.list")
    ///     .description("Lists notes")
    ///     .takes(|_call, page: Page| Ok(Reply::new(page.size)))
    ///     .build()?;
    /// assert!(tool.advertised_schema().contains("How many to give back"));
    /// # Ok::<(), callgate_std::tool::ToolError>(())
    /// ```
    pub fn takes<A, F>(self, body: F) -> Self
    where
        A: Arguments + for<'r> Read<'r>,
        F: Fn(&ToolCall<'_>, A) -> Result<Reply, Failure> + Send + Sync + 'static,
    {
        self.arguments::<A>().handler(move |call| body(call, call.read()?))
    }

    /// A body that waits and whose arguments say themselves what they are; see [`takes`](Self::takes).
    pub fn async_takes<A, F, R>(self, body: F) -> Self
    where
        A: Arguments + for<'r> Read<'r> + Send,
        F: Fn(OwnedCall, A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Reply, Failure>> + Send + 'static,
    {
        let body = Arc::new(body);
        self.arguments::<A>().async_handler(move |call| {
            let body = Arc::clone(&body);
            async move {
                let arguments = call.read()?;
                body(call, arguments).await
            }
        })
    }

    /// The tool.
    ///
    /// # Errors
    /// Everything that is wrong with the definition.
    pub fn build(mut self) -> Result<Tool, ToolError> {
        let mut problems = Vec::new();
        if let Some(SchemaSource::Const(schema)) = &self.input {
            field::add_marks(schema, &mut self.fields, &mut problems);
        }
        if let Err(error) = check_tool_name(&self.name) {
            problems.push(Problem::Name(error));
        }
        check_text("description", &self.description, MAX_DESCRIPTION, &mut problems);
        if let Some(version) = &self.version {
            check_text("version", version, MAX_VERSION, &mut problems);
        }
        let arguments = if self.strict { Profile::STRICT } else { Profile::ARGUMENTS };
        let input = prepare("input", self.input.as_ref(), arguments, &mut problems);
        let output = prepare("output", self.output.as_ref(), Profile::VALUE, &mut problems);
        // Of a schema that can't be used nothing is known, and one problem tells of it.
        let acting = field::check(&self.fields, &input.value, &mut problems);
        let scopes = demand("scopes", self.scopes, &mut problems);
        let requirements = demand("requirements", self.requirements, &mut problems);
        if let Confirm::Approver { scope } = &self.confirm {
            drop(demand("approver's scope", Some(vec![scope.clone()]), &mut problems));
        }
        let timeout_ms = match self.timeout {
            None => DEFAULT_TIMEOUT_MS,
            Some(timeout) => u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        };
        let background_ms = self.background.map(|at_most| u64::try_from(at_most.as_millis()).unwrap_or(u64::MAX));
        for (part, least, small) in [
            ("timeout", "1 ms", timeout_ms == 0),
            ("time in the background", "1 ms", background_ms == Some(0)),
            ("cost", "1", self.cost == Some(0)),
            ("number of calls at once", "1", self.concurrency.is_some_and(|(at_once, _)| at_once == 0)),
            ("cap on output", "2 bytes", self.max_output < 2),
        ] {
            if small {
                problems.push(Problem::TooSmall { part, least });
            }
        }
        if self.mutating && self.read_only {
            problems.push(Problem::Contradiction);
        }
        if self.body.is_none() {
            problems.push(Problem::NoBody);
        }
        let body = match self.body {
            Some(body) if problems.is_empty() => body,
            _ => return Err(ToolError { tool: self.name, problems }),
        };
        let advertised = Advertised::new(&self.description, input.text.as_deref(), &self.fields, &acting);
        let definition = Definition::new(Texts {
            name: self.name,
            description: self.description,
            version: self.version,
            input_schema: input.text,
            output_schema: output.text,
            fields: self.fields,
            scopes,
            requirements,
            mutating: self.mutating,
            read_only: self.read_only,
            dangerous: self.dangerous,
            idempotent: self.idempotent,
            confirm: self.confirm,
            approvals: self.approvals,
            timeout_ms,
            background_ms,
            cost: self.cost,
        });
        let digest = definition.spec().digest();
        Ok(Tool {
            definition: Arc::new(definition),
            digest,
            checker: input.checker,
            output: output.checker,
            max_output: self.max_output,
            advertised,
            slots: self.concurrency.map(|(at_once, line)| Arc::new(Slots::new(at_once, line))),
            body,
        })
    }
}

impl fmt::Debug for ToolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl From<ConfirmBy<'_>> for Confirm {
    fn from(by: ConfirmBy<'_>) -> Self {
        match by {
            ConfirmBy::Nobody => Self::Nobody,
            ConfirmBy::Caller => Self::Caller,
            ConfirmBy::Approver { scope } => Self::Approver { scope: scope.to_owned() },
            // A way to confirm that this crate does not know of is none that it may leave out.
            _ => Self::Approver { scope: callgate_core::call::DEFAULT_APPROVER_SCOPE.to_owned() },
        }
    }
}

fn prepare(
    part: &'static str,
    source: Option<&SchemaSource>,
    profile: Profile,
    problems: &mut Vec<Problem>,
) -> Prepared {
    let missing = || if profile == Profile::STRICT { Err(vec![SchemaProblem::Missing]) } else { Ok(Prepared::none()) };
    source.map_or_else(missing, |source| Prepared::new(source, profile)).unwrap_or_else(|faults| {
        problems.extend(faults.into_iter().map(|problem| Problem::Schema { part, problem }));
        Prepared::none()
    })
}

fn check_text(part: &'static str, text: &str, max: usize, problems: &mut Vec<Problem>) {
    // Line breaks and tabs shape a text; every other character that is not seen, or moves the others, misleads (invariant D5).
    let invisible = |c: char| must_escape(c) && !matches!(c, '"' | '\\' | '\n' | '\t');
    let problem = if text.trim().is_empty() {
        TextProblem::Empty
    } else if text.len() > max {
        TextProblem::TooLong { bytes: text.len(), max }
    } else if let Some((at, character)) = text.char_indices().find(|(_, c)| invisible(*c)) {
        TextProblem::Invisible { character, at }
    } else {
        return;
    };
    problems.push(Problem::Text { part, problem });
}

/// The names as one text, each once.
fn demand(part: &'static str, names: Option<Vec<String>>, problems: &mut Vec<Problem>) -> String {
    let Some(mut names) = names else { return String::new() };
    if names.is_empty() {
        problems.push(Problem::Demand { part, problem: DemandProblem::Empty });
    }
    for name in &names {
        if let Err(reason) = check_scope(name) {
            problems.push(Problem::Demand { part, problem: DemandProblem::Name { name: name.clone(), reason } });
        }
    }
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names.join(" ")
}
