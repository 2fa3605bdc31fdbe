//! `[[rules]]`: what is allowed or denied, to whom, through which channel, and with which arguments.

use std::collections::BTreeMap;

use callgate_core::name::{check_label, check_principal, check_scope};
use toml::de::DeValue;

use super::decode::{Entry, Key, Keys, Number};
use super::names::{Names, ToolPattern};
use super::source::Location;

/// What a rule says about the calls that it matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a third effect would have to be decided everywhere"
)]
pub enum Effect {
    /// The call may go on.
    Allow,
    /// The call is refused, whatever another rule says (invariant P1).
    Deny,
}

/// A rule. It matches a call when all its conditions do; one that is absent matches every call.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// Names the rule in denials and records; unique in the file.
    pub id: String,
    /// Allow or deny.
    pub effect: Effect,
    /// The channel.
    pub channel: Option<String>,
    /// The principal.
    pub principal: Option<String>,
    /// The tools.
    pub tool: Option<ToolPattern>,
    /// Whether the tool changes something.
    pub mutating: Option<bool>,
    /// Conditions on the arguments; all must hold.
    pub predicates: Vec<Predicate>,
    /// For an allow rule: the caller must hold one of these. None asked when empty.
    pub scopes: Vec<String>,
    /// Told to a caller whom the rule denies.
    pub description: Option<String>,
    /// For an allow rule: whether it also lifts the channel's `block_mutating`.
    pub overrides_block: bool,
    /// Where the file states it.
    pub location: Location,
}

/// A condition on one top-level field of the arguments. A call without the field, or with a value of another type, doesn't
/// match.
#[derive(Clone, PartialEq, Debug)]
pub struct Predicate {
    /// The field's name.
    pub field: String,
    /// What must hold for its value.
    pub test: Test,
}

/// What must hold for a value.
#[derive(Clone, PartialEq, Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever applies a rule must decide for each test"
)]
pub enum Test {
    /// It equals this.
    Equals(Scalar),
    /// It equals one of these.
    In(Vec<Scalar>),
    /// It is a number of at least this.
    Min(Number),
    /// It is a number of at most this.
    Max(Number),
    /// It is a string that starts with this.
    Prefix(String),
}

/// A plain value.
#[derive(Clone, PartialEq, Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "these are the plain values of TOML that JSON has too"
)]
pub enum Scalar {
    /// A string.
    Text(String),
    /// A number.
    Number(Number),
    /// True or false.
    Boolean(bool),
}

pub(super) static KEYS: Keys = Keys {
    table: "rules",
    keys: &[
        Key {
            name: "id",
            takes: "a name in quotes",
            example: "\"no-secrets\"",
        },
        Key {
            name: "effect",
            takes: "\"allow\" or \"deny\"",
            example: "\"deny\"",
        },
        Key {
            name: "channel",
            takes: "a channel's name in quotes",
            example: "\"mcp\"",
        },
        Key {
            name: "principal",
            takes: "a principal in quotes",
            example: "\"alice\"",
        },
        Key {
            name: "tool",
            takes: "a tool's name or a prefix such as \"fs.*\"",
            example: "\"fs.*\"",
        },
        Key {
            name: "mutating",
            takes: "true or false",
            example: "true",
        },
        Key {
            name: "where",
            takes: "a list of tables, each with a field and what must hold for it",
            example: "[{ field = \"path\", prefix = \"docs/\" }]",
        },
        Key {
            name: "scopes",
            takes: "a list of scopes in quotes",
            example: "[\"notes:write\"]",
        },
        Key {
            name: "description",
            takes: "a text in quotes",
            example: "\"Secrets stay where they are.\"",
        },
        Key {
            name: "overrides_block",
            takes: "true or false",
            example: "true",
        },
    ],
};

pub(super) static WHERE: Keys = Keys {
    table: "rules.where",
    keys: &[
        Key {
            name: "field",
            takes: "the name of a top-level field in quotes",
            example: "\"path\"",
        },
        Key {
            name: "equals",
            takes: "a string, a number, or true or false",
            example: "\"draft\"",
        },
        Key {
            name: "in",
            takes: "a list of strings, numbers, or true and false",
            example: "[\"draft\", \"note\"]",
        },
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
            name: "prefix",
            takes: "a string",
            example: "\"docs/\"",
        },
    ],
};

pub(super) fn read(rules: &Entry<'_>, names: &Names) -> Vec<Rule> {
    let mut seen = BTreeMap::new();
    let read = |entry: &Entry<'_>| {
        let rule = rule(entry, names)?;
        // An id that is missing was reported where it is missing.
        if !rule.id.is_empty()
            && let Some(line) = seen.insert(rule.id.clone(), rule.location.line)
        {
            let help = Some(
                "each rule has an id of its own: it names the rule in denials and records".into(),
            );
            entry.report_with(
                format!("the id `{}` was given to the rule on line {line}", rule.id),
                help,
            );
        }
        Some(rule)
    };
    rules.list().iter().filter_map(read).collect()
}

