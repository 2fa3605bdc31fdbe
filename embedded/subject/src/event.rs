//! What happens in a world.

use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::fixed::Buffer;
use serde::Deserialize;

use crate::Trouble::{self, Unsupported};
use crate::book::How;

/// One call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call<'e> {
    pub(crate) id: &'e str,
    pub(crate) tool: &'e str,
    pub(crate) arguments: &'e str,
    #[serde(borrow)]
    pub(crate) caller: Caller<'e>,
    #[serde(default)]
    mode: Wanted,
    #[serde(default)]
    pub(crate) token: Option<&'e str>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum Wanted {
    #[default]
    Execute,
    Plan,
}

impl Call<'_> {
    pub(crate) const fn mode(&self) -> Mode {
        match self.mode {
            Wanted::Execute => Mode::Execute,
            Wanted::Plan => Mode::Plan,
        }
    }
}

/// An approver's decision.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decide<'e> {
    pub(crate) approval: &'e str,
    pub(crate) verdict: Verdict,
    #[serde(borrow)]
    pub(crate) approver: Caller<'e>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Approve,
    Deny,
}

/// Who acts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Caller<'e> {
    channel: &'e str,
    #[serde(default)]
    principal: Option<&'e str>,
    #[serde(default, borrow)]
    scopes: heapless::Vec<&'e str, 8>,
    #[serde(default)]
    tenant: Option<&'e str>,
    #[serde(default)]
    session: Option<&'e str>,
}

/// Scopes as one text.
pub(crate) type ScopeText = Buffer<256>;

impl Caller<'_> {
    pub(crate) fn scopes(&self) -> Result<ScopeText, Trouble> {
        join(self.scopes.iter().copied())
    }

    pub(crate) fn context<'c>(&'c self, scopes: &'c ScopeText, id: &'c str, mode: Mode) -> CallContext<'c> {
        let mut context = CallContext::new(self.channel, id).with_scopes(Scopes::new(scopes.as_str())).with_mode(mode);
        context.principal = self.principal;
        context.tenant = self.tenant;
        context.session = self.session;
        context
    }
}

/// Texts with a space between two of them.
pub(crate) fn join<const N: usize>(texts: impl Iterator<Item = impl AsRef<str>>) -> Result<Buffer<N>, Trouble> {
    use core::fmt::Write as _;
    let mut joined = Buffer::new();
    for text in texts {
        let separated = if joined.is_empty() { Ok(()) } else { joined.write_str(" ") };
        separated.and_then(|()| joined.write_str(text.as_ref())).map_err(|_| Unsupported("scopes are too long"))?;
    }
    Ok(joined)
}

/// A fault that is planted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    pub(crate) at: Point,
    how: Fails,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Fails {
    Error,
    Lost,
    Panic,
}

impl Fault {
    pub(crate) const fn how(&self) -> Result<How, Trouble> {
        match self.how {
            Fails::Error => Ok(How::Error),
            Fails::Lost => Ok(How::Lost),
            Fails::Panic => Err(Unsupported("nothing here can panic")),
        }
    }
}

/// A point at which a gate can be watched.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Point {
    Authorize,
    Charge,
    Issue,
    Redeem,
    Intercept,
    Intent,
    Execute,
    Record,
}

impl Point {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Authorize => "authorize",
            Self::Charge => "charge",
            Self::Issue => "issue",
            Self::Redeem => "redeem",
            Self::Intercept => "intercept",
            Self::Intent => "intent",
            Self::Execute => "execute",
            Self::Record => "record",
        }
    }
}
