//! What callers, approvers and time do to a gate, step by step.

use callgate_core::confirm::Verdict;
use callgate_core::context::{CallContext, Mode, Scopes};

use super::desk::{Act, desk_scripts};
use super::log::Way;

/// Who calls, or approves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    /// A local shell.
    Local,
    /// With some scopes on the web.
    Alice,
    /// An approver.
    Boss,
    /// Alice in another tenant.
    OtherAlice,
    /// With a small budget.
    Poor,
    /// Known, on a channel that nobody registered.
    Stranger,
    /// On the web, and nobody knows who.
    Nobody,
    /// With a name outside its grammar.
    Garbled,
    /// Far below other calls.
    Deep,
}

pub(crate) const EVERYBODY: [Who; 9] = [
    Who::Local,
    Who::Alice,
    Who::Boss,
    Who::OtherAlice,
    Who::Poor,
    Who::Stranger,
    Who::Nobody,
    Who::Garbled,
    Who::Deep,
];

impl Who {
    pub(crate) fn context(self, request_id: &str) -> CallContext<'_> {
        let web = |name| CallContext::web(request_id, name, Scopes::new("notes:read approve:all"));
        match self {
            Self::Local => CallContext::cli(request_id),
            Self::Alice => web(Some("alice")),
            Self::Boss => web(Some("boss")).with_scopes(Scopes::new("notes:read approve:all grant reconcile")),
            Self::OtherAlice => CallContext { tenant: Some("other"), ..web(Some("alice")) },
            Self::Poor => web(Some("poor")),
            Self::Stranger => {
                CallContext::new("elsewhere", request_id).with_principal("stranger").with_scopes(Scopes::ALL)
            }
            Self::Nobody => web(None),
            Self::Garbled => CallContext { session: Some("no session\n"), ..web(Some("alice")) },
            Self::Deep => CallContext { depth: 200, ..CallContext::cli(request_id) },
        }
    }
}

/// Which token a call brings along.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Brings {
    Nothing,
    /// The token of the question that was asked as the so-manieth.
    Token(usize),
    /// A token that was never issued.
    Made,
    /// Something that is no token.
    Garbage,
}

/// One call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Calling {
    pub(crate) who: Who,
    pub(crate) tool: &'static str,
    pub(crate) arguments: String,
    pub(crate) brings: Brings,
    pub(crate) plan: bool,
    /// Its caller is gone before it begins.
    pub(crate) gone: bool,
    /// Its updates are taken.
    pub(crate) followed: bool,
    /// The id of the operation that it is one of.
    pub(crate) operation: Option<&'static str>,
}

pub(crate) fn call(who: Who, tool: &'static str, arguments: &str) -> Calling {
    let arguments = arguments.to_owned();
    Calling {
        who,
        tool,
        arguments,
        brings: Brings::Nothing,
        plan: false,
        gone: false,
        followed: false,
        operation: None,
    }
}

impl Calling {
    pub(crate) fn with(mut self, brings: Brings) -> Self {
        self.brings = brings;
        self
    }

    pub(crate) fn planned(mut self) -> Self {
        self.plan = true;
        self
    }

    pub(crate) fn gone(mut self) -> Self {
        self.gone = true;
        self
    }

    pub(crate) fn followed(mut self) -> Self {
        self.followed = true;
        self
    }

    pub(crate) fn of(mut self, operation: &'static str) -> Self {
        self.operation = Some(operation);
        self
    }

    /// Who calls, from the world of this name.
    pub(crate) fn context<'a>(&self, request_id: &'a str, world: &'a str) -> CallContext<'a> {
        let mode = if self.plan { Mode::Plan } else { Mode::Execute };
        CallContext { user_agent: Some(world), mode, ..self.who.context(request_id) }
    }
}

/// The tools that there are, and one that there is not. Without the one whose interceptor is late: what else goes wrong there, one
/// that is stopped does not come to say.
pub(crate) const TOOLS: &[&str] = &[
    "b.return",
    "w.return",
    "b.typed",
    "w.typed",
    "b.fail",
    "w.fail",
    "b.panic",
    "w.panic",
    "b.broken",
    "w.broken",
    "b.large",
    "w.tells",
    "b.tells",
    "b.slow",
    "hidden.one",
    "absent.one",
    "ruled.out",
    "ruled.in",
    "scoped",
    "needs.network",
    "veto.me",
    "answer.me",
    "judge.fails",
    "judge.panics",
    "answer.broken",
    "b.write",
    "w.write",
    "b.confirm",
    "w.confirm",
    "b.approve",
    "w.approve",
    "nobody.approves",
    "w.late",
    "b.late",
    "w.result.late",
    "w.stop",
    "b.stop",
    "w.goes.on",
    "w.nest",
    "b.nest",
    "w.deep",
    "w.full",
    "w.behind",
    "b.behind",
    "w.behind.late",
    "b.behind.panic",
    "w.behind.fail",
    "no.such",
];

