//! The pipeline of one tool for one caller, explained; running nothing.
//!
//! Every statement is made from the same values and by the same functions that the pipeline itself uses
//! ([`PolicyGate`], [`confirmation_required`], [`ToolSpec::cost`]), so that the two can't disagree.

use core::fmt;

use crate::args::Args;
use crate::code::Station;
use crate::context::{CallContext, Mode};
use crate::json::{Object, write::Writer};
use crate::policy::{By, Phase, PolicyGate, Subject, confirmation_required};
use crate::tool::{Tool, ToolSpec};

/// The version of the inspection's JSON.
pub const SCHEMA_VERSION: &str = "1.0";

/// What a step is to the pipeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Role {
    /// Lets pass or refuses.
    Guard,
    /// Changes the arguments.
    Transform,
    /// Ends some calls early.
    Branch,
    /// Lets others speak.
    Hook,
    /// Runs the tool.
    Execution,
    /// Holds what goes wrong in another step.
    Boundary,
    /// Tells how it went.
    Outcome,
}

impl Role {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Guard => "guard",
            Self::Transform => "transform",
            Self::Branch => "branch",
            Self::Hook => "hook",
            Self::Execution => "execution",
            Self::Boundary => "boundary",
            Self::Outcome => "outcome",
        }
    }
}

/// Whether a step does something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Presence {
    /// It runs.
    Active,
    /// Decided call by call.
    Conditional,
    /// The rule exists and cannot fire now.
    Dormant,
    /// Not wired, not applicable, or not reached.
    Skipped,
}

impl Presence {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Conditional => "conditional",
            Self::Dormant => "dormant",
            Self::Skipped => "skipped",
        }
    }
}

/// What a host has wired into its gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wiring {
    /// A rate limiter.
    pub rate_limiter: bool,
    /// Interceptors or observers.
    pub interceptors: bool,
    /// A provider of rules.
    pub rule_provider: bool,
    /// An audit sink.
    pub audit: bool,
}

/// One tool, one caller, one gate.
#[derive(Debug)]
pub struct Inspection<'a, T> {
    /// The tool.
    pub tool: &'a T,
    /// The caller that a call is imagined for.
    pub caller: CallContext<'a>,
    /// The policy in force.
    pub gate: PolicyGate<'a>,
    /// What the host has wired.
    pub wiring: Wiring,
}

/// One step of the pipeline.
#[derive(Debug)]
pub struct InspectedStep<'s, 'a, T> {
    /// Which one.
    pub station: Station,
    /// What it is.
    pub role: Role,
    /// Whether it does something.
    pub presence: Presence,
    /// Whether it can end the call.
    pub blocking: bool,
    /// Whether it can change arguments or the world.
    pub mutates: bool,
    /// The step that it holds.
    pub wraps: Option<Station>,
    inspection: &'s Inspection<'a, T>,
}

