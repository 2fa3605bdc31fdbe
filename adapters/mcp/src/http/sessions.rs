//! Whose the conversations of the older era are.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use callgate_core::confirm::principal_digest;
use callgate_core::digest::Digest;

use crate::server::Caller;

/// The owner of each conversation. Its id is a handle and proves nothing: it is good for whoever began the conversation, and for
/// anybody else there is no such one (invariant T3).
#[derive(Debug)]
pub(super) struct Sessions {
    owners: Mutex<HashMap<String, Digest>>,
    at_most: usize,
}

impl Sessions {
    pub(super) fn new(at_most: usize) -> Self {
        Self { owners: Mutex::default(), at_most }
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<String, Digest>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this caller began the conversation.
    pub(super) fn is_of(&self, id: &str, caller: &Caller) -> bool {
        self.owners().get(id) == Some(&owner(caller))
    }

    /// Notes who began it.
    pub(super) fn begin(&self, id: &str, caller: &Caller) {
        let _ = self.owners().insert(id.to_owned(), owner(caller));
    }

    /// Whether there are as many as there may be (invariant X6).
    pub(super) fn are_full(&self) -> bool {
        self.owners().len() >= self.at_most
    }

    /// All ids.
    pub(super) fn ids(&self) -> Vec<String> {
        self.owners().keys().cloned().collect()
    }

    /// Forgets one that is over.
    pub(super) fn end(&self, id: &str) {
        let _ = self.owners().remove(id);
    }
}

fn owner(caller: &Caller) -> Digest {
    principal_digest(&caller.context(""))
}