fn rule(entry: &Entry<'_>, names: &Names) -> Option<Rule> {
    const NO_SCOPES: &str =
        "an empty list asks for no scope, which is what leaving the key out says";
    const NO_PREDICATES: &str = "to match whatever the arguments are, leave the key out";
    let table = entry.table(&KEYS)?;
    let id = table.require("id").and_then(|id| id.name(check_label));
    let effect = table
        .require("effect")
        .and_then(|effect| effect.one_of(&[("allow", Effect::Allow), ("deny", Effect::Deny)]));
    let rule = Rule {
        id: id.unwrap_or_default(),
        effect: effect.unwrap_or(Effect::Deny),
        channel: table
            .get("channel")
            .and_then(|channel| names.channel(&channel)),
        principal: table
            .get("principal")
            .and_then(|principal| principal.name(check_principal)),
        tool: table.get("tool").and_then(|tool| names.pattern(&tool)),
        mutating: table
            .get("mutating")
            .and_then(|mutating| mutating.boolean()),
        predicates: table.get("where").map_or_else(Vec::new, |list| {
            list.filled_list(NO_PREDICATES)
                .iter()
                .flat_map(predicates)
                .collect()
        }),
        scopes: table.get("scopes").map_or_else(Vec::new, |scopes| {
            scopes.set(&scopes.filled_list(NO_SCOPES), |scope| {
                scope.name(check_scope)
            })
        }),
        description: table
            .get("description")
            .and_then(|text| text.filled_text())
            .map(str::to_owned),
        overrides_block: table.boolean("overrides_block", false),
        location: table.location(),
    };
    let conditions = ["channel", "principal", "tool", "mutating", "where"];
    if conditions.into_iter().all(|name| table.get(name).is_none()) {
        table.note(format!(
            "rule `{}` has no condition, so it matches every call",
            rule.id
        ));
    }
    if effect == Some(Effect::Deny) {
        // Scopes on a deny rule read as "denied unless", which is not what they would do.
        if let Some(scopes) = table.get("scopes") {
            let help = Some(
                "scopes say what an allow rule asks for; leave them out of a deny rule".into(),
            );
            scopes.report_with("a deny rule takes no scopes", help);
        }
        if rule.overrides_block {
            let help =
                Some("overrides_block lets an allow rule lift a channel's block_mutating".into());
            table.report("a deny rule can't override a block", help);
        }
    }
    Some(rule)
}

fn predicates(entry: &Entry<'_>) -> Vec<Predicate> {
    let Some(table) = entry.table(&WHERE) else {
        return Vec::new();
    };
    let field = table
        .require("field")
        .and_then(|field| field.filled_text())
        .unwrap_or_default()
        .to_owned();
    let mut tests = Vec::new();
    let mut stated = 0_usize;
    let mut test = |name: &'static str, read: &dyn Fn(&Entry<'_>) -> Option<Test>| {
        if let Some(entry) = table.get(name) {
            stated = stated.saturating_add(1);
            tests.extend(read(&entry));
        }
    };
    test("equals", &|entry| scalar(entry).map(Test::Equals));
    test("in", &|entry| {
        let items =
            entry.filled_list("no value is in an empty list, so the rule would never match");
        Some(Test::In(entry.set(&items, scalar)))
    });
    test("min", &|entry| entry.number().map(Test::Min));
    test("max", &|entry| entry.number().map(Test::Max));
    test("prefix", &|entry| {
        entry
            .filled_text()
            .map(|text| Test::Prefix(text.to_owned()))
    });
    if stated == 0 {
        let help = Some("add what must hold for the field: equals, in, min, max or prefix".into());
        table.report(
            format!("`{}` doesn't say what must hold", entry.path()),
            help,
        );
    }
    if let (Some(Test::Min(min)), Some(Test::Max(max))) = (
        tests.iter().find(|test| matches!(test, Test::Min(_))),
        tests.iter().find(|test| matches!(test, Test::Max(_))),
    ) && min.exceeds(*max)
    {
        table.report(
            format!("min {min} is greater than max {max}, so the rule would never match"),
            None,
        );
    }
    tests
        .into_iter()
        .map(|test| Predicate {
            field: field.clone(),
            test,
        })
        .collect()
}

fn scalar(entry: &Entry<'_>) -> Option<Scalar> {
    match entry.value() {
        DeValue::String(_) => entry.text().map(|text| Scalar::Text(text.to_owned())),
        DeValue::Boolean(boolean) => Some(Scalar::Boolean(*boolean)),
        _ => entry.number().map(Scalar::Number),
    }
}