impl<'a, T: Tool> Inspection<'a, T> {
    fn spec(&self) -> &ToolSpec<'_> {
        self.tool.spec()
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            caller: self.caller,
            spec: self.tool.spec(),
            definition: self.tool.definition(),
            args: Args::EMPTY,
            arguments: None,
            now: crate::time::Timestamp::default(),
        }
    }

    /// Who would have to confirm a call without evidence of consent.
    #[must_use]
    pub fn confirmed_by(&self) -> Option<By> {
        confirmation_required(self.spec(), &self.gate.channel(self.caller.channel).policy, false)
    }

    /// The twelve steps, in the order of the gate.
    pub fn steps(&self) -> impl Iterator<Item = InspectedStep<'_, 'a, T>> {
        Station::ALL.iter().map(|station| self.step(*station))
    }

    /// One step.
    #[must_use]
    pub fn step(&self, station: Station) -> InspectedStep<'_, 'a, T> {
        let spec = self.spec();
        let (role, presence, blocking, mutates) = match station {
            Station::Clamp => (Role::Transform, active(spec.clamps()), spec.clamps(), spec.clamps()),
            Station::Resolve | Station::Validate | Station::Authorize => (Role::Guard, Presence::Active, true, false),
            Station::RateLimit => (Role::Guard, active(self.wiring.rate_limiter), true, false),
            Station::PlanMode => (Role::Branch, Presence::Conditional, false, false),
            Station::Confirm => {
                let asks = self.confirmed_by().is_some();
                (Role::Branch, if asks { Presence::Conditional } else { Presence::Dormant }, asks, false)
            }
            Station::EmitExecuting => (Role::Hook, active(self.wiring.interceptors || spec.mutating), true, false),
            Station::Execute => (Role::Execution, Presence::Active, true, spec.mutating),
            Station::ContainException => (Role::Boundary, Presence::Active, false, false),
            Station::CheckOutput => (Role::Guard, active(spec.output_schema.is_some()), true, false),
            Station::Audit => (Role::Outcome, active(self.wiring.audit), false, false),
        };
        let planned = self.is_behind_a_plan(station);
        InspectedStep {
            station,
            role,
            presence: if planned { Presence::Skipped } else { presence },
            blocking: blocking && !planned,
            mutates: mutates && !planned,
            wraps: (station == Station::ContainException).then_some(Station::Execute),
            inspection: self,
        }
    }

    /// Whether a call that is only planned does not come to this step: it ends at `plan_mode`, and its record is written all the same.
    fn is_behind_a_plan(&self, station: Station) -> bool {
        self.caller.mode == Mode::Plan && station > Station::PlanMode && station != Station::Audit
    }

    /// What would be refused before any rule or argument is looked at, as this caller.
    #[must_use]
    pub fn refusal(&self) -> Option<impl fmt::Display> {
        match self.gate.before_rules::<&'static str>(&self.subject()) {
            Phase::Denied(denial) => Some(Refusal { inspection: self, denial }),
            _ => None,
        }
    }

    /// Writes the inspection as JSON.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        let present = |wired| if wired { "present" } else { "absent" };
        let mut object = Object::begin(out)?;
        object.text("schemaVersion", SCHEMA_VERSION)?;
        object.text("operation", self.spec().name)?;
        object.text("channel", self.caller.channel)?;
        object.raw("context", |out| {
            let mut context = Object::begin(out)?;
            context.nullable("actor", self.caller.known_principal())?;
            context.strings("scopes", self.caller.scopes.iter())?;
            context.text("mode", self.caller.mode.as_str())?;
            context.end()
        })?;
        object.raw("assumptions", |out| {
            out.write_str("[")?;
            if let Some(refusal) = self.refusal() {
                Writer::new(out)
                    .display(&format_args!("a call by this caller would be refused at authorize: {refusal}"))?;
            }
            out.write_str("]")
        })?;
        object.raw("wiring", |out| {
            let mut wiring = Object::begin(out)?;
            wiring.text("rateLimiter", present(self.wiring.rate_limiter))?;
            wiring.text("dispatcher", present(self.wiring.interceptors))?;
            wiring.text("ruleProvider", present(self.wiring.rule_provider))?;
            wiring.text("audit", present(self.wiring.audit))?;
            wiring.end()
        })?;
        object.raw("steps", |out| {
            out.write_str("[")?;
            for (at, step) in self.steps().enumerate() {
                if at > 0 {
                    out.write_str(",")?;
                }
                step.write_json(out)?;
            }
            out.write_str("]")
        })?;
        object.end()
    }
}

const fn active(wired: bool) -> Presence {
    if wired { Presence::Active } else { Presence::Skipped }
}

struct Refusal<'s, 'a, T> {
    inspection: &'s Inspection<'a, T>,
    denial: crate::policy::Denial<&'static str>,
}

impl<T: Tool> fmt::Display for Refusal<'_, '_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.denial.describe(self.inspection.spec(), &self.inspection.caller))
    }
}

impl<T: Tool> InspectedStep<'_, '_, T> {
    /// Where the step's behaviour comes from, in plain words.
    #[must_use]
    pub fn source(&self) -> impl fmt::Display {
        Source(self)
    }

