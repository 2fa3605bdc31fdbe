//! What a model is told of a tool: its own words, and what its clamps do.
//!
//! A clamp mends a value instead of refusing it, so it is told as a sentence in a description and never as a `maximum`,
//! which would say that the value is refused.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use callgate_core::clamp::{Bound, Clamp};
use callgate_core::json::write::escape;
use callgate_core::json::{KeySlot, Kind, Limits, Number, Value, key_capacity, scan};
use callgate_core::tool::ToolSpec;

use super::definition::Field;
use super::field::Acting;

/// The schema of a tool that accepts any object.
const ANY_OBJECT: &str = r#"{"type":"object"}"#;

/// What differs from the tool's own words.
#[derive(Debug, Default)]
pub(super) struct Advertised {
    schema: Option<String>,
    description: Option<String>,
}

impl Advertised {
    /// Tells the clamps of `fields`, of each what `acting` says that can act. `schema` is compact text.
    pub(super) fn new(description: &str, schema: Option<&str>, fields: &[Field], acting: &[Acting]) -> Self {
        let notes: Vec<_> = fields
            .iter()
            .zip(acting)
            .filter_map(|(field, acting)| Some((field.path.as_str(), note(field.clamp?, *acting)?)))
            .collect();
        if notes.is_empty() {
            return Self::default();
        }
        let mut advertised = Self::default();
        let mut left: Vec<_> = notes.iter().collect();
        if let Some(schema) = schema {
            let mut places = BTreeMap::new();
            let mut keys = vec![KeySlot::default(); key_capacity(schema.as_bytes())];
            if let Ok(scanned) = scan(schema.as_bytes(), &mut keys, &Limits::DEFAULT) {
                left.retain(|(path, note)| match insertion(scanned.value(), path) {
                    Some((at, kind)) => {
                        let (_, text) = places.entry(at).or_insert((kind, String::new()));
                        push_sentence(text, note);
                        false
                    }
                    None => true,
                });
            }
            advertised.schema = (!places.is_empty()).then(|| insert(schema, &places));
        }
        if !left.is_empty() {
            let mut text = description.to_owned();
            for (path, note) in left {
                push_sentence(&mut text, &format!("{path}: {note}"));
            }
            advertised.description = Some(text);
        }
        advertised
    }

    pub(super) fn schema<'a>(&'a self, spec: &ToolSpec<'a>) -> &'a str {
        self.schema.as_deref().or(spec.input_schema).unwrap_or(ANY_OBJECT)
    }

    pub(super) fn description<'a>(&'a self, spec: &ToolSpec<'a>) -> &'a str {
        self.description.as_deref().unwrap_or(spec.description)
    }
}

fn push_sentence(text: &mut String, sentence: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(sentence);
}

/// What a clamp does, in a sentence.
fn note(clamp: Clamp, acting: Acting) -> Option<String> {
    let min = clamp.min.filter(|_| acting.min).map(shown);
    let max = clamp.max.filter(|_| acting.max).map(shown);
    let mut text = match (min, max) {
        (Some(min), Some(max)) => format!("Numbers outside {min} to {max} are brought to the nearer of the two."),
        (Some(min), None) => format!("Numbers below {min} are brought up to it."),
        (None, Some(max)) => format!("Numbers above {max} are brought down to it."),
        (None, None) => String::new(),
    };
    if let Some(length) = clamp.max_length.filter(|_| acting.length) {
        push_sentence(&mut text, &format!("Texts longer than {length} characters are cut."));
    }
    (!text.is_empty()).then_some(text)
}

fn shown(bound: Bound) -> String {
    match bound {
        Bound::Integer(value) => value.to_string(),
        Bound::Float(value) => Number::from_f64(value).map_or_else(String::new, |number| number.to_string()),
        _ => String::new(),
    }
}

/// How a note gets into a description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Insertion {
    /// At the end of one that is there.
    Append,
    /// As the first member of an object with others.
    First,
    /// As the only member.
    Only,
}

/// The offset in the schema's text at which a note on `path` belongs. None where the place is described by a part that may
/// describe other places as well.
fn insertion(root: Value<'_>, path: &str) -> Option<(usize, Insertion)> {
    let mut node = root;
    for segment in path.split('/').skip(1) {
        node = if segment == "*" { every(node)? } else { member(node, segment)? };
    }
    if node.kind() != Kind::Object || node.get("$ref").is_some() {
        return None;
    }
    let at = node.offset() as usize;
    match node.get("description") {
        Some(description) if description.kind() == Kind::String => {
            // The text is compact, so a value is as long as it is written.
            let mut written = String::new();
            description.write_json(&mut written).ok()?;
            let end = (description.offset() as usize).checked_add(written.len())?;
            Some((end.checked_sub(1)?, Insertion::Append))
        }
        Some(_) => None,
        None if node.members().next().is_none() => Some((at + 1, Insertion::Only)),
        None => Some((at + 1, Insertion::First)),
    }
}

