//! Subjects to judge.

use callgate_core::args::Args;
use callgate_core::context::CallContext;
use callgate_core::digest::Digest;
use callgate_core::json::{KeySlot, Limits};
use callgate_core::policy::{Decision, Denial, PolicyGate, RuleProvider, Subject};
use callgate_core::time::Timestamp;
use callgate_core::tool::ToolSpec;

/// The time of every test, unless it is about time.
pub(crate) const NOW: Timestamp = Timestamp::from_unix_millis(1_000_000);

pub(crate) fn read(text: &str) -> Args<'_> {
    let mut keys = [KeySlot::default(); 128];
    Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).expect("arguments of a test are good")
}

/// Stands for the definition of a tool; the name is enough here.
pub(crate) fn definition(spec: &ToolSpec<'_>) -> Digest {
    Digest::of_bytes(spec.name.as_bytes())
}

/// A stand-in for the digest of arguments.
pub(crate) fn digest(arguments: &str) -> Digest {
    Digest::of_bytes(arguments.as_bytes())
}

pub(crate) fn subject<'a>(caller: CallContext<'a>, spec: &'a ToolSpec<'a>, arguments: &'a str) -> Subject<'a> {
    Subject {
        caller,
        spec,
        definition: definition(spec),
        args: read(arguments),
        arguments: Some(digest(arguments)),
        now: NOW,
    }
}

/// Decides on a call without arguments.
pub(crate) fn decide<'a, P: RuleProvider>(
    gate: &PolicyGate<'_>,
    rules: &P,
    caller: CallContext<'a>,
    spec: &'a ToolSpec<'a>,
) -> Decision<P::Text> {
    gate.decide_with(&subject(caller, spec, "{}"), rules)
}

/// The refusal and its sentence.
pub(crate) fn refused<'a, X: AsRef<str>>(
    decision: Decision<X>,
    caller: CallContext<'a>,
    spec: &'a ToolSpec<'a>,
) -> (Denial<X>, String) {
    match decision {
        Decision::Allow(permission) => panic!("should be refused, was permitted: {permission:?}"),
        Decision::Deny(denial) => {
            let sentence = denial.describe(spec, &caller).to_string();
            (denial, sentence)
        }
    }
}
