//! The world that a vector describes, as the text that tells of it.

use callgate_core::json::{KeySlot, Limits, Value, scan};

use crate::Trouble::{self, Error};
use crate::words::{Words, text};

/// A world: what it began with, and what was added since.
pub(crate) struct World<'w> {
    began: Words<'w>,
    /// A rule or a tool each.
    more: &'w str,
}

impl<'w> World<'w> {
    /// Reads the first line; those that follow are read when they are needed.
    pub(crate) fn read(world: &'w str, keys: &mut [KeySlot]) -> Result<Self, Trouble> {
        let (began, more) = line(world);
        let scanned = scan(began.as_bytes(), keys, &Limits::DEFAULT).map_err(|_| Error("there is no world"))?;
        let known =
            ["tools", "channels", "rules", "quota", "attempts", "interceptors", "listener", "approvers", "ttl_ms"];
        Ok(Self { began: Words::of(scanned.value(), &known)?, more })
    }

    pub(crate) const fn words(&self) -> Words<'w> {
        self.began
    }

    /// What was added under a name, in its order.
    fn added(&self, name: &'static str) -> impl Iterator<Item = Value<'w>> {
        let mut rest = self.more;
        core::iter::from_fn(move || {
            let (first, behind) = line(rest);
            rest = behind;
            (!first.is_empty()).then_some(first)
        })
        .filter_map(move |line| {
            // A copy of what was scanned when it came.
            let mut keys = [KeySlot::default(); 64];
            scan(line.as_bytes(), &mut keys, &Limits::DEFAULT).ok()?.value().get(name)
        })
    }

    /// The tools: of one name only the latest.
    pub(crate) fn tools(&self) -> impl Iterator<Item = Value<'w>> {
        let all = || self.began.list("tools").chain(self.added("define"));
        let name = |tool: Value<'w>| tool.get("name").and_then(text);
        all()
            .enumerate()
            .filter(move |(at, tool)| !all().skip(at + 1).any(|later| name(later) == name(*tool)))
            .map(|(_, tool)| tool)
    }

    /// The tool of this name.
    pub(crate) fn tool(&self, name: &str) -> Option<Value<'w>> {
        self.tools().find(|tool| tool.get("name").and_then(text) == Some(name))
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = Value<'w>> {
        self.began.list("rules").chain(self.added("rule"))
    }
}

/// The first line, and what is behind it.
fn line(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| byte == b'\n').unwrap_or(text.len());
    let (line, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    (line, rest.get(1..).unwrap_or_default())
}
