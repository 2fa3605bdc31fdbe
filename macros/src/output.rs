//! `#[derive(Output)]`: what serde writes for a type, as a schema.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DataEnum, DeriveInput, Fields, FieldsNamed, GenericParam, Type, parse_quote};

use crate::choice::check_names;
use crate::serde_names::{Case, Side, rename_all, told};
use crate::text::{Faults, Name, doc_of, plain};

/// The implementation for a struct or an enum.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let case = rename_all(&input.attrs, "output")?;
    let schema = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => object(fields, case)?,
            Fields::Unit => quote!(::callgate_core::schema::Schema::null()),
            Fields::Unnamed(fields) => match fields.unnamed.iter().collect::<Vec<_>>().as_slice() {
                [field] => of(&field.ty),
                _ => {
                    let text = "a list of unlike values has no schema here; name the fields";
                    return Err(syn::Error::new_spanned(fields, text));
                }
            },
        },
        Data::Enum(data) => choice(data, case)?,
        Data::Union(data) => {
            let text = "serde writes no union; write a struct or an enum";
            return Err(syn::Error::new_spanned(data.union_token, text));
        }
    };
    let describe = doc_of(&input.attrs).map(|doc| quote!(.describe(#doc)));
    let mut generics = input.generics.clone();
    for parameter in &mut generics.params {
        if let GenericParam::Type(parameter) = parameter {
            parameter.bounds.push(parse_quote!(::callgate_core::typed::Output));
        }
    }
    let ident = &input.ident;
    let (impl_generics, type_generics, conditions) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::callgate_core::typed::Output for #ident #type_generics #conditions {
            const SCHEMA: ::callgate_core::schema::Schema<'static> = #schema #describe;
        }
    })
}

fn of(ty: &Type) -> TokenStream {
    quote_spanned!(ty.span()=> <#ty as ::callgate_core::typed::Output>::SCHEMA)
}

fn object(fields: &FieldsNamed, case: Option<Case>) -> syn::Result<TokenStream> {
    let mut faults = Faults::default();
    let mut properties = Vec::new();
    for field in &fields.named {
        let Some(ident) = &field.ident else { continue };
        let told = faults.take(told(&field.attrs, Side::Written));
        if told.skipped {
            continue;
        }
        let name = plain(ident);
        let wire =
            told.rename.map_or_else(|| case.map_or_else(|| name.clone(), |case| case.field(&name)), |name| name.text);
        let schema = of(&field.ty);
        let describe = doc_of(&field.attrs).map(|doc| quote!(.describe(#doc)));
        let required = !told.optional;
        properties.push(quote!(::callgate_core::schema::Property::new(#wire, #schema #describe, #required)));
    }
    faults.check()?;
    Ok(quote!(::callgate_core::schema::Schema::object(&[#(#properties),*])))
}

fn choice(data: &DataEnum, case: Option<Case>) -> syn::Result<TokenStream> {
    let mut faults = Faults::default();
    let (mut names, mut properties, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for variant in &data.variants {
        let told = faults.take(told(&variant.attrs, Side::Written));
        if told.skipped {
            continue;
        }
        let name = plain(&variant.ident);
        let wire = told.rename.unwrap_or_else(|| Name {
            text: case.map_or_else(|| name.clone(), |case| case.variant(&name)),
            span: variant.ident.span(),
        });
        let text = &wire.text;
        match content(&variant.fields, &variant.attrs) {
            Ok(None) => names.push(text.clone()),
            Ok(Some(schema)) => {
                properties.push(quote!(::callgate_core::schema::Property::required(#text, #schema)));
            }
            Err(error) => faults.add(error),
        }
        all.push(wire);
    }
    check_names(all.iter(), &mut faults);
    faults.check()?;
    Ok(quote!(::callgate_core::schema::Schema::tagged(&[#(#names),*], &[#(#properties),*])))
}

/// What is written for a variant beside its name.
fn content(fields: &Fields, attributes: &[Attribute]) -> syn::Result<Option<TokenStream>> {
    let schema = match fields {
        Fields::Unit => return Ok(None),
        Fields::Named(fields) => object(fields, None)?,
        Fields::Unnamed(fields) => match fields.unnamed.iter().collect::<Vec<_>>().as_slice() {
            [field] => of(&field.ty),
            _ => {
                let text = "a list of unlike values has no schema here; name the fields: `Variant { a: A, b: B }`";
                return Err(syn::Error::new_spanned(fields, text));
            }
        },
    };
    let describe = doc_of(attributes).map(|doc| quote!(.describe(#doc)));
    Ok(Some(quote!(#schema #describe)))
}
