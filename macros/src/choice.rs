//! An enum: a choice between names, and between objects of one member.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DataEnum, DeriveInput, Fields, Ident, Type, Variant};

use crate::kind::with_lifetime;
use crate::param::Param;
use crate::reader::{self, Reading};
use crate::record::{Field, Record, static_type};
use crate::serde_names::{Case, Side, told};
use crate::text::{Faults, Name, doc_of, plain};

/// What a variant holds.
enum Content {
    Nothing,
    /// One value.
    Value {
        ty: Box<Type>,
        param: Box<Param>,
    },
    /// Named fields.
    Fields(Box<Record>),
}

/// One variant.
struct Alternative {
    ident: Ident,
    wire: Name,
    doc: Option<String>,
    content: Content,
}

/// The implementations for an enum.
pub(crate) fn parameter(input: &DeriveInput, data: &DataEnum, case: Option<Case>) -> syn::Result<TokenStream> {
    let mut faults = Faults::default();
    let mut alternatives = Vec::new();
    for variant in &data.variants {
        match alternative(input, variant, case, &mut faults) {
            Ok(alternative) => alternatives.push(alternative),
            Err(error) => faults.add(error),
        }
    }
    if data.variants.is_empty() {
        faults.add(syn::Error::new_spanned(&input.ident, "no value fits an enum without variants; add one"));
    }
    check_names(alternatives.iter().map(|alternative| &alternative.wire), &mut faults);
    faults.check()?;
    Ok(emit(input, &alternatives))
}

/// Says that two variants have the same name on the wire.
pub(crate) fn check_names<'n, I: Iterator<Item = &'n Name>>(names: I, faults: &mut Faults) {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name.text.as_str()) {
            let text = format!("another variant is `{}` on the wire; rename one", name.text);
            faults.add(syn::Error::new(name.span, text));
        }
    }
}

fn alternative(
    input: &DeriveInput,
    variant: &Variant,
    case: Option<Case>,
    faults: &mut Faults,
) -> syn::Result<Alternative> {
    let own = Param::parse(&variant.attrs)?;
    let told = told(&variant.attrs, Side::Read)?;
    let name = plain(&variant.ident);
    let wire = own.rename.clone().or(told.rename).unwrap_or_else(|| Name {
        text: case.map_or_else(|| name.clone(), |case| case.variant(&name)),
        span: variant.ident.span(),
    });
    let content = match &variant.fields {
        Fields::Unit => Content::Nothing,
        Fields::Unnamed(fields) => {
            let mut each = fields.unnamed.iter();
            let (Some(field), None) = (each.next(), each.next()) else {
                let text = "a list of unlike values has no schema here; name the fields: `Variant { a: A, b: B }`";
                return Err(syn::Error::new_spanned(fields, text));
            };
            let param = Param::parse(&field.attrs)?;
            param.check(&field.ty)?;
            Content::Value { ty: Box::new(field.ty.clone()), param: Box::new(param) }
        }
        Fields::Named(fields) => {
            let mut list = Vec::new();
            for field in &fields.named {
                let Some(ident) = &field.ident else { continue };
                match Field::new(ident, &field.ty, &field.attrs, None) {
                    Ok(field) => list.push(field),
                    Err(error) => faults.add(error),
                }
            }
            let record = Record {
                ident: format_ident!("CallgateFields{}", name),
                generics: input.generics.clone(),
                fields: list,
                doc: None,
                hidden: true,
            };
            record.check_names(faults);
            Content::Fields(Box::new(record))
        }
    };
    Ok(Alternative {
        ident: variant.ident.clone(),
        wire,
        doc: own.description.or_else(|| doc_of(&variant.attrs)),
        content,
    })
}

