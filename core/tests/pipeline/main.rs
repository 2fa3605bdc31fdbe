//! The pipeline as a whole, driven both ways by a scripted host: order, records, effects, binding.
#![expect(clippy::expect_used, clippy::panic, reason = "the helpers of tests fail loudly")]

mod confirmation;
mod order;
mod world;
