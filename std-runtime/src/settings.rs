//! What a gate is set to, owned.

use callgate_core::digest::{Digest, DigestKey};
use callgate_core::redact::Redaction;
use callgate_core::request::{DEFAULT_MAX_DEPTH, Settings};

mod cells {
    #![expect(clippy::mem_forget, reason = "the macro disarms its own drop guards with it")]

    use self_cell::self_cell;

    type List<'a> = Vec<&'a str>;

    self_cell!(
        /// Names, and the list of them that core takes.
        pub(super) struct Names {
            owner: Vec<String>,
            #[covariant]
            dependent: List,
        }
    );
}

use cells::Names;

/// What a gate is set to. Borrow it as core's [`Settings`].
pub struct GateSettings {
    digest_key: DigestKey,
    names: Names,
    digest_all: bool,
    max_depth: u8,
    policy: Option<Digest>,
}

impl GateSettings {
    /// The built-in redaction, digests of every call under `key`, nesting up to 8.
    #[must_use]
    pub fn new(key: DigestKey) -> Self {
        Self { digest_key: key, names: names(Vec::new()), digest_all: true, max_depth: DEFAULT_MAX_DEPTH, policy: None }
    }

    /// The same, treating values under these names as secrets too.
    #[must_use]
    pub fn redacting(mut self, redacted: Vec<String>) -> Self {
        self.names = names(redacted);
        self
    }

    /// The same, digesting every call's arguments or only those of confirmed and mutating calls.
    #[must_use]
    pub const fn digesting_all(mut self, all: bool) -> Self {
        self.digest_all = all;
        self
    }

    /// The same, allowing this many calls above a call.
    #[must_use]
    pub const fn with_max_depth(mut self, depth: u8) -> Self {
        self.max_depth = depth;
        self
    }

    /// The same, naming this policy in every record.
    #[must_use]
    pub const fn with_policy(mut self, policy: Option<Digest>) -> Self {
        self.policy = policy;
        self
    }

    /// The settings as core takes them.
    #[must_use]
    #[inline]
    pub fn borrow(&self) -> Settings<'_> {
        Settings {
            digest_key: &self.digest_key,
            redaction: Redaction::DEFAULT.with_names(self.names.borrow_dependent()),
            digest_all: self.digest_all,
            max_depth: self.max_depth,
            policy: self.policy,
        }
    }
}

fn names(names: Vec<String>) -> Names {
    Names::new(names, |names| names.iter().map(String::as_str).collect())
}

impl std::fmt::Debug for GateSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.borrow().fmt(f)
    }
}
