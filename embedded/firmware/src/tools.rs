//! What the device can do: read a sensor, move a valve, say how it is.

use core::fmt;
use core::sync::atomic::{AtomicU8, Ordering};

use callgate_core::json::Object;
use callgate_core::tool::ToolOutput;
use callgate_core::typed::{BareTool, Failed};
use callgate_macros::tool;

/// The tools of this device are of one type, so that a table can hold them.
pub type Device = BareTool<Reading, &'static str>;
/// Why one failed.
pub type Failure = Failed<&'static str>;

/// All of them.
pub static TOOLS: [Device; 3] = [sensor_read::TOOL, valve_move::TOOL, device_status::TOOL];

/// The valve alone.
pub const VALVE_MOVE: Device = valve_move::TOOL;

/// Where the valve is, and where it is to be, in percent.
static OPEN: AtomicU8 = AtomicU8::new(0);
static WANTED: AtomicU8 = AtomicU8::new(0);

/// What a tool gives back.
#[derive(Clone, Copy, Debug)]
pub enum Reading {
    /// A temperature, in tenths of a degree.
    Temperature(i32),
    /// The valve, in percent.
    Valve(u8),
    /// Everything.
    Status {
        /// The valve, in percent.
        open: u8,
        /// A temperature, in tenths of a degree.
        temperature: i32,
    },
}

impl ToolOutput for Reading {
    fn write_data(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        let mut object = Object::begin(out)?;
        match self {
            Self::Temperature(tenths) => object.integer("tenths_of_a_degree", i64::from(*tenths))?,
            Self::Valve(open) => object.number("open_percent", u64::from(*open))?,
            Self::Status { open, temperature } => {
                object.number("open_percent", u64::from(*open))?;
                object.integer("tenths_of_a_degree", i64::from(*temperature))?;
            }
        }
        object.end()
    }
}

/// Reads the temperature behind the valve
#[tool(no_std, name = "sensor.read")]
fn sensor_read(#[param(range(1..=2), default = 1)] sensor: u8) -> Result<Reading, &'static str> {
    if sensor == 1 {
        Ok(Reading::Temperature(temperature()))
    } else {
        Err("sensor 2 does not answer, key=4711-4711-4711")
    }
}

/// Moves the valve
#[tool(no_std, name = "valve.move", mutating, scopes("valves"), confirm(approver = "approve"), timeout = "2s")]
fn valve_move(
    #[param(clamp(0..=90))] percent: u8,
    #[param(length(1..=32))] reason: Option<&str>,
    #[param(secret, length(1..=32))] pin: Option<&str>,
) -> Result<Reading, &'static str> {
    if reason == Some("stuck") || pin == Some("") {
        return Err("the valve is stuck");
    }
    WANTED.store(percent, Ordering::Relaxed);
    Ok(Reading::Valve(percent))
}

/// Says how the device is
#[tool(no_std, name = "device.status")]
fn device_status() -> Result<Reading, &'static str> {
    Ok(Reading::Status { open: OPEN.load(Ordering::Relaxed), temperature: temperature() })
}

/// Colder the further the valve is open: there is no water here.
fn temperature() -> i32 {
    235 - i32::from(OPEN.load(Ordering::Relaxed))
}

/// One step of the motor: a percent. False when the valve is where it is to be.
pub fn turn() -> bool {
    let (open, wanted) = (OPEN.load(Ordering::Relaxed), WANTED.load(Ordering::Relaxed));
    let next = match open.cmp(&wanted) {
        core::cmp::Ordering::Less => open.saturating_add(1),
        core::cmp::Ordering::Greater => open.saturating_sub(1),
        core::cmp::Ordering::Equal => return false,
    };
    OPEN.store(next, Ordering::Relaxed);
    true
}
