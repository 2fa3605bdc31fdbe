//! What approvers and hosts do at a gate's desk, and scripts of it.

use callgate_core::call::Lookup;
use callgate_core::code::Effect;
use callgate_core::confirm::Verdict;
use callgate_core::journal::operation_key;
use callgate_core::tool::Tool as _;
use callgate_std::confirmations::{GrantArguments, NewGrant, Resolution};

use super::script::{Brings, Script, Step, Who, call, script};
use super::{Gate, World};

/// Longer than the lease of any call.
const LOST: u64 = 60_000;

/// One thing that is done. Requests and grants go by the order in which they were made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Act {
    Pending,
    Tickets,
    Decide(usize, Verdict),
    Cancel(usize),
    Resolve(usize, Effect),
    Reap,
    /// A grant to Alice for a tool, with `n` of 1, for so many calls.
    Grant(&'static str, u32),
    Grants,
    Revoke(usize),
    Operations,
    /// The operation of this id, of this caller.
    ResolveOperation(&'static str, Who, Effect),
    ReapOperations,
}

/// Asks either gate.
macro_rules! at {
    ($world:ident, $desk:ident, $method:ident ( $($argument:expr),* )) => {
        match &$world.gate {
            Gate::Blocking(gate) => gate.$desk().$method($($argument),*),
            Gate::Async(gate) => $world.wait(gate.$desk().$method($($argument),*)),
        }
    };
}

impl World {
    pub(super) fn act(&mut self, act: Act, who: Who) {
        const PROOF: &str = "the books say so, password=hunter2";
        const MOST: usize = 10;
        let by = who.context("a decision");
        let resolution = |effect| Resolution { effect, proof: PROOF, by };
        let answer = match act {
            Act::Pending => format!("{:?}", at!(self, approvals, pending(&by, MOST))),
            Act::Tickets => format!("{:?}", at!(self, approvals, tickets(&by, MOST))),
            Act::Decide(at, verdict) => format!("{:?}", at!(self, approvals, decide(self.ticket(at), verdict, &by))),
            Act::Cancel(at) => format!("{:?}", at!(self, approvals, cancel(self.ticket(at), &by))),
            Act::Resolve(at, effect) => {
                format!("{:?}", at!(self, approvals, resolve(self.ticket(at), &resolution(effect))))
            }
            Act::Reap => format!("{:?}", at!(self, approvals, reap())),
            Act::Grant(tool, uses) => {
                let grant = self.new_grant(tool, uses);
                let given = at!(self, approvals, grant(grant, &by));
                self.granted.extend(given.as_ref().ok().map(|given| given.id));
                format!("{given:?}")
            }
            Act::Grants => format!("{:?}", at!(self, approvals, grants(&by, MOST))),
            Act::Revoke(at) => {
                let grant = self.granted.get(at).copied().unwrap_or_else(|| self.ticket(usize::MAX));
                format!("{:?}", at!(self, approvals, revoke(grant, &by)))
            }
            Act::Operations => format!("{:?}", at!(self, operations, list(&by, MOST))),
            Act::ResolveOperation(operation, whose, effect) => {
                let key = operation_key(&whose.context(""), operation).unwrap();
                format!("{:?}", at!(self, operations, resolve(key, &resolution(effect))))
            }
            Act::ReapOperations => format!("{:?}", at!(self, operations, reap())),
        };
        self.log.answer(answer);
    }

    fn new_grant(&self, tool: &str, max_uses: u32) -> NewGrant {
        let tools = match &self.gate {
            Gate::Blocking(gate) => gate.tools(),
            Gate::Async(gate) => gate.tools(),
        };
        let Lookup::Found(found) = tools.find(tool, &Who::Alice.context("")) else { panic!("there is no {tool}") };
        NewGrant {
            tool: tool.to_owned(),
            definition: found.definition(),
            principal: "alice".to_owned(),
            arguments: GrantArguments::Including(r#"{"n":1}"#.to_owned()),
            lasts_ms: 600_000,
            max_uses,
        }
    }
}

/// Scripts that lead to every answer of the desk. The last step is a call.
pub(crate) fn desk_scripts() -> Vec<Script> {
    use Act::{Cancel, Decide, Grant, Grants, Operations, Pending, Reap, ReapOperations};
    use Act::{Resolve, ResolveOperation, Revoke, Tickets};
    use Who::{Alice, Boss, Local, OtherAlice};
    let approval = || call(Alice, "b.approve", r#"{"n":1,"password":"hunter2"}"#).into();
    let approved = || call(Alice, "b.approve", "{}").with(Brings::Token(0)).into();
    let covered = || call(Alice, "b.approve", r#"{"n":1}"#).into();
    let confirmed = || call(Local, "w.confirm", "{}").with(Brings::Token(0)).into();
    let operation = || call(Local, "w.write", r#"{"n":3}"#).of("op-1").into();
    let other = || call(Alice, "b.return", "{}").into();
    vec![
        script::<Step>(
            "desk: approved",
            [
                approval(),
                Step::Desk(Pending, Boss),
                Step::Desk(Decide(0, Verdict::Approve), Alice),
                Step::Desk(Decide(0, Verdict::Approve), OtherAlice),
                Step::Desk(Decide(0, Verdict::Approve), Boss),
                Step::Desk(Decide(0, Verdict::Deny), Boss),
                Step::Desk(Pending, Boss),
                approved(),
            ],
        ),
        script::<Step>(
            "desk: cancelled",
            [
                approval(),
                Step::Desk(Cancel(0), Boss),
                Step::Desk(Cancel(0), Alice),
                Step::Desk(Cancel(0), Alice),
                Step::Desk(Tickets, Alice),
                approved(),
            ],
        ),
        script::<Step>(
            "desk: in doubt",
            [
                call(Local, "w.confirm", "{}").into(),
                Step::Lose("finish "),
                confirmed(),
                Step::Desk(Reap, Boss),
                Step::Advance(LOST),
                Step::Desk(Tickets, Boss),
                Step::Desk(Resolve(0, Effect::Done), Alice),
                Step::Desk(Resolve(0, Effect::Unknown), Boss),
                Step::Desk(Resolve(0, Effect::None), Boss),
                Step::Desk(Resolve(0, Effect::Done), Boss),
                confirmed(),
            ],
        ),
        script::<Step>(
            "desk: granted",
            [
                Step::Desk(Grant("b.approve", 2), Alice),
                Step::Desk(Grant("b.approve", 2), Boss),
                covered(),
                Step::Desk(Revoke(0), Alice),
                Step::Desk(Revoke(0), Boss),
                Step::Desk(Revoke(1), Boss),
                Step::Desk(Grants, Boss),
                covered(),
                other(),
            ],
        ),
        script::<Step>(
            "desk: operations",
            [
                Step::Lose("keep "),
                operation(),
                Step::Desk(ReapOperations, Boss),
                Step::Advance(LOST),
                Step::Desk(Operations, Local),
                Step::Desk(ResolveOperation("op-1", Local, Effect::None), Alice),
                Step::Desk(ResolveOperation("op-1", Local, Effect::Unknown), Boss),
                Step::Desk(ResolveOperation("op-1", Local, Effect::None), Boss),
                Step::Desk(ResolveOperation("op-2", Local, Effect::Done), Boss),
                operation(),
            ],
        ),
    ]
}
