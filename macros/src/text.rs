//! Texts for models out of the source: descriptions, names.

use callgate_core::nearest::nearest;
use proc_macro2::Span;
use syn::{Attribute, Expr, ExprLit, Lit, LitStr, Meta};

/// The doc comment, up to its first heading: `# Errors` and the like are for programmers. Nothing when there is none.
pub(crate) fn doc_of(attributes: &[Attribute]) -> Option<String> {
    let mut text = String::new();
    for attribute in attributes {
        let Meta::NameValue(doc) = &attribute.meta else { continue };
        let Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) = &doc.value else { continue };
        if doc.path.is_ident("doc") {
            text.push_str(&line.value());
            text.push('\n');
        }
    }
    let mut described = String::new();
    for line in text.lines() {
        let line = line.strip_prefix(' ').unwrap_or(line);
        if line.starts_with("# ") {
            break;
        }
        described.push_str(line.trim_end());
        described.push('\n');
    }
    let described = described.trim();
    (!described.is_empty()).then(|| described.to_owned())
}

/// The attributes without doc comments and without those named, which only mean something to this crate.
pub(crate) fn strip(attributes: &mut Vec<Attribute>, names: &[&str]) {
    attributes.retain(|attribute| !names.iter().any(|name| attribute.path().is_ident(name)));
}

/// The conditions under which an item is compiled.
pub(crate) fn conditions(attributes: &[Attribute]) -> Vec<&Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect()
}

/// A name as it stands in the source, without the `r#` of a keyword.
pub(crate) fn plain(ident: &syn::Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map(str::to_owned).unwrap_or(name)
}

/// A name on the wire, and where it is given.
#[derive(Clone)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) span: Span,
}

impl Name {
    pub(crate) fn of(literal: &LitStr) -> Self {
        Self { text: literal.value(), span: literal.span() }
    }
}

/// The error for a word that an attribute does not know.
pub(crate) fn unknown(span: &impl quote::ToTokens, attribute: &str, word: &str, known: &[&str]) -> syn::Error {
    let meant = nearest(word.chars(), known.iter().copied());
    let text = match meant {
        Some(meant) => format!("`{attribute}` knows no `{word}`; did you mean `{meant}`?"),
        None => format!("`{attribute}` knows no `{word}`; it knows: {}", known.join(", ")),
    };
    syn::Error::new_spanned(span, text)
}

/// Collects errors, so that all are told at once.
#[derive(Default)]
pub(crate) struct Faults(Option<syn::Error>);

impl Faults {
    pub(crate) fn add(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// The value, or its default when it can't be had.
    pub(crate) fn take<T: Default>(&mut self, result: syn::Result<T>) -> T {
        result.unwrap_or_else(|error| {
            self.add(error);
            T::default()
        })
    }

    pub(crate) fn check(self) -> syn::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// The item without attributes that only this crate understands, as it is left where it can't be used.
pub(crate) fn without_own_attributes(item: proc_macro2::TokenStream) -> proc_macro2::TokenStream {
    use quote::ToTokens;
    let clean = |signature: &mut syn::Signature| crate::tool::strip_parameters(signature);
    if let Ok(mut function) = syn::parse2::<syn::ItemFn>(item.clone()) {
        clean(&mut function.sig);
        return function.into_token_stream();
    }
    let Ok(mut block) = syn::parse2::<syn::ItemImpl>(item.clone()) else { return item };
    for item in &mut block.items {
        if let syn::ImplItem::Fn(method) = item {
            strip(&mut method.attrs, &["tool"]);
            clean(&mut method.sig);
        }
    }
    block.into_token_stream()
}
