//! Results of the protocol as results of a gate: the whole result is the data, and the schema that its tool declares, which is about
//! the structured content alone, is brought to where that stands.

use callgate_std::output::Reply;
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::{Map, Value, json};

use crate::server;

/// Where the schema that a server declared stands in the one that the gate checks. Schemas take names that start so for notes.
const DECLARED: &str = "x-callgate-structured-content";
/// The member of a result that the declared schema is about.
const STRUCTURED: &str = "structuredContent";

/// The reply that a client gets as this result.
pub(super) fn reply(result: &CallToolResult) -> Result<Reply, serde_json::Error> {
    server::reply(result)
}

/// The schema of whole results whose structured content fits `declared`.
pub(super) fn of_results(declared: &JsonObject) -> Value {
    let mut inner = Value::Object(declared.clone());
    // The draft is said once, at the root.
    let dialect = inner.as_object_mut().and_then(|inner| inner.remove("$schema"));
    rebase(&mut inner);
    let mut schema = json!({
        "type": "object",
        "properties": { STRUCTURED: inner },
        "required": [STRUCTURED],
        DECLARED: declared,
    });
    if let (Some(dialect), Some(schema)) = (dialect, schema.as_object_mut()) {
        drop(schema.insert("$schema".to_owned(), dialect));
    }
    schema
}

/// The schema of structured content that a server declared, of the output schema that its tool has in the gate.
#[must_use]
pub fn declared_output_schema(schema: &JsonObject) -> Option<&JsonObject> {
    schema.get(DECLARED)?.as_object()
}

/// Has references from the root of a schema start where it stands now. Values that are no schemas are left alone.
fn rebase(schema: &mut Value) {
    match schema {
        Value::Object(members) => members.iter_mut().for_each(|(name, value)| rebase_member(name, value)),
        Value::Array(schemas) => schemas.iter_mut().for_each(rebase),
        _ => {}
    }
}

fn rebase_member(name: &str, value: &mut Value) {
    match (name, value) {
        ("$ref", Value::String(reference)) => {
            if let Some(pointer) =
                reference.strip_prefix('#').filter(|pointer| pointer.is_empty() || pointer.starts_with('/'))
            {
                *reference = format!("#/properties/{STRUCTURED}{pointer}");
            }
        }
        ("const" | "enum" | "default" | "examples", _) => {}
        // Names of members, not keywords.
        ("properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas", Value::Object(named)) => {
            rebase_all(named);
        }
        (_, value) => rebase(value),
    }
}

fn rebase_all(schemas: &mut Map<String, Value>) {
    schemas.iter_mut().for_each(|(_, schema)| rebase(schema));
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate_std::schema::{JsonSchema, Profile};

    fn object(value: Value) -> JsonObject {
        let Value::Object(object) = value else { panic!("no object") };
        object
    }

    #[test]
    fn a_declared_schema_holds_where_the_structured_content_stands() {
        let declared_schema = object(json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "$ref": { "$ref": "#/definitions/count" },
                "word": { "enum": ["#/definitions/count"], "default": { "$ref": "#/definitions/count" } },
                "self": { "$ref": "#" },
            },
            "required": ["$ref"],
            "definitions": { "count": { "type": "integer" } },
        }));
        let whole = of_results(&declared_schema);
        assert_eq!(declared_output_schema(&object(whole.clone())), Some(&declared_schema));
        let schema = JsonSchema::new(&whole, Profile::VALUE).expect("it can be checked");
        let fits = |value: Value| {
            let mut faults = 0;
            schema.validate_value(&value, &mut |_| faults += 1);
            faults == 0
        };
        assert!(fits(json!({"content": [], "structuredContent": {"$ref": 1}})));
        assert!(fits(json!({"structuredContent": {"$ref": 1, "word": "#/definitions/count", "self": {"$ref": 2}}})));
        assert!(!fits(json!({"content": []})), "what is promised has to be there");
        assert!(!fits(json!({"structuredContent": {"$ref": "1"}})));
        assert!(!fits(json!({"structuredContent": {"$ref": 1, "self": {}}})));
        assert!(!fits(json!({"structuredContent": {"$ref": 1, "word": "#/properties/x"}})));
    }
}
