//! `#[derive(Arguments)]`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Fields, FieldsUnnamed};

use crate::choice;
use crate::kind::with_lifetime;
use crate::param::Param;
use crate::reader::with_source_lifetime;
use crate::record::{Field, Record, only_lifetimes};
use crate::serde_names::rename_all;
use crate::text::{Faults, doc_of};

/// The implementations for a struct or an enum, out of sight of the names around it.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    only_lifetimes(&input.generics)?;
    let case = rename_all(&input.attrs, "arguments")?;
    let implementations = match &input.data {
        Data::Enum(data) => choice::parameter(input, data, case)?,
        Data::Struct(data) => match &data.fields {
            Fields::Unnamed(fields) => transparent(input, fields)?,
            fields => {
                let mut faults = Faults::default();
                let mut list = Vec::new();
                for field in fields {
                    let Some(ident) = &field.ident else { continue };
                    match Field::new(ident, &field.ty, &field.attrs, case) {
                        Ok(field) => list.push(field),
                        Err(error) => faults.add(error),
                    }
                }
                let record = Record {
                    ident: input.ident.clone(),
                    generics: input.generics.clone(),
                    fields: list,
                    doc: doc_of(&input.attrs),
                    hidden: false,
                };
                record.check_names(&mut faults);
                faults.check()?;
                let (parameter, arguments) = (record.parameter(), record.arguments());
                quote!(#parameter #arguments)
            }
        },
        Data::Union(data) => {
            let text = "a union has no value that could be read; write a struct or an enum";
            return Err(syn::Error::new_spanned(data.union_token, text));
        }
    };
    Ok(quote!(const _: () = { #implementations };))
}

/// A struct of one unnamed field is on the wire what the field is.
fn transparent(input: &DeriveInput, fields: &FieldsUnnamed) -> syn::Result<TokenStream> {
    let mut each = fields.unnamed.iter();
    let (Some(field), None) = (each.next(), each.next()) else {
        return Err(syn::Error::new_spanned(fields, "a list of unlike values has no schema here; name the fields"));
    };
    let param = Param::parse(&field.attrs)?;
    param.check(&field.ty)?;
    if let Some(rename) = &param.rename {
        return Err(syn::Error::new(rename.span, "a field without a name can't be renamed"));
    }
    if param.default.is_some() {
        return Err(syn::Error::new_spanned(field, "say the default where the type is used"));
    }
    let (ident, ty) = (&input.ident, &field.ty);
    let (impl_generics, type_generics, _) = input.generics.split_for_impl();
    let with_de = with_source_lifetime(&input.generics);
    let (read_generics, _, _) = with_de.split_for_impl();
    let static_ty = with_lifetime(ty, "'static");
    let base = quote_spanned!(ty.span()=> <#static_ty as ::callgate_core::typed::Parameter>::SCHEMA);
    let schema = param.schema(&base, &static_ty, doc_of(&input.attrs).as_deref());
    let span = param.span().unwrap_or_else(|| ty.span());
    let demand = quote_spanned!(span=> const _: () = ::callgate_core::typed::demand(&#schema););
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::callgate_core::typed::Parameter for #ident #type_generics {
            const SCHEMA: ::callgate_core::schema::Schema<'static> = #schema;
            const OPTIONAL: bool = <#static_ty as ::callgate_core::typed::Parameter>::OPTIONAL;
        }
        #demand
        #[automatically_derived]
        impl #read_generics ::callgate_core::typed::Read<'callgate_de> for #ident #type_generics {
            fn read<CallgateSource: ::callgate_core::typed::serde::Deserializer<'callgate_de>>(
                source: CallgateSource,
            ) -> ::core::result::Result<Self, CallgateSource::Error> {
                ::core::result::Result::map(<#ty as ::callgate_core::typed::Read<'callgate_de>>::read(source), Self)
            }

            fn absent() -> ::core::option::Option<Self> {
                ::core::option::Option::map(<#ty as ::callgate_core::typed::Read<'callgate_de>>::absent(), Self)
            }
        }
    })
}
