//! An object with named fields: a struct, the fields of a variant, the parameters of a function.

use std::collections::HashSet;

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, GenericParam, Generics, Ident, Lifetime, Type};

use crate::kind::with_lifetime;
use crate::param::{DefaultValue, Param, Written};
use crate::reader::{self, Reading, lifetimes};
use crate::serde_names::{Case, Side, told};
use crate::text::{Faults, Name, doc_of, plain};

/// The reserved argument that carries a confirmation's token (design 4.7).
const RESERVED: &str = "confirm_token";

/// One field.
pub(crate) struct Field {
    ident: Ident,
    ty: Type,
    wire: Name,
    param: Param,
    doc: Option<String>,
}

impl Field {
    /// A field with what its attributes say, checked against its type.
    pub(crate) fn new(ident: &Ident, ty: &Type, attributes: &[Attribute], case: Option<Case>) -> syn::Result<Self> {
        let mut param = Param::parse(attributes)?;
        let told = told(attributes, Side::Read)?;
        if let (None, Some(span)) = (&param.default, told.default) {
            param.default = Some(DefaultValue::OfType(span));
        }
        param.check(ty)?;
        let name = plain(ident);
        let wire = param.rename.clone().or(told.rename).unwrap_or_else(|| Name {
            text: case.map_or_else(|| name.clone(), |case| case.field(&name)),
            span: ident.span(),
        });
        if wire.text == RESERVED {
            let text =
                "`confirm_token` is the gate's own argument and never reaches a tool; give the field another name";
            return Err(syn::Error::new(wire.span, text));
        }
        if wire.text.is_empty() {
            return Err(syn::Error::new(wire.span, "a field needs a name on the wire"));
        }
        Ok(Self { ident: ident.clone(), ty: ty.clone(), wire, param, doc: doc_of(attributes) })
    }

