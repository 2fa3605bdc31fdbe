//! `clamps` and `secrets` of a tool: what holds for single fields of its arguments beside its schema.

use std::collections::BTreeMap;

use super::decode::{Entry, Key, Keys, Number, Table};

/// The bounds that a value of the fitting type is brought into (invariants K1 to K3).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the same three bounds as the core's clamp"
)]
pub struct Clamp {
    /// The least number.
    pub min: Option<Number>,
    /// The greatest number.
    pub max: Option<Number>,
    /// The most characters of a string; the rest is cut off.
    pub max_length: Option<u32>,
}

/// What holds for one field.
#[derive(Clone, PartialEq, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the same parts as the core's rule for a field"
)]
pub struct FieldRule {
    /// The bounds it is brought into.
    pub clamp: Option<Clamp>,
    /// Whether its value is a secret: never written to a record, a log or a plan.
    pub secret: bool,
}

/// Rules by field. The field is a JSON Pointer (RFC 6901) from the root of the arguments, in which a segment `*` stands for
/// every item of an array.
pub type FieldRules = BTreeMap<String, FieldRule>;

/// The keys of the clamps in `table`.
pub(super) const fn clamp_keys(table: &'static str) -> Keys {
    const BOUNDS: &[Key] = &[
        Key {
            name: "min",
            takes: "a number",
            example: "1",
        },
        Key {
            name: "max",
            takes: "a number",
            example: "100",
        },
        Key {
            name: "max_length",
            takes: "a whole number",
            example: "2000",
        },
    ];
    Keys {
        table,
        keys: BOUNDS,
    }
}

pub(super) const CLAMPS_KEY: Key = Key {
    name: "clamps",
    takes: "a table of bounds by field",
    example: "{ max = { min = 1, max = 100 } }",
};
pub(super) const SECRETS_KEY: Key = Key {
    name: "secrets",
    takes: "a list of fields in quotes",
    example: "[\"password\"]",
};

/// Reads `clamps` and `secrets` of a tool into `rules`.
pub(super) fn read(table: &Table<'_>, keys: &'static Keys, rules: &mut FieldRules) {
    for (field, entry) in table.get("clamps").iter().flat_map(Entry::named) {
        let Some(pointer) = pointer(field) else {
            entry.report_key(POINTER_REFUSED, Some(POINTER_HELP.into()));
            continue;
        };
        if let Some(clamp) = clamp(&entry, keys) {
            let rule = rules.entry(pointer).or_default();
            if rule.clamp.is_some() {
                entry.report_key(
                    "this field has a clamp already",
                    Some("state its bounds once".into()),
                );
            }
            rule.clamp = Some(clamp);
        }
    }
    if let Some(secrets) = table.get("secrets") {
        let items = secrets.filled_list("with no secret field, leave the key out");
        let read = |entry: &Entry<'_>| {
            let pointer = pointer(entry.text()?);
            if pointer.is_none() {
                entry.report_with(POINTER_REFUSED, Some(POINTER_HELP.into()));
            }
            pointer
        };
        for pointer in secrets.set(&items, read) {
            rules.entry(pointer).or_default().secret = true;
        }
    }
}

fn clamp(entry: &Entry<'_>, keys: &'static Keys) -> Option<Clamp> {
    let table = entry.table(keys)?;
    let clamp = Clamp {
        min: table.get("min").and_then(|entry| entry.number()),
        max: table.get("max").and_then(|entry| entry.number()),
        max_length: table
            .get("max_length")
            .and_then(|entry| entry.natural(1..=1 << 20)),
    };
    if let (Some(min), Some(max)) = (clamp.min, clamp.max)
        && min.exceeds(max)
    {
        table.report(
            format!("min {min} is greater than max {max}"),
            Some("a value can't be brought into it".into()),
        );
    }
    // An empty table would be no clamp that reads like one.
    if ["min", "max", "max_length"]
        .iter()
        .all(|name| table.get(name).is_none())
    {
        table.report(
            format!("`{}` has no bound", entry.path()),
            Some("add min, max or max_length, or leave it out".into()),
        );
    }
    Some(clamp)
}

const POINTER_REFUSED: &str = "this names no field";
const POINTER_HELP: &str = "a field is a name such as \"max\", or a JSON Pointer such as \"/filter/limit\" or \"/rows/*/price\"";

/// The JSON Pointer that `field` means: itself when it starts with `/`, else the top-level field of this name.
fn pointer(field: &str) -> Option<String> {
    const DEPTH: usize = 16;
    if !field.starts_with('/') {
        return (!field.trim().is_empty()).then(|| top_level(field));
    }
    let mut segments = field.split('/').skip(1);
    let escaped = |segment: &str| {
        segment
            .split('~')
            .skip(1)
            .all(|after| after.starts_with(['0', '1']))
    };
    let sound = segments.clone().count() <= DEPTH
        && segments.all(|segment| !segment.is_empty() && escaped(segment));
    sound.then(|| field.to_owned())
}

/// The JSON Pointer of a top-level field.
pub(super) fn top_level(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_top_level_field_and_a_pointer_is_itself() {
        assert_eq!(pointer("max").as_deref(), Some("/max"));
        assert_eq!(pointer("a/b~c").as_deref(), Some("/a~1b~0c"));
        for good in ["/max", "/rows/*/price", "/a~1b/~0"] {
            assert_eq!(pointer(good).as_deref(), Some(good));
        }
        for bad in ["", " ", "/", "//", "/a/", "/a~", "/a~2", "/a//b"] {
            assert_eq!(pointer(bad), None, "{bad:?}");
        }
        assert_eq!(pointer(&"/a".repeat(17)), None);
    }
}
