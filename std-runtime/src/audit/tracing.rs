//! Records as `tracing` events.

use std::fmt;

use callgate_core::audit::{Audit, AuditFault, Consented, Kind, Record};
use callgate_core::code::{Code, Effect};
use callgate_core::json::write::escape;

use super::shown::{ArgsOf, DetailOf};

/// Emits each record as one event of the target `callgate::audit` with a field for each part that is there.
///
/// | level | records |
/// |---|---|
/// | debug | intents |
/// | info | calls that succeeded, asked or were planned |
/// | warn | calls that were refused, or failed without doing anything |
/// | error | calls whose effect is unknown, and those that the gate itself could not serve (a store, the audit trail) |
///
/// It never fails and says nothing of what becomes of the events: beside a sink that keeps records, not instead of one. Texts
/// that a caller or a tool worded are escaped, so that no record can forge another (invariant J9).
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TracingAudit;

impl TracingAudit {
    /// The sink.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

macro_rules! emit {
    ($level:ident, $record:expr) => {{
        let record: &Record<'_> = $record;
        // The arguments are JSON of the gate's own writer: escaped already.
        let (args, detail) = (ArgsOf(record), Escaped(DetailOf(record)));
        ::tracing::$level!(
            target: "callgate::audit",
            kind = record.kind.as_str(),
            request_id = %Escaped(record.caller.request_id),
            parent = record.caller.parent.map(|text| ::tracing::field::display(Escaped(text))),
            tenant = record.caller.tenant.map(|text| ::tracing::field::display(Escaped(text))),
            principal = record.caller.known_principal().map(|text| ::tracing::field::display(Escaped(text))),
            channel = %Escaped(record.caller.channel),
            depth = (record.caller.depth > 0).then_some(record.caller.depth),
            session = record.caller.session.map(|text| ::tracing::field::display(Escaped(text))),
            mode = record.caller.mode.as_str(),
            tool = %Escaped(record.tool),
            tool_digest = record.definition.map(::tracing::field::display),
            args_digest = record.arguments.map(::tracing::field::display),
            policy = record.policy.map(::tracing::field::display),
            args = record.redacted_args().is_some().then(|| ::tracing::field::display(&args)),
            station = record.station.as_str(),
            end = record.end,
            code = record.code.map(Code::as_str),
            told = record.told.map(Code::as_str),
            effect = record.effect.as_str(),
            check = record.check,
            rule = record.rule,
            ticket = record.ticket.map(::tracing::field::display),
            confirmed_by = record.confirmed_by.map(|by| by.as_str()),
            grant = record.grant.map(::tracing::field::display),
            consent = record.consent.map(Consented::as_str),
            unknown_channel = record.unknown_channel.then_some(true),
            detail = record.redacted_detail().is_some().then(|| ::tracing::field::display(&detail)),
            task = record.task.map(::tracing::field::display),
            took_us = (!record.kind.comes_first()).then_some(record.took_ns / 1_000),
        );
    }};
}

impl Audit for TracingAudit {
    fn record(&self, record: &Record<'_>) -> Result<(), AuditFault> {
        match level(record) {
            Level::Debug => emit!(debug, record),
            Level::Info => emit!(info, record),
            Level::Warn => emit!(warn, record),
            Level::Error => emit!(error, record),
        }
        Ok(())
    }
}

enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

fn level(record: &Record<'_>) -> Level {
    match (record.kind, record.code, record.effect) {
        (Kind::Intent, ..) => Level::Debug,
        (_, None, _) => Level::Info,
        (_, Some(Code::StoreUnavailable | Code::AuditUnavailable), _) | (_, _, Effect::Unknown) => Level::Error,
        _ => Level::Warn,
    }
}

/// A text that somebody else worded, on one line and without anything that acts on a terminal.
struct Escaped<D>(D);

impl<D: fmt::Display> fmt::Display for Escaped<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::write(&mut Escaping(f), format_args!("{}", self.0))
    }
}

struct Escaping<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escape(text, self.0)
    }
}