    /// The schema of the field, as a constant expression.
    fn schema(&self) -> TokenStream {
        let ty = with_lifetime(&self.ty, "'static");
        let base = quote_spanned!(self.ty.span()=> <#ty as ::callgate_core::typed::Parameter>::SCHEMA);
        self.param.schema(&base, &ty, self.doc.as_deref())
    }

    fn property(&self) -> TokenStream {
        let name = &self.wire.text;
        let schema = self.schema();
        if self.param.default.is_some() {
            return quote!(::callgate_core::schema::Property::optional(#name, #schema));
        }
        let ty = with_lifetime(&self.ty, "'static");
        let required = quote_spanned!(self.ty.span()=> !<#ty as ::callgate_core::typed::Parameter>::OPTIONAL);
        quote!(::callgate_core::schema::Property::new(#name, #schema, #required))
    }

    /// What the compiler checks of what is said of the field, with the place to point at.
    fn demand(&self) -> Option<TokenStream> {
        let span = self.param.span()?;
        let schema = self.schema();
        Some(quote_spanned!(span=> const _: () = ::callgate_core::typed::demand(&#schema);))
    }
}

/// An object with named fields.
pub(crate) struct Record {
    pub(crate) ident: Ident,
    /// Lifetimes alone.
    pub(crate) generics: Generics,
    pub(crate) fields: Vec<Field>,
    pub(crate) doc: Option<String>,
    /// Whether the type is one that this crate writes, with a last field that holds its lifetimes.
    pub(crate) hidden: bool,
}

impl Record {
    /// Says that two fields have the same name on the wire.
    pub(crate) fn check_names(&self, faults: &mut Faults) {
        let mut seen = HashSet::new();
        for field in &self.fields {
            if !seen.insert(field.wire.text.as_str()) {
                let text = format!("another field is `{}` on the wire; rename one", field.wire.text);
                faults.add(syn::Error::new(field.wire.span, text));
            }
        }
    }

    /// The struct itself, where this crate writes it.
    pub(crate) fn declaration(&self) -> TokenStream {
        let Self { ident, generics, .. } = self;
        let fields = self.fields.iter().map(|Field { ident, ty, .. }| quote!(#ident: #ty));
        let lifetimes = lifetimes(generics);
        quote! {
            struct #ident #generics {
                #(#fields,)*
                callgate_lifetimes: ::core::marker::PhantomData<(#(&#lifetimes (),)*)>,
            }
        }
    }

    /// What makes the type a parameter that reads itself.
    pub(crate) fn parameter(&self) -> TokenStream {
        let Self { ident, generics, .. } = self;
        let (impl_generics, type_generics, _) = generics.split_for_impl();
        let properties = self.fields.iter().map(Field::property);
        let describe = self.doc.as_ref().map(|doc| quote!(.describe(#doc)));
        let demands = self.fields.iter().filter_map(Field::demand);
        let whole = static_type(ident, generics);
        let read = self.read();
        quote! {
            #[automatically_derived]
            impl #impl_generics ::callgate_core::typed::Parameter for #ident #type_generics {
                const SCHEMA: ::callgate_core::schema::Schema<'static> =
                    ::callgate_core::schema::Schema::object(&[#(#properties),*]) #describe;
            }
            #(#demands)*
            const _: () = ::callgate_core::typed::demand(&<#whole as ::callgate_core::typed::Parameter>::SCHEMA);
            #read
        }
    }

    /// What makes the type all the arguments of a tool.
    pub(crate) fn arguments(&self) -> TokenStream {
        let Self { ident, generics, .. } = self;
        let (impl_generics, type_generics, _) = generics.split_for_impl();
        let whole = static_type(ident, generics);
        quote! {
            #[automatically_derived]
            impl #impl_generics ::callgate_core::typed::Arguments for #ident #type_generics {
                const FIELDS: &'static [::callgate_core::tool::FieldRule<'static>] = {
                    const SCHEMA: &::callgate_core::schema::Schema<'static> =
                        &<#whole as ::callgate_core::typed::Parameter>::SCHEMA;
                    const RULES: &::callgate_core::schema::Rules<{ SCHEMA.rule_count() }, { SCHEMA.rule_bytes() }> =
                        &SCHEMA.rules();
                    const FIELDS: &[::callgate_core::tool::FieldRule<'static>] = &RULES.as_rules();
                    FIELDS
                };
            }
        }
    }

    fn read(&self) -> TokenStream {
        let Self { ident, generics, .. } = self;
        let rooms: Vec<_> = (0..self.fields.len()).map(|nth| format_ident!("field_{nth}")).collect();
        let declarations = self.fields.iter().zip(&rooms).map(|(Field { ty, .. }, room)| {
            quote!(let mut #room: ::core::option::Option<#ty> = ::core::option::Option::None;)
        });
        let arms = self.fields.iter().zip(&rooms).enumerate().map(|(nth, (Field { ty, wire, .. }, room))| {
            let name = &wire.text;
            let seed = quote_spanned!(ty.span()=> ::callgate_core::typed::Seed::<#ty>::new());
            quote! {
                #nth => {
                    if #room.is_some() {
                        return ::core::result::Result::Err(
                            ::callgate_core::typed::serde::de::Error::duplicate_field(#name),
                        );
                    }
                    #room = ::core::option::Option::Some(members.next_value_seed(#seed)?);
                }
            }
        });
        let values = self.fields.iter().zip(&rooms).map(|(Field { ident, ty, wire, param, .. }, room)| {
            let name = &wire.text;
            match &param.default {
                None => {
                    let present = quote_spanned!(ty.span()=> ::callgate_core::typed::present(#room, #name)?);
                    quote!(#ident: #present)
                }
                Some(DefaultValue::OfType(span)) => {
                    let default = quote_spanned!(*span=> ::core::default::Default::default());
                    quote!(#ident: match #room {
                        ::core::option::Option::Some(value) => value,
                        ::core::option::Option::None => #default,
                    })
                }
                Some(DefaultValue::Given(value)) => {
                    let read = Written::of(value).map(|written| written.read());
                    quote!(#ident: match #room {
                        ::core::option::Option::Some(value) => value,
                        ::core::option::Option::None => #read,
                    })
                }
            }
        });
        let last = self.hidden.then(|| quote!(callgate_lifetimes: ::core::marker::PhantomData,));
        let visit = quote! {
            fn visit_map<CallgateMembers: ::callgate_core::typed::serde::de::MapAccess<'callgate_de>>(
                self,
                mut members: CallgateMembers,
            ) -> ::core::result::Result<Self::Value, CallgateMembers::Error> {
                #(#declarations)*
                while let ::core::option::Option::Some(position) =
                    members.next_key_seed(::callgate_core::typed::FieldName(NAMES))?
                {
                    match position {
                        #(#arms)*
                        _ => {
                            let _: ::callgate_core::typed::serde::de::IgnoredAny = members.next_value()?;
                        }
                    }
                }
                ::core::result::Result::Ok(#ident { #(#values,)* #last })
            }
        };
        let ask = quote!(source.deserialize_map(visitor));
        let names = self.fields.iter().map(|field| &field.wire.text);
        reader::read(ident, generics, names, &Reading { expecting: "an object", visit, ask })
    }

    /// The names of the fields in the source.
    pub(crate) fn idents(&self) -> impl Iterator<Item = &Ident> {
        self.fields.iter().map(|field| &field.ident)
    }
}

/// The type with `'static` for each of its lifetimes.
pub(crate) fn static_type(ident: &Ident, generics: &Generics) -> TokenStream {
    let lifetimes: Vec<_> = generics.lifetimes().map(|_| Lifetime::new("'static", Span::call_site())).collect();
    if lifetimes.is_empty() { quote!(#ident) } else { quote!(#ident<#(#lifetimes),*>) }
}

/// Refuses what the arguments of a tool can't be generic over.
pub(crate) fn only_lifetimes(generics: &Generics) -> syn::Result<()> {
    let other = generics.params.iter().find(|parameter| !matches!(parameter, GenericParam::Lifetime(_)));
    if let Some(other) = other {
        let text = "arguments have one schema, so their type can't be generic; write the type out";
        return Err(syn::Error::new_spanned(other, text));
    }
    match &generics.where_clause {
        Some(clause) => Err(syn::Error::new_spanned(clause, "arguments have no conditions; remove the clause")),
        None => Ok(()),
    }
}
