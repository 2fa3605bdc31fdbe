//! An executor that goes down with calls in it.

use std::future::pending;
use std::sync::Arc;

use callgate_async::gate::GateBuilder;
use callgate_async::runtime::{Runtime, Tokio};
use callgate_async::seam::{Blocking, Immediate};
use callgate_core::code::Code;
use callgate_std::audit::MemoryAudit;
use callgate_std::confirmations::{Capacity, MemoryConfirmations};

use crate::world::{LONG, Signal, end, tool, world_with};

/// J1: the calls of a runtime that is dropped are recorded, whether or not their records have to be written on a thread of it.
#[test]
fn j1_a_runtime_that_is_dropped_leaves_no_call_without_its_record() {
    let wrappings: [fn(GateBuilder, MemoryAudit) -> GateBuilder; 2] = [
        |builder, audit| builder.audit(Immediate(Arc::new(audit))),
        |builder, audit| {
            builder
                .audit(Blocking(Arc::new(audit)))
                .confirmations(Blocking(MemoryConfirmations::new(Capacity::default())))
        },
    ];
    for wrapped in wrappings {
        let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let runtime: Arc<dyn Runtime> = Arc::new(Tokio::new(executor.handle().clone()));
        let (started, behind) = (Signal::default(), Signal::default());
        let (starts, runs) = (started.clone(), behind.clone());
        let tools = [
            tool("waits").async_handler(move |_| {
                starts.give();
                pending()
            }),
            tool("behind").background(LONG).async_handler(move |_| {
                runs.give();
                pending()
            }),
        ];
        let world = world_with(&runtime, tools, wrapped);
        let lost = world.spawn(world.call("waits", "r1"));
        executor.block_on(async {
            assert!(world.call("behind", "r2").await.success());
            started.given().await;
            behind.given().await;
        });
        let unpolled = world.call("waits", "r3");
        drop(executor);
        drop((lost, unpolled));
        assert_eq!(world.ends("r1"), end("cancelled", "unknown"));
        assert_eq!(world.ends("r2"), [end("accepted", "unknown"), end("cancelled", "unknown")].concat());
        assert_eq!(world.ends("r3"), end("cancelled", "none"));
        // The gate outlives it: what comes now is told the truth, and recorded.
        let outcome = callgate_std::future::block_on(world.call("no.such", "r4"));
        assert_eq!(outcome.code(), Some(Code::ToolNotFound));
        assert_eq!(world.ends("r4"), end("not_found", "none"));
    }
}
