//! The gate as a WebAssembly module: plain functions over numbers, no imports, no allocator, a memory that can't grow.
//!
//! It speaks the protocol of the conformance suite, so that the whole suite can be run at it; an embedder of its own puts its
//! own host in the place of [`Subject`]. A line goes in by [`begin`] and [`put`], eight bytes at once, is answered by [`answer`], and the
//! answer is read by [`get`]. No pointer crosses the border, so a host can't make the module write where it should not.
#![no_std]
// Names that JavaScript can say need an attribute that counts as unsafe. There is no unsafe code.
#![deny(unsafe_code)]

use callgate_core::fixed::Buffer;
use callgate_subject::{LINE, Subject};
use spin::Mutex;

/// The longest answer.
const ANSWER: usize = 12_288;

struct State {
    subject: Subject,
    line: [u8; LINE],
    len: usize,
    over: bool,
    answer: Buffer<ANSWER>,
}

/// There is one thread, so nobody ever waits.
static STATE: Mutex<State> =
    Mutex::new(State { subject: Subject::new(), line: [0; LINE], len: 0, over: false, answer: Buffer::new() });

/// Begins a line.
#[expect(unsafe_code, reason = "a name that JavaScript can say; nothing else has it")]
#[unsafe(no_mangle)]
pub extern "C" fn begin() {
    let mut state = STATE.lock();
    (state.len, state.over) = (0, false);
}

/// Adds the first `count` bytes of `word`, the lowest first, to the line; at most 8.
#[expect(unsafe_code, reason = "a name that JavaScript can say; nothing else has it")]
#[unsafe(no_mangle)]
pub extern "C" fn put(word: u64, count: u32) {
    let mut guard = STATE.lock();
    let state = &mut *guard;
    for byte in word.to_le_bytes().into_iter().take(count as usize) {
        match state.line.get_mut(state.len) {
            Some(place) => {
                *place = byte;
                state.len = state.len.saturating_add(1);
            }
            None => state.over = true,
        }
    }
}

/// Answers the line and gives the length of the answer: -1 for a goodbye, -2 for a line that is too long, -3 for an answer that is.
#[expect(unsafe_code, reason = "a name that JavaScript can say; nothing else has it")]
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> i32 {
    let mut guard = STATE.lock();
    let state = &mut *guard;
    state.answer.clear();
    if state.over {
        return -2;
    }
    let line = state.line.get(..state.len).unwrap_or_default();
    match state.subject.answer(line, &mut state.answer) {
        Ok(true) => i32::try_from(state.answer.len()).unwrap_or(-3),
        Ok(false) => -1,
        Err(core::fmt::Error) => -3,
    }
}

/// Eight bytes of the answer from `at` on, the first one lowest; zeros behind its end.
#[expect(unsafe_code, reason = "a name that JavaScript can say; nothing else has it")]
#[unsafe(no_mangle)]
pub extern "C" fn get(at: u32) -> u64 {
    let state = STATE.lock();
    let mut word = [0; 8];
    let from = state.answer.as_bytes().get(at as usize..).unwrap_or_default();
    word.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(word)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
