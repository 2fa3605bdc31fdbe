//! Small worlds, and scripts in them.

use std::collections::BTreeMap;

use crate::event::{Fault, How, Kill, Mode, Point};
use crate::vector::{
    Act, Alteration, BatchStep, BatchedStep, CallStep, DecideStep, Expect, Level, Profile, RedeemStep, RevokeStep,
    Step, Vector,
};
use crate::world::{
    AtLeast, Body, Caller, Channel, Clamp, Confirm, Interceptor, Listener, Quota, Rule, RuleEffect, Saying, Tool, World,
};
use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

const TOOLS: [&str; 3] = ["t.one", "t.two", "u.three"];
const CALLERS: [&str; 7] = ["agent", "bob", "eve", "chat", "nobody", "south", "later"];
const MOST_STEPS: usize = 14;

fn callers() -> BTreeMap<String, Caller> {
    let caller = |channel: &str, principal: Option<&str>, scopes: &[&str], tenant: Option<&str>| Caller {
        channel: channel.to_owned(),
        principal: principal.map(str::to_owned),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        tenant: tenant.map(str::to_owned),
        session: None,
    };
    let later = Caller { session: Some("s2".to_owned()), ..caller("web", Some("ann"), &["a", "approve"], None) };
    let all = [
        caller("web", Some("ann"), &["a", "approve"], None),
        caller("web", Some("bob"), &["a", "b"], None),
        caller("web", Some("eve"), &["*"], None),
        caller("chat", Some("ann"), &["a"], None),
        caller("web", None, &["*"], None),
        caller("web", Some("ann"), &["*"], Some("south")),
        later,
    ];
    CALLERS.iter().map(|name| (*name).to_owned()).zip(all).collect()
}

fn rarely<T: std::fmt::Debug + 'static>(strategy: impl Strategy<Value = T> + 'static) -> BoxedStrategy<Option<T>> {
    weighted(0.2, strategy).boxed()
}

fn schema() -> BoxedStrategy<Value> {
    select(vec![
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false}),
        json!({"type": "object", "properties": {"n": {"type": "number", "minimum": -10, "maximum": 60}}, "required": ["n"]}),
        json!({"type": "object", "properties": {"n": {}, "s": {"type": ["string", "null"], "maxLength": 3}, "l": {"type": "array", "items": {"type": "integer"}}}}),
    ]).boxed()
}

fn body() -> BoxedStrategy<Body> {
    prop_oneof![
        6 => Just(Body::Echo),
        1 => Just(Body::Return(json!({"x": [1, null]}))),
        1 => Just(Body::Return(json!(7))),
        1 => Just(Body::Fail("no".to_owned())),
        1 => Just(Body::Panic("no".to_owned())),
        1 => select(vec![1_u64, 499, 500, 501, 2_000]).prop_map(Body::Hang),
    ]
    .boxed()
}

fn tool(name: &'static str) -> BoxedStrategy<Tool> {
    let clamp = select(vec![(Some(1), Some(10)), (None, Some(50)), (Some(-5), None)]);
    let confirm = prop_oneof![3 => Just(Confirm::Nobody), 3 => Just(Confirm::Caller), 3 => Just(Confirm::Approver)];
    let scopes = prop_oneof![3 => Just(vec![]), 1 => Just(vec!["a".to_owned()]), 1 => Just(vec!["b".to_owned(), "c".to_owned()])];
    let rest =
        (rarely(Just("approve".to_owned())), rarely(Just(json!({"type": "integer"}))), rarely(Just("1".to_owned())));
    (rarely(schema()), rarely(clamp), scopes, any::<bool>(), confirm, body(), rest)
        .prop_map(move |(schema, clamp, scopes, mutating, confirm, body, rest)| {
            let (approver_scope, output_schema, version) = rest;
            Tool {
                name: name.to_owned(),
                version,
                schema,
                clamps: clamp
                    .into_iter()
                    .map(|(min, max)| Clamp { field: "n".to_owned(), min, max, max_length: None })
                    .collect(),
                scopes,
                mutating,
                confirm,
                approver_scope,
                output_schema,
                timeout_ms: Some(500),
                body,
                ..Tool::default()
            }
        })
        .boxed()
}

