//! What serde's attributes say of names, so that a type that serde writes or reads elsewhere has one set of them; and
//! `#[arguments(rename_all = "...")]`.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, LitStr, Token, parenthesized, token};

use crate::text::{Name, unknown};

/// How the names of the fields or variants are written on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Case {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

const CASES: [(&str, Case); 8] = [
    ("lowercase", Case::Lower),
    ("UPPERCASE", Case::Upper),
    ("PascalCase", Case::Pascal),
    ("camelCase", Case::Camel),
    ("snake_case", Case::Snake),
    ("SCREAMING_SNAKE_CASE", Case::ScreamingSnake),
    ("kebab-case", Case::Kebab),
    ("SCREAMING-KEBAB-CASE", Case::ScreamingKebab),
];

impl Case {
    fn of(literal: &LitStr) -> syn::Result<Self> {
        let text = literal.value();
        CASES.iter().find(|(name, _)| *name == text).map(|(_, case)| *case).ok_or_else(|| {
            let names: Vec<_> = CASES.iter().map(|(name, _)| *name).collect();
            syn::Error::new_spanned(literal, format!("no such way to write names; there are: {}", names.join(", ")))
        })
    }

    /// A field's name, which is written in snake case in the source.
    pub(crate) fn field(self, name: &str) -> String {
        match self {
            Self::Lower | Self::Snake => name.to_owned(),
            Self::Upper | Self::ScreamingSnake => name.to_ascii_uppercase(),
            Self::Pascal => pascal(name),
            Self::Camel => uncapitalized(&pascal(name)),
            Self::Kebab => name.replace('_', "-"),
            Self::ScreamingKebab => name.to_ascii_uppercase().replace('_', "-"),
        }
    }

    /// A variant's name, which is written in Pascal case in the source.
    pub(crate) fn variant(self, name: &str) -> String {
        match self {
            Self::Pascal => name.to_owned(),
            Self::Lower => name.to_ascii_lowercase(),
            Self::Upper => name.to_ascii_uppercase(),
            Self::Camel => uncapitalized(name),
            Self::Snake => snake(name),
            Self::ScreamingSnake => snake(name).to_ascii_uppercase(),
            Self::Kebab => snake(name).replace('_', "-"),
            Self::ScreamingKebab => snake(name).to_ascii_uppercase().replace('_', "-"),
        }
    }
}

fn pascal(name: &str) -> String {
    let mut capital = true;
    name.chars()
        .filter_map(|c| match c {
            '_' => {
                capital = true;
                None
            }
            c if std::mem::take(&mut capital) => Some(c.to_ascii_uppercase()),
            c => Some(c),
        })
        .collect()
}

fn uncapitalized(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(chars).collect()
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (nth, c) in name.chars().enumerate() {
        if nth > 0 && c.is_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// Whether a type is read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Read,
    Written,
}

/// How the parts of a type are named.
pub(crate) fn rename_all(attributes: &[Attribute], own: &str) -> syn::Result<Option<Case>> {
    let mut case = None;
    for attribute in attributes {
        if attribute.path().is_ident(own) {
            attribute.parse_nested_meta(|meta| match word(&meta).as_str() {
                "rename_all" => {
                    case = Some(Case::of(&meta.value()?.parse()?)?);
                    Ok(())
                }
                other => Err(unknown(&meta.path, own, other, &["rename_all"])),
            })?;
        } else if attribute.path().is_ident("serde") {
            attribute.parse_nested_meta(|meta| match word(&meta).as_str() {
                "rename_all" => {
                    let of_serde = Case::of(&one_name(&meta)?)?;
                    case = case.or(Some(of_serde));
                    Ok(())
                }
                "deny_unknown_fields" | "transparent" => Ok(()),
                "crate" | "rename" | "bound" => skip_value(&meta),
                other => Err(refused(&meta, other)),
            })?;
        }
    }
    Ok(case)
}

/// What serde is told of a field or a variant.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) rename: Option<Name>,
    /// Where it says that a field that does not come is what `Default` says.
    pub(crate) default: Option<Span>,
    /// Whether it is left out now and then.
    pub(crate) optional: bool,
    /// Whether it is always left out.
    pub(crate) skipped: bool,
}

/// Reads serde's attributes of a field or a variant.
pub(crate) fn told(attributes: &[Attribute], side: Side) -> syn::Result<Told> {
    let mut told = Told::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        attribute.parse_nested_meta(|meta| {
            match (word(&meta).as_str(), side) {
                ("rename", _) => told.rename = Some(Name::of(&one_name(&meta)?)),
                ("default", Side::Read) if !meta.input.peek(Token![=]) => {
                    told.default = Some(syn::spanned::Spanned::span(&meta.path));
                }
                ("skip_serializing_if", _) => {
                    skip_value(&meta)?;
                    told.optional = true;
                }
                ("skip" | "skip_serializing", Side::Written) => told.skipped = true,
                ("skip_serializing", Side::Read) | ("skip_deserializing", Side::Written) => {}
                ("default" | "alias", Side::Written) | ("bound", _) => skip_value(&meta)?,
                (other, _) => return Err(refused(&meta, other)),
            }
            Ok(())
        })?;
    }
    Ok(told)
}

fn word(meta: &ParseNestedMeta<'_>) -> String {
    meta.path.get_ident().map(ToString::to_string).unwrap_or_default()
}

fn refused(meta: &ParseNestedMeta<'_>, word: &str) -> syn::Error {
    let text =
        format!("`serde({word})` changes what is on the wire in a way that no schema here tells; write it without");
    syn::Error::new_spanned(&meta.path, text)
}

fn one_name(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    if meta.input.peek(token::Paren) {
        return Err(meta.error("one name for reading and writing is needed here; write `= \"...\"`"));
    }
    meta.value()?.parse()
}

/// Goes behind `= value` or `(...)`, or nothing.
fn skip_value(meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
    if meta.input.peek(Token![=]) {
        drop(meta.value()?.parse::<syn::Expr>()?);
    } else if meta.input.peek(token::Paren) {
        let content;
        parenthesized!(content in meta.input);
        drop(content.parse::<proc_macro2::TokenStream>()?);
    }
    Ok(())
}
