//! Ten tools with different parameters, to see what each further one costs.

use callgate_macros::tool;

use crate::tools::{Device, Reading, TOOLS, VALVE_MOVE};

/// All ten: those of the device, and seven more.
pub static TEN: [Device; 10] = [
    VALVE_MOVE,
    fan_set::TOOL,
    heater_set::TOOL,
    lamp_dim::TOOL,
    pump_run::TOOL,
    door_lock::TOOL,
    display_show::TOOL,
    alarm_arm::TOOL,
    clock_set::TOOL,
    log_note::TOOL,
];

const _: () = assert!(TOOLS.len() == 3);

/// Sets the fan
#[tool(no_std, name = "fan.set", mutating)]
fn fan_set(#[param(range(0..=5))] speed: u8, reverse: Option<bool>) -> Result<Reading, &'static str> {
    if reverse == Some(true) { Err("it turns one way") } else { Ok(Reading::Valve(speed)) }
}

/// Sets the heater
#[tool(no_std, name = "heater.set", mutating, scopes("heat"))]
fn heater_set(#[param(clamp(50..=300))] tenths: i32, minutes: u16) -> Result<Reading, &'static str> {
    if minutes == 0 { Err("no time") } else { Ok(Reading::Temperature(tenths)) }
}

/// Dims the lamp
#[tool(no_std, name = "lamp.dim")]
fn lamp_dim(
    #[param(length(1..=16))] lamp: &str,
    #[param(clamp(0..=100))] percent: u8,
) -> Result<Reading, &'static str> {
    if lamp == "broken" { Err("no lamp") } else { Ok(Reading::Valve(percent)) }
}

/// Runs the pump
#[tool(no_std, name = "pump.run", mutating, confirm(caller))]
fn pump_run(#[param(range(1..=600))] seconds: u32) -> Result<Reading, &'static str> {
    if seconds > 500 { Err("too hot") } else { Ok(Reading::Valve(1)) }
}

/// Locks the door
#[tool(no_std, name = "door.lock", mutating, dangerous)]
fn door_lock(#[param(secret, length(4..=8))] code: &str) -> Result<Reading, &'static str> {
    if code.len() == 4 { Ok(Reading::Valve(0)) } else { Err("wrong code") }
}

/// Shows a text
#[tool(no_std, name = "display.show")]
fn display_show(#[param(length(0..=80))] text: &str, line: Option<u8>) -> Result<Reading, &'static str> {
    Ok(Reading::Valve(line.unwrap_or_default().wrapping_add(text.len() as u8)))
}

/// Arms the alarm
#[tool(no_std, name = "alarm.arm", mutating)]
fn alarm_arm(zones: [bool; 4]) -> Result<Reading, &'static str> {
    Ok(Reading::Valve(zones.iter().filter(|zone| **zone).count() as u8))
}

/// Sets the clock
#[tool(no_std, name = "clock.set", mutating)]
fn clock_set(#[param(range(0..=4_102_444_800))] seconds: u64) -> Result<Reading, &'static str> {
    Ok(Reading::Valve((seconds % 60) as u8))
}

/// Notes something
#[tool(no_std, name = "log.note")]
fn log_note(#[param(length(1..=64))] note: &str, weight: Option<f32>) -> Result<Reading, &'static str> {
    if weight.is_some_and(|weight| weight < 0.0) { Err("too light") } else { Ok(Reading::Valve(note.len() as u8)) }
}
