//! The core of the device as a subject of the conformance suite: lines of the protocol come over the agent's line, and so do the answers.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::fmt::Write as _;
use core::panic::PanicInfo;

use callgate_firmware::board::{self, Board, Came};
use callgate_firmware::line::{Line, Pushed};
use callgate_subject::{LINE, Subject};
use cortex_m_rt::entry;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    cortex_m::asm::udf()
}

#[entry]
fn main() -> ! {
    static mut SUBJECT: Subject = Subject::new();
    static mut TOLD: Line<LINE> = Line::new();
    let Some(Board { mut agent, .. }) = Board::take() else { cortex_m::asm::udf() };
    // What came before the line was up is lost: whoever speaks waits for this.
    let _ = agent.write_str("ready\n");
    loop {
        let Some(Came::Agent(byte)) = board::came() else {
            board::sleep();
            continue;
        };
        let answered = match TOLD.push(byte) {
            Pushed::More => continue,
            Pushed::TooLong => agent.write_str(r#"{"unsupported":"the line is too long"}"#).map(|()| true),
            Pushed::Whole => SUBJECT.answer(TOLD.bytes(), &mut agent),
        };
        // A device does not end; a goodbye is the end of a world.
        let _ = answered.and_then(|more| if more { agent.write_str("\n") } else { Ok(()) });
        TOLD.clear();
    }
}
