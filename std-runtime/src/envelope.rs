//! What a call carries through a gate: borrowed from the caller or owned, with room of its own for keys and clamps.

use std::fmt;
use std::sync::Arc;

use callgate_core::args::Edits;
use callgate_core::call::{Detach, Facts};
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::json::{KeySlot, key_capacity};
use callgate_core::request::{Context, Parts, Request, Settings};

use crate::captured::CapturedContext;
use crate::reserved::{self, Reserved};
use crate::settings::GateSettings;
use crate::tool::OwnedHost;

/// How many keys fit without the heap; most calls have fewer. With so many an envelope has less than a KiB, which allocators
/// keep at hand.
const INLINE_KEYS: usize = 16;

/// A call of the blocking gate.
pub struct Envelope<'a> {
    caller: CallContext<'a>,
    request: Request<'a>,
    operation: Option<&'a str>,
    /// The arguments' text as the request has it, if it is one.
    text: Option<&'a str>,
    settings: &'a Arc<GateSettings>,
    snapshot: Option<Arc<[u8]>>,
    token: Option<Arc<str>>,
    facts: Facts,
    edits: Edits,
    keys: Keys,
    /// In a box, which calls that no grant covers do without.
    grant: Option<Box<Digest>>,
}

/// A call that owns all that it carries.
pub struct OwnedEnvelope {
    caller: CapturedContext,
    tool: Arc<str>,
    arguments: Sent,
    token: Option<Arc<str>>,
    rare: Option<Box<Rare>>,
    settings: Arc<GateSettings>,
    facts: Facts,
    edits: Edits,
    /// Exactly as many as the text needs: a parked call holds them.
    keys: Box<[KeySlot]>,
}

/// What few calls have: a parked call without it holds a pointer for it.
#[derive(Clone, Default)]
struct Rare {
    operation: Option<Arc<str>>,
    grant: Option<Digest>,
}

/// The text of arguments: checked for UTF-8 once, where it passes.
#[derive(Clone, Debug)]
enum Sent {
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
}

impl Sent {
    fn of(bytes: &[u8]) -> Self {
        str::from_utf8(bytes).map_or_else(|_| Self::Bytes(bytes.into()), |text| Self::Text(text.into()))
    }

    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

enum Keys {
    Inline([KeySlot; INLINE_KEYS]),
    Heap(Vec<KeySlot>),
}

/// Shows what core shows of a request: neither arguments nor a token, wherever they came from (invariants L1, A11).
impl fmt::Debug for Envelope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Envelope")
            .field("caller", &self.caller)
            .field("request", &self.request())
            .finish_non_exhaustive()
    }
}

/// As for [`Envelope`].
impl fmt::Debug for OwnedEnvelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedEnvelope")
            .field("caller", &self.caller)
            .field("request", &self.request())
            .finish_non_exhaustive()
    }
}

impl Keys {
    fn for_text(text: &[u8], max_bytes: usize) -> Self {
        // A member has four bytes at least, as `"":0` has, so that in most texts nothing has to be counted. And one that is too
        // long is refused before any key is looked at: it gets no room.
        match if text.len() <= 4 * INLINE_KEYS || text.len() > max_bytes { 0 } else { key_capacity(text) } {
            few if few <= INLINE_KEYS => Self::Inline([KeySlot::default(); INLINE_KEYS]),
            many => Self::Heap(vec![KeySlot::default(); many]),
        }
    }

    fn as_mut_slice(&mut self) -> &mut [KeySlot] {
        match self {
            Self::Inline(keys) => keys,
            Self::Heap(keys) => keys,
        }
    }
}

impl<'a> Envelope<'a> {
    #[inline(always)]
    pub(crate) fn new(
        caller: &CallContext<'a>,
        operation: Option<&'a str>,
        request: Request<'a>,
        settings: &'a Arc<GateSettings>,
    ) -> Self {
        let keys = Keys::for_text(request.arguments, MAX_BYTES);
        let text = str::from_utf8(request.arguments).ok();
        Self {
            caller: *caller,
            request,
            operation,
            text,
            settings,
            snapshot: None,
            token: None,
            facts: Facts::NONE,
            edits: Edits::new(),
            keys,
            grant: None,
        }
    }

    /// Goes on with what was taken out of the reserved argument: a token, unless there is one beside the arguments, and the
    /// arguments without it.
    pub(crate) fn take_reserved(&mut self, reserved: Reserved) {
        self.token = reserved.token;
        self.adopt(reserved.arguments);
    }
}

