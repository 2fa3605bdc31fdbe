//! The admission of JSON Schemas that come from outside.

use callgate_core::json::{Limits, scan};
use callgate_std::schema::{JsonSchema, Profile};
use serde_json::Value;

use super::{halves, slots};

/// What every text of an instance begins with, and no text of a schema.
const CANARY: &str = "CANARY-7f3a";

/// Invariants S5, S6, S9, L4: what a stricter profile admits, a laxer one admits; an admitted schema is admitted again as it was
/// written down; a verdict is the same twice, changes nothing, and tells no text of the value. The input is a schema and a value, split at
/// the first zero byte.
pub fn schema_admission(data: &[u8]) {
    let (schema, instance) = halves(data);
    let Ok(schema) = str::from_utf8(schema) else { return };
    let [strict, arguments, any] =
        [Profile::STRICT, Profile::ARGUMENTS, Profile::VALUE].map(|profile| JsonSchema::parse(schema, profile));
    assert!(strict.is_err() || arguments.is_ok(), "strict and not admitted: {schema}");
    assert!(arguments.is_err() || any.is_ok(), "for arguments and not for a value: {schema}");
    let admitted = match any {
        Ok(admitted) => admitted,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let document = admitted.document().to_string();
    let again = JsonSchema::parse(&document, Profile::VALUE)
        .unwrap_or_else(|error| panic!("admitted, and not as it was written down: {document}: {error}"));
    assert_eq!(again.document(), admitted.document());

    let mut keys = slots(instance);
    let Ok(scanned) = scan(instance, &mut keys, &Limits::DEFAULT) else { return };
    let mut value: Value = scanned.value().parse().expect("what was scanned can be parsed");
    let verdict = |schema: &JsonSchema, value: &Value| {
        let mut told = Vec::new();
        schema.validate_value(value, &mut |violation| told.push(violation.to_string()));
        told
    };
    let first = verdict(&admitted, &value);
    assert_eq!(verdict(&admitted, &value), first, "judged twice");
    assert_eq!(verdict(&again, &value), first, "judged by the same schema");
    mark(&mut value);
    for told in verdict(&admitted, &value) {
        assert!(!told.contains(CANARY), "{told}");
    }
}

/// Begins every text with the canary. Names stay: a message tells them.
fn mark(value: &mut Value) {
    match value {
        Value::String(text) => text.insert_str(0, CANARY),
        Value::Array(items) => items.iter_mut().for_each(mark),
        Value::Object(members) => members.values_mut().for_each(mark),
        _ => {}
    }
}
