//! What can be told of a type from how it is written.

use proc_macro2::Span;
use syn::visit_mut::{self, VisitMut};
use syn::{GenericArgument, Lifetime, PathArguments, Type, TypePath, TypeReference};

/// A type as far as its name tells. What an alias stands for is for the compiler to find out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Bool,
    Integer { least: i128, greatest: i128 },
    Float,
    Char,
    Text,
    List,
    Map,
    Other,
}

impl Kind {
    /// How a message calls it.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Bool => "a boolean",
            Self::Integer { .. } | Self::Float => "a number",
            Self::Char | Self::Text => "a text",
            Self::List => "a list",
            Self::Map => "an object",
            Self::Other => "a type of its own",
        }
    }
}

/// A type without what stands around it.
#[derive(Clone, Copy)]
pub(crate) struct Peeled<'t> {
    pub(crate) inner: &'t Type,
    pub(crate) kind: Kind,
    /// Whether it stood in an `Option`.
    pub(crate) optional: bool,
}

/// Takes `Option` and `Box` off a type.
pub(crate) fn peel(ty: &Type) -> Peeled<'_> {
    let mut peeled = Peeled { inner: ungroup(ty), kind: Kind::Other, optional: false };
    while let Some((name, argument)) = wrapper(peeled.inner) {
        match name.as_str() {
            "Option" => peeled.optional = true,
            "Box" => {}
            _ => break,
        }
        peeled.inner = ungroup(argument);
    }
    peeled.kind = kind_of(peeled.inner);
    peeled
}

fn ungroup(mut ty: &Type) -> &Type {
    loop {
        ty = match ty {
            Type::Group(group) => &group.elem,
            Type::Paren(paren) => &paren.elem,
            other => return other,
        };
    }
}

/// The name and the one type argument of `Name<T>`.
pub(crate) fn wrapper(ty: &Type) -> Option<(String, &Type)> {
    let Type::Path(TypePath { qself: None, path, .. }) = ungroup(ty) else { return None };
    let last = path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    let mut types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    Some((last.ident.to_string(), types.next()?))
}

/// The last name of a path.
pub(crate) fn last_name(ty: &Type) -> Option<String> {
    match ungroup(ty) {
        Type::Path(TypePath { path, .. }) => path.segments.last().map(|segment| segment.ident.to_string()),
        Type::Reference(TypeReference { elem, .. }) => last_name(elem),
        _ => None,
    }
}

fn kind_of(ty: &Type) -> Kind {
    let integer = |least: i128, greatest: i128| Kind::Integer { least, greatest };
    match ty {
        Type::Reference(TypeReference { elem, .. }) => match kind_of(ungroup(elem)) {
            Kind::Other => Kind::Other,
            kind => kind,
        },
        Type::Slice(_) | Type::Array(_) => Kind::List,
        Type::Path(TypePath { qself: None, path, .. }) => {
            let Some(last) = path.segments.last() else { return Kind::Other };
            match last.ident.to_string().as_str() {
                "bool" => Kind::Bool,
                "u8" => integer(0, u8::MAX.into()),
                "u16" => integer(0, u16::MAX.into()),
                "u32" => integer(0, u32::MAX.into()),
                "u64" | "usize" => integer(0, u64::MAX.into()),
                "i8" => integer(i8::MIN.into(), i8::MAX.into()),
                "i16" => integer(i16::MIN.into(), i16::MAX.into()),
                "i32" => integer(i32::MIN.into(), i32::MAX.into()),
                "i64" | "isize" => integer(i64::MIN.into(), i64::MAX.into()),
                "f32" | "f64" => Kind::Float,
                "char" => Kind::Char,
                "str" | "String" | "Cow" => Kind::Text,
                "Vec" => Kind::List,
                "BTreeMap" => Kind::Map,
                _ => Kind::Other,
            }
        }
        _ => Kind::Other,
    }
}

/// The type with every lifetime replaced, those that are left out too.
pub(crate) fn with_lifetime(ty: &Type, lifetime: &str) -> Type {
    let mut ty = ty.clone();
    Replace(Lifetime::new(lifetime, Span::call_site())).visit_type_mut(&mut ty);
    ty
}

/// Puts one lifetime in the place of each.
struct Replace(Lifetime);

impl VisitMut for Replace {
    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        *lifetime = self.0.clone();
    }

    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        reference.lifetime = Some(self.0.clone());
        visit_mut::visit_type_mut(self, &mut reference.elem);
    }
}

/// Whether a reference is part of the type.
pub(crate) fn has_reference(ty: &Type) -> bool {
    struct Find(bool);
    impl VisitMut for Find {
        fn visit_type_reference_mut(&mut self, _: &mut TypeReference) {
            self.0 = true;
        }
    }
    let mut find = Find(false);
    find.visit_type_mut(&mut ty.clone());
    find.0
}

/// Whether the type says `Self`, which is another type within what this crate writes.
pub(crate) fn has_self(ty: &Type) -> bool {
    struct Find(bool);
    impl VisitMut for Find {
        fn visit_ident_mut(&mut self, ident: &mut syn::Ident) {
            self.0 |= ident == "Self";
        }
    }
    let mut find = Find(false);
    find.visit_type_mut(&mut ty.clone());
    find.0
}
