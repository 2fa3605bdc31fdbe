//! The tools: a valve that is moved, and one that is read.

use callgate_core::args::Args;
use callgate_core::call::Permit;
use callgate_core::clamp::Clamp;
use callgate_core::context::Scopes;
use callgate_core::request::Envelope;
use callgate_core::schema::{Property, Schema};
use callgate_core::tool::{ConfirmBy, FieldRule, Tool, ToolSpec, Violation};
use serde::Deserialize;

pub(crate) const SCHEMA: Schema<'static> = Schema::object(&[
    Property::required("valve", Schema::string().min_length(1).max_length(40)),
    Property::optional("percent", Schema::integer()),
    Property::optional("speed", Schema::number().minimum_f64(0.0)),
    Property::optional("mode", Schema::choice(&["slow", "fast"])),
    Property::optional("window", Schema::array(&Schema::integer()).max_items(4)),
    Property::optional("api_key", Schema::string()),
]);
const _: () = assert!(SCHEMA.check().is_ok());

const FIELDS: &[FieldRule<'static>] = &[
    FieldRule::clamp("/percent", Clamp::range(0, 100)),
    FieldRule::clamp("/valve", Clamp::max_length(8)),
    FieldRule::secret("/api_key"),
];

/// What the body gets: the clamped arguments as a type of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Order<'a> {
    valve: &'a str,
    #[serde(default)]
    percent: u8,
    #[serde(default)]
    speed: f64,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    window: Option<(i64, i64)>,
    #[serde(default)]
    api_key: Option<&'a str>,
}

#[derive(Deserialize, Default, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Slow,
    Fast,
}

pub(crate) struct Valve {
    spec: ToolSpec<'static>,
}

impl Valve {
    pub(crate) const READ: Self =
        Self { spec: ToolSpec::new("valve.read", "Tells how far a valve is open").with_fields(FIELDS) };
    pub(crate) const MOVE: Self = Self {
        spec: ToolSpec::new("valve.move", "Moves a valve")
            .mutating()
            .with_fields(FIELDS)
            .with_scopes(Scopes::new("valves admin"))
            .with_confirm(ConfirmBy::Nobody),
    };
    pub(crate) const ASKED: Self =
        Self { spec: ToolSpec { name: "valve.open", ..Self::MOVE.spec }.with_confirm(ConfirmBy::Caller) };

    /// The body. Nobody calls it without a permit.
    pub(crate) fn run(permit: &Permit<'_, Envelope<'_>, &Self>) -> Result<&'static str, &'static str> {
        let mut room = [0; 64];
        let order: Order<'_> = permit.args().deserialize(&mut room).map_err(|_| "the arguments have another type")?;
        if order.valve == "stuck" {
            // A failure that repeats what it was given, which a record must not.
            return Err("the valve is stuck, api_key=hunter2-hunter2");
        }
        let whole = order.speed < 10.0 && order.window.is_none_or(|(from, to)| from <= to);
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
