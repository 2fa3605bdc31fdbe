//! `#[tool]` on a function.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::Parser;
use syn::{FnArg, Ident, ItemFn, Signature};

use crate::bare;
use crate::signature::{Home, Shape};
use crate::text::{conditions, doc_of, plain, strip};
use crate::tool_attr::ToolAttr;

/// What stands for the function beside it.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let mut function: ItemFn = syn::parse2(item)?;
    let mut attr = ToolAttr::default();
    syn::meta::parser(|meta| attr.read(&meta)).parse2(attribute)?;
    if let Some(receiver) = function.sig.receiver() {
        let text = "a method is a tool of what it belongs to; put `#[toolkit]` on the `impl` block";
        return Err(syn::Error::new_spanned(receiver, text));
    }
    let (ident, vis) = (function.sig.ident.clone(), function.vis.clone());
    let item = if attr.no_std.is_some() {
        bare::item(&attr, &function)?
    } else {
        let definition = define(&attr, &function.sig, &function.attrs, "", &quote!(#ident))?;
        quote! {
            /// The definition, to be added to a registry.
            #vis fn tool() -> ::callgate_std::tool::ToolBuilder {
                #definition
            }
        }
    };
    strip_parameters(&mut function.sig);
    let conditions = conditions(&function.attrs);
    let about = format!("The tool `{}`.", name_of(&attr, &ident, ""));
    Ok(quote! {
        #function
        #(#conditions)*
        #[doc = #about]
        #[derive(::core::fmt::Debug)]
        #[allow(non_camel_case_types, reason = "it is called as the function is")]
        #vis enum #ident {}
        #(#conditions)*
        impl #ident {
            #item
        }
    })
}

/// Removes from parameters what only this crate understands.
pub(crate) fn strip_parameters(signature: &mut Signature) {
    for input in &mut signature.inputs {
        if let FnArg::Typed(parameter) = input {
            strip(&mut parameter.attrs, &["doc", "param"]);
        }
    }
}

/// The name of the tool.
pub(crate) fn name_of(attr: &ToolAttr, ident: &Ident, prefix: &str) -> String {
    attr.name.as_ref().map_or_else(|| format!("{prefix}{}", plain(ident)), syn::LitStr::value)
}

/// What the tool does, for the model.
pub(crate) fn description(
    attr: &ToolAttr,
    signature: &Signature,
    attributes: &[syn::Attribute],
) -> syn::Result<String> {
    let description = attr.description.as_ref().map(syn::LitStr::value).or_else(|| doc_of(attributes));
    description.filter(|text| !text.trim().is_empty()).ok_or_else(|| {
        let text = "a model has to know what the tool does; write a doc comment, or `description = \"...\"`";
        syn::Error::new_spanned(&signature.ident, text)
    })
}

/// The definition of a tool as an expression. `callee` is what is called; it is called on `this` where there is a receiver.
pub(crate) fn define(
    attr: &ToolAttr,
    signature: &Signature,
    attributes: &[syn::Attribute],
    prefix: &str,
    callee: &TokenStream,
) -> syn::Result<TokenStream> {
    if let Some(span) = attr.no_std {
        let text = "tools that share a value need a heap; write functions, or leave `no_std` out";
        return Err(syn::Error::new(span, text));
    }
    let name = name_of(attr, &signature.ident, prefix);
    let description = description(attr, signature, attributes)?;
    let shape = Shape::of(signature, Home::Std)?;
    let calls = attr.calls();
    let returns = shape.returns();
    let (declaration, parameter, arguments) =
        (shape.record.declaration(), shape.record.parameter(), shape.record.arguments());
    let record = &shape.record.ident;
    let call = format_ident!("call", span = proc_macro2::Span::mixed_site());
    let call = quote!(#call);
    let reading = shape.reading(&call);
    let passed = shape.passed(&call);
    let this = shape.has_receiver.then(|| quote!(&this,));
    let called = quote!(#callee(#this #(#passed),*));
    let body = if shape.is_async {
        let reply = shape.reply(&quote!(#called.await));
        let share = shape.has_receiver.then(|| quote!(let this = ::std::sync::Arc::clone(&this);));
        quote!(.async_handler(move |#call: ::callgate_std::tool::OwnedCall| {
            #share
            async move {
                #reading
                #reply
            }
        }))
    } else {
        let reply = shape.reply(&called);
        quote!(.handler(move |#call: &::callgate_std::tool::ToolCall<'_>| {
            #reading
            #reply
        }))
    };
    Ok(quote! {{
        #declaration
        #parameter
        #arguments
        ::callgate_std::tool::Tool::builder(#name)
            .description(#description)
            #calls
            .arguments::<#record<'static>>()
            #returns
            #body
    }})
}
