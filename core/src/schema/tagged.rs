//! One of several alternatives, each under its name: what an enum is on the wire.

use super::{Choices, Property, Schema, Types};

impl<'a> Schema<'a> {
    /// A choice between alternatives: one of `names`, or an object whose one member is one of `variants`. It is how serde
    /// writes an enum unless told otherwise ("externally tagged"): `"Off"`, or `{"Dimmed":{"percent":40}}`.
    ///
    /// Either list may be empty. Written out as JSON Schema it is an `anyOf` of the alternatives, of which a value can fit
    /// no two.
    ///
    /// ```
    /// use callgate_core::schema::{Property, Schema};
    /// const LIGHT: Schema<'static> =
    ///     Schema::tagged(&["off"], &[Property::required("dimmed", Schema::integer().minimum(1).maximum(99))]);
    /// const _: () = assert!(LIGHT.check().is_ok());
    /// ```
    #[must_use]
    pub const fn tagged(names: &'a [&'a str], variants: &'a [Property<'a>]) -> Self {
        let mut schema = match (names, variants) {
            (names, []) => return Self::choice(names),
            ([], _) => Self::of(Types::OBJECT),
            (names, _) => Self { choices: Choices::Texts(names), ..Self::of(Types::STRING.or(Types::OBJECT)) },
        };
        schema.tagged = true;
        schema.properties(variants).closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use crate::json::{KeySlot, Limits};
    use std::format;
    use std::string::{String, ToString};
    use std::vec::Vec;

    const LIGHT: Schema<'static> = Schema::tagged(
        &["off", "on"],
        &[
            Property::required("dimmed", Schema::integer().maximum(99)),
            Property::required("colour", Schema::object(&[Property::required("name", Schema::string())])),
        ],
    );

    fn faults(schema: Schema<'_>, value: &str) -> Vec<String> {
        let properties = [Property::required("a", schema)];
        let schema = Schema::object(&properties);
        let text = format!(r#"{{"a":{value}}}"#);
        let mut keys = [KeySlot::default(); 16];
        let args = Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).unwrap();
        let mut found = Vec::new();
        schema.validate(args, &mut |violation| found.push(violation.to_string()));
        found
    }

    #[test]
    fn s8_exactly_one_alternative_fits() {
        for good in [r#""off""#, r#""on""#, r#"{"dimmed":40}"#, r#"{"colour":{"name":"red"}}"#] {
            assert_eq!(faults(LIGHT, good), [""; 0], "{good}");
        }
        for (bad, why) in [
            (r#""of""#, r#"a: Value must be one of: "off", "on""#),
            ("{}", "a: Exactly one property is expected, of: dimmed, colour"),
            (r#"{"dimmed":1,"colour":{"name":"red"}}"#, "a: Exactly one property is expected, of: dimmed, colour"),
            (r#"{"dimmed":100}"#, "a.dimmed: Value too large (max: 99)"),
            (r#"{"colour":{}}"#, "a.colour: Missing required field: name"),
            ("null", "a: Expected string or object, got null"),
            ("1", "a: Expected string or object, got integer"),
        ] {
            assert_eq!(faults(LIGHT, bad), [why], "{bad}");
        }
        assert!(faults(LIGHT, r#"{"off":null}"#)[0].contains("Unknown property: off"));
        assert_eq!(faults(LIGHT.nullable(), "null"), [""; 0]);
        let nested = Schema::tagged(&[], LIGHT.declared());
        assert_eq!(faults(nested, r#""off""#), ["a: Expected object, got string"]);
        assert_eq!(faults(nested, r#"{"dimmed":1}"#), [""; 0]);
    }

    #[test]
    fn the_alternatives_are_written_out() {
        let mut text = String::new();
        LIGHT.nullable().describe("how").write_json_schema(&mut text).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"description":"how","anyOf":[{"type":"string","enum":["off","on"]},"#,
                r#"{"type":"object","properties":{"dimmed":{"type":"integer","minimum":-9007199254740991,"maximum":99}},"#,
                r#""required":["dimmed"],"additionalProperties":false},"#,
                r#"{"type":"object","properties":{"colour":{"type":"object","properties":{"name":{"type":"string"}},"#,
                r#""required":["name"],"additionalProperties":false}},"required":["colour"],"additionalProperties":false},"#,
                r#"{"type":"null"}]}"#,
            )
        );
    }
}
