//! `#[toolkit]` on an `impl` block.

use std::collections::HashMap;

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::Parser;
use syn::{ImplItem, ImplItemFn, ItemImpl};

use crate::text::{Faults, conditions, strip, unknown};
use crate::tool::{define, name_of, strip_parameters};
use crate::tool_attr::{ToolAttr, text};

/// The block without what only this crate understands, and the tools of it.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let mut block: ItemImpl = syn::parse2(item)?;
    let mut prefix = String::new();
    syn::meta::parser(|meta| {
        let word = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        if word != "prefix" {
            return Err(unknown(&meta.path, "toolkit", &word, &["prefix"]));
        }
        prefix = text(&meta, "prefix = \"notes.\"")?.value();
        Ok(())
    })
    .parse2(attribute)?;
    if let Some((path, _)) = &block.trait_ {
        let text = "the methods of a trait belong to the trait; write the tools in an `impl` block of the type's own";
        return Err(syn::Error::new_spanned(path, text));
    }
    let mut faults = Faults::default();
    let mut definitions = Vec::new();
    let mut names = HashMap::new();
    let mut asked = false;
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        asked |= method.attrs.iter().any(|attribute| attribute.path().is_ident("tool"));
        match definition(method, &prefix) {
            Ok(None) => {}
            Ok(Some((name, definition))) => {
                if names.insert(name.clone(), ()).is_some() {
                    let text = format!("another method is the tool `{name}`; name one of them with `name = \"...\"`");
                    faults.add(syn::Error::new_spanned(&method.sig.ident, text));
                }
                definitions.push(definition);
            }
            Err(error) => faults.add(error),
        }
    }
    if !asked {
        faults.add(syn::Error::new_spanned(
            &block.self_ty,
            "no method of this block is a tool; put `#[tool]` on those that are",
        ));
    }
    faults.check()?;
    let ty = &block.self_ty;
    let (impl_generics, _, conditions) = block.generics.split_for_impl();
    Ok(quote! {
        #block
        #[automatically_derived]
        impl #impl_generics ::callgate_std::tool::Toolkit for #ty #conditions {
            fn tools(self: &::std::sync::Arc<Self>) -> ::std::vec::Vec<::callgate_std::tool::ToolBuilder> {
                let mut tools = ::std::vec::Vec::new();
                #(#definitions)*
                tools
            }
        }
    })
}

/// The name and the definition of a method that is a tool.
fn definition(method: &mut ImplItemFn, prefix: &str) -> syn::Result<Option<(String, TokenStream)>> {
    let Some(attribute) = method.attrs.iter().find(|attribute| attribute.path().is_ident("tool")) else {
        return Ok(None);
    };
    let mut attr = ToolAttr::default();
    if !matches!(attribute.meta, syn::Meta::Path(_)) {
        attribute.parse_nested_meta(|meta| attr.read(&meta))?;
    }
    let ident = &method.sig.ident;
    let definition = define(&attr, &method.sig, &method.attrs, prefix, &quote!(Self::#ident))?;
    let name = name_of(&attr, ident, prefix);
    let shares = method.sig.receiver().is_some();
    strip(&mut method.attrs, &["tool"]);
    strip_parameters(&mut method.sig);
    let this = shares.then(|| quote!(let this = ::std::sync::Arc::clone(self);));
    let conditions = conditions(&method.attrs);
    Ok(Some((name, quote!(#(#conditions)* tools.push({ #this #definition });))))
}
