//! What holds on a channel, whoever calls through it.

use core::fmt;

use super::consent::By;
use crate::digest::DigestBuilder;
use crate::name::{NameError, check_label};

/// The rules of one channel.
///
/// A channel made with [`ChannelPolicy::new`] asks for a principal. Everything that opens it further is said in so many words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelPolicy<'a> {
    /// The channel's name, compared byte for byte.
    pub name: &'a str,
    /// Refuses callers without a principal.
    pub require_auth: bool,
    /// Marks what passes here without a rule as allowed by the channel's trust. It overrides no refusal.
    pub allow_all: bool,
    /// Refuses mutating tools, unless an allow rule says that it overrides this.
    pub block_mutating: bool,
    /// Allows only what an allow rule permits.
    pub require_rule: bool,
    /// Asks for a confirmation of every mutating call, also where the tool asks for none.
    pub require_confirmation_for_mutating: bool,
    /// The least that a confirmation on this channel needs: [`By::Approver`] makes an approver confirm what the tool would let
    /// the caller confirm. It makes no call need a confirmation, and never lowers what a tool asks for.
    pub confirm_by: By,
    /// Refuses a call that needs a confirmation unless a signature or a grant names it: on this channel a caller cannot confirm
    /// by repeating its call.
    pub consent_required: bool,
}

impl<'a> ChannelPolicy<'a> {
    /// What holds for a channel that nobody registered: a principal is needed, and nothing that changes anything passes. No
    /// rule overrides this; a host that knows a channel registers it.
    pub const UNKNOWN: Self = Self::new("").blocking_mutating();

    /// A channel that asks for a principal and then goes by scopes and rules.
    #[must_use]
    pub const fn new(name: &'a str) -> Self {
        Self {
            name,
            require_auth: true,
            allow_all: false,
            block_mutating: false,
            require_rule: false,
            require_confirmation_for_mutating: false,
            confirm_by: By::Caller,
            consent_required: false,
        }
    }

    /// The same channel, open to callers without a principal.
    #[must_use]
    pub const fn without_auth(mut self) -> Self {
        self.require_auth = false;
        self
    }

    /// The same channel, trusted: see [`ChannelPolicy::allow_all`].
    #[must_use]
    pub const fn allowing_all(mut self) -> Self {
        self.allow_all = true;
        self
    }

    /// The same channel, refusing mutating tools.
    #[must_use]
    pub const fn blocking_mutating(mut self) -> Self {
        self.block_mutating = true;
        self
    }

    /// The same channel, allowing only what a rule permits.
    #[must_use]
    pub const fn requiring_rule(mut self) -> Self {
        self.require_rule = true;
        self
    }

    /// The same channel, confirming every mutating call.
    #[must_use]
    pub const fn confirming_mutating(mut self) -> Self {
        self.require_confirmation_for_mutating = true;
        self
    }

    /// The same channel, where confirmations need an approver.
    #[must_use]
    pub const fn confirmed_by_approver(mut self) -> Self {
        self.confirm_by = By::Approver;
        self
    }

    /// The same channel, taking consent only as a signature or a grant.
    #[must_use]
    pub const fn requiring_consent(mut self) -> Self {
        self.consent_required = true;
        self
    }

    /// Adds every field to `digest`.
    fn add_to(&self, digest: &mut DigestBuilder) {
        // Taken apart by name, so that a field added later cannot be left out.
        let Self {
            name,
            require_auth,
            allow_all,
            block_mutating,
            require_rule,
            require_confirmation_for_mutating,
            confirm_by,
            consent_required,
        } = self;
        digest.str(name).bool(*require_auth).bool(*allow_all).bool(*block_mutating).bool(*require_rule);
        digest.bool(*require_confirmation_for_mutating).str(confirm_by.as_str()).bool(*consent_required);
    }

    /// Both at once: whatever one of the two refuses or asks for.
    fn and(self, other: &Self) -> Self {
        Self {
            name: self.name,
            require_auth: self.require_auth | other.require_auth,
            allow_all: self.allow_all & other.allow_all,
            block_mutating: self.block_mutating | other.block_mutating,
            require_rule: self.require_rule | other.require_rule,
            require_confirmation_for_mutating: self.require_confirmation_for_mutating
                | other.require_confirmation_for_mutating,
            confirm_by: self.confirm_by.max(other.confirm_by),
            consent_required: self.consent_required | other.consent_required,
        }
    }
}

