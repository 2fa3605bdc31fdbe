//! The device: calls come from the agent's line, decisions from the operator's.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::cell::RefCell;
use core::fmt::{self, Write};
use core::panic::PanicInfo;

use callgate_core::fixed::AuditRing;
use callgate_firmware::board::{self, Board, Came};
use callgate_firmware::device::{Gate, LINE, RING, Whole, error};
use callgate_firmware::line::{Line, Pushed};
use callgate_firmware::panel;
use callgate_firmware::tools::TOOLS;
use cortex_m_rt::entry;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // Nothing of the gate can panic; what the board's own code would is a fault of the machine.
    cortex_m::asm::udf()
}

#[entry]
fn main() -> ! {
    static mut LOG: RefCell<AuditRing<RING>> = RefCell::new(AuditRing::new());
    static mut GATE: Whole<'static> = Gate::new(&TOOLS);
    let gate: &Whole<'_> = GATE;
    gate.log_to(LOG);
    let (Some(board), true) = (Board::take(), gate.is_sound()) else { cortex_m::asm::udf() };
    let Board { mut agent, panel: mut operator } = board;
    // What came before a line was up is lost: whoever speaks waits for this.
    let _ = agent.write_str("ready\n").and_then(|()| operator.write_str("ready\n"));
    let (mut call, mut command) = (Line::<LINE>::new(), Line::<LINE>::new());
    loop {
        match board::came() {
            None => board::sleep(),
            Some(Came::Panel(byte)) => {
                // A line that can't be written is one that nobody reads.
                let _ = operated(gate, &mut command, byte, &mut operator);
            }
            Some(Came::Agent(byte)) => {
                let answered = match call.push(byte) {
                    Pushed::More => continue,
                    Pushed::TooLong => error("the line is too long", &mut agent),
                    Pushed::Whole => gate.line(
                        call.bytes(),
                        board::now,
                        |gate| {
                            // The operator is served while the valve turns; the agent's next line waits.
                            while let Some(byte) = board::operator() {
                                let _ = operated(gate, &mut command, byte, &mut operator);
                            }
                            board::sleep();
                        },
                        &mut agent,
                    ),
                };
                let _ = answered.and_then(|()| agent.write_str("\n"));
                call.clear();
            }
        }
    }
}

fn operated(gate: &Whole<'_>, command: &mut Line<LINE>, byte: u8, out: &mut dyn Write) -> fmt::Result {
    let answered = match command.push(byte) {
        Pushed::More => return Ok(()),
        Pushed::TooLong => error("the line is too long", out).and_then(|()| out.write_str("\n")),
        Pushed::Whole => panel::line(gate, command.bytes(), board::now(), out),
    };
    command.clear();
    answered
}
