//! The board: an STM32F405, as on a Netduino Plus 2, which QEMU emulates (`-M netduinoplus2`). Two serial lines and a clock of
//! milliseconds. An interrupt comes 20,000 times a second and takes what came over the lines, at 115,200 baud before the next byte can be there: the
//! timer's interrupt is the one that can be switched on without `unsafe`.

use core::cell::{Cell, RefCell};

use callgate_core::time::{Instant, Now, Timestamp};
use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m_rt::exception;
use critical_section::{CriticalSection, Mutex};
use heapless::Deque;
use stm32f4xx_hal::pac::{self, USART1, USART2};
use stm32f4xx_hal::prelude::*;
use stm32f4xx_hal::rcc::Config as Clocks;
use stm32f4xx_hal::serial::config::Config;
use stm32f4xx_hal::serial::{Rx, Serial, Tx};

/// How many bytes wait at most until the program takes them. Whoever sends a line waits for its answer, so a line has to fit.
pub const QUEUE: usize = 1_024;

/// What comes over a line: the bytes that the interrupt took.
struct Queue<U: stm32f4xx_hal::serial::Instance> {
    rx: Mutex<RefCell<Option<Rx<U>>>>,
    bytes: Mutex<RefCell<Deque<u8, QUEUE>>>,
}

impl<U: stm32f4xx_hal::serial::Instance> Queue<U> {
    const fn new() -> Self {
        Self { rx: Mutex::new(RefCell::new(None)), bytes: Mutex::new(RefCell::new(Deque::new())) }
    }

    fn listen_to(&self, token: CriticalSection<'_>, rx: Rx<U>) {
        // Within the section nothing else can hold it.
        if let Ok(mut place) = self.rx.borrow(token).try_borrow_mut() {
            *place = Some(rx);
        }
    }

    fn pop(&self) -> Option<u8> {
        critical_section::with(|token| self.bytes.borrow(token).try_borrow_mut().ok()?.pop_front())
    }
}

impl<U: stm32f4xx_hal::serial::Instance> Queue<U>
where
    Rx<U>: embedded_hal_nb::serial::Read,
{
    fn take(&self) {
        critical_section::with(|token| {
            let borrowed = (self.rx.borrow(token).try_borrow_mut(), self.bytes.borrow(token).try_borrow_mut());
            let (Ok(mut rx), Ok(mut bytes)) = borrowed else { return };
            // What there is no room for stays where it is: whoever sends has to wait then, as for an answer.
            while !bytes.is_full()
                && let Some(Ok(byte)) = rx.as_mut().map(embedded_hal_nb::serial::Read::read)
            {
                let _ = bytes.push_back(byte);
            }
        });
    }
}

static AGENT: Queue<USART1> = Queue::new();
static PANEL: Queue<USART2> = Queue::new();
/// Ticks since the start.
static TICKS: Mutex<Cell<u64>> = Mutex::new(Cell::new(0));
/// The timer, when it is started.
static TIMER: Mutex<RefCell<Option<SYST>>> = Mutex::new(RefCell::new(None));
/// Ticks a second: more than bytes can come over a line.
const RATE: u32 = 20_000;
/// What the core of the emulated board runs at from its start. The real chip starts at 16 MHz; there, set its clocks to the same with
/// `Clocks::hse(..).sysclk(168.MHz())`, which the emulator does not have.
const CORE_HZ: u32 = 168_000_000;

#[exception]
fn SysTick() {
    AGENT.take();
    PANEL.take();
    critical_section::with(|token| {
        let ticks = TICKS.borrow(token);
        ticks.set(ticks.get().wrapping_add(1));
    });
}

/// What a program may use of the board.
pub struct Board {
    /// To the agent.
    pub agent: Tx<USART1>,
    /// To the operator.
    pub panel: Tx<USART2>,
}

/// A byte that came, and over which line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Came {
    /// From the agent.
    Agent(u8),
    /// From the operator.
    Panel(u8),
}

impl Board {
    /// Starts the board; nothing, when it was started before or its lines can't be set up.
    pub fn take() -> Option<Self> {
        let device = pac::Peripherals::take()?;
        let mut core = cortex_m::Peripherals::take()?;
        let mut rcc = device.RCC.freeze(Clocks::hsi());
        let pins = device.GPIOA.split(&mut rcc);
        let config = Config::default().baudrate(115_200.bps());
        let agent: Serial<USART1> = Serial::new(device.USART1, (pins.pa9, pins.pa10), config, &mut rcc).ok()?;
        let panel: Serial<USART2> = Serial::new(device.USART2, (pins.pa2, pins.pa3), config, &mut rcc).ok()?;
        let ((agent, agent_rx), (panel, panel_rx)) = (agent.split(), panel.split());
        critical_section::with(|token| {
            AGENT.listen_to(token, agent_rx);
            PANEL.listen_to(token, panel_rx);
        });
        core.SYST.set_clock_source(SystClkSource::Core);
        core.SYST.set_reload(CORE_HZ / RATE - 1);
        core.SYST.clear_current();
        core.SYST.enable_counter();
        core.SYST.enable_interrupt();
        critical_section::with(|token| {
            if let Ok(mut timer) = TIMER.borrow(token).try_borrow_mut() {
                *timer = Some(core.SYST);
            }
        });
        Some(Self { agent, panel })
    }
}

/// The next byte that came, or nothing.
#[must_use]
pub fn came() -> Option<Came> {
    operator().map(Came::Panel).or_else(|| AGENT.pop().map(Came::Agent))
}

/// The next byte that came from the operator, or nothing.
#[must_use]
pub fn operator() -> Option<u8> {
    PANEL.pop()
}

/// Lets the timer count without interrupts, from its greatest number down: for measurements. Time stands still then.
pub fn count_alone() {
    critical_section::with(|token| {
        if let Ok(mut timer) = TIMER.borrow(token).try_borrow_mut()
            && let Some(timer) = timer.as_mut()
        {
            timer.disable_interrupt();
            timer.set_reload(0x00ff_ffff);
            timer.clear_current();
        }
    });
}

/// Sleeps until an interrupt.
pub fn sleep() {
    cortex_m::asm::wfi();
}

/// The present moment. The device knows no time of day: its records count from its start.
#[must_use]
pub fn now() -> Now {
    let ticks = critical_section::with(|token| TICKS.borrow(token).get());
    Now {
        monotonic: Instant::from_nanos(ticks.saturating_mul(1_000_000_000 / u64::from(RATE))),
        wall: Timestamp::from_unix_millis(ticks / u64::from(RATE / 1_000)),
    }
}
