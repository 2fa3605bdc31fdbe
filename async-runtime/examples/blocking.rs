//! The gate without an executor: `cargo run -p callgate-async --example blocking`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod tools;

use callgate_core::context::CallContext;
use callgate_core::request::Request;
use callgate_std::gate::Gate;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gate = Gate::builder(tools::registry()?).build()?;

    let call = |id: &str, tool: &str, arguments: &str, token: Option<&str>| {
        let request = Request { tool, arguments: arguments.as_bytes(), token };
        gate.call(&CallContext::cli(id), request).to_json()
    };
    println!("{}", call("r1", "count", r#"{"to": 7}"#, None)?);
    println!("{}", call("r2", "square", r#"{"to": 7}"#, None)?);
    let question = call("r3", "valve.move", r#"{"percent": 250}"#, None)?;
    println!("{question}");
    let token = tools::token(&question);
    println!("{}", call("r4", "valve.move", "{}", token.as_deref())?);
    println!("{}", call("r5", "valve.move", "{}", token.as_deref())?);

    println!("{:?}", gate.shutdown(std::time::Duration::from_secs(1)));
    Ok(())
}
