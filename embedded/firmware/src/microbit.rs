//! The board: a BBC micro:bit (nRF51822, Cortex-M0), which QEMU emulates (`-M microbit`). One serial line, which is the agent's, and two
//! buttons, which are the operator's. The serial port keeps what comes until it is read, so nothing here needs an interrupt.

use core::cell::Cell;

use callgate_core::time::{Instant, Now, Timestamp};
use embedded_hal::digital::InputPin as _;
use nrf51_hal::gpio::{Floating, Input, Level, Pin, PullUp, p0};
use nrf51_hal::pac::{Peripherals, TIMER0, UART0};
use nrf51_hal::timer::Periodic;
use nrf51_hal::uart::{Baudrate, Parity, Pins};
use nrf51_hal::{Rng, Timer, Uart};

/// What a program may use of the board.
pub struct Board {
    /// From and to the agent.
    pub agent: Uart<UART0>,
    /// The operator's.
    pub buttons: Buttons,
    /// Time since the start.
    pub clock: Clock,
    /// What the chip's generator gave at the start.
    pub seed: [u8; 32],
}

impl Board {
    /// Starts the board; nothing, when it was started before.
    #[must_use]
    pub fn take() -> Option<Self> {
        let chip = Peripherals::take()?;
        let gpio = p0::Parts::new(chip.GPIO);
        let rxd: Pin<Input<Floating>> = gpio.p0_25.into_floating_input().degrade();
        let txd = gpio.p0_24.into_push_pull_output(Level::High).degrade();
        let pins = Pins { rxd, txd, cts: None, rts: None };
        let agent = Uart::new(chip.UART0, pins, Parity::EXCLUDED, Baudrate::BAUD115200);
        // Twice: it is ready to send when a byte has gone out, and the first one came before it was switched on. The chip does not mind,
        // the emulator does.
        let (port, pins) = agent.free();
        let agent = Uart::new(port, pins, Parity::EXCLUDED, Baudrate::BAUD115200);
        let buttons = Buttons {
            pins: [gpio.p0_17.into_pullup_input().degrade(), gpio.p0_26.into_pullup_input().degrade()],
            down: [false; 2],
        };
        let mut timer = Timer::periodic(chip.TIMER0);
        timer.start(u32::MAX);
        let mut seed = [0; 32];
        Rng::new(chip.RNG).random(&mut seed);
        Some(Self { agent, buttons, clock: Clock { timer, last: Cell::new(0), turns: Cell::new(0) }, seed })
    }
}

/// A button.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Button {
    /// The left one.
    A,
    /// The right one.
    B,
}

/// Both buttons.
pub struct Buttons {
    pins: [Pin<Input<PullUp>>; 2],
    down: [bool; 2],
}

impl Buttons {
    /// The button that went down since it was asked last. One that is held counts once.
    pub fn pressed(&mut self) -> Option<Button> {
        let mut pressed = None;
        for ((pin, down), button) in self.pins.iter_mut().zip(&mut self.down).zip([Button::A, Button::B]) {
            let low = pin.is_low().unwrap_or_default();
            if low && !*down {
                pressed = Some(button);
            }
            *down = low;
        }
        pressed
    }
}

/// Microseconds, from a timer of 32 bits that is read at least once in each of its turns: they take 71 minutes.
pub struct Clock {
    timer: Timer<TIMER0, Periodic>,
    last: Cell<u32>,
    turns: Cell<u32>,
}

impl Clock {
    /// Since the start: this board has no time of day.
    #[must_use]
    pub fn now(&self) -> Now {
        let micros = self.timer.read();
        if micros < self.last.replace(micros) {
            self.turns.set(self.turns.get().saturating_add(1));
        }
        let micros = u64::from(self.turns.get()) << 32 | u64::from(micros);
        Now {
            monotonic: Instant::from_nanos(micros.saturating_mul(1_000)),
            wall: Timestamp::from_unix_millis(micros / 1_000),
        }
    }
}
