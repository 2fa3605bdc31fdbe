//! What the macros say of what can't be a tool: where it stands, and what to write instead.
//!
//! The texts in `ui/` are this crate's own. Those in `ui_of_the_compiler/` are partly the compiler's, so they are compared only
//! with the compiler that they were written with; with any other, only that the sources are refused counts, and that is what
//! the other texts show. `TRYBUILD=overwrite cargo test -p callgate-macros --test ui` writes them anew.
#![cfg(test)]

use std::process::Command;

#[test]
fn what_can_not_be_a_tool_is_told_where_it_stands() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
    if is_the_compiler_of_the_texts() {
        cases.compile_fail("tests/ui_of_the_compiler/*.rs");
    } else {
        println!("skipped: the texts in ui_of_the_compiler/ are those of another compiler");
    }
}

fn is_the_compiler_of_the_texts() -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().ok().map(|output| output.stdout);
    let expected = format!("rustc {}.", env!("CARGO_PKG_RUST_VERSION"));
    version.is_some_and(|version| String::from_utf8_lossy(&version).starts_with(&expected))
}
