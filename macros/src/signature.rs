//! A function as a tool sees it: which parameters callers fill in, which the gate does, and what comes out.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    FnArg, GenericArgument, Generics, Ident, Pat, PatType, PathArguments, Receiver, ReceiverKind, ReturnType, Safety,
    Signature, Type, TypeReference, TypeSlice, parse_quote,
};

use crate::kind::{Kind, has_reference, has_self, last_name, peel, with_lifetime, wrapper};
use crate::record::{Field, Record};
use crate::text::{Faults, plain};

/// The lifetime of what a call lends.
const CALL: &str = "'callgate_call";

/// What is given to one parameter of the function.
enum Given {
    /// The field of the arguments at this position, and how it is handed over.
    Field(usize, Handing),
    /// The call itself.
    Call {
        /// Whether the function keeps it.
        owned: bool,
    },
    /// Who asks.
    Caller,
    /// What tells that the caller is gone.
    Cancellation {
        /// Whether the function keeps it.
        owned: bool,
    },
    /// The same, and what takes reports, of a function that blocks.
    Handle {
        /// The method of the call that gives it.
        method: &'static str,
        by_reference: bool,
    },
}

/// How a field becomes what the function takes.
#[derive(Clone, Copy)]
enum Handing {
    Moved,
    Borrowed,
    BorrowedOption,
}

/// What a function gives back.
enum Result {
    Nothing,
    Reply,
    /// A value of a type that has an output schema.
    Value(Box<Type>),
}

/// Where a tool runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    /// With `callgate-std`.
    Std,
    /// With core alone.
    Bare,
}

/// The parts of a function that a tool is made of.
pub(crate) struct Shape {
    pub(crate) record: Record,
    given: Vec<Given>,
    result: Result,
    /// Where the error type stands, of a function that can fail.
    fallible: Option<Span>,
    /// What it fails with, where that is written.
    error: Option<Type>,
    /// Where it says what it gives back.
    output: Span,
    pub(crate) is_async: bool,
    pub(crate) has_receiver: bool,
}