fn channel() -> BoxedStrategy<Channel> {
    let flag = || prop::bool::weighted(0.15);
    (prop::bool::weighted(0.8), flag(), flag(), flag(), flag())
        .prop_map(|(require_auth, block_mutating, require_rule, confirm_mutating, confirm_by_approver)| Channel {
            name: "web".to_owned(),
            require_auth,
            block_mutating,
            require_rule,
            confirm_mutating,
            confirm_by_approver,
        })
        .boxed()
}

fn rule(id: i64) -> BoxedStrategy<Rule> {
    let effect = prop_oneof![3 => Just(RuleEffect::Allow), 1 => Just(RuleEffect::Deny)];
    let tool = of(select(vec!["t.*", "t.one", "u.three", "t.tw"]));
    let bound = rarely(select(vec![-1_i64, 10, 51]));
    let scopes = rarely(select(vec!["a", "b", "z"]));
    (
        effect,
        tool,
        rarely(select(vec!["ann", "bob"])),
        rarely(select(vec!["web", "chat"])),
        bound,
        scopes,
        any::<bool>(),
    )
        .prop_map(move |(effect, tool, principal, channel, bound, scopes, overrides_block)| Rule {
            id,
            effect,
            tool: tool.map(str::to_owned),
            principal: principal.map(str::to_owned),
            channel: channel.map(str::to_owned),
            at_least: bound.map(|value| AtLeast { field: "n".to_owned(), value }),
            // A deny always refuses: it takes neither.
            scopes: scopes.filter(|_| effect == RuleEffect::Allow).map(|scope| vec![scope.to_owned()]),
            overrides_block: overrides_block && effect == RuleEffect::Allow,
        })
        .boxed()
}

fn rules() -> BoxedStrategy<Vec<Rule>> {
    prop_oneof![
        4 => Just(vec![]),
        2 => rule(1).prop_map(|one| vec![one]),
        1 => (rule(1), rule(2), rule(3)).prop_map(|(one, two, three)| vec![three, one, two]),
    ]
    .boxed()
}

fn quota() -> BoxedStrategy<Quota> {
    select(vec![(1, 1_000), (5, 60_000), (6, 60_000), (20, 2_000)])
        .prop_map(|(limit, window_ms)| Quota { limit, window_ms })
        .boxed()
}

fn interceptor(name: &'static str) -> BoxedStrategy<Interceptor> {
    let says = prop_oneof![
        4 => Just(Saying::Continue),
        2 => Just(Saying::Veto),
        1 => Just(Saying::Answer(json!(7))),
        1 => Just(Saying::Answer(json!("seven"))),
        1 => Just(Saying::Fail),
        1 => Just(Saying::Panic),
        1 => Just(Saying::Hang),
    ];
    (weighted(0.7, select(TOOLS.as_slice())), says)
        .prop_map(move |(tool, says)| Interceptor { name: name.to_owned(), tool: tool.map(str::to_owned), says })
        .boxed()
}

fn world() -> BoxedStrategy<World> {
    let tools = (tool(TOOLS[0]), tool(TOOLS[1]), tool(TOOLS[2])).prop_map(|(one, two, three)| vec![one, two, three]);
    let interceptors = prop_oneof![
        3 => Just(vec![]),
        2 => interceptor("first").prop_map(|one| vec![one]),
        1 => (interceptor("first"), interceptor("second")).prop_map(|(one, two)| vec![one, two]),
    ];
    let (approvers, listener) = (prop::bool::weighted(0.9), rarely(Just(Listener::Panic)));
    let rest = (approvers, listener, of(Just(1_000_u64)));
    (tools, channel(), rules(), rarely(quota()), rarely(quota()), interceptors, rest)
        .prop_map(|(tools, channel, rules, quota, attempts, interceptors, (approvers, listener, ttl_ms))| World {
            tools,
            channels: vec![channel],
            rules,
            quota,
            attempts,
            interceptors,
            listener,
            approvers,
            ttl_ms,
            journal: None,
        })
        .boxed()
}

