//! `[exec.schema]`: a JSON Schema written as TOML.

use serde_json::{Map, Value};
use toml::de::DeValue;

use super::decode::{Entry, MAX_ENTRIES};
use super::parameter::json_number;

/// How deep such a schema may nest.
const MAX_DEPTH: usize = 32;

/// Translates a table to JSON, value by value. The keywords are checked where the tool is registered, as for every other
/// schema; here it is only made sure that it describes an object, since the arguments of a call are one.
pub(super) fn read(schema: &Entry<'_>) -> Option<Value> {
    if !schema.value().is_table() {
        // Says so in the words of the key.
        schema.named();
        return None;
    }
    let value = json(schema, 0)?;
    if value.get("type") != Some(&Value::from("object")) {
        schema.report_with(
            format!("`{}` doesn't describe an object", schema.path()),
            Some("the arguments of a call are an object: add type = \"object\"".into()),
        );
    }
    Some(value)
}

fn json(entry: &Entry<'_>, depth: usize) -> Option<Value> {
    if depth >= MAX_DEPTH {
        entry.report_with(format!("`{}` nests deeper than {MAX_DEPTH}", entry.path()), None);
        return None;
    }
    let below = depth.saturating_add(1);
    match entry.value() {
        DeValue::String(_) => entry.text().map(Value::from),
        DeValue::Integer(_) | DeValue::Float(_) => entry.number().map(json_number),
        DeValue::Boolean(boolean) => Some((*boolean).into()),
        DeValue::Array(_) => entry.list().iter().map(|item| json(item, below)).collect(),
        DeValue::Table(table) if table.len() <= MAX_ENTRIES => {
            let members = entry.named();
            let member = |(name, entry): &(&str, Entry<'_>)| Some(((*name).to_owned(), json(entry, below)?));
            members.iter().map(member).collect::<Option<Map<_, _>>>().map(Value::Object)
        }
        DeValue::Table(_) => {
            entry.named();
            None
        }
        DeValue::Datetime(_) => {
            let help = Some("write it as a string, in quotes".into());
            entry.report_with("JSON has no dates or times of its own", help);
            None
        }
    }
}
