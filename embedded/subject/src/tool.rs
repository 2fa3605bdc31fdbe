//! Tools with scripted bodies.

use core::cell::RefCell;
use core::fmt::{self, Write};

use callgate_core::args::Args;
use callgate_core::clamp::{Bound, Clamp};
use callgate_core::context::Scopes;
use callgate_core::digest::Digest;
use callgate_core::fields;
use callgate_core::fixed::Buffer;
use callgate_core::json::{KeySlot, Kind, Limits, Value, scan};
use callgate_core::name::check_tool_name;
use callgate_core::schema::Schema;
use callgate_core::tool::{ConfirmBy, FieldRule, Tool, ToolOutput, ToolSpec, Violation};

use crate::Trouble::{self, Error, Unsupported};
use crate::event::join;
use crate::words::Words;
use crate::{MOST, plain, schema};

/// Where a body leaves the arguments that it gives back.
pub(crate) type Echo = RefCell<Buffer<1_024>>;

/// How long a tool may take where nothing else is said, in milliseconds.
const TIMEOUT_MS: u64 = 30_000;

/// What a body does.
#[derive(Clone, Copy)]
pub(crate) enum Body<'w> {
    /// Returns its arguments.
    Echo,
    /// Returns this.
    Return(Value<'w>),
    /// Fails with this text.
    Fail(&'w str),
    /// Takes so many milliseconds.
    Hang(u64),
}

/// A tool as the world describes it.
pub(crate) struct Script<'w> {
    words: Words<'w>,
    scopes: Buffer<128>,
    /// The paths of clamps and secrets, one behind the other.
    paths: Buffer<256>,
    lengths: heapless::Vec<usize, MOST>,
    /// The schemas as they were told: a part of the definition.
    schemas: [Option<Buffer<512>>; 2],
    body: Body<'w>,
}

impl<'w> Script<'w> {
    pub(crate) fn read(value: Value<'w>) -> Result<Self, Trouble> {
        let known = [
            "name",
            "version",
            "schema",
            "clamps",
            "secrets",
            "scopes",
            "mutating",
            "confirm",
            "approver_scope",
            "timeout_ms",
            "output_schema",
            "body",
        ];
        let words = Words::of(value, &known)?;
        let mut names = heapless::Vec::<&str, 8>::new();
        for scope in words.list("scopes") {
            names.push(plain(scope)?).map_err(|_| Unsupported("more scopes than there is room for"))?;
        }
        let (mut paths, mut lengths) = (Buffer::new(), heapless::Vec::new());
        let full = Unsupported("more rules for fields than there is room for");
        for field in fields_of(words) {
            let name = plain(field?)?;
            // Ways of names into arguments are written as the paths of rules are.
            if name.contains('~') {
                return Err(Unsupported("the name of a field has to be escaped"));
            }
            let before = paths.len();
            write!(paths, "/{name}").map_err(|_| full)?;
            lengths.push(paths.len().saturating_sub(before)).map_err(|_| full)?;
        }
        let text = |name| {
            let write = |schema: Value<'_>| {
                let mut text = Buffer::new();
                schema.write_json(&mut text).map(|()| text)
            };
            words.get(name).map(write).transpose().map_err(|_| Unsupported("a schema is too long"))
        };
        let schemas = [text("schema")?, text("output_schema")?];
        let body = words.get("body").map_or(Ok(Body::Echo), body)?;
        Ok(Self { words, scopes: join(names.iter().copied())?, paths, lengths, schemas, body })
    }

    /// Whether the tool can be what it is described as.
    pub(crate) fn check(&self) -> Result<(), Trouble> {
        let echo = RefCell::new(Buffer::new());
        self.with(&echo, |tool| {
            let sound = check_tool_name(tool.spec.name).is_ok() && fields::check(tool.spec.fields).is_ok();
            if sound { Ok(()) } else { Err(Unsupported("a tool can't be registered")) }
        })?
    }

    /// Shows the tool to `act`.
    pub(crate) fn with<R>(&self, echo: &Echo, act: impl FnOnce(&Scripted<'_>) -> R) -> Result<R, Trouble> {
        let words = self.words;
        let mut rules = heapless::Vec::<FieldRule<'_>, MOST>::new();
        let mut rest = self.paths.as_str();
        let mut clamps = words.list("clamps");
        for length in &self.lengths {
            let (path, behind) = rest.split_at_checked(*length).ok_or(Error("a path is lost"))?;
            rest = behind;
            let rule = match clamps.next() {
                Some(clamp) => {
                    FieldRule::clamp(path, clamp_of(Words::of(clamp, &["field", "min", "max", "max_length"])?)?)
                }
                None => FieldRule::secret(path),
            };
            rules.push(rule).map_err(|_| Error("a rule is lost"))?;
        }
        let mut spec = ToolSpec::new(words.name("name")?, "A tool under test")
            .with_fields(&rules)
            .with_scopes(Scopes::new(self.scopes.as_str()))
            .with_timeout_ms(words.count("timeout_ms")?.unwrap_or(TIMEOUT_MS))
            .with_confirm(confirm(words)?);
        spec.mutating = words.yes("mutating", false);
        spec.version = words.text("version")?;
        let [input, output] = &self.schemas;
        spec.input_schema = input.as_ref().map(Buffer::as_str);
        spec.output_schema = output.as_ref().map(Buffer::as_str);
        schema::with(words.get("schema"), |input| {
            schema::with(words.get("output_schema"), |output| {
                act(&Scripted { definition: spec.digest(), spec, input, output, body: self.body, echo })
            })
        })?
    }
}

