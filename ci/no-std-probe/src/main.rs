//! A program with neither `std` nor an allocator that takes calls through the whole gate: the proof that core needs neither, and,
//! by the symbols of the linked file, that nothing in it can allocate or panic (invariant N4).
//!
//! It links because its whole dependency graph is `no_std` (a second panic handler would clash with this one) and nothing in it
//! allocates (nobody provides a global allocator). It exits with 0, or with the number of the first check that failed, whose
//! name it writes to the standard error stream.
#![no_std]
#![no_main]

mod buffer;
mod checks;
mod host;
mod surface;
mod valve;

use checks::Check;

// Where memcpy and its kin come from, and the start-up code that calls `main`.
#[link(name = "c")]
unsafe extern "C" {
    fn abort() -> !;
    fn write(file: i32, text: *const u8, len: usize) -> isize;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: takes nothing and does not return.
    unsafe { abort() }
}

/// The entry point that the C library's start-up code calls.
// SAFETY: the name is the one that the platform expects, with a signature that it accepts, and nothing else has it.
#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    match checks::all().and_then(|()| surface::all()) {
        Ok(()) => 0,
        Err(check) => {
            say(check.name());
            say("\n");
            check as i32
        }
    }
}

fn say(text: &str) {
    const STDERR: i32 = 2;
    // SAFETY: the pointer and the length are those of one text.
    unsafe { write(STDERR, text.as_ptr(), text.len()) };
}

/// What the optimizer must not know: everything that a caller sends. Otherwise it would prove checks to be idle for these very
/// calls, and leave out what other calls could reach.
fn unknown<T>(value: T) -> T {
    core::hint::black_box(value)
}

pub(crate) type Checked = Result<(), Check>;
