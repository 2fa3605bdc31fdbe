//! Scripts of chance for subjects that can't do everything: without what they lack.

use std::collections::BTreeSet;

use crate::event::Mode;
use crate::feature::Feature;
use crate::vector::{Act, BatchedStep, CallStep, Vector};
use crate::world::{Body, Channel, Confirm, Listener, Quota, Tool};

/// Of real time that passes while a script is run, nothing comes back to a budget that fills up so slowly, in milliseconds a unit.
const AN_HOUR_MS: u64 = 3_600_000;

/// The script without what a subject that can do only this lacks. What is left of it is another script, and says as much.
#[must_use]
pub fn fitted(mut vector: Vector, supports: &BTreeSet<Feature>) -> Vector {
    let has = |feature| supports.contains(&feature);
    let world = &mut vector.world;
    world.tools.iter_mut().for_each(|tool| fit(tool, supports));
    let slowly = |quota: Quota| {
        let window_ms =
            if has(Feature::Clock) { quota.window_ms } else { u64::from(quota.limit).saturating_mul(AN_HOUR_MS) };
        Quota { window_ms, ..quota }
    };
    world.quota = world.quota.filter(|_| has(Feature::Quota)).map(slowly);
    world.attempts = world.attempts.filter(|_| has(Feature::Attempts)).map(slowly);
    world.rules.retain(|_| has(Feature::Rules));
    world.interceptors.retain(|_| has(Feature::Intercept));
    let listens =
        |listener: &Listener| has(if *listener == Listener::Listen { Feature::Events } else { Feature::Listen });
    world.listener = world.listener.filter(listens);
    world.approvers &= has(Feature::Approvals);
    world.ttl_ms = world.ttl_ms.filter(|_| has(Feature::Clock));
    for channel in &mut world.channels {
        if !has(Feature::Channels) {
            *channel = Channel::new(&channel.name);
        }
        channel.confirm_mutating &= has(Feature::Confirm);
        channel.confirm_by_approver &= has(Feature::Approvals);
    }
    let known: Vec<_> = world.channels.iter().map(|channel| channel.name.clone()).collect();
    for caller in vector.callers.values_mut() {
        if !has(Feature::Channels)
            && !known.contains(&caller.channel)
            && let Some(name) = known.first()
        {
            caller.channel.clone_from(name);
        }
        caller.tenant = caller.tenant.take().filter(|_| has(Feature::Tenants));
        caller.session = caller.session.take().filter(|_| has(Feature::Sessions));
    }
    vector.script.retain(|step| match &step.act {
        Act::Call(_) | Act::Revoke(_) => true,
        Act::Redeem(_) => has(Feature::Confirm) || has(Feature::Approvals),
        Act::Batch(_) => has(Feature::Batch),
        Act::Show(_) => has(Feature::Display),
        Act::Inspect(_) => has(Feature::Inspect),
        Act::Rewind(_) => has(Feature::WallClock),
        Act::Approve(_) | Act::Deny(_) => has(Feature::Approvals),
        Act::Advance(_) => has(Feature::Clock),
        Act::Rule(_) => has(Feature::RuleChange),
        Act::Define(_) => has(Feature::Define),
        Act::Fault(_) => has(Feature::Faults),
        Act::Kill(kill) => has(if kill.at.is_some() { Feature::KillWithin } else { Feature::Kill }),
    });
    for step in &mut vector.script {
        let kept = |mode: Option<Mode>| mode.filter(|mode| *mode == Mode::Execute || has(Feature::Plan));
        let called = |call: &mut CallStep| {
            call.mode = kept(call.mode);
            call.token = call.token.take().filter(|_| has(Feature::Confirm));
        };
        match &mut step.act {
            Act::Call(call) => called(call),
            Act::Redeem(redeem) => redeem.mode = kept(redeem.mode),
            Act::Batch(batch) => batch.calls.iter_mut().for_each(|one| match one {
                BatchedStep::Call(call) => called(call),
                BatchedStep::Redeem(redeem) => redeem.mode = kept(redeem.mode),
            }),
            Act::Define(tool) => fit(tool, supports),
            _ => {}
        }
    }
    vector
}

fn fit(tool: &mut Tool, supports: &BTreeSet<Feature>) {
    let has = |feature| supports.contains(&feature);
    tool.schema = tool.schema.take().filter(|_| has(Feature::Schema));
    tool.output_schema = tool.output_schema.take().filter(|_| has(Feature::OutputSchema));
    tool.clamps.retain(|_| has(Feature::Clamp));
    tool.secrets.retain(|_| has(Feature::Secrets));
    if !has(Feature::Clock) {
        tool.timeout_ms = None;
        if matches!(tool.body, Body::Hang(_)) {
            tool.body = Body::Echo;
        }
    }
    tool.confirm = match tool.confirm {
        Confirm::Caller if !has(Feature::Confirm) => Confirm::Nobody,
        Confirm::Approver if !has(Feature::Approvals) => Confirm::Nobody,
        confirm => confirm,
    };
}
