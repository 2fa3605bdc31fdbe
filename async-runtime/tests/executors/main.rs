//! What the gate does on real executors, with real threads and real timers: the same on both.
#![cfg(test)]

mod at_once;
mod calls;
mod loss;
mod world;