fn emit(input: &DeriveInput, alternatives: &[Alternative]) -> TokenStream {
    let (ident, generics) = (&input.ident, &input.generics);
    let (impl_generics, type_generics, _) = generics.split_for_impl();
    let names = alternatives.iter().filter(|it| matches!(it.content, Content::Nothing)).map(|it| &it.wire.text);
    let properties = alternatives.iter().filter_map(property);
    let describe = description(doc_of(&input.attrs), alternatives).map(|text| quote!(.describe(#text)));
    let hidden = alternatives.iter().filter_map(|it| match &it.content {
        Content::Fields(record) => {
            let (declaration, parameter) = (record.declaration(), record.parameter());
            Some(quote!(#declaration #parameter))
        }
        _ => None,
    });
    let whole = static_type(ident, generics);
    let read = read(input, alternatives);
    quote! {
        #(#hidden)*
        #[automatically_derived]
        impl #impl_generics ::callgate_core::typed::Parameter for #ident #type_generics {
            const SCHEMA: ::callgate_core::schema::Schema<'static> =
                ::callgate_core::schema::Schema::tagged(&[#(#names),*], &[#(#properties),*]) #describe;
        }
        const _: () = ::callgate_core::typed::demand(&<#whole as ::callgate_core::typed::Parameter>::SCHEMA);
        #read
    }
}

fn property(alternative: &Alternative) -> Option<TokenStream> {
    let name = &alternative.wire.text;
    let schema = match &alternative.content {
        Content::Nothing => return None,
        Content::Value { ty, param } => {
            let ty = with_lifetime(ty, "'static");
            let base = quote_spanned!(ty.span()=> <#ty as ::callgate_core::typed::Parameter>::SCHEMA);
            param.schema(&base, &ty, None)
        }
        Content::Fields(record) => {
            let ty = static_type(&record.ident, &record.generics);
            quote!(<#ty as ::callgate_core::typed::Parameter>::SCHEMA)
        }
    };
    Some(quote!(::callgate_core::schema::Property::required(#name, #schema)))
}

/// The enum's own words, and what is said of each variant.
fn description(own: Option<String>, alternatives: &[Alternative]) -> Option<String> {
    let mut text = own.unwrap_or_default();
    for alternative in alternatives {
        if let Some(doc) = &alternative.doc {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&format!("- {}: {doc}", alternative.wire.text));
        }
    }
    (!text.is_empty()).then_some(text)
}

fn read(input: &DeriveInput, alternatives: &[Alternative]) -> TokenStream {
    let (ident, generics) = (&input.ident, &input.generics);
    let type_name = plain(ident);
    let Some((last, others)) = alternatives.split_last() else { return TokenStream::new() };
    // The position is that of a declared name, so the last arm stands for the last variant.
    let arms = others.iter().enumerate().map(|(nth, it)| {
        let arm = arm(ident, it);
        quote!(#nth => #arm,)
    });
    let last = arm(ident, last);
    let visit = quote! {
        fn visit_enum<CallgateVariant: ::callgate_core::typed::serde::de::EnumAccess<'callgate_de>>(
            self,
            data: CallgateVariant,
        ) -> ::core::result::Result<Self::Value, CallgateVariant::Error> {
            #[allow(unused_imports, reason = "not every enum holds values")]
            use ::callgate_core::typed::serde::de::VariantAccess as _;
            let (position, content) = data.variant_seed(::callgate_core::typed::VariantName(NAMES))?;
            ::core::result::Result::Ok(match position {
                #(#arms)*
                _ => #last,
            })
        }
    };
    let ask = quote!(source.deserialize_enum(#type_name, NAMES, visitor));
    let names = alternatives.iter().map(|it| &it.wire.text);
    reader::read(ident, generics, names, &Reading { expecting: "one of several alternatives", visit, ask })
}

fn arm(of: &Ident, alternative: &Alternative) -> TokenStream {
    let variant = &alternative.ident;
    match &alternative.content {
        Content::Nothing => quote!({
            content.unit_variant()?;
            #of::#variant
        }),
        Content::Value { ty, .. } => {
            let seed = quote_spanned!(ty.span()=> ::callgate_core::typed::Seed::<#ty>::new());
            quote!(#of::#variant(content.newtype_variant_seed(#seed)?))
        }
        Content::Fields(record) => {
            let hidden = &record.ident;
            let (_, type_generics, _) = record.generics.split_for_impl();
            let turbofish = type_generics.as_turbofish();
            let idents: Vec<_> = record.idents().collect();
            quote!({
                let fields = content.newtype_variant_seed(::callgate_core::typed::Seed::<#hidden #type_generics>::new())?;
                let #hidden #turbofish { #(#idents,)* .. } = fields;
                #of::#variant { #(#idents),* }
            })
        }
    }
}