/// What the gate sees of a request once its snapshot was adopted.
#[inline]
fn effective<'r>(request: &Request<'r>, snapshot: Option<&'r [u8]>, token: Option<&'r str>) -> Request<'r> {
    Request { tool: request.tool, arguments: snapshot.unwrap_or(request.arguments), token: request.token.or(token) }
}

const MAX_BYTES: usize = callgate_core::json::Limits::DEFAULT.bytes as usize;

impl Context for Envelope<'_> {
    type Text = Arc<str>;
    type Snapshot = Arc<[u8]>;

    #[inline]
    fn caller(&self) -> CallContext<'_> {
        self.caller
    }

    #[inline]
    fn caller_in_place(&self) -> Option<&CallContext<'_>> {
        Some(&self.caller)
    }

    #[inline]
    fn request(&self) -> Request<'_> {
        effective(&self.request, self.snapshot.as_deref(), self.token.as_deref())
    }

    fn operation(&self) -> Option<&str> {
        self.operation
    }

    fn grant(&self) -> Option<&Digest> {
        self.grant.as_deref()
    }

    fn covered_by(&mut self, grant: Digest) {
        self.grant = Some(Box::new(grant));
    }

    #[inline]
    fn text(&self) -> Option<&str> {
        match &self.snapshot {
            Some(snapshot) => str::from_utf8(snapshot).ok(),
            None => self.text,
        }
    }

    #[inline]
    fn edits(&self) -> &Edits {
        &self.edits
    }

    #[inline]
    fn settings(&self) -> Settings<'_> {
        self.settings.borrow()
    }

    #[inline]
    fn facts(&self) -> &Facts {
        &self.facts
    }

    #[inline]
    fn facts_mut(&mut self) -> &mut Facts {
        &mut self.facts
    }

    #[inline]
    fn parts(&mut self) -> Parts<'_> {
        let Self { request, text, settings, snapshot, token, edits, keys, .. } = self;
        Parts {
            request: effective(request, snapshot.as_deref(), token.as_deref()),
            text: match snapshot.as_deref() {
                Some(snapshot) => str::from_utf8(snapshot).ok(),
                None => *text,
            },
            edits,
            keys: keys.as_mut_slice(),
            settings: settings.borrow(),
        }
    }

    fn adopt(&mut self, snapshot: Arc<[u8]>) {
        self.keys = Keys::for_text(&snapshot, MAX_BYTES);
        self.snapshot = Some(snapshot);
    }
}

/// The copy shares a snapshot that was adopted, and copies the rest.
impl Detach for Box<Envelope<'_>> {
    type Detached = Box<OwnedEnvelope>;

    fn detach(&self) -> Box<OwnedEnvelope> {
        let request = self.request();
        let arguments = Sent::of(request.arguments);
        let rare = Rare { operation: self.operation.map(Arc::from), grant: self.grant.as_deref().copied() };
        Box::new(OwnedEnvelope {
            caller: CapturedContext::from(&self.caller),
            tool: request.tool.into(),
            keys: exact_keys(arguments.as_bytes()),
            arguments,
            token: request.token.map(Arc::from),
            rare: rare.boxed(),
            settings: Arc::clone(self.settings),
            facts: Facts::NONE,
            edits: self.edits.clone(),
        })
    }
}

impl OwnedEnvelope {
    /// A call of `request` by `caller`, copied. Where `accept_reserved` says so, a token in the reserved argument `confirm_token`
    /// is taken out.
    #[must_use]
    pub fn new(
        caller: &CallContext<'_>,
        request: Request<'_>,
        settings: Arc<GateSettings>,
        accept_reserved: bool,
    ) -> Self {
        Self::captured(CapturedContext::from(caller), request, settings, accept_reserved)
    }

    /// The same by a caller that was copied already.
    #[must_use]
    pub fn captured(
        caller: CapturedContext,
        request: Request<'_>,
        settings: Arc<GateSettings>,
        accept_reserved: bool,
    ) -> Self {
        let reserved = if accept_reserved { reserved::take(request) } else { None };
        let (arguments, taken) = match reserved {
            Some(Reserved { token, arguments }) => (Sent::of(&arguments), token),
            None => (Sent::of(request.arguments), None),
        };
        Self {
            caller,
            tool: request.tool.into(),
            keys: exact_keys(arguments.as_bytes()),
            arguments,
            token: request.token.map(Arc::from).or(taken),
            rare: None,
            settings,
            facts: Facts::NONE,
            edits: Edits::new(),
        }
    }
}

