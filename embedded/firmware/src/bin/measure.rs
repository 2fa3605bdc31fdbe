//! What a gate costs: nothing (`measure-0`), or one in front of 1, 3 or 10 tools, which takes calls to each kind of end and says how long each
//! took. `embedded/measure` builds all four and reads what they say, and what is left of the paint in their stacks.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::fmt::Write as _;
use core::panic::PanicInfo;

use callgate_firmware::board::Board;
use cortex_m_rt::entry;

#[cfg_attr(feature = "measure-0", expect(dead_code, reason = "an empty program has the same bench"))]
mod gate {
    use core::fmt::{self, Write};

    use callgate_core::fixed::{AuditRing, Buffer};
    use callgate_core::request::Envelope;
    use callgate_core::step::Step;
    use callgate_core::time::Now;
    use callgate_firmware::device::Gate;
    use callgate_firmware::panel;
    use callgate_firmware::ten::TEN;
    use callgate_firmware::tools::{Device, TOOLS};
    use cortex_m::peripheral::SYST;

    const COUNT: usize = if cfg!(feature = "measure-10") {
        10
    } else if cfg!(feature = "measure-3") {
        3
    } else {
        1
    };
    /// Two questions at once, a budget for each tool and one for refusals, some lines of log.
    pub(crate) type Small<'r> = Gate<'r, 2, 128, { COUNT + 1 }, RING>;
    pub(crate) const RING: usize = 1_536;

    pub(crate) const fn tools() -> &'static [Device] {
        match COUNT {
            10 => &TEN,
            3 => &TOOLS,
            _ => &ONE,
        }
    }

    static ONE: [Device; 1] = [callgate_firmware::tools::VALVE_MOVE];

    /// What measuring needs and a gate does not: no part of what is measured.
    pub(crate) struct Bench {
        line: Buffer<160>,
        out: Out,
        token: Buffer<32>,
    }

    impl Bench {
        pub(crate) const fn new() -> Self {
            Self { line: Buffer::new(), out: Out { bytes: 0, last: Buffer::new() }, token: Buffer::new() }
        }
    }

    /// The answers go nowhere, but for a token.
    struct Out {
        bytes: u32,
        last: Buffer<400>,
    }

    impl fmt::Write for Out {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.bytes += text.len() as u32;
            let _ = self.last.write_str(text);
            Ok(())
        }
    }

    fn told<'o>(out: &'o Out, name: &str) -> &'o str {
        let text = out.last.as_str();
        let mut at = 0;
        while let Some(rest) = text.get(at..) {
            if let Some(value) = rest.strip_prefix(name) {
                let end = value.bytes().position(|byte| byte == b'"').unwrap_or_default();
                return value.get(..end).unwrap_or_default();
            }
            at += 1;
        }
        ""
    }

    /// Takes calls to each kind of end, and says how many ticks of the timer each took.
    pub(crate) fn run(gate: &Small<'_>, bench: &mut Bench, say: &mut dyn Write) -> fmt::Result {
        let Bench { line, out, token } = bench;
        gate.seed(b"0123456789abcdef0123456789abcdef");
        let calls = [
            ("ask", r#"{"percent":40}"#, ""),
            ("approve", "", ""),
            ("redeem", "{}", "token"),
            ("plan", r#"{"percent":40}"#, "plan"),
            ("clamp", r#"{"percent":250,"reason":"spring"}"#, "plan"),
            ("refuse", r#"{"percent":"x"}"#, ""),
            ("malformed", r#"{"percent":1e400}"#, ""),
            ("used", "{}", "token"),
        ];
        for (name, arguments, how) in calls {
            line.clear();
            match how {
                "token" => write!(
                    line,
                    r#"{{"id":"{name}","tool":"valve.move","arguments":{arguments},"token":"{}"}}"#,
                    token.as_str()
                )?,
                "plan" => write!(line, r#"{{"id":"{name}","tool":"valve.move","arguments":{arguments},"plan":true}}"#)?,
                _ => write!(line, r#"{{"id":"{name}","tool":"valve.move","arguments":{arguments}}}"#)?,
            }
            out.last.clear();
            out.bytes = 0;
            let began = SYST::get_current();
            if name == "approve" {
                panel::line(gate, br#"{"pending":{}}"#, Now::ZERO, out)?;
                line.clear();
                write!(line, r#"{{"approve":"{}"}}"#, told(out, r#""ticket":""#))?;
                panel::line(gate, line.as_str().as_bytes(), Now::ZERO, out)?;
            } else {
                gate.line(line.as_str().as_bytes(), || Now::ZERO, |_| (), out)?;
            }
            let ended = SYST::get_current();
            if name == "ask" {
                token.clear();
                token.write_str(told(out, r#""confirm_token":""#))?;
            }
            writeln!(say, "call {name} {} {}", began.wrapping_sub(ended) & 0x00ff_ffff, out.bytes)?;
        }
        writeln!(say, "state {} {}", size_of::<Envelope<'_>>(), size_of::<Step<&mut Envelope<'_>, &Device>>())?;
        writeln!(say, "gate {}", size_of::<Small<'_>>() + size_of::<AuditRing<RING>>())
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    cortex_m::asm::udf()
}

#[entry]
fn main() -> ! {
    static mut BENCH: gate::Bench = gate::Bench::new();
    #[cfg(not(feature = "measure-0"))]
    static mut LOG: core::cell::RefCell<callgate_core::fixed::AuditRing<{ gate::RING }>> =
        core::cell::RefCell::new(callgate_core::fixed::AuditRing::new());
    #[cfg(not(feature = "measure-0"))]
    static mut GATE: gate::Small<'static> = callgate_firmware::device::Gate::new(gate::tools());
    core::hint::black_box(&mut *BENCH);
    #[cfg(not(feature = "measure-0"))]
    GATE.log_to(LOG);
    let Some(Board { mut agent, .. }) = Board::take() else { cortex_m::asm::udf() };
    let _ = agent.write_str("ready\n");
    // From here on the timer counts and does not interrupt.
    callgate_firmware::board::count_alone();
    let began = cortex_m::peripheral::SYST::get_current();
    cortex_m::asm::delay(100_000);
    let ended = cortex_m::peripheral::SYST::get_current();
    let written = writeln!(agent, "delay {}", began.wrapping_sub(ended) & 0x00ff_ffff);
    #[cfg(not(feature = "measure-0"))]
    let written = written.and_then(|()| gate::run(GATE, BENCH, &mut agent));
    let _ = written.and_then(|()| agent.write_str("done\n"));
    loop {
        cortex_m::asm::nop();
    }
}
