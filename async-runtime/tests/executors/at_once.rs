//! Two executors in one program, and time that tokio makes up.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use callgate_async::interceptors::{Interception, Interceptor, Interceptors};
use callgate_async::policy::Policy;
use callgate_async::runtime::{Runtime, Smol, Tokio};
use callgate_async::seam::{Immediate, Waiting};
use callgate_core::code::{Code, Effect};
use callgate_core::policy::{Decision, Subject};
use callgate_std::output::Reply;
use futures_lite::future::zip;

use crate::world::{LONG, Signal, end, said, tool, world, world_with};

/// Each of two bodies waits for the other; they run on different executors.
#[test]
fn two_executors_serve_the_same_tools_at_the_same_time() {
    let (here, there) = (Signal::default(), Signal::default());
    let meets = |name: &str, says: &Signal, hears: &Signal, blocks: bool| {
        let (says, hears) = (says.clone(), hears.clone());
        if blocks {
            return tool(name).handler(move |_| {
                says.give();
                hears.wait();
                Ok(Reply::new("met"))
            });
        }
        tool(name).async_handler(move |_| {
            let (says, hears) = (says.clone(), hears.clone());
            async move {
                says.give();
                hears.given().await;
                Ok(Reply::new("met"))
            }
        })
    };
    let tools = || [meets("one", &here, &there, false), meets("other", &there, &here, true)];
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    let on_tokio = world(&(Arc::new(Tokio::new(executor.handle().clone())) as Arc<dyn Runtime>), tools());
    let on_smol = world(&(Arc::new(Smol::new()) as Arc<dyn Runtime>), tools());
    // The future of either gate may be polled anywhere.
    let (one, other) = smol::block_on(zip(on_tokio.call("one", "r1"), on_smol.call("other", "r2")));
    assert!(one.success() && other.success());
    let (one, other) = executor.block_on(zip(on_smol.call("one", "r3"), on_tokio.call("other", "r4")));
    assert!(one.success() && other.success());
    assert_eq!([on_tokio.ends("r1"), on_smol.ends("r2")], [end("done", "done"), end("done", "done")]);
    assert_eq!([on_smol.ends("r3"), on_tokio.ends("r4")], [end("done", "done"), end("done", "done")]);
}

/// What never answers.
struct Silent;

#[async_trait]
impl Policy for Silent {
    async fn decide(&self, _: &Subject<'_>) -> Decision<Arc<str>> {
        pending().await
    }
}

#[async_trait]
impl Interceptor for Silent {
    async fn judge(&self, _: &Subject<'_>) -> Interception<Reply, Arc<str>> {
        pending().await
    }
}

fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

#[test]
fn x2_deadlines_go_by_the_time_of_tokio() {
    let executor = paused();
    executor.block_on(async {
        let runtime: Arc<dyn Runtime> = Arc::new(Tokio::current().unwrap());
        let world = world(&runtime, [tool("late").async_handler(|_| pending())]);
        let outcome = world.call("late", "r1").await;
        assert_eq!(said(&outcome), (Some(Code::Timeout), Effect::Unknown));
        let took = Duration::from_nanos(outcome.took_ns());
        assert!((LONG..LONG + Duration::from_secs(1)).contains(&took), "{took:?} of tokio's time");
    });
}

#[test]
fn f1_f3_who_never_answers_is_not_waited_for_beyond_the_limit_of_the_stage() {
    let executor = paused();
    executor.block_on(async {
        let runtime: Arc<dyn Runtime> = Arc::new(Tokio::current().unwrap());
        let quick = || [tool("quick").handler(|_| panic!("it was not allowed to run"))];
        let undecided = world_with(&runtime, quick(), |builder, audit| {
            builder.audit(Immediate(Arc::new(audit))).policy(Waiting(Silent)).stage_limit(LONG)
        });
        let outcome = undecided.call("quick", "r1").await;
        assert_eq!(said(&outcome), (Some(Code::Forbidden), Effect::None));
        assert!(Duration::from_nanos(outcome.took_ns()) >= LONG);
        let unheard = world_with(&runtime, quick(), |builder, audit| {
            let interceptors = Interceptors::with_limit(LONG).and("silent", Waiting(Silent));
            builder.audit(Immediate(Arc::new(audit))).interceptors(interceptors)
        });
        let outcome = unheard.call("quick", "r2").await;
        assert_eq!(said(&outcome), (Some(Code::Vetoed), Effect::None));
        assert_eq!(unheard.ends("r2"), end("interceptor_failed", "none"));
    });
}
