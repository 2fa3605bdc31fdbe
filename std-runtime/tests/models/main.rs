//! Models: what two or three threads do with a store, in every order in which their steps can come.
//!
//! Built only under `--cfg callgate_model`, which puts `loom`'s locks and atomics under the crate; `ci/models` runs them. Each
//! rule has a twin that breaks it, and the model has to notice.
#![cfg(test)]
#![cfg(callgate_model)]

mod cancellation;
mod confirmations;
mod explore;
mod faulty_confirmations;
mod faulty_limiter;
mod faulty_slots;
mod gate;
mod limiter;
mod registry;
mod slots;
mod still;
