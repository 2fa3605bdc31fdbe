//! The tools: a valve that is moved, one that is read, and one that is asked about.

use callgate_core::context::CallContext;
use callgate_core::schema::Schema;
use callgate_core::typed::{BareTool, Failed, Parameter as _};
use callgate_macros::{Arguments, tool};

pub(crate) type Valve = BareTool<&'static str, &'static str>;
pub(crate) type Failure = Failed<&'static str>;

pub(crate) const READ: Valve = read::TOOL;
pub(crate) const MOVE: Valve = turn::TOOL;
pub(crate) const ASKED: Valve = open::TOOL;
pub(crate) const APPROVED: Valve = drain::TOOL;

#[derive(Arguments, Clone, Copy, PartialEq)]
#[arguments(rename_all = "lowercase")]
enum Mode {
    Slow,
    Fast,
}

/// What a valve is told.
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

pub(crate) const SCHEMA: Schema<'static> = Order::SCHEMA;

/// Tells how far a valve is open
#[tool(no_std, name = "valve.read")]
fn read(
    #[param(length(1..=40), clamp_length(..=8))] valve: &str,
    #[param(clamp(0..=100), default = 0)] percent: u8,
    #[param(range(0.0..), default = 0)] speed: f64,
    #[param(default = "slow")] mode: Mode,
    window: Option<[i64; 2]>,
    #[param(secret)] api_key: Option<&str>,
) -> Result<&'static str, &'static str> {
    obey(&Order { valve, percent, speed, mode, window, api_key })
}

/// Moves a valve
#[tool(no_std, name = "valve.move", mutating, scopes("valves", "admin"))]
fn turn(
    caller: &CallContext<'_>,
    #[param(length(1..=40), clamp_length(..=8))] valve: &str,
    #[param(clamp(0..=100), default = 0)] percent: u8,
    #[param(range(0.0..), default = 0)] speed: f64,
    #[param(default = "slow")] mode: Mode,
    window: Option<[i64; 2]>,
    #[param(secret)] api_key: Option<&str>,
) -> Result<&'static str, &'static str> {
    if caller.request_id.is_empty() {
        return Err("nobody asks");
    }
    obey(&Order { valve, percent, speed, mode, window, api_key })
}

/// Moves a valve
#[tool(no_std, name = "valve.open", mutating, scopes("valves", "admin"), confirm(caller))]
fn open(
    #[param(length(1..=40), clamp_length(..=8))] valve: &str,
    #[param(clamp(0..=100), default = 0)] percent: u8,
    #[param(range(0.0..), default = 0)] speed: f64,
    #[param(default = "slow")] mode: Mode,
    window: Option<[i64; 2]>,
    #[param(secret)] api_key: Option<&str>,
) -> Result<&'static str, &'static str> {
    obey(&Order { valve, percent, speed, mode, window, api_key })
}

/// Empties a valve
#[tool(no_std, name = "valve.drain", mutating, confirm(approver = "valves"))]
fn drain(
    #[param(length(1..=40))] valve: &str,
    #[param(clamp(0..=100))] percent: u8,
    #[param(secret)] api_key: Option<&str>,
) -> Result<&'static str, &'static str> {
    let order = Order { valve, percent, speed: 0.0, mode: Mode::Slow, window: None, api_key };
    obey(&order)
}

fn obey(order: &Order<'_>) -> Result<&'static str, &'static str> {
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
