//! `clamps` and `secrets` of a tool: what holds for single fields of its arguments beside its schema.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use callgate_core::clamp::{Bound, Clamp};
use callgate_core::json::Number;
use callgate_core::tool::FieldRule;

use super::decode::{Entry, Key, Keys, Table};

/// What holds for single fields of a tool's arguments.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FieldRules(BTreeMap<String, (Option<Clamp>, bool)>);

impl FieldRules {
    /// The rules as the gate takes them, sorted by path. Each has been checked.
    pub fn iter(&self) -> impl Iterator<Item = FieldRule<'_>> {
        self.0.iter().map(|(path, (clamp, secret))| FieldRule { path, clamp: *clamp, secret: *secret })
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These rules over a tool's `own`: a bound that is stated takes the place of the tool's, what isn't stated stays, and a secret
    /// stays one.
    ///
    /// # Errors
    /// The path and the reason of each clamp that would let more through than the tool's own, or nothing at all.
    pub(super) fn over(&self, own: &[FieldRule<'_>]) -> Result<Self, Vec<(&str, String)>> {
        let mut merged = self.clone();
        let mut refused = Vec::new();
        for rule in own {
            let stated = self.0.get_key_value(rule.path).and_then(|(path, (clamp, _))| Some((path, (*clamp)?)));
            let clamp = match (stated, rule.clamp) {
                (Some((path, stated)), Some(own)) => {
                    let clamp = Clamp {
                        min: stated.min.or(own.min),
                        max: stated.max.or(own.max),
                        max_length: stated.max_length.or(own.max_length),
                    };
                    if widens(&clamp, &own) {
                        refused.push((path.as_str(), "lets more through than the tool's own clamp".to_owned()));
                    } else if let Err(fault) = clamp.check() {
                        refused.push((path.as_str(), format!("leaves nothing of the tool's own clamp: {fault}")));
                    }
                    Some(clamp)
                }
                (stated, own) => stated.map(|(_, clamp)| clamp).or(own),
            };
            merged.set(rule.path.to_owned(), clamp, rule.secret);
        }
        if refused.is_empty() { Ok(merged) } else { Err(refused) }
    }

    pub(super) fn set(&mut self, path: String, clamp: Option<Clamp>, secret: bool) {
        let rule = self.0.entry(path).or_default();
        rule.0 = clamp.or(rule.0);
        rule.1 |= secret;
    }

    fn has_clamp(&self, path: &str) -> bool {
        self.0.get(path).is_some_and(|(clamp, _)| clamp.is_some())
    }
}

/// The keys of the clamps in `table`.
pub(super) const fn clamp_keys(table: &'static str) -> Keys {
    const BOUNDS: &[Key] = &[
        Key { name: "min", takes: "a number", example: "1" },
        Key { name: "max", takes: "a number", example: "100" },
        Key { name: "max_length", takes: "a whole number", example: "2000" },
    ];
    Keys { table, keys: BOUNDS }
}

pub(super) const CLAMPS_KEY: Key =
    Key { name: "clamps", takes: "a table of bounds by field", example: "{ max = { min = 1, max = 100 } }" };
pub(super) const SECRETS_KEY: Key =
    Key { name: "secrets", takes: "a list of fields in quotes", example: "[\"password\"]" };

/// Reads `clamps` and `secrets` of a tool into `rules`.
pub(super) fn read(table: &Table<'_>, keys: &'static Keys, rules: &mut FieldRules) {
    for (field, entry) in table.get("clamps").iter().flat_map(Entry::named) {
        let path = pointer(field);
        let Some(clamp) = clamp(&entry, keys) else {
            continue;
        };
        if rules.has_clamp(&path) {
            entry.report_key("this field has a clamp already", Some("state its bounds once".into()));
        } else if let Err(fault) = FieldRule::clamp(&path, clamp).check() {
            entry.report_key(fault.to_string(), None);
        }
        rules.set(path, Some(clamp), false);
    }
    if let Some(secrets) = table.get("secrets") {
        let items = secrets.filled_list("with no secret field, leave the key out");
        let read = |entry: &Entry<'_>| {
            let path = pointer(entry.filled_text()?);
            match FieldRule::secret(&path).check() {
                Ok(()) => Some(path),
                Err(fault) => {
                    entry.report_with(fault.to_string(), None);
                    None
                }
            }
        };
        for path in secrets.set(&items, read) {
            rules.set(path, None, true);
        }
    }
}

/// Reads the bounds. `None` when one was reported; whether the rest can be used is for the whole rule to say.
fn clamp(entry: &Entry<'_>, keys: &'static Keys) -> Option<Clamp> {
    let table = entry.table(keys)?;
    let number = |name| table.get(name).map(|entry| entry.number().and_then(bound));
    let (min, max) = (number("min"), number("max"));
    let max_length = table.get("max_length").map(|entry| entry.natural(1..=1 << 20));
    if min == Some(None) || max == Some(None) || max_length == Some(None) {
        return None;
    }
    Some(Clamp { min: min.flatten(), max: max.flatten(), max_length: max_length.flatten() })
}

/// Whether `clamp` lets a value through that `own` would not. A bound that `own` has is in `clamp` as well.
fn widens(clamp: &Clamp, own: &Clamp) -> bool {
    let beyond = |bound: Option<Bound>, own: Option<Bound>, side: Ordering| match (bound, own) {
        (Some(bound), Some(own)) => {
            number(bound).zip(number(own)).is_none_or(|(bound, own)| bound.cmp_value(own) == side)
        }
        _ => false,
    };
    beyond(clamp.min, own.min, Ordering::Less)
        || beyond(clamp.max, own.max, Ordering::Greater)
        || own.max_length.is_some_and(|own| clamp.max_length.is_none_or(|length| length > own))
}

/// The bound as a number; `None` when it is none.
fn number(bound: Bound) -> Option<Number> {
    match bound {
        Bound::Integer(number) => Some(u64::try_from(number).map_or(Number::I64(number), Number::U64)),
        Bound::Float(number) => Number::from_f64(number),
        // A bound that isn't known here can't be compared, and so counts as wider.
        _ => None,
    }
}

/// The number as a bound of a clamp. TOML has no whole number that a bound hasn't.
pub(super) fn bound(number: Number) -> Option<Bound> {
    match number {
        Number::F64(number) => Some(Bound::Float(number)),
        _ => number.as_i64().map(Bound::Integer),
    }
}

/// The JSON Pointer that `field` means: itself when it starts with `/`, else the top-level field of this name.
fn pointer(field: &str) -> String {
    if field.is_empty() || field.starts_with('/') { field.to_owned() } else { top_level(field) }
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
        for (field, path) in [("max", "/max"), ("a~b/c", "/a~0b~1c"), ("/rows/*/price", "/rows/*/price"), ("", "")] {
            assert_eq!(pointer(field), path);
        }
    }
}
