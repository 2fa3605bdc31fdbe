//! The keywords that a schema may use, and what each does.

use super::Dialect;

/// What a keyword does with its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// It tells people something.
    Note,
    /// It checks by itself.
    Assertion,
    /// A schema for the same value.
    Here,
    /// Schemas for the same value.
    HereList,
    /// Schemas for the same value, of which some must fit.
    Alternatives,
    /// By name of a property: a schema for the same value.
    HereByName,
    /// By name: schemas that are used where something refers to them.
    Definitions,
    /// By name: schemas for members.
    Properties,
    /// By pattern of the name: schemas for members.
    PatternProperties,
    /// A schema for the other members.
    OtherProperties,
    /// A schema for the names of members.
    PropertyNames,
    /// A schema for items, those before it aside.
    Items,
    /// Schemas for the first items, one for each.
    FirstItems,
    /// A schema for some of the items.
    Contains,
    /// Draft-07: a schema for all items, or a list for the first ones.
    ItemsOrList,
    /// Draft-07: by name of a property: a schema for the same value, or a list of names.
    Dependencies,
    /// Refers to a schema.
    Reference,
    /// Says which document this is.
    Identifier,
    /// Says which draft this is.
    DialectName,
}

/// What `keyword` does; `None` for one that a schema may not use.
pub(super) fn role(dialect: Dialect, keyword: &str) -> Option<Role> {
    use Dialect::{Draft07, Draft202012};
    Some(match (keyword, dialect) {
        (
            "title" | "description" | "default" | "examples" | "readOnly" | "writeOnly" | "$comment"
            | "contentEncoding" | "contentMediaType",
            _,
        )
        | ("deprecated", Draft202012) => Role::Note,
        (
            "type" | "enum" | "const" | "multipleOf" | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum"
            | "minLength" | "maxLength" | "pattern" | "format" | "minItems" | "maxItems" | "uniqueItems"
            | "minProperties" | "maxProperties" | "required",
            _,
        )
        | ("minContains" | "maxContains" | "dependentRequired", Draft202012) => Role::Assertion,
        ("not" | "if" | "then" | "else", _) => Role::Here,
        ("allOf", _) => Role::HereList,
        ("anyOf" | "oneOf", _) => Role::Alternatives,
        ("dependentSchemas", Draft202012) => Role::HereByName,
        ("$defs" | "definitions", _) => Role::Definitions,
        ("properties", _) => Role::Properties,
        ("patternProperties", _) => Role::PatternProperties,
        ("additionalProperties", _) | ("unevaluatedProperties", Draft202012) => Role::OtherProperties,
        ("propertyNames", _) => Role::PropertyNames,
        ("items" | "unevaluatedItems", Draft202012) | ("additionalItems", Draft07) => Role::Items,
        ("prefixItems", Draft202012) => Role::FirstItems,
        ("items", Draft07) => Role::ItemsOrList,
        ("contains", _) => Role::Contains,
        ("dependencies", Draft07) => Role::Dependencies,
        ("$ref", _) => Role::Reference,
        ("$id", _) => Role::Identifier,
        ("$schema", _) => Role::DialectName,
        (other, _) if other.starts_with("x-") => Role::Note,
        _ => return None,
    })
}

/// All keywords of a dialect, to find the one that was meant.
pub(super) fn names(dialect: Dialect) -> impl Iterator<Item = &'static str> {
    NAMES.iter().copied().filter(move |name| role(dialect, name).is_some())
}

const NAMES: [&str; 54] = [
    "$comment",
    "$defs",
    "$id",
    "$ref",
    "$schema",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "else",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// What to do instead of a keyword that is known elsewhere.
pub(super) fn advice(dialect: Dialect, keyword: &str) -> Option<&'static str> {
    Some(match (keyword, dialect) {
        ("nullable", _) => "no draft knows it; write \"type\": [\"string\", \"null\"] with the type you mean",
        ("$dynamicRef" | "$dynamicAnchor" | "$recursiveRef" | "$recursiveAnchor", _) => {
            "dynamic references are not supported; refer to a definition by \"$ref\": \"#/$defs/...\""
        }
        ("$anchor" | "id", _) => {
            "names for parts are not supported; refer to a definition by \"$ref\": \"#/$defs/...\""
        }
        ("$vocabulary", _) => "vocabularies of your own are not supported",
        ("contentSchema", _) => "nothing checks it; check the content in the tool",
        ("dependencies", Dialect::Draft202012) => "use dependentRequired or dependentSchemas",
        ("additionalItems", Dialect::Draft202012) => "use items beside prefixItems",
        (
            "dependentSchemas"
            | "dependentRequired"
            | "prefixItems"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "minContains"
            | "maxContains"
            | "deprecated",
            Dialect::Draft07,
        ) => "draft-07 does not know it; declare \"$schema\": \"https://json-schema.org/draft/2020-12/schema\"",
        ("example", _) => "use examples, which is a list",
        ("discriminator" | "xml" | "externalDocs", _) => "it belongs to OpenAPI; drop it, or call it x-...",
        _ => return None,
    })
}

/// The formats that are checked. The `idn-` ones are not among them: without tables of Unicode they would accept anything.
pub(super) fn is_format(dialect: Dialect, name: &str) -> bool {
    FORMATS.contains(&name) && (dialect == Dialect::Draft202012 || !matches!(name, "duration" | "uuid"))
}

/// All formats.
pub(super) const FORMATS: [&str; 17] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A keyword with a role that is not listed would never be suggested.
    #[test]
    fn every_listed_keyword_has_a_role() {
        let all: Vec<_> = names(Dialect::Draft202012).chain(names(Dialect::Draft07)).collect();
        for name in NAMES {
            assert!(all.contains(&name), "{name}");
        }
        assert_eq!(role(Dialect::Draft202012, "x-mine"), Some(Role::Note));
        assert_eq!(role(Dialect::Draft202012, "nullable"), None);
        assert!(is_format(Dialect::Draft202012, "uuid") && !is_format(Dialect::Draft07, "uuid"));
    }
}
