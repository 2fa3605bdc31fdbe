//! What the cases share: a tool, and short names for its calls. A case gets its values as parameters, so that it holds nothing
//! but the transition it is about.

pub use callgate_core::args::Args;
pub use callgate_core::audit::{AuditFault, Record};
pub use callgate_core::call::{
    Admitted, Announced, Asking, Authorized, Call, Cleared, Closed, Confirm, Confirmed, Ended, Executing, Finished,
    IssueFault, Issued, Live, Load, Loading, Lookup, Permit, Ran, Redeeming, Requested, Resolved, Validated,
};
pub use callgate_core::confirm::{By, Refusal, Token};
pub use callgate_core::context::CallContext;
pub use callgate_core::intercept::{Interception, Interceptor};
pub use callgate_core::json::{Text, Value};
pub use callgate_core::limit::Allowance;
pub use callgate_core::outcome::Outcome;
pub use callgate_core::policy::{Decision, Subject};
pub use callgate_core::request::{Context, Envelope};
pub use callgate_core::step::Step;
pub use callgate_core::time::Now;
pub use callgate_core::tool::{Tool, ToolSpec, Violation};
pub use serde::Serialize;

/// A tool.
pub struct Probe;

impl Tool for Probe {
    type Output = &'static str;
    type Failure = &'static str;

    fn spec(&self) -> &ToolSpec<'_> {
        const { &ToolSpec::new("probe", "A tool") }
    }

    fn validate(&self, _: Args<'_>, _: &mut dyn FnMut(Violation<'_>)) {}
}

/// What the calls carry.
pub type Carried = Envelope<'static>;
/// How they hold the tool.
pub type Held = &'static Probe;

/// A call before it has a tool.
pub type Received = Call<Carried, (), Requested>;
/// A call at a stage.
pub type At<S> = Call<Carried, Held, S>;
/// A call that ended.
pub type End = Ended<Carried, Held>;
/// A call that is over.
pub type Over = Closed<Carried, Held>;
/// What the caller gets.
pub type Answer = Outcome<Carried, Held>;
/// The right to run the tool once.
pub type Pass<'r> = Permit<'r, Carried, Held>;
/// What policy says.
pub type Judgement = Decision<&'static str>;
/// What interceptors say.
pub type Verdict = Interception<&'static str, &'static str>;
/// What a run gives.
pub type Run = Finished<&'static str, &'static str, &'static str>;

/// The tool's body.
pub fn body(_: Pass<'_>) -> Run {
    Ran::Done("done").after(0)
}

/// Something that writes values out.
pub fn serialize(_: &impl Serialize) {}

/// Something that has several copies of a value.
pub fn copies<T: Clone>(_: T) {}
