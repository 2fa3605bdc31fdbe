//! The gate on smol: `cargo run -p callgate-async --features smol --example smol`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod tools;

use callgate_async::gate::Gate;
use callgate_async::runtime::Smol;
use callgate_core::context::CallContext;
use callgate_core::request::Request;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    smol::block_on(run())
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let gate = Gate::builder(tools::registry()?, Smol::new()).build()?;

    let call = async |id: &str, tool: &str, arguments: &str, token: Option<&str>| {
        let request = Request { tool, arguments: arguments.as_bytes(), token };
        gate.call(&CallContext::cli(id), request).await.to_json()
    };
    println!("{}", call("r1", "count", r#"{"to": 7}"#, None).await?);
    println!("{}", call("r2", "square", r#"{"to": 7}"#, None).await?);
    let question = call("r3", "valve.move", r#"{"percent": 250}"#, None).await?;
    println!("{question}");
    let token = tools::token(&question);
    println!("{}", call("r4", "valve.move", "{}", token.as_deref()).await?);
    println!("{}", call("r5", "valve.move", "{}", token.as_deref()).await?);

    println!("{:?}", gate.shutdown(std::time::Duration::from_secs(1)).await);
    Ok(())
}
