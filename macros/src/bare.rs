//! `#[tool(no_std)]`: a function as a constant of core, for hosts without a heap.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{ItemFn, LitStr};

use crate::signature::{Home, Shape};
use crate::tool::{description, name_of};
use crate::tool_attr::{Confirm, ToolAttr};

/// The constant `TOOL`.
pub(crate) fn item(attr: &ToolAttr, function: &ItemFn) -> syn::Result<TokenStream> {
    let (ident, vis) = (&function.sig.ident, &function.vis);
    let description = description(attr, &function.sig, &function.attrs)?;
    if let Some(asyncness) = &function.sig.asyncness {
        return Err(syn::Error::new_spanned(
            asyncness,
            "a constant tool is called and comes back; write a function that blocks",
        ));
    }
    let shape = Shape::of(&function.sig, Home::Bare)?;
    let (output, error) = shape.bare_types()?;
    let (declaration, parameter, arguments) =
        (shape.record.declaration(), shape.record.parameter(), shape.record.arguments());
    let record = &shape.record.ident;
    let bound = shape.bound();
    let call = format_ident!("call", span = proc_macro2::Span::mixed_site());
    let passed = shape.passed(&quote!(#call));
    let called = quote_spanned!(ident.span()=> #ident(#(#passed),*));
    let called = if shape.is_fallible() {
        quote!(#called.map_err(::callgate_core::typed::Failed::Body))
    } else {
        quote!(::core::result::Result::Ok(#called))
    };
    let spec = spec(attr, &name_of(attr, ident, ""), &description)?;
    Ok(quote! {
        /// The tool, for a host without a heap.
        #vis const TOOL: ::callgate_core::typed::BareTool<#output, #error> = {
            #declaration
            #parameter
            #arguments
            /// Who asks, as the function is given it.
            struct CallgateCall<'r>(&'r ::callgate_core::context::CallContext<'r>);
            impl<'r> CallgateCall<'r> {
                #[allow(dead_code, reason = "not every function asks")]
                const fn caller(&self) -> &'r ::callgate_core::context::CallContext<'r> {
                    self.0
                }
            }
            fn callgate_run<'callgate_call>(
                caller: &::callgate_core::context::CallContext<'_>,
                arguments: ::callgate_core::args::Args<'callgate_call>,
                room: &'callgate_call mut [u8],
            ) -> ::core::result::Result<#output, ::callgate_core::typed::Failed<#error>> {
                let #record { #bound } =
                    ::callgate_core::typed::read::<#record<'callgate_call>>(arguments, room)
                        .map_err(|error| ::callgate_core::typed::Failed::Arguments(error.kind()))?;
                let #call = CallgateCall(caller);
                let _ = &#call;
                #called
            }
            const CALLGATE_SCHEMA: ::callgate_core::schema::Schema<'static> =
                <#record<'static> as ::callgate_core::typed::Parameter>::SCHEMA;
            const CALLGATE_INPUT: &str = ::callgate_core::json_schema!(CALLGATE_SCHEMA);
            const CALLGATE_FIELDS: &[::callgate_core::tool::FieldRule<'static>] =
                <#record<'static> as ::callgate_core::typed::Arguments>::FIELDS;
            const CALLGATE_SPEC: ::callgate_core::tool::ToolSpec<'static> = #spec;
            ::callgate_core::typed::BareTool::new(CALLGATE_SPEC, CALLGATE_SCHEMA, callgate_run)
        };
    })
}

/// The definition.
fn spec(attr: &ToolAttr, name: &str, description: &str) -> syn::Result<TokenStream> {
    for (word, given) in [
        ("max_output", attr.max_output.is_some()),
        ("concurrency", attr.concurrency.is_some()),
        ("background", attr.background_ms.is_some()),
        ("strict", attr.flags.iter().any(|(flag, _)| *flag == "strict")),
    ] {
        if given && let Some(span) = attr.no_std {
            let text = format!("`{word}` is for hosts with a heap; leave it out, or `no_std`");
            return Err(syn::Error::new(span, text));
        }
    }
    let list = |names: &Option<Vec<LitStr>>| {
        let names: Vec<_> = names.iter().flatten().map(LitStr::value).collect();
        names.join(" ")
    };
    let (scopes, requirements) = (list(&attr.scopes), list(&attr.requires));
    let mut fields = TokenStream::new();
    if let Some(version) = &attr.version {
        fields.extend(quote!(version: ::core::option::Option::Some(#version),));
    }
    for (flag, span) in &attr.flags {
        let field = syn::Ident::new(flag, *span);
        fields.extend(quote!(#field: true,));
    }
    match &attr.confirm {
        None => {}
        Some(Confirm::Caller) => fields.extend(quote!(confirm: ::callgate_core::tool::ConfirmBy::Caller,)),
        Some(Confirm::Approver(scope)) => {
            fields.extend(quote!(confirm: ::callgate_core::tool::ConfirmBy::Approver { scope: #scope },));
        }
    }
    if let Some(timeout) = attr.timeout_ms {
        fields.extend(quote!(timeout_ms: #timeout,));
    }
    if let Some(cost) = &attr.cost {
        fields.extend(quote!(cost: ::core::option::Option::Some(#cost),));
    }
    Ok(quote! {
        ::callgate_core::tool::ToolSpec {
            input_schema: ::core::option::Option::Some(CALLGATE_INPUT),
            fields: CALLGATE_FIELDS,
            scopes: ::callgate_core::context::Scopes::new(#scopes),
            requirements: ::callgate_core::context::Scopes::new(#requirements),
            #fields
            ..::callgate_core::tool::ToolSpec::new(#name, #description)
        }
    })
}
