//! Numbers in attributes: literals, constants, and the ranges between them.

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote};
use syn::meta::ParseNestedMeta;
use syn::{Expr, ExprLit, ExprRange, ExprUnary, Lit, RangeLimits, UnOp, parenthesized, token};

use crate::kind::Kind;

/// A number that was written down.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

/// The number that an expression is written as, unless it is a name or a computation.
pub(crate) fn literal(expression: &Expr) -> Option<Number> {
    match expression {
        Expr::Lit(ExprLit { lit: Lit::Int(value), .. }) => value.base10_parse().ok().map(Number::Integer),
        Expr::Lit(ExprLit { lit: Lit::Float(value), .. }) => value.base10_parse().ok().map(Number::Float),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => match literal(expr)? {
            Number::Integer(value) => Some(Number::Integer(-value)),
            Number::Float(value) => Some(Number::Float(-value)),
        },
        Expr::Paren(paren) => literal(&paren.expr),
        Expr::Group(group) => literal(&group.expr),
        _ => None,
    }
}

/// Inclusive bounds, as `1..=100`, `1..` or `..=100`.
#[derive(Clone)]
pub(crate) struct Bounds {
    pub(crate) start: Option<Expr>,
    pub(crate) end: Option<Expr>,
    /// The whole, to point at.
    pub(crate) range: ExprRange,
}

impl Bounds {
    /// Reads `(1..=100)` behind the name of an attribute.
    pub(crate) fn parse(meta: &ParseNestedMeta<'_>, name: &str) -> syn::Result<Self> {
        let example = format!("write it as in `{name}(1..=100)`, `{name}(1..)` or `{name}(..=100)`");
        if !meta.input.peek(token::Paren) {
            return Err(meta.error(format!("`{name}` needs bounds; {example}")));
        }
        let content;
        parenthesized!(content in meta.input);
        if content.is_empty() {
            return Err(meta.error(format!("`{name}` needs bounds; {example}")));
        }
        let range = match content.parse::<Expr>()? {
            Expr::Range(range) => range,
            other => return Err(syn::Error::new_spanned(other, format!("this is no range; {example}"))),
        };
        if !content.is_empty() {
            return Err(content.error(format!("`{name}` has one range; {example}")));
        }
        if range.start.is_none() && range.end.is_none() {
            return Err(syn::Error::new_spanned(range, format!("`..` bounds nothing; {example}")));
        }
        if let (RangeLimits::HalfOpen(_), Some(end)) = (&range.limits, &range.end) {
            let end = end.to_token_stream();
            return Err(syn::Error::new_spanned(
                &range,
                format!("bounds are inclusive; write `..={end}`, or one less"),
            ));
        }
        let bounds = Self { start: range.start.as_deref().cloned(), end: range.end.as_deref().cloned(), range };
        if let (Some(least), Some(greatest)) = (bounds.least(), bounds.greatest())
            && least.as_f64() > greatest.as_f64()
        {
            let text = format!("nothing lies within these bounds; write the lesser one first, as in `{name}(1..=100)`");
            return Err(syn::Error::new_spanned(&bounds.range, text));
        }
        Ok(bounds)
    }

    pub(crate) fn least(&self) -> Option<Number> {
        self.start.as_ref().and_then(literal)
    }

    pub(crate) fn greatest(&self) -> Option<Number> {
        self.end.as_ref().and_then(literal)
    }

    /// Both bounds that are given.
    pub(crate) fn given(&self) -> impl Iterator<Item = &Expr> {
        [&self.start, &self.end].into_iter().flatten()
    }

    /// Whether a number that was written down lies outside of bounds that were written down.
    pub(crate) fn excludes(&self, value: Number) -> bool {
        self.least().is_some_and(|least| value.as_f64() < least.as_f64())
            || self.greatest().is_some_and(|greatest| value.as_f64() > greatest.as_f64())
    }

    /// Checks bounds of numbers against the type of the field.
    pub(crate) fn check_numbers(&self, name: &str, kind: Kind) -> syn::Result<()> {
        for bound in self.given() {
            match (literal(bound), kind) {
                (Some(Number::Float(_)), Kind::Integer { .. }) => {
                    return Err(syn::Error::new_spanned(bound, "the field is an integer; write an integer bound"));
                }
                (Some(Number::Float(value)), _) if !value.is_finite() => {
                    return Err(syn::Error::new_spanned(bound, "the bound is not finite; leave it out instead"));
                }
                (Some(Number::Integer(value)), Kind::Integer { least, greatest })
                    if value < least || value > greatest =>
                {
                    let text = format!(
                        "{value} is outside of what the field's type holds, {least} to {greatest}; bring `{name}` within"
                    );
                    return Err(syn::Error::new_spanned(bound, text));
                }
                (Some(Number::Integer(value)), _) if i64::try_from(value).is_err() => {
                    return Err(syn::Error::new_spanned(
                        bound,
                        "a bound lies within i64; leave it out if it is the type's own",
                    ));
                }
                (None, Kind::Other) => {
                    let text = "a constant can be a bound where the field's type is written as a number; write the number here";
                    return Err(syn::Error::new_spanned(bound, text));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks bounds of a length or of a count.
    pub(crate) fn check_count(&self) -> syn::Result<()> {
        for bound in self.given() {
            match literal(bound) {
                Some(Number::Integer(value)) if u32::try_from(value).is_ok() => {}
                None => {}
                Some(_) => {
                    return Err(syn::Error::new_spanned(bound, "a length is an integer from 0 to 4294967295"));
                }
            }
        }
        Ok(())
    }
}

/// A bound of numbers as an expression, and whether it is a floating-point one.
pub(crate) fn bound(expression: &Expr, kind: Kind, ty: &syn::Type) -> (TokenStream, bool) {
    match literal(expression) {
        Some(Number::Integer(value)) => {
            let literal = Literal::i64_unsuffixed(i64::try_from(value).unwrap_or_default());
            (quote!(#literal), false)
        }
        Some(Number::Float(value)) => {
            let literal = Literal::f64_unsuffixed(value);
            (quote!(#literal), true)
        }
        None if kind == Kind::Float => {
            (quote!({ const CALLGATE_BOUND: #ty = #expression; CALLGATE_BOUND as f64 }), true)
        }
        None => (
            quote!({ const CALLGATE_BOUND: #ty = #expression; ::callgate_core::typed::bound(CALLGATE_BOUND as i128) }),
            false,
        ),
    }
}

/// A bound of a length as an expression.
pub(crate) fn count(expression: &Expr) -> TokenStream {
    match literal(expression) {
        Some(Number::Integer(value)) => {
            let literal = Literal::u32_unsuffixed(u32::try_from(value).unwrap_or_default());
            quote!(#literal)
        }
        _ => quote!({ const CALLGATE_BOUND: usize = #expression; ::callgate_core::typed::length(CALLGATE_BOUND) }),
    }
}