impl Rare {
    fn boxed(self) -> Option<Box<Self>> {
        (self.operation.is_some() || self.grant.is_some()).then(|| Box::new(self))
    }
}

impl OwnedEnvelope {
    /// The same call, to be made at most once under this id.
    #[must_use]
    pub fn of_operation(mut self, operation: Option<Arc<str>>) -> Self {
        let Rare { grant, .. } = self.rare.take().map_or_else(Rare::default, |rare| *rare);
        self.rare = Rare { operation, grant }.boxed();
        self
    }

    /// The name that was asked for, shared.
    #[must_use]
    pub const fn tool(&self) -> &Arc<str> {
        &self.tool
    }

    /// The id of the operation that the call is to be one of, shared.
    #[must_use]
    pub fn operation_id(&self) -> Option<&Arc<str>> {
        self.rare.as_ref()?.operation.as_ref()
    }

    /// Lends a run what this call holds already, so that it need not be copied.
    #[must_use]
    pub fn lend(&self, host: OwnedHost) -> OwnedHost {
        match &self.arguments {
            Sent::Text(text) => host.sharing(self.caller.clone(), Arc::clone(text)),
            Sent::Bytes(_) => host,
        }
    }
}

impl Context for OwnedEnvelope {
    type Text = Arc<str>;
    type Snapshot = Arc<[u8]>;

    #[inline]
    fn text(&self) -> Option<&str> {
        match &self.arguments {
            Sent::Text(text) => Some(text),
            Sent::Bytes(_) => None,
        }
    }

    fn operation(&self) -> Option<&str> {
        self.operation_id().map(|operation| &**operation)
    }

    fn grant(&self) -> Option<&Digest> {
        self.rare.as_ref()?.grant.as_ref()
    }

    fn covered_by(&mut self, grant: Digest) {
        self.rare.get_or_insert_default().grant = Some(grant);
    }

    #[inline]
    fn caller(&self) -> CallContext<'_> {
        self.caller.borrow()
    }

    #[inline]
    fn request(&self) -> Request<'_> {
        Request { tool: &self.tool, arguments: self.arguments.as_bytes(), token: self.token.as_deref() }
    }

    #[inline]
    fn edits(&self) -> &Edits {
        &self.edits
    }

    #[inline]
    fn settings(&self) -> Settings<'_> {
        self.settings.borrow()
    }

    #[inline]
    fn facts(&self) -> &Facts {
        &self.facts
    }

    #[inline]
    fn facts_mut(&mut self) -> &mut Facts {
        &mut self.facts
    }

    #[inline]
    fn parts(&mut self) -> Parts<'_> {
        let Self { tool, arguments, token, settings, edits, keys, .. } = self;
        Parts {
            request: Request { tool, arguments: arguments.as_bytes(), token: token.as_deref() },
            text: match &*arguments {
                Sent::Text(text) => Some(text),
                Sent::Bytes(_) => None,
            },
            edits,
            keys,
            settings: settings.borrow(),
        }
    }

    fn adopt(&mut self, snapshot: Arc<[u8]>) {
        self.keys = exact_keys(&snapshot);
        self.arguments = Sent::of(&snapshot);
    }
}

impl Detach for Box<OwnedEnvelope> {
    type Detached = Self;

    fn detach(&self) -> Self {
        Self::new(OwnedEnvelope {
            caller: self.caller.clone(),
            tool: Arc::clone(&self.tool),
            keys: self.keys.clone(),
            arguments: self.arguments.clone(),
            token: self.token.clone(),
            rare: self.rare.clone(),
            settings: Arc::clone(&self.settings),
            facts: Facts::NONE,
            edits: self.edits.clone(),
        })
    }
}

/// Room for the keys of a text. One that is too long is refused before any key is looked at: it gets none.
fn exact_keys(text: &[u8]) -> Box<[KeySlot]> {
    let keys = if text.len() > MAX_BYTES { 0 } else { key_capacity(text) };
    vec![KeySlot::default(); keys].into()
}

/// Beyond it the allocators of most systems search for a place.
const _: () = assert!(size_of::<Envelope<'_>>() <= 1_024, "an envelope has less than a KiB");
