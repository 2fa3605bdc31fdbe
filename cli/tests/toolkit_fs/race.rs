//! Somebody who changes the files while a tool looks at them.

use std::sync::atomic::{AtomicBool, Ordering};

/// Does `swap` again and again in a thread of its own for as long as `work` takes. Ends also when `work` fails: a test that fails has
/// to say so and not hang.
pub(crate) fn while_swapping(swap: impl FnMut() + Send, work: impl FnOnce()) {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut swap = swap;
        let stopped = &stopped;
        scope.spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                swap();
            }
        });
        let _stop = Stop(stopped);
        work();
    });
}

/// Tries again until each of the outcomes has come up often enough, or all but for ever.
pub(crate) fn until_each<const N: usize>(enough: u32, mut outcome: impl FnMut(usize) -> usize) -> [u32; N] {
    let mut seen = [0; N];
    for n in 0..20_000 {
        if let Some(count) = seen.get_mut(outcome(n)) {
            *count += 1;
        }
        if seen.iter().all(|count| *count >= enough) {
            break;
        }
    }
    seen
}