/// What happens next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Call(Calling),
    /// Makes these calls as a batch, one at a time.
    Batch(Vec<Calling>),
    /// Decides about the question that was asked as the so-manieth.
    Decide(usize, Verdict, Who),
    /// Does something at the gate's desk.
    Desk(Act, Who),
    /// So many milliseconds pass.
    Advance(u64),
    /// The wall clock is set by so many milliseconds.
    SetClock(i64),
    /// The question after so many more goes wrong.
    Plant(usize, Way),
    /// The next question fails that begins like this.
    Lose(&'static str),
    /// The gate goes down.
    Shutdown,
}

impl From<Calling> for Step {
    fn from(calling: Calling) -> Self {
        Self::Call(calling)
    }
}

/// A script and its name.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) steps: Vec<Step>,
}

pub(crate) fn script<S: Into<Step>>(name: &'static str, steps: impl IntoIterator<Item = S>) -> Script {
    Script { name, steps: steps.into_iter().map(Into::into).collect() }
}

fn one(name: &'static str, calling: Calling) -> Script {
    script(name, [calling])
}

/// A script for every end that a call can have, and for what leads there in another way. The last step is a call.
pub(crate) fn scripts() -> Vec<Script> {
    let mut all = ends_before_the_tool();
    all.extend(ends_of_the_tool());
    all.extend(confirmations());
    all.extend(operations());
    all.extend(sequences());
    all.extend(desk_scripts());
    all
}

