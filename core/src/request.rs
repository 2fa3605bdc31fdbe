//! What a call carries through the gate: who asks, what for, and the room that the gate needs for it.

use core::marker::PhantomData;

use crate::args::Edits;
use crate::call::Facts;
use crate::context::CallContext;
use crate::digest::{Digest, DigestKey};
use crate::json::KeySlot;
use crate::redact::Redaction;

/// What the caller sent.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The name of the tool, byte for byte.
    pub tool: &'a str,
    /// The arguments as JSON text; empty text stands for `{}`.
    pub arguments: &'a [u8],
    /// The confirmation token, which travels beside the arguments and is never read from them (invariant A3).
    pub token: Option<&'a str>,
}

/// Tells the sizes only: what a caller sent may hold secrets (invariant L1).
impl core::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Request")
            .field("tool", &self.tool)
            .field("arguments", &format_args!("{} bytes", self.arguments.len()))
            .field("token", &self.token.map(|_| ".."))
            .finish()
    }
}

/// What the gate is set to, the same for every call of a gate.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// The key of all argument digests (invariant L3).
    pub digest_key: &'a DigestKey,
    /// What counts as a secret.
    pub redaction: Redaction<'a>,
    /// Whether every call's arguments are digested, or only those of mutating and confirmed calls.
    pub digest_all: bool,
    /// How many calls may stand above a call (invariant G8).
    pub max_depth: u8,
    /// The digest of policy and configuration in force, for the records (invariant J7).
    pub policy: Option<Digest>,
}

/// How many calls may stand above a call where a host sets no other bound.
pub const DEFAULT_MAX_DEPTH: u8 = 8;

impl<'a> Settings<'a> {
    /// The built-in redaction, digests of every call, nesting up to 8.
    #[must_use]
    pub const fn new(digest_key: &'a DigestKey) -> Self {
        Self { digest_key, redaction: Redaction::DEFAULT, digest_all: true, max_depth: DEFAULT_MAX_DEPTH, policy: None }
    }
}

impl core::fmt::Debug for Settings<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Settings")
            .field("digest_all", &self.digest_all)
            .field("max_depth", &self.max_depth)
            .finish_non_exhaustive()
    }
}

/// The mutable parts of a [`Context`], borrowed together.
#[derive(Debug)]
pub struct Parts<'a> {
    /// What the caller sent, or the adopted snapshot.
    pub request: Request<'a>,
    /// Its arguments, when they are UTF-8: as [`Context::text`].
    pub text: Option<&'a str>,
    /// Where clamps are written.
    pub edits: &'a mut Edits,
    /// Scratch for object keys; [`crate::json::key_capacity`] tells how much a text needs.
    pub keys: &'a mut [KeySlot],
    /// What the gate is set to.
    pub settings: Settings<'a>,
}

/// Shows who asks to `look`, without a copy where the host needs none.
#[inline]
pub(crate) fn with_caller<'c, C: Context, R>(ctx: &'c C, look: impl FnOnce(&CallContext<'c>) -> R) -> R {
    match ctx.caller_in_place() {
        Some(caller) => look(caller),
        None => look(&ctx.caller()),
    }
}

/// Who asks, copied from where the host keeps it.
#[cfg_attr(not(callgate_small), inline(always))]
pub(crate) fn copied_caller<C: Context>(ctx: &C) -> CallContext<'_> {
    match ctx.caller_in_place() {
        Some(caller) => *caller,
        None => ctx.caller(),
    }
}

/// What a call carries. Hosts implement it once, over borrowed or owned memory; [`Envelope`] is the borrowed one.
///
/// All methods must keep giving the same answers for as long as the call lives, except that [`Context::adopt`] replaces
/// the arguments. The gate calls `adopt` at most once, before it reads any argument.
pub trait Context {
    /// How the host keeps short texts (a rule's description, a veto's reason): `&'static str`, `Arc<str>`, ...
    type Text: AsRef<str>;
    /// How the host's confirmation store hands out the arguments of a pending call.
    type Snapshot;

    /// Who asks.
    fn caller(&self) -> CallContext<'_>;
    /// The same, where it stands: for hosts that keep it so. It is looked at in each stage, and is no small thing to copy.
    fn caller_in_place(&self) -> Option<&CallContext<'_>> {
        None
    }
    /// What they ask.
    fn request(&self) -> Request<'_>;
    /// The id under which the caller wants the call to be made at most once, which travels beside the arguments and is never read from
    /// them; see [`crate::journal`]. None where a host does not say.
    fn operation(&self) -> Option<&str> {
        None
    }
    /// The standing grant that covers the call, as [`Context::covered_by`] told it. None where a host keeps none: then the record says only
    /// that there was one.
    fn grant(&self) -> Option<&Digest> {
        None
    }
    /// The call is covered by this standing grant. Told at most once, by a host whose store knows grants; it is the host that keeps it,
    /// because most calls need no room for it.
    fn covered_by(&mut self, grant: Digest) {
        let _ = grant;
    }
    /// The arguments' text, when it is UTF-8. The gate asks for it at each stage: a host that keeps the answer saves it from
    /// being checked anew each time.
    fn text(&self) -> Option<&str> {
        str::from_utf8(self.request().arguments).ok()
    }
    /// The clamps that apply.
    fn edits(&self) -> &Edits;
    /// What the gate is set to.
    fn settings(&self) -> Settings<'_>;
    /// What the gate has found out about the call.
    fn facts(&self) -> &Facts;
    /// The same, for the gate to add to. A host keeps it where the call is, so that it need not travel from stage to stage.
    fn facts_mut(&mut self) -> &mut Facts;
    /// The parts that the gate writes to.
    fn parts(&mut self) -> Parts<'_>;
    /// Replaces the arguments by those of a pending call: what was sent beside a token is inert (design 4.1).
    fn adopt(&mut self, snapshot: Self::Snapshot);
}

