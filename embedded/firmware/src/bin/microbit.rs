//! The device on a board with 16 KiB of RAM: calls come over its one serial line, and the operator has two buttons. A approves what is
//! asked, B denies it, when it is one question alone.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::cell::RefCell;
use core::fmt::Write as _;
use core::panic::PanicInfo;

use callgate_core::confirm::Verdict;
use callgate_core::fixed::AuditRing;
use callgate_firmware::device::{Gate, LINE, error};
use callgate_firmware::line::{Line, Pushed};
use callgate_firmware::microbit::{Board, Button, Buttons, Clock};
use callgate_firmware::panel;
use callgate_firmware::tools::TOOLS;
use cortex_m_rt::entry;
use embedded_io::{Read as _, ReadReady as _};

/// Four questions at once, a budget for each tool and one for refusals, some lines of log.
type Small = Gate<'static, 4, 192, 4, RING>;
const RING: usize = 2_048;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // Nothing of the gate can panic; what the board's own code would is a fault of the machine.
    cortex_m::asm::udf()
}

#[entry]
fn main() -> ! {
    static mut LOG: RefCell<AuditRing<RING>> = RefCell::new(AuditRing::new());
    static mut GATE: Small = Gate::new(&TOOLS);
    let gate: &Small = GATE;
    gate.log_to(LOG);
    let (Some(board), true) = (Board::take(), gate.is_sound()) else { cortex_m::asm::udf() };
    let Board { mut agent, mut buttons, clock, seed } = board;
    gate.seed(&seed);
    // What came before a line was up is lost: whoever speaks waits for this.
    let _ = agent.write_str("ready\n");
    let mut line = Line::<LINE>::new();
    loop {
        operated(gate, &mut buttons, &clock);
        let mut byte = [0];
        if !matches!(agent.read_ready(), Ok(true)) || agent.read(&mut byte).is_err() {
            continue;
        }
        let [byte] = byte;
        let answered = match line.push(byte) {
            Pushed::More => continue,
            Pushed::TooLong => error("the line is too long", &mut agent),
            Pushed::Whole => {
                gate.line(line.bytes(), || clock.now(), |gate| operated(gate, &mut buttons, &clock), &mut agent)
            }
        };
        let _ = answered.and_then(|()| agent.write_str("\n"));
        line.clear();
    }
}

/// A button decides the one question that is asked. With two, nobody can say which of them is meant (invariant D2).
fn operated(gate: &Small, buttons: &mut Buttons, clock: &Clock) {
    let verdict = match buttons.pressed() {
        Some(Button::A) => Verdict::Approve,
        Some(Button::B) => Verdict::Deny,
        None => return,
    };
    panel::decide_only(gate, verdict, clock.now());
}