fn ends_before_the_tool() -> Vec<Script> {
    use Who::{Alice, Deep, Garbled, Local, Nobody, Poor, Stranger};
    let rows = format!(r#"{{"rows":[{}]}}"#, vec!["99"; 300].join(","));
    vec![
        one("bad_context", call(Garbled, "b.return", "{}")),
        one("too_deep", call(Deep, "b.return", "{}")),
        script("shutdown", [Step::Shutdown, call(Local, "b.return", "{}").into()]),
        one("overloaded", call(Local, "w.full", "{}")),
        one("not_found", call(Alice, "no such tool\n", "{}")),
        one("absent", call(Alice, "absent.one", "{}")),
        one("hidden", call(Alice, "hidden.one", "{}")),
        one("malformed", call(Alice, "b.return", r#"{"n":"#)),
        one("twice", call(Alice, "b.return", r#"{"n":1,"\u006e":2}"#)),
        one("invalid", call(Alice, "w.return", r#"{"n":"five","password":"hunter2"}"#)),
        one("unclampable", call(Alice, "b.return", &rows)),
        one("denied: scope", call(Alice, "scoped", "{}")),
        one("denied: nobody", call(Nobody, "b.return", "{}")),
        one("denied: rule", call(Alice, "ruled.out", "{}")),
        one("denied: requirement", call(Local, "needs.network", "{}")),
        one("unknown channel", call(Stranger, "b.return", "{}")),
        one("unknown channel, mutating", call(Stranger, "w.write", "{}")),
        script("limited", [call(Poor, "b.write", "{}"), call(Poor, "b.write", "{}")]),
        script(
            "limited attempts",
            [call(Poor, "no.such", "{}"), call(Poor, "no.such", "{}"), call(Poor, "b.return", "[]")],
        ),
        one("planned", call(Local, "w.confirm", r#"{"n":99,"password":"hunter2"}"#).planned()),
        one("planned, and denied", call(Alice, "scoped", "{}").planned()),
        one("gone before", call(Local, "w.write", "{}").gone()),
        one("gone before it asks", call(Local, "w.confirm", "{}").gone()),
        one("vetoed", call(Local, "veto.me", "{}")),
        one("interceptor fails", call(Local, "judge.fails", "{}")),
        one("interceptor panics", call(Local, "judge.panics", "{}")),
        one("interceptor late", call(Local, "judge.late", "{}")),
        one("answered", call(Local, "answer.me", "{}")),
        one("answer_invalid", call(Local, "answer.broken", "{}")),
    ]
}

fn ends_of_the_tool() -> Vec<Script> {
    use Who::{Alice, Local};
    let failing = |name, tool, n: u8| one(name, call(Local, tool, &format!(r#"{{"n":{n}}}"#)));
    vec![
        one("done: blocks", call(Alice, "b.return", r#"{"n":99,"text":"hello","password":"hunter2"}"#)),
        one("done: waits", call(Alice, "w.return", r#"{"n":-3,"rows":[1,99]}"#)),
        one("done: ruled in", call(Alice, "ruled.in", "{}")),
        one("done: mutating, blocks", call(Local, "b.write", r#"{"n":3}"#)),
        one("done: mutating, waits", call(Local, "w.write", r#"{"n":3}"#)),
        one("done: slow", call(Local, "b.slow", "{}")),
        one("done: large", call(Local, "b.large", "{}")),
        one("typed: blocks", call(Local, "b.typed", r#"{"n":3}"#)),
        one("ill typed: waits", call(Local, "w.typed", "{}")),
        failing("failed: private", "b.fail", 1),
        failing("failed: public", "w.fail", 2),
        failing("failed: not found", "b.fail", 3),
        failing("failed: without effect", "w.fail", 4),
        failing("failed: unauthorized", "b.fail", 5),
        failing("failed: says it is late", "w.fail", 6),
        failing("failed: says it is cancelled", "b.fail", 7),
        one("panicked: blocks", call(Local, "b.panic", "{}")),
        one("panicked: waits", call(Local, "w.panic", r#"{"password":"hunter2"}"#)),
        one("output_invalid: blocks", call(Local, "b.broken", "{}")),
        one("output_invalid: waits", call(Local, "w.broken", "{}")),
        one("timed_out: waits", call(Local, "w.late", "{}")),
        one("timed_out: blocks", call(Local, "b.late", "{}")),
        one("done, and late", call(Local, "w.result.late", "{}")),
        one("cancelled: waits", call(Local, "w.stop", "{}")),
        one("cancelled: blocks", call(Local, "b.stop", "{}")),
        one("done, and gone", call(Local, "w.goes.on", "{}")),
        one("tells: waits", call(Local, "w.tells", "{}").followed()),
        one("tells: blocks", call(Local, "b.tells", "{}").followed()),
        one("tells nobody", call(Local, "w.tells", "{}")),
        one("nested: waits", call(Local, "w.nest", "{}")),
        one("nested: blocks", call(Local, "b.nest", "{}")),
        one("nested: deep", call(Local, "w.deep", "{}")),
        one("accepted: waits", call(Local, "w.behind", r#"{"n":99}"#)),
        one("accepted: blocks", call(Local, "b.behind", "{}")),
        one("accepted: late", call(Local, "w.behind.late", "{}")),
        one("accepted: fails", call(Local, "w.behind.fail", "{}")),
    ]
}

fn confirmations() -> Vec<Script> {
    use Brings::{Garbage, Made, Token};
    use Verdict::{Approve, Deny};
    use Who::{Alice, Boss, Local, OtherAlice};
    let asks = || call(Local, "w.confirm", r#"{"n":99}"#).into();
    let again = || call(Local, "w.confirm", "{}").with(Token(0));
    let approval = || call(Alice, "b.approve", r#"{"n":1,"password":"hunter2"}"#).into();
    let approved = || call(Alice, "b.approve", "{}").with(Token(0)).into();
    let decides = |verdict, who| Step::Decide(0, verdict, who);
    vec![
        script::<Step>("asked", [asks()]),
        script::<Step>("asked for approval", [approval()]),
        one("no_approver", call(Alice, "nobody.approves", "{}")),
        script::<Step>("confirmed", [asks(), again().into()]),
        script::<Step>(
            "confirmed: blocks",
            [call(Local, "b.confirm", "{}").into(), call(Local, "b.confirm", "{}").with(Token(0)).into()],
        ),
        script::<Step>("confirmed twice", [asks(), again().into(), again().into()]),
        script::<Step>("confirmed late", [asks(), Step::Advance(60_000), again().into()]),
        script::<Step>("confirmed just in time", [asks(), Step::Advance(59_999), again().into()]),
        script::<Step>(
            "confirmed by another clock",
            [asks(), Step::SetClock(-3_600_000), Step::Advance(61_000), again().into()],
        ),
        script::<Step>(
            "confirmed by another",
            [asks(), call(Alice, "w.confirm", "{}").with(Token(0)).into(), again().into()],
        ),
        script::<Step>("confirmed for another tool", [asks(), call(Local, "b.confirm", "{}").with(Token(0)).into()]),
        script::<Step>("confirmed, and planned", [asks(), again().planned().into()]),
        script::<Step>("confirmed, and gone", [asks(), again().gone().into(), again().into()]),
        script::<Step>("refused: made up", [call(Local, "w.confirm", "{}").with(Made).into()]),
        script::<Step>("refused: garbage", [call(Local, "w.confirm", "{}").with(Garbage).into()]),
        script::<Step>("undecided", [approval(), approved()]),
        script::<Step>("approved", [approval(), decides(Approve, Boss), approved()]),
        script::<Step>("denied", [approval(), decides(Deny, Boss), decides(Approve, Boss), approved()]),
        script::<Step>("approved by itself", [approval(), decides(Approve, Alice), approved()]),
        script::<Step>(
            "approved by a stranger",
            [approval(), decides(Approve, OtherAlice), decides(Approve, Local), approved()],
        ),
        script::<Step>(
            "accepted after a yes",
            [call(Local, "b.behind.panic", "{}").into(), call(Local, "b.behind.panic", "{}").with(Token(0)).into()],
        ),
    ]
}

fn operations() -> Vec<Script> {
    use Brings::Token;
    use Who::{Alice, Boss, Local, Nobody};
    let write = || call(Local, "w.write", r#"{"n":99}"#).of("op-1");
    let blocks = || call(Local, "b.write", r#"{"n":3}"#).of("op-1");
    let asks = || call(Local, "w.confirm", r#"{"n":99}"#).of("op-1");
    let fails = |n: u8| call(Local, "w.fail", &format!(r#"{{"n":{n}}}"#)).of("op-1");
    let reads = |who| call(who, "b.return", r#"{"n":3}"#).of("op-1");
    let behind = || call(Local, "w.behind", "{}").of("op-1");
    let tells = |tool| call(Local, tool, "{}").of("op-1").followed();
    let stops = || call(Local, "w.stop", "{}").of("op-1");
    vec![
        one("operation: done", write()),
        script("operation: replayed", [write(), write()]),
        script("operation: replayed, and blocks", [blocks(), blocks()]),
        script("operation: other arguments", [write(), call(Local, "w.write", "{}").of("op-1")]),
        script("operation: another's", [reads(Alice), reads(Boss)]),
        one("operation: nobody", reads(Nobody)),
        script("operation: tried again", [fails(4), fails(4)]),
        script("operation: in doubt", [fails(1), fails(1)]),
        one("operation: vetoed", call(Local, "veto.me", "{}").of("op-1")),
        script("operation: confirmed, and asked again", [asks(), asks().with(Token(0)), asks()]),
        script("operation: in the background", [behind(), behind()]),
        script("operation: followed", [tells("w.tells"), tells("w.tells")]),
        script("operation: followed, and blocks", [tells("b.tells"), tells("b.tells")]),
        script("operation: gone before", [write().gone(), write()]),
        script("operation: stopped", [stops().followed(), stops()]),
        script::<Step>(
            "operation: in a batch",
            [Step::Batch(vec![write(), asks(), reads(Alice), write()]), write().into()],
        ),
        script::<Step>(
            "operation: in a batch, confirmed",
            [asks().into(), Step::Batch(vec![asks().with(Token(0)), asks()]), asks().into()],
        ),
    ]
}

fn sequences() -> Vec<Script> {
    use Who::{Alice, Local, Poor};
    let read = || call(Alice, "b.return", r#"{"n":5}"#).into();
    vec![
        script::<Step>("cached", [read(), read(), Step::Advance(30_001), read()]),
        script::<Step>(
            "paid back",
            [
                call(Poor, "b.return", r#"{"n":1}"#).into(),
                call(Poor, "veto.me", "{}").into(),
                Step::Advance(20_000),
                call(Poor, "w.write", "{}").into(),
            ],
        ),
        script::<Step>(
            "a clock set back",
            [
                read(),
                Step::SetClock(-5_000),
                call(Local, "w.write", "{}").into(),
                Step::Advance(1_000),
                call(Local, "w.return", "{}").into(),
            ],
        ),
    ]
}