/// The names of the fields that rules are for: of clamps first, then of secrets.
fn fields_of<'w>(words: Words<'w>) -> impl Iterator<Item = Result<Value<'w>, Trouble>> {
    let clamped = words.list("clamps").map(|clamp| clamp.get("field").ok_or(Error("a clamp has no field")));
    clamped.chain(words.list("secrets").map(Ok))
}

fn clamp_of(words: Words<'_>) -> Result<Clamp, Trouble> {
    let bound = |name| words.integer(name).map(|bound| bound.map(Bound::Integer));
    let most = words.count("max_length")?.map(u32::try_from).transpose();
    let max_length = most.map_err(|_| Error("a length is too large"))?;
    Ok(Clamp { min: bound("min")?, max: bound("max")?, max_length })
}

fn confirm(words: Words<'_>) -> Result<ConfirmBy<'_>, Trouble> {
    Ok(match words.text("confirm")? {
        None | Some("nobody") => ConfirmBy::Nobody,
        Some("caller") => ConfirmBy::Caller,
        Some("approver") => ConfirmBy::Approver { scope: words.text("approver_scope")?.unwrap_or("approve") },
        Some(_) => return Err(Error("who confirms is not known")),
    })
}

fn body(value: Value<'_>) -> Result<Body<'_>, Trouble> {
    if value.kind() == Kind::String {
        return if plain(value)? == "echo" { Ok(Body::Echo) } else { Err(Error("a body is not known")) };
    }
    let words = Words::of(value, &["return", "fail", "panic", "hang"])?;
    // `null` is a value to return, too.
    let returns = value.get("return");
    match (returns, words.text("fail")?, words.count("hang")?, words.get("panic")) {
        (Some(value), None, None, None) => Ok(Body::Return(value)),
        (None, Some(text), None, None) => Ok(Body::Fail(text)),
        (None, None, Some(ms), None) => Ok(Body::Hang(ms)),
        (None, None, None, Some(_)) => Err(Unsupported("nothing here can panic")),
        _ => Err(Error("a body does one thing")),
    }
}

/// A tool, laid out for one call.
pub(crate) struct Scripted<'x> {
    spec: ToolSpec<'x>,
    definition: Digest,
    input: Option<&'x Schema<'x>>,
    output: Option<&'x Schema<'x>>,
    pub(crate) body: Body<'x>,
    pub(crate) echo: &'x Echo,
}

/// What a body, or an interceptor in its place, gives back.
#[derive(Clone, Copy)]
pub(crate) enum Reply<'x> {
    Value(Value<'x>),
    /// The arguments, which lie there.
    Echo(&'x Echo),
}

impl ToolOutput for Reply<'_> {
    fn write_data(&self, out: &mut dyn Write) -> fmt::Result {
        match self {
            Self::Value(value) => value.write_json(out),
            Self::Echo(echo) => out.write_str(echo.try_borrow().map_err(|_| fmt::Error)?.as_str()),
        }
    }
}

impl<'x> Tool for Scripted<'x> {
    type Output = Reply<'x>;
    type Failure = &'x str;

    fn spec(&self) -> &ToolSpec<'_> {
        &self.spec
    }

    fn definition(&self) -> Digest {
        self.definition
    }

    fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
        if let Some(schema) = self.input {
            schema.validate(args, report);
        }
    }

    fn schema(&self) -> Option<&Schema<'_>> {
        self.input
    }

    fn validate_output(&self, output: &Reply<'x>, report: &mut dyn FnMut(Violation<'_>)) {
        let Some(schema) = self.output else { return };
        match output {
            Reply::Value(value) => schema.validate_value(*value, report),
            Reply::Echo(echo) => {
                let mut keys = [KeySlot::default(); 64];
                let text = echo.try_borrow();
                let scanned =
                    text.as_ref().ok().and_then(|text| scan(text.as_bytes(), &mut keys, &Limits::DEFAULT).ok());
                match scanned {
                    Some(scanned) => schema.validate_value(scanned.value(), report),
                    None => report(Violation { field: &"", reason: &"can't be read" }),
                }
            }
        }
    }
}
