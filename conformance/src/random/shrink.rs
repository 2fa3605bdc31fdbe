//! Makes a script smaller while it still does what it is kept for.

use std::collections::BTreeSet;

use crate::vector::{Act, DEFAULT_CALLER, Vector};
use crate::world::{Body, Channel, Tool};

/// Leaves out whatever can be left out, one thing at a time, for as long as `keeps` says that what is left still does it.
pub(super) fn shrink(mut vector: Vector, mut keeps: impl FnMut(&Vector) -> bool) -> Vector {
    loop {
        let mut smaller = false;
        for without in LEAVE_OUT {
            let mut at = 0;
            // What stood behind something that was left out has its number then.
            while let Some(candidate) = without(&vector, at) {
                if candidate != vector && keeps(&candidate) {
                    vector = candidate;
                    smaller = true;
                } else {
                    at = at.saturating_add(1);
                }
            }
        }
        if !smaller {
            return vector;
        }
    }
}

/// Gives the vector without its thing of this number, for as long as there is one.
type Without = fn(&Vector, usize) -> Option<Vector>;

const LEAVE_OUT: [Without; 7] = [step, step_member, tool, tool_member, rule, interceptor, rest];

fn edited(vector: &Vector, edit: impl FnOnce(&mut Vector)) -> Vector {
    let mut edited = vector.clone();
    edit(&mut edited);
    edited
}

/// From behind, because what comes later hangs on what came before.
fn step(vector: &Vector, at: usize) -> Option<Vector> {
    let last = vector.script.len().checked_sub(1)?.checked_sub(at)?;
    Some(edited(vector, |vector| drop(vector.script.remove(last))))
}

fn step_member(vector: &Vector, at: usize) -> Option<Vector> {
    let (number, member) = (at / 5, at % 5);
    (number < vector.script.len()).then(|| {
        edited(vector, |vector| match vector.script.get_mut(number).map(|step| &mut step.act) {
            Some(Act::Call(call)) => match member {
                0 => call.arguments_text = None,
                1 => call.caller = None,
                2 => call.mode = None,
                3 => call.token = None,
                _ => {}
            },
            Some(Act::Redeem(redeem)) => match member {
                0 => redeem.arguments = None,
                1 => redeem.caller = None,
                2 => redeem.mode = None,
                3 => redeem.tool = None,
                _ => {}
            },
            Some(Act::Define(tool)) => plainer(tool, member),
            _ => {}
        })
    })
}

fn tool(vector: &Vector, at: usize) -> Option<Vector> {
    (at < vector.world.tools.len()).then(|| edited(vector, |vector| drop(vector.world.tools.remove(at))))
}

const TOOL_MEMBERS: usize = 10;

fn tool_member(vector: &Vector, at: usize) -> Option<Vector> {
    let (number, member) = (at / TOOL_MEMBERS, at % TOOL_MEMBERS);
    (number < vector.world.tools.len()).then(|| {
        edited(vector, |vector| {
            if let Some(tool) = vector.world.tools.get_mut(number) {
                plainer(tool, member);
            }
        })
    })
}

fn plainer(tool: &mut Tool, member: usize) {
    match member {
        0 => tool.schema = None,
        1 => tool.clamps.clear(),
        2 => tool.scopes.clear(),
        3 => tool.output_schema = None,
        4 => tool.body = Body::Echo,
        5 => tool.mutating = false,
        6 => tool.approver_scope = None,
        7 => tool.timeout_ms = None,
        8 => tool.version = None,
        _ => tool.confirm = crate::world::Confirm::Nobody,
    }
}

fn rule(vector: &Vector, at: usize) -> Option<Vector> {
    (at < vector.world.rules.len()).then(|| edited(vector, |vector| drop(vector.world.rules.remove(at))))
}

fn interceptor(vector: &Vector, at: usize) -> Option<Vector> {
    (at < vector.world.interceptors.len()).then(|| edited(vector, |vector| drop(vector.world.interceptors.remove(at))))
}

fn rest(vector: &Vector, at: usize) -> Option<Vector> {
    (at < 6).then(|| {
        edited(vector, |vector| match at {
            0 => vector.world.quota = None,
            1 => vector.world.attempts = None,
            2 => vector.world.ttl_ms = None,
            3 => vector.world.approvers = false,
            4 => vector.world.channels.iter_mut().for_each(|channel| *channel = Channel::new(&channel.name)),
            // Not looked at by anybody, so it can always go.
            _ => {
                let named = named(vector);
                vector.callers.retain(|name, _| named.contains(name));
            }
        })
    })
}

/// Whom the script names.
fn named(vector: &Vector) -> BTreeSet<String> {
    let of = |caller: &Option<String>| caller.clone().unwrap_or_else(|| DEFAULT_CALLER.to_owned());
    let names = vector.script.iter().filter_map(|step| match &step.act {
        Act::Call(call) => Some(of(&call.caller)),
        Act::Redeem(redeem) => redeem.caller.clone(),
        Act::Approve(decide) | Act::Deny(decide) => Some(decide.by.clone()),
        Act::Revoke(revoke) => Some(revoke.caller.clone()),
        _ => None,
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::Library;

    /// What is asked for stays, and nothing else does.
    #[test]
    fn a_script_is_left_with_what_it_is_kept_for() {
        let library = Library::built_in().unwrap().matching("token-single-use");
        let vector = library.vectors()[0].clone();
        let redeems = |vector: &Vector| vector.script.iter().any(|step| matches!(step.act, Act::Redeem(_)));
        let left = shrink(vector.clone(), redeems);
        assert_eq!(left.script.len(), 1);
        assert!(left.world.tools.is_empty() && left.callers.is_empty());
        assert_eq!(shrink(vector.clone(), |_| false), vector);
    }
}
