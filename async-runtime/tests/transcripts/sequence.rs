//! Sequences of calls, decisions, faults and time that nobody thought of.

use callgate_core::code::Effect;
use callgate_core::confirm::Verdict;
use proptest::prelude::*;
use proptest::sample::select;

use crate::world::desk::Act;
use crate::world::log::Way;
use crate::world::script::{Brings, Calling, EVERYBODY, Step, TOOLS, Who, call};

const ARGUMENTS: [&str; 6] = [
    "{}",
    r#"{"n":5}"#,
    r#"{"n":99,"password":"hunter2"}"#,
    r#"{"n":2,"rows":[1,77]}"#,
    r#"{"n":"x"}"#,
    r#"{"n":1,"n":1}"#,
];

fn brings() -> impl Strategy<Value = Brings> {
    prop_oneof![
        6 => Just(Brings::Nothing),
        4 => (0..3_usize).prop_map(Brings::Token),
        1 => Just(Brings::Made),
        1 => Just(Brings::Garbage),
    ]
}

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![4 => Just(Who::Local), 2 => Just(Who::Alice), 2 => select(EVERYBODY.as_slice())]
}

pub(crate) fn calling() -> impl Strategy<Value = Calling> {
    let tool = prop_oneof![3 => select(TOOLS), 2 => Just("w.confirm"), 2 => Just("b.approve")];
    let rare = || prop::bool::weighted(0.1);
    let operation = prop_oneof![6 => Just(None), 2 => Just(Some("op-1")), 1 => Just(Some("op-2"))];
    (who(), tool, select(ARGUMENTS.as_slice()), brings(), rare(), rare(), rare(), operation).prop_map(
        |(who, tool, arguments, brings, plan, gone, followed, operation)| Calling {
            brings,
            plan,
            gone,
            followed,
            operation,
            ..call(who, tool, arguments)
        },
    )
}

fn act() -> impl Strategy<Value = Act> {
    let effect = || select([Effect::Done, Effect::None, Effect::Unknown].as_slice());
    let verdict = select([Verdict::Approve, Verdict::Deny].as_slice());
    prop_oneof![
        select([Act::Pending, Act::Tickets, Act::Reap, Act::Grants, Act::Operations, Act::ReapOperations].as_slice()),
        (0..3_usize, verdict).prop_map(|(at, verdict)| Act::Decide(at, verdict)),
        (0..3_usize).prop_map(Act::Cancel),
        (0..3_usize, effect()).prop_map(|(at, effect)| Act::Resolve(at, effect)),
        (select(["b.approve", "w.confirm"].as_slice()), 1..3_u32).prop_map(|(tool, uses)| Act::Grant(tool, uses)),
        (0..2_usize).prop_map(Act::Revoke),
        (select(["op-1", "op-2"].as_slice()), select([Who::Local, Who::Alice].as_slice()), effect())
            .prop_map(|(operation, whose, effect)| Act::ResolveOperation(operation, whose, effect)),
    ]
}

/// Calls that neither their callers nor other calls have to do with.
fn batch() -> impl Strategy<Value = Vec<Calling>> {
    const TOOLS: [&str; 8] =
        ["b.return", "w.return", "w.write", "b.write", "w.confirm", "b.approve", "w.fail", "no.such"];
    let call =
        (calling(), select(TOOLS.as_slice())).prop_map(|(calling, tool)| Calling { tool, gone: false, ..calling });
    prop::collection::vec(call, 1..4)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => batch().prop_map(Step::Batch),
        12 => calling().prop_map(Step::Call),
        3 => (0..3_usize, select([Verdict::Approve, Verdict::Deny].as_slice()), who())
            .prop_map(|(at, verdict, who)| Step::Decide(at, verdict, who)),
        4 => (act(), who()).prop_map(|(act, who)| Step::Desk(act, who)),
        2 => select([1_u64, 600, 20_000, 59_999, 60_000].as_slice()).prop_map(Step::Advance),
        1 => (-70_000..70_000_i64).prop_map(Step::SetClock),
        2 => (0..9_usize, select([Way::Error, Way::Lost, Way::Panic].as_slice()))
            .prop_map(|(after, way)| Step::Plant(after, way)),
    ]
}

pub(crate) fn sequence() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..10)
}
