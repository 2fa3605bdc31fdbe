//! What a call carries through the blocking gate: borrowed from the caller, with room of its own for keys and clamps.

use std::sync::Arc;

use callgate_core::args::Edits;
use callgate_core::context::CallContext;
use callgate_core::json::{KeySlot, key_capacity};
use callgate_core::request::{Context, Parts, Request, Settings};

use crate::reserved::Reserved;

/// How many keys fit without the heap; most calls have fewer.
const INLINE_KEYS: usize = 24;

/// A call of the blocking gate.
#[derive(Debug)]
pub struct Envelope<'a> {
    caller: CallContext<'a>,
    request: Request<'a>,
    settings: Settings<'a>,
    snapshot: Option<Arc<[u8]>>,
    token: Option<Arc<str>>,
    edits: Edits,
    keys: Keys,
}

#[derive(Debug)]
enum Keys {
    Inline([KeySlot; INLINE_KEYS]),
    Heap(Vec<KeySlot>),
}

impl Keys {
    fn for_text(text: &[u8], max_bytes: usize) -> Self {
        // A text that is too long is refused before any key is looked at: it gets no room.
        match if text.len() > max_bytes { 0 } else { key_capacity(text) } {
            few if few <= INLINE_KEYS => Self::Inline([KeySlot::default(); INLINE_KEYS]),
            many => Self::Heap(vec![KeySlot::default(); many]),
        }
    }
}

impl<'a> Envelope<'a> {
    pub(crate) fn new(caller: CallContext<'a>, request: Request<'a>, settings: Settings<'a>) -> Self {
        let keys = Keys::for_text(request.arguments, MAX_BYTES);
        Self { caller, request, settings, snapshot: None, token: None, edits: Edits::new(), keys }
    }

    /// The same call with what was taken out of its reserved argument: a token, unless there is one beside the arguments, and the
    /// arguments without it.
    pub(crate) fn with_reserved(mut self, reserved: Reserved) -> Self {
        self.token = reserved.token;
        self.adopt(reserved.arguments);
        self
    }
}

/// What the gate sees of a request once its snapshot was adopted.
fn effective<'r>(request: &Request<'r>, snapshot: Option<&'r [u8]>, token: Option<&'r str>) -> Request<'r> {
    Request { tool: request.tool, arguments: snapshot.unwrap_or(request.arguments), token: request.token.or(token) }
}

const MAX_BYTES: usize = callgate_core::json::Limits::DEFAULT.bytes as usize;

impl Context for Envelope<'_> {
    type Text = Arc<str>;
    type Snapshot = Arc<[u8]>;

    fn caller(&self) -> CallContext<'_> {
        self.caller
    }

    fn request(&self) -> Request<'_> {
        effective(&self.request, self.snapshot.as_deref(), self.token.as_deref())
    }

    fn edits(&self) -> &Edits {
        &self.edits
    }

    fn settings(&self) -> Settings<'_> {
        self.settings
    }

    fn parts(&mut self) -> Parts<'_> {
        let Self { request, settings, snapshot, token, edits, keys, .. } = self;
        Parts {
            request: effective(request, snapshot.as_deref(), token.as_deref()),
            edits,
            keys: match keys {
                Keys::Inline(keys) => keys,
                Keys::Heap(keys) => keys,
            },
            settings: *settings,
        }
    }

    fn adopt(&mut self, snapshot: Arc<[u8]>) {
        self.keys = Keys::for_text(&snapshot, MAX_BYTES);
        self.snapshot = Some(snapshot);
    }
}