impl Shape {
    /// Takes a signature apart.
    pub(crate) fn of(signature: &Signature, home: Home) -> syn::Result<Self> {
        let mut faults = Faults::default();
        check_header(signature, &mut faults);
        let mut fields = Vec::new();
        let mut given = Vec::new();
        let mut has_receiver = false;
        for input in &signature.inputs {
            let parameter = match input {
                FnArg::Receiver(receiver) => {
                    has_receiver = true;
                    faults.take(check_receiver(receiver));
                    continue;
                }
                FnArg::Typed(parameter) => parameter,
            };
            match injected(parameter, signature.asyncness.is_some(), home) {
                Ok(Some(by_gate)) => given.push(by_gate),
                Ok(None) => match field(parameter, home) {
                    Ok((field, handing)) => {
                        given.push(Given::Field(fields.len(), handing));
                        fields.push(field);
                    }
                    Err(error) => faults.add(error),
                },
                Err(error) => faults.add(error),
            }
        }
        let (result, fallible) = match result(&signature.output) {
            Ok(result) => result,
            Err(error) => {
                faults.add(error);
                (Result::Nothing, None)
            }
        };
        let mut generics = Generics::default();
        generics.params.push(parse_quote!('callgate_call));
        let record = Record { ident: format_ident!("CallgateArguments"), generics, fields, doc: None, hidden: true };
        record.check_names(&mut faults);
        faults.check()?;
        let error = fallible.and_then(|_| error_type(&signature.output));
        let output = match &signature.output {
            ReturnType::Type(_, ty) => ty.span(),
            ReturnType::Default => signature.ident.span(),
        };
        Ok(Self {
            record,
            given,
            result,
            fallible,
            error,
            output,
            is_async: signature.asyncness.is_some(),
            has_receiver,
        })
    }

    /// The names that the fields of the arguments get in the body.
    fn rooms(&self) -> Vec<Ident> {
        (0..self.record.idents().count()).map(|nth| format_ident!("argument_{nth}")).collect()
    }

    /// Takes the arguments of a call apart. `call` is the call, by reference.
    pub(crate) fn reading(&self, call: &TokenStream) -> TokenStream {
        let ident = &self.record.ident;
        let bound = self.bound();
        quote!(let #ident { #bound } = #call.read::<#ident<'_>>()?;)
    }

    /// What the function is called with.
    pub(crate) fn passed(&self, call: &TokenStream) -> Vec<TokenStream> {
        let rooms = self.rooms();
        let given = |given: &Given| match given {
            Given::Call { owned: true } => quote!(::core::clone::Clone::clone(&#call)),
            Given::Call { owned: false } if self.is_async => quote!(&#call),
            Given::Call { owned: false } => quote!(#call),
            Given::Caller if self.is_async => quote!(&#call.caller()),
            Given::Caller => quote!(#call.caller()),
            Given::Cancellation { owned: true } => quote!(::core::clone::Clone::clone(#call.cancellation())),
            Given::Cancellation { owned: false } => quote!(#call.cancellation()),
            Given::Handle { method, by_reference } => {
                let method = Ident::new(method, Span::call_site());
                let reference = by_reference.then(|| quote!(&));
                quote!(#reference #call.#method())
            }
            Given::Field(nth, handing) => {
                let room = rooms.get(*nth);
                match handing {
                    Handing::Moved => quote!(#room),
                    Handing::Borrowed => quote!(&#room),
                    Handing::BorrowedOption => quote!(#room.as_deref()),
                }
            }
        };
        self.given.iter().map(given).collect()
    }

    /// Makes a reply of what the function gives back.
    pub(crate) fn reply(&self, called: &TokenStream) -> TokenStream {
        let value = match self.fallible {
            Some(span) => quote_spanned!(span=> #called?),
            None => called.clone(),
        };
        // Written out, because within an `async` block nothing else says what `?` turns errors into.
        let ok = quote!(::core::result::Result::<::callgate_std::output::Reply, ::callgate_std::failure::Failure>::Ok);
        match &self.result {
            Result::Nothing => quote!({
                #value;
                #ok(::callgate_std::output::Reply::empty())
            }),
            Result::Reply => quote!(#ok(#value)),
            Result::Value(ty) => {
                let of = quote_spanned!(ty.span()=> ::callgate_std::output::Reply::of(&output)?);
                quote!({
                    let output = #value;
                    #ok(#of)
                })
            }
        }
    }

    /// The types that the function gives back and fails with, where it runs without a heap.
    pub(crate) fn bare_types(&self) -> syn::Result<(TokenStream, TokenStream)> {
        let output = match &self.result {
            Result::Nothing => quote!(()),
            Result::Value(ty) => with_lifetime(ty, "'static").into_token_stream(),
            Result::Reply => {
                let text = "without a heap there is no `Reply`; give back what implements `ToolOutput`";
                return Err(syn::Error::new(self.output, text));
            }
        };
        let error = match (self.fallible, &self.error) {
            (None, _) => quote!(::callgate_core::typed::Never),
            (Some(_), Some(error)) => with_lifetime(error, "'static").into_token_stream(),
            (Some(span), None) => {
                return Err(syn::Error::new(span, "write out what it fails with: `Result<T, E>`"));
            }
        };
        Ok((output, error))
    }

    /// Whether it can fail.
    pub(crate) const fn is_fallible(&self) -> bool {
        self.fallible.is_some()
    }

    /// The names of the arguments' fields, and those that they get in the body.
    pub(crate) fn bound(&self) -> TokenStream {
        let fields = self.record.idents();
        let rooms = self.rooms();
        quote!(#(#fields: #rooms,)* ..)
    }

    /// What is called on the builder for the output schema.
    pub(crate) fn returns(&self) -> Option<TokenStream> {
        let Result::Value(ty) = &self.result else { return None };
        let lasting = with_lifetime(ty, "'static");
        Some(quote_spanned!(ty.span()=> .returns::<#lasting>()))
    }
}

fn check_header(signature: &Signature, faults: &mut Faults) {
    if let Some(parameter) = signature.generics.params.iter().find(|it| !matches!(it, syn::GenericParam::Lifetime(_))) {
        let text = "a tool has one schema, so it can't be generic; write the types out";
        faults.add(syn::Error::new_spanned(parameter, text));
    }
    if let Safety::Unsafe(keyword) = &signature.safety {
        faults.add(syn::Error::new(keyword.span, "a tool is called by whoever may, so it can't be unsafe to call"));
    }
    if let Some(abi) = &signature.abi {
        faults.add(syn::Error::new_spanned(abi, "a tool is a function of Rust; remove the ABI"));
    }
    if let Some(variadic) = &signature.variadic {
        faults.add(syn::Error::new_spanned(variadic, "a tool has named parameters; remove `...`"));
    }
}

fn check_receiver(receiver: &Receiver) -> syn::Result<()> {
    match &receiver.kind {
        ReceiverKind::Reference(_, _, None) => Ok(()),
        ReceiverKind::Reference(_, _, Some(mutability)) => {
            let text = "many calls run at once, so a tool takes `&self`; keep what changes behind a Mutex or an atomic";
            Err(syn::Error::new(mutability.span, text))
        }
        _ => {
            let text = "the tools of an `impl` share one value, so each takes `&self`";
            Err(syn::Error::new_spanned(receiver, text))
        }
    }
}

/// What the gate gives, told by the type's name.
fn injected(parameter: &PatType, is_async: bool, home: Home) -> syn::Result<Option<Given>> {
    let ty = &*parameter.ty;
    let wrong = |text: &str| Err(syn::Error::new_spanned(ty, text));
    let borrowed = matches!(ty, Type::Reference(TypeReference { mutability: None, .. }));
    let name = last_name(ty);
    if home == Home::Bare
        && matches!(name.as_deref(), Some("ToolCall" | "OwnedCall" | "Cancellation" | "Cancelled" | "Reporter"))
    {
        return wrong("without a heap only `&CallContext<'_>` is given");
    }
    let given = match (name.as_deref(), is_async) {
        (Some("ToolCall"), false) if borrowed => Given::Call { owned: false },
        (Some("CallContext"), _) if borrowed => Given::Caller,
        (Some("ToolCall" | "CallContext"), false) | (Some("CallContext"), true) => {
            return wrong("the gate lends this; take it by reference: `&...`");
        }
        (Some("ToolCall"), true) => return wrong("a function that waits takes `&OwnedCall`"),
        (Some("OwnedCall"), true) => Given::Call { owned: !borrowed },
        (Some("OwnedCall"), false) => return wrong("a function that does not wait takes `&ToolCall<'_>`"),
        (Some("Cancellation"), true) => Given::Cancellation { owned: !borrowed },
        (Some("Cancellation"), false) => return wrong("a function that does not wait takes `Cancelled<'_>`"),
        (Some("Cancelled"), true) => return wrong("a function that waits takes `Cancellation`"),
        (Some("Cancelled"), false) => Given::Handle { method: "cancellation", by_reference: borrowed },
        (Some("Reporter"), true) => return wrong("a function that waits takes `&OwnedCall`, and tells it"),
        (Some("Reporter"), false) => Given::Handle { method: "reporter", by_reference: borrowed },
        _ => return Ok(None),
    };
    if let Some(attribute) = parameter.attrs.first() {
        let text = "the gate gives this parameter, and no caller sees it; remove what is said of it";
        return Err(syn::Error::new_spanned(attribute, text));
    }
    Ok(Some(given))
}

/// A parameter that callers fill in.
fn field(parameter: &PatType, home: Home) -> syn::Result<(Field, Handing)> {
    let Pat::Ident(pattern) = &*parameter.pat else {
        let text = "a parameter's name is its name on the wire; write a plain name here";
        return Err(syn::Error::new_spanned(&parameter.pat, text));
    };
    let ty = &*parameter.ty;
    let (held, handing) = held(ty, home)?;
    let name = plain(&pattern.ident);
    if let Some(attribute) =
        parameter.attrs.iter().find(|it| !(it.path().is_ident("doc") || it.path().is_ident("param")))
    {
        return Err(syn::Error::new_spanned(
            attribute,
            "a parameter has a doc comment and `#[param(...)]`, nothing else",
        ));
    }
    if let Some(unused) = name.strip_prefix('_') {
        let text = format!(
            "`{name}` would be the name on the wire; write `{unused}`, or rename it with `#[param(rename = \"{unused}\")]`"
        );
        if !parameter.attrs.iter().any(|attribute| attribute.path().is_ident("param")) {
            return Err(syn::Error::new_spanned(&pattern.ident, text));
        }
    }
    Ok((Field::new(&pattern.ident, &held, &parameter.attrs, None)?, handing))
}

/// The type that holds the parameter until the function is called, and how it is handed over.
fn held(ty: &Type, home: Home) -> syn::Result<(Type, Handing)> {
    if let Type::ImplTrait(_) = ty {
        return Err(syn::Error::new_spanned(
            ty,
            "a parameter has one schema, so its type can't be `impl`; write it out",
        ));
    }
    if has_self(ty) {
        return Err(syn::Error::new_spanned(ty, "a parameter's type is looked at by itself; write out what `Self` is"));
    }
    if let Type::Reference(TypeReference { elem, mutability, .. }) = ty {
        if let Some(mutability) = mutability {
            return Err(syn::Error::new(mutability.span, "arguments can't be changed; take the value itself"));
        }
        if home == Home::Bare {
            if last_name(elem).as_deref() == Some("str") {
                return Ok((with_lifetime(ty, CALL), Handing::Moved));
            }
            return Err(syn::Error::new_spanned(
                ty,
                "without a heap only `&str` can be lent; take an array `[T; N]` by value",
            ));
        }
        if let Type::Slice(TypeSlice { elem, .. }) = &**elem
            && !has_reference(elem)
        {
            let item = with_lifetime(elem, CALL);
            return Ok((parse_quote!(::std::vec::Vec<#item>), Handing::Borrowed));
        }
        if peel(ty).kind == Kind::Text && last_name(elem).as_deref() == Some("str") {
            return Ok((parse_quote!(::std::borrow::Cow<'callgate_call, str>), Handing::Borrowed));
        }
        let text = "of references only `&str` and `&[T]` can be parameters; take the value itself";
        return Err(syn::Error::new_spanned(ty, text));
    }
    if home == Home::Bare {
        return Ok((with_lifetime(ty, CALL), Handing::Moved));
    }
    if let Some((name, Type::Reference(inner))) = wrapper(ty)
        && name == "Option"
        && last_name(&inner.elem).as_deref() == Some("str")
        && inner.mutability.is_none()
    {
        return Ok((
            parse_quote!(::core::option::Option<::std::borrow::Cow<'callgate_call, str>>),
            Handing::BorrowedOption,
        ));
    }
    if has_reference(ty) {
        let text = "a reference within another type can't hold a text with escapes; write `String` for `&str`, and values for other references";
        return Err(syn::Error::new_spanned(ty, text));
    }
    Ok((with_lifetime(ty, CALL), Handing::Moved))
}

/// The second type of `Result<T, E>`.
fn error_type(output: &ReturnType) -> Option<Type> {
    let ReturnType::Type(_, ty) = output else { return None };
    let Type::Path(path) = &**ty else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    arguments
        .args
        .iter()
        .filter_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty.clone()),
            _ => None,
        })
        .nth(1)
}

fn result(output: &ReturnType) -> syn::Result<(Result, Option<Span>)> {
    let ReturnType::Type(_, ty) = output else { return Ok((Result::Nothing, None)) };
    let (ty, fallible) = match wrapper(ty) {
        Some((name, value)) if name == "Result" => (value, Some(ty.span())),
        _ => (&**ty, None),
    };
    let result = match ty {
        Type::ImplTrait(_) => {
            let text = "a result has one schema, so its type can't be `impl`; write it out, or return a `Reply`";
            return Err(syn::Error::new_spanned(ty, text));
        }
        Type::Tuple(tuple) if tuple.elems.is_empty() => Result::Nothing,
        Type::Never(_) => return Err(syn::Error::new_spanned(ty, "a tool gives back something, or ends")),
        ty if last_name(ty).as_deref() == Some("Reply") => Result::Reply,
        ty => Result::Value(Box::new(ty.clone())),
    };
    Ok((result, fallible))
}
