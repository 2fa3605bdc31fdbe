//! Executors by virtual time: one of the tests' own, which does one thing after another, and those of others with the clock and the
//! timers of the tests.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use callgate_async::runtime::{BoxFuture, Runtime};
use callgate_core::time::Now;

use super::time::Time;

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Work = Box<dyn FnOnce() + Send>;

/// Where work that blocks is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Jobs {
    /// Where it is handed over.
    AtOnce,
    /// When nothing else can be done.
    Later,
    /// On threads of their own.
    Threads,
}

/// When a future is polled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Polls {
    /// After it was woken, and never else.
    WhenWoken,
    /// The same, by the waker of its last poll alone.
    ByTheLastWaker,
    /// Whether or not it was woken.
    Always,
}

/// An executor on one thread, which does what it is given in the order in which it can be done.
#[derive(Clone)]
pub(crate) struct Own(Arc<Inner>);

struct Inner {
    time: Time,
    jobs: Jobs,
    polls: Polls,
    /// Tasks that were woken.
    ready: Mutex<VecDeque<Arc<Task>>>,
    tasks: Mutex<Vec<Arc<Task>>>,
    later: Mutex<VecDeque<Work>>,
    /// Jobs on threads that are not over.
    running: AtomicUsize,
    down: AtomicBool,
    stirred: Mutex<bool>,
    stirs: Condvar,
}

struct Task {
    future: Mutex<Option<BoxFuture<'static, ()>>>,
    queued: AtomicBool,
    home: std::sync::Weak<Inner>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let Some(home) = self.home.upgrade() else { return };
        if !self.queued.swap(true, Ordering::SeqCst) {
            lock(&home.ready).push_back(self);
        }
        home.stir();
    }
}

/// The future that is driven was woken.
struct Woken {
    flag: AtomicBool,
    home: std::sync::Weak<Inner>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.flag.store(true, Ordering::SeqCst);
        if let Some(home) = self.home.upgrade() {
            home.stir();
        }
    }
}

impl Inner {
    fn stir(&self) {
        *lock(&self.stirred) = true;
        self.stirs.notify_all();
    }

    /// Waits until something happened on another thread.
    fn wait(&self) {
        let mut stirred = lock(&self.stirred);
        while !*stirred {
            stirred = self.stirs.wait(stirred).unwrap_or_else(PoisonError::into_inner);
        }
        *stirred = false;
    }
}

/// How far a future was driven.
pub(crate) enum Driven<F: Future> {
    ToItsEnd(F::Output),
    /// It was polled as often as it was to be.
    Stopped(Pin<Box<F>>),
}

impl Own {
    pub(crate) fn new(time: Time, jobs: Jobs, polls: Polls) -> Self {
        Self(Arc::new(Inner {
            time,
            jobs,
            polls,
            ready: Mutex::default(),
            tasks: Mutex::default(),
            later: Mutex::default(),
            running: AtomicUsize::new(0),
            down: AtomicBool::new(false),
            stirred: Mutex::new(false),
            stirs: Condvar::new(),
        }))
    }

