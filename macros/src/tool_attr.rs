//! `#[tool(...)]`: what a tool says of itself beside its parameters.

use callgate_core::name::{check_scope, check_tool_name};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{LitInt, LitStr, Token, parenthesized, token};

use crate::text::unknown;

const KNOWN: [&str; 17] = [
    "name",
    "description",
    "version",
    "scopes",
    "requires",
    "mutating",
    "read_only",
    "dangerous",
    "idempotent",
    "confirm",
    "timeout",
    "background",
    "concurrency",
    "cost",
    "max_output",
    "strict",
    "no_std",
];

/// The words that stand alone.
const FLAGS: [&str; 5] = ["mutating", "read_only", "dangerous", "idempotent", "strict"];

/// What is said of a tool.
#[derive(Default)]
pub(crate) struct ToolAttr {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) version: Option<LitStr>,
    pub(crate) scopes: Option<Vec<LitStr>>,
    pub(crate) requires: Option<Vec<LitStr>>,
    pub(crate) flags: Vec<(&'static str, Span)>,
    pub(crate) confirm: Option<Confirm>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) background_ms: Option<u64>,
    /// How many at once, and how many in line.
    pub(crate) concurrency: Option<(LitInt, LitInt)>,
    pub(crate) cost: Option<LitInt>,
    pub(crate) max_output: Option<LitInt>,
    /// Whether it is to run without a heap, and where that is said.
    pub(crate) no_std: Option<Span>,
}

pub(crate) enum Confirm {
    Caller,
    Approver(LitStr),
}

impl ToolAttr {
    /// Takes one entry of the attribute.
    pub(crate) fn read(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let word = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        if let Some(flag) = FLAGS.iter().find(|flag| **flag == word) {
            return self.flag(flag, meta);
        }
        let again = match word.as_str() {
            "no_std" => self.no_std.replace(meta.path.span()).is_some(),
            "name" => {
                let name: LitStr = text(meta, "name = \"notes.search\"")?;
                if let Err(error) = check_tool_name(&name.value()) {
                    let text = format!("a tool's name {error}; use 1 to 128 of A-Z a-z 0-9 _ . -");
                    return Err(syn::Error::new_spanned(name, text));
                }
                self.name.replace(name).is_some()
            }
            "description" => self.description.replace(text(meta, "description = \"Finds notes\"")?).is_some(),
            "version" => self.version.replace(text(meta, "version = \"2\"")?).is_some(),
            "scopes" => self.scopes.replace(names(meta, "scopes(\"notes:read\")")?).is_some(),
            "requires" => self.requires.replace(names(meta, "requires(\"network\")")?).is_some(),
            "confirm" => self.confirm.replace(confirm(meta)?).is_some(),
            "timeout" => self.timeout_ms.replace(timeout(&text(meta, "timeout = \"30s\"")?)?).is_some(),
            "background" => self.background_ms.replace(timeout(&text(meta, "background = \"10m\"")?)?).is_some(),
            "concurrency" => self.concurrency.replace(concurrency(meta)?).is_some(),
            "cost" => self.cost.replace(positive(meta, "cost = 3")?).is_some(),
            "max_output" => self.max_output.replace(positive(meta, "max_output = 65536")?).is_some(),
            other => return Err(unknown(&meta.path, "tool", other, &KNOWN)),
        };
        if again {
            Err(syn::Error::new_spanned(&meta.path, format!("`{word}` is said twice; remove one")))
        } else {
            Ok(())
        }
    }

