//! What each end of a call is told as, and whether its tool had started: the table that outcomes, records and refunds go by.
#![cfg(test)]

use callgate_core::call::{End, Store, TaskId};
use callgate_core::code::{Code, Effect};
use callgate_core::confirm::Refusal;
use callgate_core::tool::ToolFailure;

struct Fails(Code, Effect);

impl ToolFailure for Fails {
    fn code(&self) -> Code {
        self.0
    }

    fn effect(&self) -> Effect {
        self.1
    }

    fn detail(&self) -> &str {
        "it broke"
    }
}

type Ends = End<&'static str, Fails, &'static str>;

/// F4, G6: no end is told as another kind of end, and X2: nothing is told as done or as not started that is neither.
#[test]
fn f4_each_end_has_its_code_and_its_effect() {
    let none = Effect::None;
    let table: [(Ends, Option<Code>, Effect, bool); 19] = [
        (End::TooDeep, Some(Code::Forbidden), none, false),
        (End::Shutdown, Some(Code::Shutdown), none, false),
        (End::Overloaded, Some(Code::Overloaded), none, false),
        (End::NotFound, Some(Code::ToolNotFound), none, false),
        (End::Hidden, Some(Code::CapabilityDenied), none, false),
        (End::Invalid, Some(Code::ValidationError), none, false),
        (End::Limited { retry_after_ns: None }, Some(Code::RateLimited), none, false),
        (End::StoreFault(Store::Limits), Some(Code::StoreUnavailable), none, false),
        (End::Planned, None, none, false),
        (End::NoApprover, Some(Code::NoApprover), none, false),
        (End::Vetoed("no"), Some(Code::Vetoed), none, false),
        (End::InterceptorFailed("no"), Some(Code::Vetoed), none, false),
        (End::Answered("a"), None, none, false),
        (End::AuditUnavailable, Some(Code::AuditUnavailable), none, false),
        (End::Cancelled { started: false }, Some(Code::Cancelled), none, false),
        (End::Cancelled { started: true }, Some(Code::Cancelled), Effect::Unknown, true),
        (End::Done("a"), None, Effect::Done, true),
        (End::Panicked("p"), Some(Code::InternalError), Effect::Unknown, true),
        (End::TimedOut, Some(Code::Timeout), Effect::Unknown, true),
    ];
    for (end, code, effect, started) in table {
        assert_eq!((end.code(), end.effect(), end.started()), (code, effect, started), "{}", end.name());
    }
    let broken: Ends = End::OutputInvalid("a");
    assert_eq!(
        (broken.code(), broken.effect(), broken.started()),
        (Some(Code::OutputInvalid), Effect::Done, true),
        "O1"
    );
    let accepted: Ends = End::Accepted(TaskId::new([1; 16]));
    assert_eq!((accepted.code(), accepted.effect(), accepted.started()), (None, Effect::Unknown, true));
}

/// L4: a tool speaks with three codes of its own, and with no other: it can't speak in the gate's name. What it says of its effect
/// counts.
#[test]
fn l4_a_tool_cannot_speak_in_the_gates_name() {
    let free = [Code::NotFound, Code::Unauthorized, Code::ValidationError];
    for code in Code::ALL {
        for effect in [Effect::None, Effect::Done, Effect::Unknown] {
            let end: Ends = End::Failed(Fails(*code, effect));
            let told = if free.contains(code) { *code } else { Code::InternalError };
            assert_eq!((end.code(), end.effect(), end.started()), (Some(told), effect, true), "{code}");
        }
    }
}

/// A6: to its holder every refusal looks the same, but for what an approver decides.
#[test]
fn a6_refusals_look_the_same() {
    for (refusal, code) in [
        (Refusal::Undecided, Code::ApprovalPending),
        (Refusal::Denied, Code::ApprovalDenied),
        (Refusal::Malformed, Code::ConfirmationInvalid),
        (Refusal::Unknown, Code::ConfirmationInvalid),
        (Refusal::Expired, Code::ConfirmationInvalid),
        (Refusal::Used, Code::ConfirmationInvalid),
        (Refusal::Cancelled, Code::ConfirmationInvalid),
        (Refusal::OtherTool, Code::ConfirmationInvalid),
        (Refusal::OtherCaller, Code::ConfirmationInvalid),
        (Refusal::OtherArguments, Code::ConfirmationInvalid),
    ] {
        let end: Ends = End::Refused(refusal);
        assert_eq!((end.code(), end.effect(), end.started()), (Some(code), Effect::None, false), "{refusal}");
    }
}