    /// Does one thing that can be done. Says whether there was one.
    pub(crate) fn turn(&self) -> bool {
        let woken = lock(&self.0.ready).pop_front();
        if let Some(task) = woken {
            task.queued.store(false, Ordering::SeqCst);
            let future = lock(&task.future).take();
            if let Some(mut future) = future {
                let waker = Waker::from(Arc::clone(&task));
                if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                    *lock(&task.future) = Some(future);
                }
            }
            return true;
        }
        let job = lock(&self.0.later).pop_front();
        job.map(|job| job()).is_some()
    }

    /// Does everything that can be done.
    pub(crate) fn run(&self) {
        loop {
            *lock(&self.0.stirred) = false;
            if self.turn() {
                continue;
            }
            if self.0.running.load(Ordering::SeqCst) == 0 && lock(&self.0.ready).is_empty() {
                return;
            }
            self.0.wait();
        }
    }

    /// Drives `future` to its end.
    pub(crate) fn drive<F: Future>(&self, future: F) -> F::Output {
        match self.drive_for(future, usize::MAX, false) {
            Driven::ToItsEnd(output) => output,
            Driven::Stopped(_) => panic!("it was to be driven to its end"),
        }
    }

    /// Drives `future`, and stops after it was polled `polls` times: at once, or, if `late`, when it was woken once more.
    pub(crate) fn drive_for<F: Future>(&self, future: F, polls: usize, late: bool) -> Driven<F> {
        let fresh = |woken| Arc::new(Woken { flag: AtomicBool::new(woken), home: Arc::downgrade(&self.0) });
        let mut woken = fresh(true);
        let mut future = Box::pin(future);
        let (mut polled, mut idle) = (0_usize, 0_usize);
        loop {
            if polled == polls && !late {
                return Driven::Stopped(future);
            }
            *lock(&self.0.stirred) = false;
            if woken.flag.swap(false, Ordering::SeqCst) || self.0.polls == Polls::Always {
                if polled == polls {
                    return Driven::Stopped(future);
                }
                polled += 1;
                if self.0.polls == Polls::ByTheLastWaker {
                    woken = fresh(false);
                }
                let waker = Waker::from(Arc::clone(&woken));
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                    return Driven::ToItsEnd(output);
                }
            }
            if self.turn() || woken.flag.load(Ordering::SeqCst) {
                idle = 0;
            } else if self.0.running.load(Ordering::SeqCst) > 0 {
                self.0.wait();
            } else {
                idle += 1;
                assert!(self.0.polls == Polls::Always && idle < 100, "it waits, and nobody wakes it");
            }
        }
    }

    /// Goes down: drops what it was given and did not do.
    pub(crate) fn go_down(&self) {
        self.0.down.store(true, Ordering::SeqCst);
        let tasks = std::mem::take(&mut *lock(&self.0.tasks));
        for task in tasks {
            let future = lock(&task.future).take();
            drop(future);
        }
        let jobs = std::mem::take(&mut *lock(&self.0.later));
        drop(jobs);
    }
}

impl Runtime for Own {
    fn now(&self) -> Now {
        self.0.time.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(self.0.time.sleep(duration))
    }

    fn spawn(&self, future: BoxFuture<'static, ()>) {
        if self.0.down.load(Ordering::SeqCst) {
            return drop(future);
        }
        let task = Arc::new(Task {
            future: Mutex::new(Some(future)),
            queued: AtomicBool::new(false),
            home: Arc::downgrade(&self.0),
        });
        lock(&self.0.tasks).push(Arc::clone(&task));
        task.wake();
    }

    fn spawn_blocking(&self, work: Work) {
        if self.0.down.load(Ordering::SeqCst) {
            return drop(work);
        }
        match self.0.jobs {
            Jobs::AtOnce => work(),
            Jobs::Later => lock(&self.0.later).push_back(work),
            Jobs::Threads => {
                self.0.running.fetch_add(1, Ordering::SeqCst);
                let home = Arc::clone(&self.0);
                std::thread::spawn(move || {
                    work();
                    home.running.fetch_sub(1, Ordering::SeqCst);
                    home.stir();
                });
            }
        }
    }
}

/// Another's executor, by the time of the tests; it also knows when all that it was given is done.
pub(crate) struct Timed<R> {
    inner: R,
    time: Time,
    busy: Arc<Busy>,
}

#[derive(Default)]
pub(crate) struct Busy {
    count: Mutex<usize>,
    idle: Condvar,
}

impl Busy {
    /// Waits until all is done.
    pub(crate) fn wait(&self) {
        let mut count = lock(&self.count);
        while *count > 0 {
            count = self.idle.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// One thing to do.
struct Doing(Arc<Busy>);

impl Doing {
    fn begin(busy: &Arc<Busy>) -> Self {
        *lock(&busy.count) += 1;
        Self(Arc::clone(busy))
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        *lock(&self.0.count) -= 1;
        self.0.idle.notify_all();
    }
}

impl<R: Runtime> Timed<R> {
    pub(crate) fn new(inner: R, time: Time) -> (Self, Arc<Busy>) {
        let busy = Arc::new(Busy::default());
        (Self { inner, time, busy: Arc::clone(&busy) }, busy)
    }
}

impl<R: Runtime> Runtime for Timed<R> {
    fn now(&self) -> Now {
        self.time.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(self.time.sleep(duration))
    }

    fn spawn(&self, future: BoxFuture<'static, ()>) {
        let doing = Doing::begin(&self.busy);
        self.inner.spawn(Box::pin(async move {
            pin!(future).await;
            drop(doing);
        }));
    }

    fn spawn_blocking(&self, work: Work) {
        let doing = Doing::begin(&self.busy);
        self.inner.spawn_blocking(Box::new(move || {
            work();
            drop(doing);
        }));
    }
}
