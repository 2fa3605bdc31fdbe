//! What a derived type reads itself with: a visitor of serde's.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{GenericParam, Generics, Ident, Lifetime, LifetimeParam};

/// How one kind of type is read.
pub(crate) struct Reading {
    /// What a message says is expected.
    pub(crate) expecting: &'static str,
    /// The visitor's method, which finds the declared names in `NAMES`.
    pub(crate) visit: TokenStream,
    /// What `source` is asked for with `visitor`.
    pub(crate) ask: TokenStream,
}

/// The implementation of `Read` for a type whose fields or variants have these names on the wire.
pub(crate) fn read<'n, N: Iterator<Item = &'n String>>(
    ident: &Ident,
    generics: &Generics,
    names: N,
    reading: &Reading,
) -> TokenStream {
    let Reading { expecting, visit, ask } = reading;
    let lifetimes = lifetimes(generics);
    let with_source = with_source_lifetime(generics);
    let (impl_generics, _, _) = with_source.split_for_impl();
    let (_, type_generics, _) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics ::callgate_core::typed::Read<'callgate_de> for #ident #type_generics {
            fn read<CallgateSource: ::callgate_core::typed::serde::Deserializer<'callgate_de>>(
                source: CallgateSource,
            ) -> ::core::result::Result<Self, CallgateSource::Error> {
                const NAMES: &[&str] = &[#(#names),*];
                struct CallgateVisitor #generics (::core::marker::PhantomData<(#(&#lifetimes (),)*)>);
                impl #impl_generics ::callgate_core::typed::serde::de::Visitor<'callgate_de>
                    for CallgateVisitor #type_generics
                {
                    type Value = #ident #type_generics;

                    fn expecting(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                        f.write_str(#expecting)
                    }

                    #visit
                }
                let visitor = CallgateVisitor(::core::marker::PhantomData);
                #ask
            }
        }
    }
}

/// The lifetimes that a type declares.
pub(crate) fn lifetimes(generics: &Generics) -> Vec<&Lifetime> {
    generics.lifetimes().map(|parameter| &parameter.lifetime).collect()
}

/// The generics and the lifetime of what is read, which is the longest.
pub(crate) fn with_source_lifetime(generics: &Generics) -> Generics {
    let mut with_source = generics.clone();
    let mut source = LifetimeParam::new(Lifetime::new("'callgate_de", Span::call_site()));
    source.bounds.extend(generics.lifetimes().map(|parameter| parameter.lifetime.clone()));
    with_source.params.insert(0, GenericParam::Lifetime(source));
    with_source
}