macro_rules! context_behind {
    ($($(#[$meta:meta])* $pointer:ty;)+) => {$(
        $(#[$meta])*
        impl<C: Context + ?Sized> Context for $pointer {
        type Text = C::Text;
        type Snapshot = C::Snapshot;

        fn caller(&self) -> CallContext<'_> {
            (**self).caller()
        }

        fn caller_in_place(&self) -> Option<&CallContext<'_>> {
            (**self).caller_in_place()
        }

        fn request(&self) -> Request<'_> {
            (**self).request()
        }

        fn operation(&self) -> Option<&str> {
            (**self).operation()
        }

        fn grant(&self) -> Option<&Digest> {
            (**self).grant()
        }

        fn covered_by(&mut self, grant: Digest) {
            (**self).covered_by(grant);
        }

        fn text(&self) -> Option<&str> {
            (**self).text()
        }

        fn edits(&self) -> &Edits {
            (**self).edits()
        }

        fn settings(&self) -> Settings<'_> {
            (**self).settings()
        }

        fn facts(&self) -> &Facts {
            (**self).facts()
        }

        fn facts_mut(&mut self) -> &mut Facts {
            (**self).facts_mut()
        }

        fn parts(&mut self) -> Parts<'_> {
            (**self).parts()
        }

        fn adopt(&mut self, snapshot: Self::Snapshot) {
            (**self).adopt(snapshot);
        }
        }
    )+};
}

context_behind! {
    &mut C;
    #[cfg(feature = "alloc")]
    alloc::boxed::Box<C>;
}

/// A call over borrowed memory; needs no heap. `X` is how the host keeps short texts: constants, unless it
/// [says otherwise](Self::with_texts).
#[derive(Debug)]
pub struct Envelope<'a, X = &'static str> {
    caller: CallContext<'a>,
    request: Request<'a>,
    operation: Option<&'a str>,
    settings: Settings<'a>,
    facts: Facts,
    edits: Edits,
    keys: &'a mut [KeySlot],
    texts: PhantomData<fn() -> X>,
}

impl<'a> Envelope<'a> {
    /// A call of `request` by `caller`. `keys` is scratch: with fewer slots than [`crate::json::key_capacity`] tells, a
    /// text with many keys is refused.
    #[must_use]
    pub fn new(caller: CallContext<'a>, request: Request<'a>, settings: Settings<'a>, keys: &'a mut [KeySlot]) -> Self {
        Self {
            caller,
            request,
            operation: None,
            settings,
            facts: Facts::NONE,
            edits: Edits::new(),
            keys,
            texts: PhantomData,
        }
    }

    /// The same call, to be made at most once under this id.
    #[must_use]
    pub const fn of_operation(mut self, operation: &'a str) -> Self {
        self.operation = Some(operation);
        self
    }

    /// The same call for a host that keeps short texts as `X`: rules that were read from a configuration are no constants.
    #[must_use]
    pub fn with_texts<X: AsRef<str>>(self) -> Envelope<'a, X> {
        let Self { caller, request, operation, settings, facts, edits, keys, texts: _ } = self;
        Envelope { caller, request, operation, settings, facts, edits, keys, texts: PhantomData }
    }
}

impl<'a, X: AsRef<str>> Context for Envelope<'a, X> {
    type Text = X;
    type Snapshot = &'a [u8];

    fn caller(&self) -> CallContext<'_> {
        self.caller
    }

    fn caller_in_place(&self) -> Option<&CallContext<'_>> {
        Some(&self.caller)
    }

    fn request(&self) -> Request<'_> {
        self.request
    }

    fn operation(&self) -> Option<&str> {
        self.operation
    }

    fn edits(&self) -> &Edits {
        &self.edits
    }

    fn settings(&self) -> Settings<'_> {
        self.settings
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn facts_mut(&mut self) -> &mut Facts {
        &mut self.facts
    }

    fn parts(&mut self) -> Parts<'_> {
        let text = str::from_utf8(self.request.arguments).ok();
        Parts { request: self.request, text, edits: &mut self.edits, keys: self.keys, settings: self.settings }
    }

    fn adopt(&mut self, snapshot: &'a [u8]) {
        self.request.arguments = snapshot;
    }
}
