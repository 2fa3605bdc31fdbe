//! The same calls on every front-end: the same questions in the same order, the same outcomes, the same records (invariant N1); and
//! what becomes of calls that are dropped and of parts that fail (invariants X4, J1, F1).
#![cfg(test)]

mod agreement;
mod desk;
mod drops;
mod faults;
mod sequence;
mod world;
