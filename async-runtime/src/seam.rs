//! How a gate reaches what it asks: by waiting, at once, or on a thread where it may block.

use std::fmt;
use std::sync::Arc;

/// Something that waits without a thread: an implementation of this crate's traits.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a plain wrapper that says how something is run")]
pub struct Waiting<T>(pub T);

/// Something that blocks its thread, so that it is run off the executor: an implementation of the blocking traits of
/// `callgate-std` that reads files, talks to a database or computes for long.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a plain wrapper that says how something is run")]
pub struct Blocking<T>(pub T);

/// Something that answers at once, so that it is asked where the call is: an implementation of the blocking traits of
/// `callgate-std` that only looks at memory.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a plain wrapper that says how something is run")]
pub struct Immediate<T>(pub T);

/// One of the three. `A` is the trait of this crate, `B` the blocking one.
#[expect(clippy::exhaustive_enums, reason = "the gate has to do with all of them")]
pub enum Seam<A: ?Sized, B: ?Sized> {
    /// It waits.
    Waiting(Arc<A>),
    /// It answers at once.
    Immediate(Arc<B>),
    /// It blocks.
    Blocking(Arc<B>),
}

impl<A: ?Sized, B: ?Sized> Seam<A, B> {
    /// Whether it is asked where the call is, without waiting.
    pub(crate) const fn is_immediate(&self) -> bool {
        matches!(self, Self::Immediate(_))
    }
}

impl<A: ?Sized, B: ?Sized> Clone for Seam<A, B> {
    fn clone(&self) -> Self {
        match self {
            Self::Waiting(waiting) => Self::Waiting(Arc::clone(waiting)),
            Self::Immediate(blocking) => Self::Immediate(Arc::clone(blocking)),
            Self::Blocking(blocking) => Self::Blocking(Arc::clone(blocking)),
        }
    }
}

impl<A: ?Sized, B: ?Sized> fmt::Debug for Seam<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waiting(_) => "Waiting",
            Self::Immediate(_) => "Immediate",
            Self::Blocking(_) => "Blocking",
        })
    }
}

/// Makes a seam of each wrapper.
macro_rules! seams {
    ($seam:ty, $waiting:path, $blocking:path) => {
        impl<T: $waiting + 'static> From<$crate::seam::Waiting<T>> for $seam {
            fn from(wrapped: $crate::seam::Waiting<T>) -> Self {
                Self::Waiting(::std::sync::Arc::new(wrapped.0))
            }
        }

        impl<T: $blocking + Send + Sync + 'static> From<$crate::seam::Immediate<T>> for $seam {
            fn from(wrapped: $crate::seam::Immediate<T>) -> Self {
                Self::Immediate(::std::sync::Arc::new(wrapped.0))
            }
        }

        impl<T: $blocking + Send + Sync + 'static> From<$crate::seam::Blocking<T>> for $seam {
            fn from(wrapped: $crate::seam::Blocking<T>) -> Self {
                Self::Blocking(::std::sync::Arc::new(wrapped.0))
            }
        }
    };
}
pub(crate) use seams;
