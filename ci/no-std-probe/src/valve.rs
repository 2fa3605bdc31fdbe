//! The tools: a valve that is moved, and one that is read.

use callgate_core::args::Args;
use callgate_core::call::Permit;
use callgate_core::context::Scopes;
use callgate_core::json_schema;
use callgate_core::request::Envelope;
use callgate_core::schema::Schema;
use callgate_core::tool::{ConfirmBy, Tool, ToolSpec, Violation};
use callgate_core::typed::{self, Arguments as _, Parameter as _};
use callgate_macros::Arguments;

/// What the body gets: the clamped arguments as a type of its own, which says itself what it accepts.
#[derive(Arguments)]
pub(crate) struct Order<'a> {
    #[param(length(1..=40), clamp_length(..=8))]
    valve: &'a str,
    #[param(clamp(0..=100), default = 0)]
    percent: u8,
    #[param(range(0.0..), default = 0)]
    speed: f64,
    #[param(default = "slow")]
    mode: Mode,
    window: Option<[i64; 2]>,
    #[param(secret)]
    api_key: Option<&'a str>,
}

#[derive(Arguments, PartialEq)]
#[arguments(rename_all = "lowercase")]
enum Mode {
    Slow,
    Fast,
}

pub(crate) const SCHEMA: Schema<'static> = Order::SCHEMA;
/// What is advertised, written by the compiler.
const INPUT: &str = json_schema!(SCHEMA);

pub(crate) struct Valve {
    spec: ToolSpec<'static>,
}

impl Valve {
    pub(crate) const READ: Self = Self {
        spec: ToolSpec::new("valve.read", "Tells how far a valve is open")
            .with_input_schema(INPUT)
            .with_fields(Order::FIELDS),
    };
    pub(crate) const MOVE: Self = Self {
        spec: ToolSpec::new("valve.move", "Moves a valve")
            .mutating()
            .with_input_schema(INPUT)
            .with_fields(Order::FIELDS)
            .with_scopes(Scopes::new("valves admin"))
            .with_confirm(ConfirmBy::Nobody),
    };
    pub(crate) const ASKED: Self =
        Self { spec: ToolSpec { name: "valve.open", ..Self::MOVE.spec }.with_confirm(ConfirmBy::Caller) };

    /// The body. Nobody calls it without a permit.
    pub(crate) fn run(permit: &Permit<'_, Envelope<'_>, &Self>) -> Result<&'static str, &'static str> {
        let mut room = [0; 64];
        let order: Order<'_> = typed::read(permit.args(), &mut room).map_err(|_| "the arguments have another type")?;
        if order.valve == "stuck" {
            // A failure that repeats what it was given, which a record must not.
            return Err("the valve is stuck, api_key=hunter2-hunter2");
        }
        let whole = order.speed < 10.0 && order.window.is_none_or(|[from, to]| from <= to);
        match (order.valve, order.percent, order.mode) {
            ("nord \"1\"", 100, Mode::Fast) if whole && order.api_key == Some("hunter2-hunter2") => Ok("all as sent"),
            (_, percent, _) if percent > 100 => Err("beyond its bounds"),
            _ => Ok("moved"),
        }
    }
}

impl Tool for Valve {
    type Output = &'static str;
    type Failure = &'static str;

    fn spec(&self) -> &ToolSpec<'_> {
        &self.spec
    }

    fn validate(&self, args: Args<'_>, report: &mut dyn FnMut(Violation<'_>)) {
        SCHEMA.validate(args, report);
    }
}
