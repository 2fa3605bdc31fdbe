//! A program with a gate in it: two tools, a caller with few rights, a confirmation, and the records of it all.
//!
//! `cargo run -p callgate-std --example embed`
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::error::Error;
use std::sync::Arc;

use callgate_core::context::{CallContext, Scopes};
use callgate_core::request::Request;
use callgate_macros::{Output, tool};
use callgate_std::audit::MemoryAudit;
use callgate_std::failure::Failure;
use callgate_std::gate::Gate;
use callgate_std::registry::Registry;
use serde::Serialize;

/// Tells the balance, in cents
#[tool(name = "account.balance", read_only)]
fn balance() -> u64 {
    120_000
}

#[derive(Serialize, Output)]
struct Receipt<'a> {
    paid: u64,
    to: &'a str,
}

/// Pays somebody
#[tool(name = "account.pay", scopes("payments"), mutating, confirm(caller))]
fn pay<'a>(
    #[param(length(1..))] to: &'a str,
    /// In cents. Never more than 100.00 in one call, whatever was asked for
    #[param(range(1..), clamp(..=10_000))]
    cents: u64,
) -> Result<Receipt<'a>, Failure> {
    if to == "nobody" {
        return Err(Failure::not_found("no such account").public().without_effect());
    }
    Ok(Receipt { paid: cents, to })
}

fn main() -> Result<(), Box<dyn Error>> {
    let log = Arc::new(MemoryAudit::new());
    let gate =
        Gate::builder(Registry::builder().add(balance::tool()).add(pay::tool()).build()?).audit(log.clone()).build()?;

    let reader = CallContext::web("r-1", Some("user:42"), Scopes::new("read"));
    let payer = CallContext::web("r-2", Some("user:42"), Scopes::new("read payments"));
    let call = |caller: &CallContext<'_>, tool: &str, arguments: &str, token: Option<&str>| {
        let outcome = gate.call(caller, Request { tool, arguments: arguments.as_bytes(), token });
        let text = outcome.to_json();
        text.inspect(|text| println!("{text}\n"))
    };

    call(&reader, "account.balance", "{}", None)?;
    call(&reader, "account.pay", r#"{"to":"alice","cents":500}"#, None)?; // FORBIDDEN: the scope is missing
    let asked = call(&payer, "account.pay", r#"{"to":"alice","cents":99900}"#, None)?; // asks, for 10000
    let asked: serde_json::Value = serde_json::from_str(&asked)?;
    let token = asked.pointer("/data/confirm_token").and_then(|token| token.as_str()).ok_or("no token")?;
    call(&payer, "account.pay", "{}", Some(token))?; // pays 10000, once
    call(&payer, "account.pay", "{}", Some(token))?; // CONFIRMATION_INVALID

    println!("{} records, and the last one is:", log.lines().len());
    println!("{}", log.lines().last().map_or("", String::as_str));
    Ok(())
}