fn arguments() -> BoxedStrategy<String> {
    select(vec![
        "{}",
        "",
        r#"{"n":5}"#,
        r#"{"n":5}"#,
        r#"{"n":5}"#,
        r#"{"n":99}"#,
        r#"{"n":-7}"#,
        r#"{"n":0.5}"#,
        r#"{"n":1.0}"#,
        r#"{"n":"x"}"#,
        r#"{"n":"5"}"#,
        r#"{"n":5,"x":1}"#,
        r#"{"n":5,"approved":true}"#,
        r#"{"n":null}"#,
        r#"{"s":"abc","l":[1,2]}"#,
        r#"{"s":"abcd"}"#,
        r#"{"l":[1,"x"]}"#,
        r#"{"n":1,"n":2}"#,
        r#"{"a":{"b":1,"b":1}}"#,
        "[]",
        r#"{"n":"#,
    ])
    .prop_map(str::to_owned)
    .boxed()
}

fn who() -> BoxedStrategy<Option<String>> {
    prop_oneof![5 => Just(None), 3 => select(CALLERS.as_slice()).prop_map(|name| Some(name.to_owned()))].boxed()
}

fn mode() -> BoxedStrategy<Option<Mode>> {
    weighted(0.12, Just(Mode::Plan)).boxed()
}

/// A call by its number among the steps.
fn name(at: usize) -> String {
    format!("call-{at}")
}

fn call(at: usize) -> BoxedStrategy<Act> {
    call_named(name(at)).prop_map(Act::Call).boxed()
}

fn call_named(id: String) -> BoxedStrategy<CallStep> {
    let tool = prop_oneof![30 => select(TOOLS.as_slice()), 1 => Just("t.none"), 1 => Just("T.One")];
    (tool, arguments(), who(), mode(), weighted(0.05, Just("made up".to_owned())))
        .prop_map(move |(tool, arguments, caller, mode, token)| CallStep {
            id: Some(id.clone()),
            tool: tool.to_owned(),
            arguments: None,
            arguments_text: Some(arguments),
            pad_to: None,
            caller,
            mode,
            token,
            operation: None,
        })
        .boxed()
}

/// Several calls, one after the other. Later steps speak of the first by the number of the step.
fn batch(at: usize) -> BoxedStrategy<Act> {
    let id = move |of: usize| if of == 0 { name(at) } else { format!("{}-{of}", name(at)) };
    let one = move |of: usize| {
        prop_oneof![
            3 => call_named(id(of)).prop_map(BatchedStep::Call),
            1 => redeem_named(at, id(of)).prop_map(BatchedStep::Redeem),
        ]
        .boxed()
    };
    let calls: Vec<_> = (0..4).map(one).collect();
    (calls, 1..4_usize)
        .prop_map(|(mut calls, many)| {
            calls.truncate(many);
            Act::Batch(BatchStep { calls, at_once: 1 })
        })
        .boxed()
}

/// A call before this step; often the first one, which is never left out.
fn asked(at: usize) -> BoxedStrategy<usize> {
    prop_oneof![1 => Just(0), 1 => 0..at.max(1)].boxed()
}

fn redeem(at: usize) -> BoxedStrategy<Act> {
    redeem_named(at, name(at)).prop_map(Act::Redeem).boxed()
}

fn redeem_named(at: usize, id: String) -> BoxedStrategy<RedeemStep> {
    let altered = vec![Alteration::Shorter, Alteration::Longer, Alteration::Other, Alteration::Versioned];
    let other = (
        weighted(0.1, select(TOOLS.as_slice())),
        weighted(0.2, Just(json!({"n": 77}))),
        weighted(0.2, select(CALLERS.as_slice())),
    );
    (asked(at), other, weighted(0.1, select(vec![Mode::Plan, Mode::Execute])), weighted(0.05, select(altered)))
        .prop_map(move |(ask, (tool, arguments, caller), mode, altered)| RedeemStep {
            ask: name(ask),
            id: Some(id.clone()),
            tool: tool.map(str::to_owned),
            arguments,
            caller: caller.map(str::to_owned),
            mode,
            altered,
        })
        .boxed()
}

