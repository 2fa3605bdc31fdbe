//! Functions that can't be tools.
#![allow(unused, reason = "what does not compile is not used")]
use callgate_macros::{tool, toolkit};

/// Does something
#[tool]
fn generic<T: Clone>(a: T) {}

/// Does something
#[tool]
unsafe fn dangerous() {}

/// Does something
#[tool]
extern "C" fn foreign() {}

/// Does something
#[tool]
fn patterns((a, b): (u8, u8)) {}

/// Does something
#[tool]
fn implied(a: impl AsRef<str>) {}

/// Does something
#[tool]
fn opaque() -> impl Clone {}

/// Does something
#[tool]
fn never() -> ! {
    loop {}
}

/// Does something
#[tool]
fn borrows(a: &u32, b: &mut String, c: Vec<&str>, d: Option<&[u8]>) {}

/// Does something
#[tool]
fn given(#[param(secret)] call: &ToolCall<'_>, caller: CallContext<'_>, owned: OwnedCall, gone: Cancellation) {}

/// Does something
#[tool]
async fn waits(call: &ToolCall<'_>, gone: Cancelled<'_>, report: Reporter<'_>) {}

/// Does something
#[tool]
fn attributes(#[cfg(all())] a: u8) {}

/// Does something
#[tool]
struct NoFunction;

/// Does something
#[tool]
fn method(&self) {}

struct Notes;

#[toolkit]
impl Notes {
    /// Changes
    #[tool]
    fn change(&mut self) {}

    /// Takes
    #[tool]
    fn take(self) {}

    /// Compares
    #[tool]
    fn compare(&self, other: Vec<Self>) {}

    /// Is misspelt
    #[tool(mutatin)]
    fn misspelt(&self) {}
}

#[toolkit]
impl Notes {
    fn none(&self) {}
}

#[toolkit]
impl Clone for Notes {
    fn clone(&self) -> Self {
        Notes
    }
}

#[toolkit(prefixed = "x")]
impl Notes {}

fn main() {}
