//! The pipeline as a whole, driven both ways by a scripted host: order, records, effects, binding.
#![expect(clippy::expect_used, clippy::panic, reason = "the helpers of tests fail loudly")]
#![expect(
    clippy::result_large_err,
    clippy::type_complexity,
    clippy::needless_pass_by_value,
    reason = "a test's host favours plain code"
)]

mod confirmation;
mod inspection;
mod operations;
mod order;
mod outcomes;
mod world;