    fn write_json(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        let mut object = Object::begin(out)?;
        object.text("kind", self.station.as_str())?;
        object.text("role", self.role.as_str())?;
        object.text("presence", self.presence.as_str())?;
        object.boolean("blocking", self.blocking)?;
        object.boolean("mutates", self.mutates)?;
        object.nullable("wraps", self.wraps.map(Station::as_str))?;
        object.display("source", &self.source())?;
        object.end()
    }
}

struct Source<'x, 's, 'a, T>(&'x InspectedStep<'s, 'a, T>);

impl<T: Tool> fmt::Display for Source<'_, '_, '_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inspection = self.0.inspection;
        let (spec, caller, wiring) = (inspection.spec(), &inspection.caller, &inspection.wiring);
        let wired = |present| if present { "present" } else { "absent" };
        if inspection.is_behind_a_plan(self.0.station) {
            return f.write_str("not reached: the call is only planned");
        }
        match self.0.station {
            Station::Resolve => f.write_str("registry look-up, byte for byte; the definition found serves to the end"),
            Station::Validate => f.write_str(match spec.input_schema {
                Some(_) => "strict reader, then the tool's input schema",
                None => "strict reader; the tool declares no input schema, so any object passes",
            }),
            Station::Clamp => match spec.fields.iter().filter(|field| field.clamp.is_some()).count() {
                0 => f.write_str("the tool declares no clamps"),
                n => write!(f, "{n} of the tool's fields are brought into bounds; the result must fit the schema again"),
            },
            Station::Authorize => {
                let channel = inspection.gate.channel(caller.channel);
                let policy = channel.policy;
                write!(
                    f,
                    "channel '{}': require_auth={}, allow_all={}, block_mutating={}, consent_required={}; ",
                    caller.channel, policy.require_auth, policy.allow_all, policy.block_mutating, policy.consent_required
                )?;
                if !channel.known {
                    f.write_str("nobody registered this channel, so it is untrusted; ")?;
                }
                if spec.scopes.is_empty() {
                    f.write_str("the tool asks for no scope; ")?;
                } else {
                    let held = if caller.scopes.has_any(spec.scopes) { "held" } else { "not held" };
                    write!(f, "the tool asks for one of the scopes {} ({held}); ", spec.scopes)?;
                }
                f.write_str(if wiring.rule_provider { "rules: asked" } else { "rules: skipped (no provider)" })
            }
            Station::RateLimit => {
                let kind = if spec.mutating { "mutating" } else { "not mutating" };
                write!(f, "rate limiter {}; a call costs {} ({kind}); a redemption costs nothing more", wired(wiring.rate_limiter), spec.cost())
            }
            Station::PlanMode => write!(f, "mode 'plan' ends here with the plan; this call's mode: {}", caller.mode),
            Station::Confirm => match (inspection.confirmed_by(), spec.confirm) {
                (None, _) => f.write_str("neither the tool nor the channel asks for a confirmation; a token that is brought is redeemed all the same"),
                (Some(by), crate::tool::ConfirmBy::Nobody) => write!(f, "the channel asks for a confirmation by the {}: the first call gets a token", by.as_str()),
                (Some(by), _) => write!(f, "the tool asks for a confirmation by the {}: the first call gets a token", by.as_str()),
            },
            Station::EmitExecuting => {
                write!(f, "interceptors {} (answer or veto)", wired(wiring.interceptors))?;
                if spec.mutating { f.write_str("; the intent is recorded before the tool starts") } else { Ok(()) }
            }
            Station::Execute => write!(f, "the tool's body, with a permit; timeout {} ms", spec.timeout_ms),
            Station::ContainException => f.write_str("holds execute: an error or a panic becomes INTERNAL_ERROR, its text goes to the record"),
            Station::CheckOutput => f.write_str(match spec.output_schema {
                Some(_) => "the tool's output schema; a result that breaks it is OUTPUT_INVALID with effect done",
                None => "the tool declares no output schema",
            }),
            Station::Audit => write!(f, "audit sink {}; one terminal record for every call, however it ends", wired(wiring.audit)),
        }
    }
}
