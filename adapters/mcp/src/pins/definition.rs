//! Digests of definitions.

use callgate_core::digest::{Digest, DigestBuilder};
use callgate_core::json::Number;
use rmcp::model::Tool as Definition;
use serde_json::Value;

/// The domains of the digests; each ends with the version of what is digested.
const DEFINITION: &str = "callgate/mcp/definition/v1";
const CONTENT: &str = "callgate/mcp/content/v1";

/// The definition as data.
pub(super) fn value(definition: &Definition) -> Value {
    serde_json::to_value(definition).unwrap_or_default()
}

/// The digest of everything that a server says of a tool.
pub(crate) fn definition_digest(definition: &Definition) -> Digest {
    digest(DEFINITION, &value(definition))
}

/// The digest of a definition that was kept.
pub(super) fn digest_of(definition: &Value) -> Digest {
    digest(DEFINITION, definition)
}

/// The digest of what a model goes by beside the name: two tools with the same are copies of each other. `None` where that is too
/// little to tell tools apart.
pub(super) fn content_digest(definition: &Value) -> Option<Digest> {
    let part = |name: &str| definition.get(name).cloned().unwrap_or_default();
    let description = part("description");
    let words = description.as_str().unwrap_or_default().split_whitespace();
    // Spaces are cheap to change, and nobody sees them.
    let description = words.collect::<Vec<_>>().join(" ");
    if description.is_empty() {
        return None;
    }
    let members = [("description".to_owned(), description.into()), ("inputSchema".to_owned(), part("inputSchema"))];
    Some(digest(CONTENT, &Value::Object(members.into_iter().collect())))
}

fn digest(domain: &str, value: &Value) -> Digest {
    let mut digest = DigestBuilder::new(domain);
    add(value, &mut digest);
    digest.finish()
}

/// Adds a value by kind and length, the members of objects sorted. What comes from the wire nests no deeper than its reader goes.
fn add(value: &Value, digest: &mut DigestBuilder) {
    match value {
        Value::Null => digest.u64(0),
        Value::Bool(value) => digest.u64(1).bool(*value),
        Value::Number(number) => {
            let exact = number.as_u64().map(Number::U64).or_else(|| number.as_i64().map(Number::I64));
            match exact.or_else(|| number.as_f64().and_then(Number::from_f64)) {
                Some(number) => digest.u64(2).number(number),
                None => digest.u64(3).str(&number.to_string()),
            }
        }
        Value::String(text) => digest.u64(4).str(text),
        Value::Array(items) => {
            digest.u64(5).list(items.len());
            items.iter().for_each(|item| add(item, digest));
            digest
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            digest.u64(6).list(sorted.len());
            for (name, value) in sorted {
                digest.str(name);
                add(value, digest);
            }
            digest
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn g4_whatever_a_server_changes_is_another_definition() {
        let original = json!({
            "name": "a", "title": "A", "description": "Reads", "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true}, "_meta": {"x": 1}
        });
        let digest = digest_of(&original);
        let changes: [fn(&mut Value); 7] = [
            |v| v["name"] = json!("b"),
            |v| v["title"] = json!("B"),
            |v| v["description"] = json!("Reads "),
            |v| v["inputSchema"]["additionalProperties"] = json!(false),
            |v| v["annotations"]["readOnlyHint"] = json!(false),
            |v| v["_meta"]["x"] = json!(1.5),
            |v| v["outputSchema"] = json!({}),
        ];
        for change in changes {
            let mut changed = original.clone();
            change(&mut changed);
            assert_ne!(digest_of(&changed), digest, "{changed}");
        }
        assert_ne!(digest_of(&json!([["a"], "b"])), digest_of(&json!(["a", ["b"]])));
    }

    #[test]
    fn a_copy_is_one_whatever_its_name_and_its_spaces() {
        let tool =
            |name: &str, text: &str| json!({"name": name, "description": text, "inputSchema": {"type": "object"}});
        assert_eq!(content_digest(&tool("a", "Reads a  file")), content_digest(&tool("b", " Reads a\nfile")));
        assert_ne!(content_digest(&tool("a", "Reads a file")), content_digest(&tool("a", "Reads the file")));
        assert_eq!(content_digest(&tool("a", " ")), None);
    }
}
