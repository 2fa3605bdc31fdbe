//! A decision that owns what it says, so that it can go where its record is written.

use std::sync::Arc;

use callgate_core::audit::{Decision, Record};
use callgate_core::code::{Code, Effect};
use callgate_core::digest::Digest;
use callgate_core::time::Now;

use crate::captured::CapturedContext;
use crate::common::Common;
use crate::confirmations::Resolution;
use crate::settings::GateSettings;

/// What core's [`Decision`] says, owned.
#[derive(Clone)]
pub struct Ruling {
    pub(super) at: Now,
    pub(super) by: CapturedContext,
    pub(super) tool: String,
    pub(super) arguments: Option<Digest>,
    pub(super) ticket: Option<Digest>,
    pub(super) operation: Option<String>,
    pub(super) what: &'static str,
    pub(super) refused: Option<(Code, &'static str)>,
    pub(super) note: Option<String>,
    pub(super) settings: Arc<GateSettings>,
}

impl Ruling {
    /// What `by` decides now, about nothing yet.
    pub(super) fn new(common: &Common, by: &CapturedContext, what: &'static str) -> Self {
        Self {
            at: common.now(),
            by: by.clone(),
            tool: String::new(),
            arguments: None,
            ticket: None,
            operation: None,
            what,
            refused: None,
            note: None,
            settings: Arc::clone(&common.settings),
        }
    }

    /// Shows its record.
    pub fn with_record<R>(&self, look: impl FnOnce(&Record<'_>) -> R) -> R {
        let settings = self.settings.borrow();
        look(&Record::decision(&Decision {
            at: self.at,
            by: self.by.borrow(),
            tool: &self.tool,
            arguments: self.arguments,
            policy: settings.policy,
            ticket: self.ticket,
            operation: self.operation.as_deref(),
            what: self.what,
            refused: self.refused,
            note: self.note.as_deref(),
            redaction: settings.redaction,
        }))
    }
}

/// Shows no note (invariant L1).
impl std::fmt::Debug for Ruling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ruling").field("what", &self.what).field("refused", &self.refused).finish_non_exhaustive()
    }
}

/// A [`Resolution`] that owns its texts.
#[derive(Clone)]
pub struct Finding {
    effect: Effect,
    proof: Arc<str>,
    by: CapturedContext,
}

impl Finding {
    /// The resolution as stores take it.
    #[must_use]
    pub fn borrow(&self) -> Resolution<'_> {
        Resolution { effect: self.effect, proof: &self.proof, by: self.by.borrow() }
    }

    pub(super) const fn by(&self) -> &CapturedContext {
        &self.by
    }

    /// The ruling that settles something so.
    pub(super) fn ruling(&self, common: &Common) -> Ruling {
        let what = match self.effect {
            Effect::Done => "resolve_done",
            Effect::None => "resolve_none",
            Effect::Unknown => "resolve_unknown",
        };
        Ruling { note: Some(self.proof.as_ref().to_owned()), ..Ruling::new(common, &self.by, what) }
    }
}

impl From<&Resolution<'_>> for Finding {
    fn from(resolution: &Resolution<'_>) -> Self {
        let Resolution { effect, proof, by } = resolution;
        Self { effect: *effect, proof: Arc::from(*proof), by: CapturedContext::from(by) }
    }
}

/// Shows no proof, which is anybody's text (invariant L1).
impl std::fmt::Debug for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Finding").field("effect", &self.effect).finish_non_exhaustive()
    }
}
