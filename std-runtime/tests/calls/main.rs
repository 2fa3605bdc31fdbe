//! What listens to calls: interceptors, observers and audit sinks, on real calls that end in every way.
#![cfg(test)]

mod driven;
mod fixed;
mod interceptors;
#[cfg(unix)]
mod killed;
mod log;
mod observers;
mod reaping;
mod rotation;
mod sinks;
#[cfg(unix)]
mod steps;
mod tampering;
