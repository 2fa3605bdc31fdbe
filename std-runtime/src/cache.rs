//! A cache of results that asks before it answers: for whom, by which definition, with which arguments (invariant E2).

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use callgate_core::digest::{Digest, DigestBuilder, DigestKey};
use callgate_core::intercept::{Interception, Interceptor};
use callgate_core::json::{KeySlot, key_capacity};
use callgate_core::policy::Subject;
use callgate_core::time::Instant;

use crate::clock::SharedClock;
use crate::lock::{Mutex, lock};
use crate::output::Reply;

/// The most results that are kept where a host says nothing else.
pub const DEFAULT_ENTRIES: usize = 1_024;

/// Keeps results of tools that change nothing, and answers in their place.
///
/// A result is served to the same tenant, principal, channel, session and scopes only, and only for the same definition and
/// the same clamped arguments: what one caller may see is never shown to another. As an interceptor it stands behind every
/// gate, so a call that is denied never reaches it. Results of mutating tools are never kept.
///
/// Give it to [`crate::gate::GateBuilder::cache`], which asks it and feeds it.
pub struct ResultCache {
    key: DigestKey,
    clock: SharedClock,
    ttl_ns: u64,
    max_entries: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    replies: HashMap<[u8; 32], (u64, Instant, Arc<Reply>)>,
    /// By age; the number tells apart what was kept at the same moment.
    order: BTreeMap<u64, [u8; 32]>,
    next: u64,
}

/// Under what a result is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheKey(Digest);

impl ResultCache {
    /// A cache in which a result lives for `ttl_ms` milliseconds, of at most `max_entries` results; the oldest gives way.
    #[must_use]
    pub fn new(ttl_ms: u64, max_entries: usize, clock: SharedClock) -> Self {
        // The keys never leave this cache, so they need not be secret, only injective.
        let key = DigestKey::new([0; 32]);
        Self { key, clock, ttl_ns: ttl_ms.saturating_mul(1_000_000), max_entries, kept: Mutex::default() }
    }

    /// The key of a call; `None` for a call whose result is never kept.
    #[must_use]
    pub fn key(&self, subject: &Subject<'_>) -> Option<CacheKey> {
        if subject.spec.mutating {
            return None;
        }
        let mut slots = vec![KeySlot::default(); key_capacity(subject.args.sent().as_bytes())];
        let arguments = subject.args.digest(&self.key, &mut slots).ok()?;
        let caller = &subject.caller;
        let mut scopes: Vec<_> = caller.scopes.iter().collect();
        scopes.sort_unstable();
        scopes.dedup();
        let mut key = DigestBuilder::new("gate/cache/v1");
        key.option_str(caller.tenant)
            .option_str(caller.known_principal())
            .str(caller.channel)
            .option_str(caller.session)
            .list(scopes.len());
        for scope in scopes {
            key.str(scope);
        }
        key.digest(&subject.definition).digest(&arguments);
        Some(CacheKey(key.finish()))
    }

    /// The result under `key`, if it is still alive.
    #[must_use]
    pub fn get(&self, key: CacheKey) -> Option<Arc<Reply>> {
        let now = self.clock.monotonic();
        let kept = lock(&self.kept);
        let (_, since, reply) = kept.replies.get(key.0.as_bytes())?;
        (now.nanos_since(*since) < self.ttl_ns).then(|| Arc::clone(reply))
    }

    /// What the cache has to say of a call, with the interceptors' verdict taken into account: whoever objects is heard before
    /// the cache, and the cache before whoever answers.
    pub fn after<X>(&self, subject: &Subject<'_>, verdict: Interception<Reply, X>) -> Interception<Reply, X> {
        match verdict {
            Interception::Continue | Interception::Answer(_) => match Interceptor::<Reply, X>::judge(self, subject) {
                Interception::Continue => verdict,
                answer => answer,
            },
            objection => objection,
        }
    }

    /// Keeps a result.
    pub fn keep(&self, key: CacheKey, reply: &Reply) {
        if self.max_entries == 0 {
            return;
        }
        let now = self.clock.monotonic();
        let mut kept = lock(&self.kept);
        let Kept { replies, order, next } = &mut *kept;
        let key = *key.0.as_bytes();
        *next = next.wrapping_add(1);
        if let Some((earlier, ..)) = replies.insert(key, (*next, now, Arc::new(reply.clone()))) {
            order.remove(&earlier);
        }
        order.insert(*next, key);
        while replies.len() > self.max_entries
            && let Some((_, oldest)) = order.pop_first()
        {
            replies.remove(&oldest);
        }
    }

    /// Forgets everything: for a host that knows that something changed.
    pub fn clear(&self) {
        *lock(&self.kept) = Kept::default();
    }

    /// How many results are kept, dead ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.kept).replies.len()
    }

    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<X> Interceptor<Reply, X> for ResultCache {
    fn judge(&self, subject: &Subject<'_>) -> Interception<Reply, X> {
        match self.key(subject).and_then(|key| self.get(key)) {
            Some(reply) => Interception::Answer(Reply::clone(&reply)),
            None => Interception::Continue,
        }
    }
}

/// Shows no result.
impl fmt::Debug for ResultCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultCache")
            .field("len", &self.len())
            .field("max_entries", &self.max_entries)
            .finish_non_exhaustive()
    }
}