    fn flag(&mut self, flag: &'static str, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        if meta.input.peek(Token![=]) || meta.input.peek(token::Paren) {
            return Err(meta.error(format!("`{flag}` stands alone; write `{flag}`, or leave it out")));
        }
        let opposite = match flag {
            "mutating" => Some("read_only"),
            "read_only" => Some("mutating"),
            _ => None,
        };
        for (said, _) in &self.flags {
            if *said == flag {
                return Err(syn::Error::new_spanned(&meta.path, format!("`{flag}` is said twice; remove one")));
            }
            if Some(*said) == opposite {
                let text = "a tool that can change something is not read-only; say `mutating` or `read_only`, not both";
                return Err(syn::Error::new_spanned(&meta.path, text));
            }
        }
        self.flags.push((flag, meta.path.span()));
        Ok(())
    }

    /// What is called on the builder.
    pub(crate) fn calls(&self) -> TokenStream {
        let mut calls = TokenStream::new();
        if let Some(version) = &self.version {
            calls.extend(quote!(.version(#version)));
        }
        if let Some(scopes) = &self.scopes {
            calls.extend(quote!(.scopes([#(#scopes),*])));
        }
        if let Some(requires) = &self.requires {
            calls.extend(quote!(.requires([#(#requires),*])));
        }
        for (flag, span) in &self.flags {
            let method = syn::Ident::new(flag, *span);
            calls.extend(quote!(.#method()));
        }
        match &self.confirm {
            None => {}
            Some(Confirm::Caller) => calls.extend(quote!(.confirm(::callgate_core::tool::ConfirmBy::Caller))),
            Some(Confirm::Approver(scope)) => {
                calls.extend(quote!(.confirm(::callgate_core::tool::ConfirmBy::Approver { scope: #scope })));
            }
        }
        if let Some(timeout) = self.timeout_ms {
            calls.extend(quote!(.timeout(::core::time::Duration::from_millis(#timeout))));
        }
        if let Some(at_most) = self.background_ms {
            calls.extend(quote!(.background(::core::time::Duration::from_millis(#at_most))));
        }
        if let Some((at_once, line)) = &self.concurrency {
            calls.extend(quote!(.concurrency(#at_once, #line)));
        }
        if let Some(cost) = &self.cost {
            calls.extend(quote!(.cost(#cost)));
        }
        if let Some(bytes) = &self.max_output {
            calls.extend(quote!(.max_output(#bytes)));
        }
        calls
    }
}

/// Reads `= "text"`.
pub(crate) fn text(meta: &ParseNestedMeta<'_>, example: &str) -> syn::Result<LitStr> {
    if !meta.input.peek(Token![=]) {
        return Err(meta.error(format!("a text is needed; write as in `{example}`")));
    }
    let input = meta.value()?;
    if !input.peek(LitStr) {
        return Err(input.error(format!("a text in quotes is needed; write as in `{example}`")));
    }
    input.parse()
}

fn names(meta: &ParseNestedMeta<'_>, example: &str) -> syn::Result<Vec<LitStr>> {
    if !meta.input.peek(token::Paren) {
        return Err(meta.error(format!("a list is needed; write as in `{example}`")));
    }
    let content;
    parenthesized!(content in meta.input);
    if content.is_empty() {
        return Err(meta.error(format!("an empty list asks for nothing; write as in `{example}`, or leave it out")));
    }
    let names: Vec<LitStr> = Punctuated::<LitStr, Token![,]>::parse_terminated(&content)?.into_iter().collect();
    names.iter().try_for_each(scope)?;
    Ok(names)
}

fn scope(name: &LitStr) -> syn::Result<()> {
    check_scope(&name.value()).map_err(|error| {
        let text = format!(
            "this name {error}; use 1 to 128 printable ASCII characters except space, quote, backslash and comma"
        );
        syn::Error::new_spanned(name, text)
    })
}

/// Reads `(caller)` or `(approver = "scope")`.
fn confirm(meta: &ParseNestedMeta<'_>) -> syn::Result<Confirm> {
    const EXAMPLE: &str = "say who confirms: `confirm(caller)`, or `confirm(approver = \"scope\")`";
    if !meta.input.peek(token::Paren) {
        return Err(meta.error(EXAMPLE));
    }
    let mut who = None;
    meta.parse_nested_meta(|meta| {
        let one = match meta.path.get_ident().map(ToString::to_string).as_deref() {
            Some("caller") => Confirm::Caller,
            Some("approver") => {
                let name = text(&meta, "confirm(approver = \"payments:approve\")")?;
                scope(&name)?;
                Confirm::Approver(name)
            }
            _ => return Err(meta.error(EXAMPLE)),
        };
        if who.replace(one).is_some() {
            return Err(meta.error("a call is confirmed by the caller or by an approver, not by both"));
        }
        Ok(())
    })?;
    who.ok_or_else(|| meta.error(EXAMPLE))
}

/// Reads a time with its unit, in milliseconds.
fn timeout(literal: &LitStr) -> syn::Result<u64> {
    let text = literal.value();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = text.strip_prefix(digits).unwrap_or_default();
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    match digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)) {
        Some(milliseconds) if milliseconds > 0 => Ok(milliseconds),
        _ => {
            let text = "a time is a whole number and its unit: \"250ms\", \"30s\", \"5m\", \"1h\"; and more than none";
            Err(syn::Error::new_spanned(literal, text))
        }
    }
}

/// Reads `(at_once = 4, line = 16)`.
fn concurrency(meta: &ParseNestedMeta<'_>) -> syn::Result<(LitInt, LitInt)> {
    const EXAMPLE: &str = "say how many calls run at once and how many wait: `concurrency(at_once = 4, line = 16)`";
    if !meta.input.peek(token::Paren) {
        return Err(meta.error(EXAMPLE));
    }
    let (mut at_once, mut line) = (None, None);
    meta.parse_nested_meta(|meta| {
        if meta.path.is_ident("at_once") {
            at_once = Some(positive(&meta, "at_once = 4")?);
        } else if meta.path.is_ident("line") {
            line = Some(meta.value()?.parse::<LitInt>()?);
        } else {
            return Err(meta.error(EXAMPLE));
        }
        Ok(())
    })?;
    at_once.zip(line).ok_or_else(|| meta.error(EXAMPLE))
}

fn positive(meta: &ParseNestedMeta<'_>, example: &str) -> syn::Result<LitInt> {
    if !meta.input.peek(Token![=]) {
        return Err(meta.error(format!("a number is needed; write as in `{example}`")));
    }
    let value: LitInt = meta.value()?.parse()?;
    match value.base10_parse::<u32>() {
        Ok(number) if number > 0 => Ok(value),
        _ => Err(syn::Error::new_spanned(value, format!("a number from 1 to 4294967295 is needed, as in `{example}`"))),
    }
}
