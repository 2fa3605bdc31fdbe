//! `#[param(...)]`: what is said of one field or parameter.

use proc_macro2::{Literal, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprLit, Lit, LitStr, Token, Type, parenthesized, token};

use crate::kind::{Kind, Peeled, peel};
use crate::number::{Bounds, Number, bound, count, literal};
use crate::text::{Name, unknown};

const KNOWN: [&str; 10] =
    ["description", "clamp", "clamp_length", "range", "length", "items", "enum", "default", "secret", "rename"];

/// What is said of one field.
#[derive(Default)]
pub(crate) struct Param {
    pub(crate) description: Option<String>,
    clamp: Option<Bounds>,
    clamp_length: Option<Bounds>,
    range: Option<Bounds>,
    length: Option<Bounds>,
    items: Option<Bounds>,
    values: Option<(Span, Vec<Expr>)>,
    pub(crate) default: Option<DefaultValue>,
    secret: bool,
    pub(crate) rename: Option<Name>,
    /// The attribute, to point at.
    span: Option<Span>,
}

/// What stands for a field that was left out.
pub(crate) enum DefaultValue {
    /// What `Default` says, which no schema tells.
    OfType(Span),
    /// A value as it stands on the wire.
    Given(Expr),
}

impl Param {
    /// Reads all `#[param(...)]` among the attributes.
    pub(crate) fn parse(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut param = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("param")) {
            param.span = Some(attribute.path().span());
            attribute.parse_nested_meta(|meta| param.read(&meta))?;
        }
        Ok(param)
    }

    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let word = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        let again = match word.as_str() {
            "description" => self.description.replace(meta.value()?.parse::<LitStr>()?.value()).is_some(),
            "clamp" => self.clamp.replace(Bounds::parse(meta, "clamp")?).is_some(),
            "clamp_length" => self.clamp_length.replace(Bounds::parse(meta, "clamp_length")?).is_some(),
            "range" => self.range.replace(Bounds::parse(meta, "range")?).is_some(),
            "length" => self.length.replace(Bounds::parse(meta, "length")?).is_some(),
            "items" => self.items.replace(Bounds::parse(meta, "items")?).is_some(),
            "enum" => self.values.replace((meta.path.span(), values(meta)?)).is_some(),
            "default" => {
                let value = if meta.input.peek(Token![=]) {
                    DefaultValue::Given(meta.value()?.parse()?)
                } else {
                    DefaultValue::OfType(meta.path.span())
                };
                self.default.replace(value).is_some()
            }
            "secret" => std::mem::replace(&mut self.secret, true),
            "rename" => self.rename.replace(Name::of(&meta.value()?.parse()?)).is_some(),
            other => return Err(unknown(&meta.path, "param", other, &KNOWN)),
        };
        if again {
            return Err(syn::Error::new_spanned(&meta.path, format!("`{word}` is said twice; remove one")));
        }
        Ok(())
    }

    /// Checks what is said against the type of the field, as far as its name tells.
    pub(crate) fn check(&self, ty: &Type) -> syn::Result<()> {
        let Peeled { inner, kind, optional } = peel(ty);
        let shown = shown(inner);
        let wrong = |bounds: &Bounds, name: &str, what: &str, instead: &str| {
            let text = format!("`{name}` is for {what}, and `{shown}` is {}; {instead}", kind.noun());
            Err(syn::Error::new_spanned(&bounds.range, text))
        };
        for (name, bounds) in [("clamp", &self.clamp), ("range", &self.range)] {
            let Some(bounds) = bounds else { continue };
            let instead = match (kind, name) {
                (Kind::Integer { .. } | Kind::Float | Kind::Other, _) => {
                    bounds.check_numbers(name, kind)?;
                    continue;
                }
                (Kind::Text, "clamp") => "write `clamp_length(..=100)` to cut it, or `length(..=100)` to refuse it",
                (Kind::Text, _) => "write `length(1..=100)`",
                (Kind::List, _) => "write `items(1..=10)` for how many there may be",
                _ => "remove it",
            };
            return wrong(bounds, name, "numbers", instead);
        }
        for (name, bounds) in [("clamp_length", &self.clamp_length), ("length", &self.length)] {
            let Some(bounds) = bounds else { continue };
            match kind {
                Kind::Text | Kind::Other => bounds.check_count()?,
                Kind::List => return wrong(bounds, name, "texts", "write `items(1..=10)` for how many there may be"),
                Kind::Integer { .. } | Kind::Float if name == "length" => {
                    return wrong(bounds, name, "texts", "write `range(1..=100)`");
                }
                Kind::Integer { .. } | Kind::Float => return wrong(bounds, name, "texts", "write `clamp(1..=100)`"),
                _ => return wrong(bounds, name, "texts", "remove it"),
            }
        }
        if let Some(bounds) = &self.clamp_length
            && (bounds.start.is_some() || bounds.end.is_none())
        {
            return Err(syn::Error::new_spanned(
                &bounds.range,
                "a text can be cut and not made longer; write `..=100`",
            ));
        }
        if let Some(bounds) = &self.items {
            match kind {
                Kind::List | Kind::Other => bounds.check_count()?,
                _ => return wrong(bounds, "items", "lists", "remove it"),
            }
        }
        self.check_values(kind, optional, &shown)?;
        self.check_default(kind, optional, &shown)
    }

    fn check_values(&self, kind: Kind, _optional: bool, shown: &str) -> syn::Result<()> {
        let Some((span, values)) = &self.values else { return Ok(()) };
        if self.clamp.is_some() || self.clamp_length.is_some() {
            return Err(syn::Error::new(
                *span,
                "a clamp can't bring a value to one of a list; remove the one or the other",
            ));
        }
        if values.is_empty() {
            return Err(syn::Error::new(*span, "nothing to choose from; write as in `enum(\"asc\", \"desc\")`"));
        }
        for (nth, value) in values.iter().enumerate() {
            let written = Written::of(value).ok_or_else(|| {
                syn::Error::new_spanned(value, "a choice is a text, a number, or a boolean, as a literal")
            })?;
            if !written.fits(kind) {
                let text = format!("{} is no value of `{shown}`; write {}", written.noun(), wanted(kind));
                return Err(syn::Error::new_spanned(value, text));
            }
            if values.iter().take(nth).any(|before| Written::of(before) == Some(written.clone())) {
                return Err(syn::Error::new_spanned(value, "this choice is listed twice; remove one"));
            }
        }
        Ok(())
    }

    fn check_default(&self, kind: Kind, optional: bool, shown: &str) -> syn::Result<()> {
        let Some(default) = &self.default else { return Ok(()) };
        let (span, given) = match default {
            DefaultValue::OfType(span) => (*span, None),
            DefaultValue::Given(value) => (value.span(), Some(value)),
        };
        if optional {
            let text = "an `Option` that is left out is `None`; remove the default, or the `Option`";
            return Err(syn::Error::new(span, text));
        }
        let Some(value) = given else { return Ok(()) };
        if matches!(kind, Kind::List | Kind::Map) {
            let text = format!("{} has no default on the wire; write `default` alone for an empty one", kind.noun());
            return Err(syn::Error::new_spanned(value, text));
        }
        let Some(written) = Written::of(value) else {
            let text = "a default is a literal as it stands on the wire: 10, 0.5, true, \"asc\"";
            return Err(syn::Error::new_spanned(value, text));
        };
        if !written.fits(kind) {
            let text = format!("{} is no value of `{shown}`; write {}", written.noun(), wanted(kind));
            return Err(syn::Error::new_spanned(value, text));
        }
        if let Written::Number(number) = written {
            if let (Number::Integer(value_of), Kind::Integer { least, greatest }) = (number, kind)
                && (value_of < least || value_of > greatest)
            {
                let text = format!("`{shown}` does not hold {value_of}; write a default from {least} to {greatest}");
                return Err(syn::Error::new_spanned(value, text));
            }
            for (name, bounds) in [("clamp", &self.clamp), ("range", &self.range)] {
                if bounds.as_ref().is_some_and(|bounds| bounds.excludes(number)) {
                    let text = format!("the default is outside of the field's own `{name}`; bring it within");
                    return Err(syn::Error::new_spanned(value, text));
                }
            }
        }
        Ok(())
    }

    /// The schema of a field: that of its type, and what is said of it. `base` is the type's schema.
    pub(crate) fn schema(&self, base: &TokenStream, ty: &Type, description: Option<&str>) -> TokenStream {
        let Peeled { inner, kind, optional } = peel(ty);
        let mut schema = base.clone();
        let clamp = self.clamp_tokens(inner, kind);
        if let Some(clamp) = clamp {
            schema.extend(quote!(.clamped(&#clamp)));
        }
        if let Some(bounds) = &self.range {
            for (bound_expression, whole, fraction) in [
                (&bounds.start, quote!(at_least), quote!(at_least_f64)),
                (&bounds.end, quote!(at_most), quote!(at_most_f64)),
            ] {
                let Some(expression) = bound_expression else { continue };
                let (at, float) = bound(expression, kind, inner);
                let method = if float { fraction } else { whole };
                schema.extend(quote!(.#method(#at)));
            }
        }
        for (bounds, least, greatest) in [
            (&self.length, quote!(min_length), quote!(max_length)),
            (&self.items, quote!(min_items), quote!(max_items)),
        ] {
            let Some(bounds) = bounds else { continue };
            for (expression, method) in [(&bounds.start, least), (&bounds.end, greatest)] {
                if let Some(expression) = expression {
                    let at = count(expression);
                    schema.extend(quote!(.#method(#at)));
                }
            }
        }
        if let Some((_, values)) = &self.values {
            schema.extend(choices(values, optional));
        }
        if self.secret {
            schema.extend(quote!(.secret()));
        }
        if let Some(description) = self.description.as_deref().or(description) {
            schema.extend(quote!(.describe(#description)));
        }
        if let Some(DefaultValue::Given(value)) = &self.default
            && let Some(written) = Written::of(value)
        {
            let value = written.literal();
            schema.extend(quote!(.default_value(#value)));
        }
        schema
    }

    fn clamp_tokens(&self, inner: &Type, kind: Kind) -> Option<TokenStream> {
        if self.clamp.is_none() && self.clamp_length.is_none() {
            return None;
        }
        let side = |expression: Option<&Expr>| match expression {
            None => quote!(::core::option::Option::None),
            Some(expression) => {
                let (at, float) = bound(expression, kind, inner);
                let variant = if float { quote!(Float) } else { quote!(Integer) };
                quote!(::core::option::Option::Some(::callgate_core::clamp::Bound::#variant(#at)))
            }
        };
        let numbers = self.clamp.as_ref();
        let min = side(numbers.and_then(|bounds| bounds.start.as_ref()));
        let max = side(numbers.and_then(|bounds| bounds.end.as_ref()));
        let length = match self.clamp_length.as_ref().and_then(|bounds| bounds.end.as_ref()) {
            None => quote!(::core::option::Option::None),
            Some(expression) => {
                let at = count(expression);
                quote!(::core::option::Option::Some(#at))
            }
        };
        Some(quote!(::callgate_core::clamp::Clamp { min: #min, max: #max, max_length: #length }))
    }

    /// The place that a fault in what is said points at.
    pub(crate) fn span(&self) -> Option<Span> {
        self.span
    }
}

/// A type as it is written, without the spaces that its tokens have between them.
fn shown(ty: &Type) -> String {
    let mut text = ty.to_token_stream().to_string();
    for (spaced, tight) in [(" < ", "<"), (" >", ">"), (" :: ", "::"), (" ,", ","), ("& ", "&")] {
        text = text.replace(spaced, tight);
    }
    text
}

/// Reads `("asc", "desc")`.
fn values(meta: &ParseNestedMeta<'_>) -> syn::Result<Vec<Expr>> {
    if !meta.input.peek(token::Paren) {
        return Err(meta.error("`enum` lists values; write as in `enum(\"asc\", \"desc\")`"));
    }
    let content;
    parenthesized!(content in meta.input);
    Ok(Punctuated::<Expr, Token![,]>::parse_terminated(&content)?.into_iter().collect())
}

/// A value that was written down.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Written {
    Bool(bool),
    Number(Number),
    Text(String),
}

impl Written {
    pub(crate) fn of(expression: &Expr) -> Option<Self> {
        if let Some(number) = literal(expression) {
            return Some(Self::Number(number));
        }
        match expression {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(Self::Text(text.value())),
            Expr::Lit(ExprLit { lit: Lit::Char(character), .. }) => Some(Self::Text(character.value().to_string())),
            Expr::Lit(ExprLit { lit: Lit::Bool(value), .. }) => Some(Self::Bool(value.value)),
            _ => None,
        }
    }

    fn noun(&self) -> String {
        match self {
            Self::Bool(value) => format!("the boolean {value}"),
            Self::Number(Number::Integer(value)) => format!("the integer {value}"),
            Self::Number(Number::Float(value)) => format!("the decimal {value:?}"),
            Self::Text(text) => format!("the text {text:?}"),
        }
    }

    fn fits(&self, kind: Kind) -> bool {
        match (self, kind) {
            (_, Kind::Other) => true,
            (Self::Bool(_), kind) => kind == Kind::Bool,
            (Self::Number(Number::Integer(value)), kind) => {
                i64::try_from(*value).is_ok() && matches!(kind, Kind::Integer { .. } | Kind::Float)
            }
            (Self::Number(Number::Float(_)), kind) => kind == Kind::Float,
            (Self::Text(text), Kind::Char) => text.chars().count() == 1,
            (Self::Text(_), kind) => kind == Kind::Text,
        }
    }

    /// The value within a schema.
    fn literal(&self) -> TokenStream {
        match self {
            Self::Bool(value) => quote!(::callgate_core::schema::Literal::Bool(#value)),
            Self::Number(Number::Integer(value)) => {
                let value = Literal::i64_unsuffixed(i64::try_from(*value).unwrap_or_default());
                quote!(::callgate_core::schema::Literal::integer(#value))
            }
            Self::Number(Number::Float(value)) => {
                let value = Literal::f64_unsuffixed(*value);
                quote!(::callgate_core::schema::Literal::float(#value))
            }
            Self::Text(text) => quote!(::callgate_core::schema::Literal::Text(#text)),
        }
    }

    /// The value as one of the field's type.
    pub(crate) fn read(&self) -> TokenStream {
        match self {
            Self::Bool(value) => quote!(::callgate_core::typed::default_bool(#value)?),
            Self::Number(Number::Integer(value)) => {
                let value = Literal::i64_unsuffixed(i64::try_from(*value).unwrap_or_default());
                quote!(::callgate_core::typed::default_integer(#value)?)
            }
            Self::Number(Number::Float(value)) => {
                let value = Literal::f64_unsuffixed(*value);
                quote!(::callgate_core::typed::default_float(#value)?)
            }
            Self::Text(text) => quote!(::callgate_core::typed::default_text(#text)?),
        }
    }
}

fn wanted(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "`true` or `false`",
        Kind::Integer { .. } => "an integer",
        Kind::Float => "a number",
        Kind::Char => "a text of one character",
        Kind::Text => "a text in quotes",
        Kind::List | Kind::Map | Kind::Other => "a value of that type",
    }
}

/// The choice between values, as what is called on a schema.
fn choices(values: &[Expr], optional: bool) -> TokenStream {
    let written: Vec<Written> = values.iter().filter_map(Written::of).collect();
    let texts: Option<Vec<&str>> = written
        .iter()
        .map(|value| match value {
            Written::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    match texts {
        Some(texts) => quote!(.texts(&[#(#texts),*])),
        None => {
            let literals = written.iter().map(Written::literal);
            let null = optional.then(|| quote!(::callgate_core::schema::Literal::Null));
            quote!(.one_of(&[#(#literals,)* #null]))
        }
    }
}