/// The policy that applies to a channel, and whether anybody registered it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Channel<'a> {
    /// What holds.
    pub policy: ChannelPolicy<'a>,
    /// False when the channel is in no table, and [`ChannelPolicy::UNKNOWN`] applies.
    pub known: bool,
}

/// The channels that a host knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChannelTable<'a> {
    own: &'a [ChannelPolicy<'a>],
    defaults: &'a [ChannelPolicy<'a>],
}

const BUILT_IN: &[ChannelPolicy<'static>] = &[
    ChannelPolicy::new("cli").without_auth().allowing_all(),
    ChannelPolicy::new("tui").without_auth().allowing_all(),
    ChannelPolicy::new("mcp"),
    ChannelPolicy::new("web"),
    ChannelPolicy::new("telegram").without_auth().confirming_mutating(),
];

impl<'a> ChannelTable<'a> {
    /// `cli` and `tui` allow all, `mcp` and `web` require a principal, `telegram` confirms what is mutating.
    pub const DEFAULTS: ChannelTable<'static> = ChannelTable { own: &[], defaults: BUILT_IN };

    /// Exactly these channels; with none, every channel is unknown.
    #[must_use]
    pub const fn new(channels: &'a [ChannelPolicy<'a>]) -> Self {
        Self { own: channels, defaults: &[] }
    }

    /// These channels, and of the built-in ones those whose names are not among them. A channel given here replaces the
    /// built-in one of its name altogether.
    #[must_use]
    pub const fn over_defaults(channels: &'a [ChannelPolicy<'a>]) -> Self {
        Self { own: channels, defaults: BUILT_IN }
    }

    /// What holds on the channel `name`. Where a table has a name more than once, everything that any of them asks for holds, so
    /// the order does not matter (invariant P1).
    #[must_use]
    #[cfg_attr(not(callgate_small), inline)]
    pub fn get(&self, name: &str) -> Channel<'a> {
        match strictest(self.own, name).or_else(|| strictest(self.defaults, name)) {
            Some(policy) => Channel { policy, known: true },
            None => Channel { policy: ChannelPolicy::UNKNOWN, known: false },
        }
    }

    /// The channels of the table, the host's own first. A built-in one that is replaced is not among them.
    pub fn iter(&self) -> impl Iterator<Item = &'a ChannelPolicy<'a>> {
        let own = self.own;
        let kept = self.defaults.iter().filter(move |built_in| own.iter().all(|channel| channel.name != built_in.name));
        own.iter().chain(kept)
    }

    /// Adds the channels to `digest`, in their order.
    pub(super) fn add_to(&self, digest: &mut DigestBuilder) {
        digest.list(self.iter().count());
        for channel in self.iter() {
            channel.add_to(digest);
        }
    }

    /// Checks the table before it is used (invariant F7).
    ///
    /// # Errors
    /// The first channel with a name outside the grammar, or named twice.
    pub fn check(&self) -> Result<(), ChannelError> {
        for (index, channel) in self.own.iter().enumerate() {
            check_label(channel.name).map_err(|reason| ChannelError::Name { index, reason })?;
            if self.own.iter().take(index).any(|earlier| earlier.name == channel.name) {
                return Err(ChannelError::Twice { index });
            }
        }
        Ok(())
    }
}

fn strictest<'a>(table: &'a [ChannelPolicy<'a>], name: &str) -> Option<ChannelPolicy<'a>> {
    // Names of one length are common, and their first byte tells most of them apart.
    let first = name.as_bytes().first();
    let named = |channel: &&ChannelPolicy<'a>| channel.name.as_bytes().first() == first && channel.name == name;
    let mut named = table.iter().filter(named);
    // Nearly always there is one.
    let one = *named.next()?;
    Some(named.fold(one, ChannelPolicy::and))
}

/// Why a channel table is not used. `index` counts the host's own channels from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ChannelError {
    /// A name is outside the grammar.
    Name {
        /// Which channel.
        index: usize,
        /// What is wrong with its name.
        reason: NameError,
    },
    /// A name is there a second time.
    Twice {
        /// The second channel of the name.
        index: usize,
    },
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { index, reason } => write!(f, "channel {index}: the name {reason}"),
            Self::Twice { index } => {
                write!(f, "channel {index}: the name is in the table already; merge the two into one")
            }
        }
    }
}

impl core::error::Error for ChannelError {}
