//! What listens to calls: interceptors, observers and audit sinks, on real calls that end in every way.
#![cfg(test)]

mod driven;
mod fixed;
mod interceptors;
mod log;
mod observers;
mod reaping;
mod rotation;
mod sinks;
mod tampering;