fn decide(at: usize) -> BoxedStrategy<Act> {
    let by = prop_oneof![3 => Just("eve"), 2 => select(CALLERS.as_slice())];
    (asked(at), by, prop::bool::weighted(0.6))
        .prop_map(|(ask, by, yes)| {
            let step = DecideStep { ask: name(ask), by: by.to_owned() };
            if yes { Act::Approve(step) } else { Act::Deny(step) }
        })
        .boxed()
}

fn happening(at: usize) -> BoxedStrategy<Act> {
    let points = vec![Point::Authorize, Point::Charge, Point::Issue, Point::Redeem, Point::Intent, Point::Record];
    let fault = (select(points), select(vec![How::Error, How::Lost, How::Panic]))
        .prop_map(|(at, how)| Act::Fault(Fault { at, how }));
    let revoke = (select(CALLERS.as_slice()), select(vec!["a", "*"])).prop_map(|(caller, scope)| {
        Act::Revoke(RevokeStep { caller: caller.to_owned(), scopes: vec![scope.to_owned()] })
    });
    let points = vec![
        Point::Authorize,
        Point::Charge,
        Point::Issue,
        Point::Redeem,
        Point::Intercept,
        Point::Intent,
        Point::Execute,
        Point::Record,
    ];
    let kill = (select(points), any::<bool>()).prop_map(|(at, done)| Act::Kill(Kill { at: Some(at), done }));
    let define = (tool(TOOLS[0]), select(vec!["1", "2"]))
        .prop_map(|(tool, version)| Act::Define(Box::new(Tool { version: Some(version.to_owned()), ..tool })));
    prop_oneof![
        3 => select(vec![1_u64, 999, 1_000, 1_000, 1_000, 12_000, 59_999, 60_000]).prop_map(Act::Advance),
        3 => fault,
        1 => revoke,
        1 => rule(i64::try_from(at).unwrap_or_default().saturating_add(100)).prop_map(Act::Rule),
        1 => define,
        1 => select(vec![500_u64, 3_600_000]).prop_map(Act::Rewind),
        1 => Just(Act::Kill(Kill::default())),
        2 => kill,
    ]
    .boxed()
}

fn step(at: usize) -> BoxedStrategy<Act> {
    prop_oneof![6 => call(at), 7 => redeem(at), 1 => batch(at), 4 => decide(at), 3 => happening(at)].boxed()
}

fn steps() -> BoxedStrategy<Vec<Act>> {
    let all: Vec<BoxedStrategy<Act>> = (0..MOST_STEPS).map(|at| step(at).boxed()).collect();
    let first = call(0).boxed();
    (first, all, vec(any::<bool>(), MOST_STEPS))
        .prop_map(|(first, all, kept)| {
            // Steps are left out when a script is made smaller; their names stay.
            let kept = all.into_iter().zip(kept).skip(1).filter_map(|(act, kept)| kept.then_some(act));
            let mut steps: Vec<Act> = std::iter::once(first).chain(kept).collect();
            // What becomes of the other calls of a batch in which the gate is killed is left open.
            if steps.iter().any(|act| matches!(act, Act::Kill(Kill { at: Some(_), .. }))) {
                steps.retain(|act| !matches!(act, Act::Batch(_)));
            }
            steps
        })
        .boxed()
}

/// Worlds and scripts of chance, as vectors that expect nothing: what must be seen is what another subject shows.
pub fn script() -> BoxedStrategy<Vector> {
    (world(), steps())
        .prop_map(|(world, acts)| Vector {
            id: "random".to_owned(),
            reason: "Nobody thought of it.".to_owned(),
            rules: "N1".to_owned().try_into().into_iter().collect(),
            level: Level::Must,
            profile: Profile::Hardened,
            world,
            callers: callers(),
            admission: None,
            script: acts.into_iter().map(|act| Step { act, expect: Expect::default() }).collect(),
            never: Vec::new(),
            never_told: Vec::new(),
        })
        .boxed()
}