fn member<'a>(node: Value<'a>, segment: &str) -> Option<Value<'a>> {
    node.get("properties")?.get(&segment.replace("~1", "/").replace("~0", "~"))
}

fn every(node: Value<'_>) -> Option<Value<'_>> {
    if ["properties", "patternProperties", "prefixItems"].iter().any(|word| node.get(word).is_some()) {
        return None;
    }
    let parts = [node.get("items"), node.get("additionalProperties")];
    let mut schemas = parts.into_iter().flatten().filter(|part| part.kind() == Kind::Object);
    let only = schemas.next()?;
    schemas.next().is_none().then_some(only)
}

/// The text with the notes at their offsets.
fn insert(schema: &str, places: &BTreeMap<usize, (Insertion, String)>) -> String {
    let mut text = String::with_capacity(schema.len() + 64 * places.len());
    let mut done = 0;
    for (at, (kind, note)) in places {
        text.push_str(schema.get(done..*at).unwrap_or_default());
        done = *at;
        let mut escaped = String::new();
        // A string takes everything.
        let _ = escape(note, &mut escaped);
        let _ = match kind {
            Insertion::Append => write!(text, " {escaped}"),
            Insertion::First => write!(text, r#""description":"{escaped}","#),
            Insertion::Only => write!(text, r#""description":"{escaped}""#),
        };
    }
    text.push_str(schema.get(done..).unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Acting = Acting { min: true, max: true, length: true };

    fn field(path: &str, clamp: Clamp) -> Field {
        Field { path: path.to_owned(), clamp: Some(clamp), secret: false }
    }

    #[test]
    fn notes_stand_where_the_field_is_described() {
        let schema = concat!(
            r#"{"type":"object","properties":{"max":{"type":"integer","description":"the \"most\""},"#,
            r#""note":{"type":"string"},"rows":{"items":{"properties":{"n":{}}}},"map":{"additionalProperties":{"type":"number"}}}}"#,
        );
        let fields = [
            field("/max", Clamp::range(1, 100)),
            field("/note", Clamp::max_length(9)),
            field("/rows/*/n", Clamp::max(5)),
            field("/map/*", Clamp::min(-2)),
        ];
        let told = Advertised::new("Finds", Some(schema), &fields, &[BOTH; 4]);
        assert_eq!(
            told.schema.as_deref(),
            Some(concat!(
                r#"{"type":"object","properties":{"max":{"type":"integer","description":"the \"most\" Numbers outside 1 to 100 are brought to the nearer of the two."},"#,
                r#""note":{"description":"Texts longer than 9 characters are cut.","type":"string"},"#,
                r#""rows":{"items":{"properties":{"n":{"description":"Numbers above 5 are brought down to it."}}}},"#,
                r#""map":{"additionalProperties":{"description":"Numbers below -2 are brought up to it.","type":"number"}}}}"#,
            ))
        );
        assert_eq!(told.description, None);
    }

    #[test]
    fn notes_stand_in_the_tools_description_where_the_schema_has_no_place_for_them() {
        let schema = r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/n"},"b":{"anyOf":[{"type":"integer"}]}},"$defs":{"n":{"type":"integer"}}}"##;
        let told = Advertised::new("Finds.", Some(schema), &[field("/a", Clamp::max(5))], &[BOTH]);
        assert_eq!(
            (told.schema, told.description.as_deref()),
            (None, Some("Finds. /a: Numbers above 5 are brought down to it."))
        );
        let told = Advertised::new("Finds.", None, &[field("/a", Clamp::max(5))], &[BOTH]);
        assert!(told.description.is_some());
    }

    #[test]
    fn what_can_not_act_is_not_told() {
        let acting = Acting { min: false, max: true, length: false };
        let told = Advertised::new("Finds.", None, &[field("/a", Clamp::range(1, 5))], &[acting]);
        assert_eq!(told.description.as_deref(), Some("Finds. /a: Numbers above 5 are brought down to it."));
        let secret = Field { path: "/a".to_owned(), clamp: None, secret: true };
        assert_eq!(Advertised::new("Finds.", None, &[secret], &[BOTH]).description, None);
    }
}
