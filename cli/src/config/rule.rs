//! `[[rules]]`: what is allowed or denied, to whom, through which channel, and with which arguments.

use std::collections::BTreeMap;

use callgate_core::json::Number;
use callgate_core::name::{check_principal, check_scope};
use callgate_core::policy::{ArgCheck, ArgTest, ArgValue, Effect, RuleDef};
use toml::de::DeValue;

use super::decode::{Entry, Key, Keys, Table};
use super::names::Names;

/// A rule as the gate takes it, with texts of its own.
pub type Rule = RuleDef<String, Vec<ArgTest<String>>>;

pub(super) static KEYS: Keys = Keys {
    table: "rules",
    keys: &[
        Key { name: "id", takes: "a whole number", example: "1" },
        Key { name: "effect", takes: "\"allow\" or \"deny\"", example: "\"deny\"" },
        Key { name: "channel", takes: "a channel's name in quotes", example: "\"mcp\"" },
        Key { name: "principal", takes: "a principal in quotes", example: "\"alice\"" },
        Key { name: "tool", takes: "a tool's name or a prefix such as \"fs.*\"", example: "\"fs.*\"" },
        Key { name: "mutating", takes: "true or false", example: "true" },
        Key {
            name: "where",
            takes: "a list of tables, each with a field and what must hold for it",
            example: "[{ field = \"path\", prefix = \"docs/\" }]",
        },
        Key { name: "scopes", takes: "a list of scopes in quotes", example: "[\"notes:write\"]" },
        Key { name: "description", takes: "a text in quotes", example: "\"Secrets stay where they are.\"" },
        Key { name: "overrides_block", takes: "true or false", example: "true" },
    ],
};

pub(super) static WHERE: Keys = Keys {
    table: "rules.where",
    keys: &[
        Key { name: "field", takes: "the name of a top-level field in quotes", example: "\"path\"" },
        Key { name: "present", takes: "true or false", example: "false" },
        Key { name: "equals", takes: "a string, a number, or true or false", example: "\"draft\"" },
        Key { name: "in", takes: "a list of strings, numbers, or true and false", example: "[\"draft\", \"note\"]" },
        Key { name: "min", takes: "a number", example: "1" },
        Key { name: "max", takes: "a number", example: "100" },
        Key { name: "prefix", takes: "a string", example: "\"docs/\"" },
    ],
};

pub(super) fn read(rules: &Entry<'_>, names: &Names) -> Vec<Rule> {
    let mut lines = BTreeMap::new();
    let mut read = Vec::new();
    for entry in rules.list() {
        let Some(table) = entry.table(&KEYS) else {
            continue;
        };
        let Some((id, rule)) = rule(&table, names) else {
            continue;
        };
        let line = table.location().line;
        if let Some(first) = lines.insert(rule.id, line) {
            let help = "each rule has an id of its own: it names the rule in denials and records";
            id.report_with(format!("the id {} is that of the rule on line {first}", rule.id), Some(help.into()));
        }
        read.push(rule);
    }
    read
}

fn rule<'d>(table: &Table<'d>, names: &Names) -> Option<(Entry<'d>, Rule)> {
    const NO_SCOPES: &str = "an empty list asks for no scope, which is what leaving the key out says";
    const NO_TESTS: &str = "to match whatever the arguments are, leave the key out";
    let (id, effect) = (table.require("id"), table.require("effect"));
    let effect = effect.and_then(|effect| effect.one_of(&[("allow", Effect::Allow), ("deny", Effect::Deny)]));
    let arguments = table
        .get("where")
        .map_or_else(Vec::new, |tests| tests.filled_list(NO_TESTS).iter().flat_map(argument_tests).collect());
    let scopes = table
        .get("scopes")
        .map(|scopes| scopes.set(&scopes.filled_list(NO_SCOPES), |scope| scope.name(check_scope)).join(" "));
    let rule = Rule {
        channel: table.get("channel").and_then(|channel| names.channel(&channel)),
        principal: table.get("principal").and_then(|principal| principal.name(check_principal)),
        tool: table.get("tool").and_then(|tool| names.pattern(&tool)),
        mutating: table.get("mutating").and_then(|mutating| mutating.boolean()),
        scopes,
        description: table.get("description").and_then(|text| text.filled_text()).map(str::to_owned),
        overrides_block: table.boolean("overrides_block", false),
        // What stands in for a value that was reported never reaches a gate.
        ..Rule::new(0, effect.unwrap_or(Effect::Deny), arguments)
    };
    let conditions = ["channel", "principal", "tool", "mutating", "where"];
    if conditions.into_iter().all(|name| table.get(name).is_none()) {
        table.note("this rule has no condition, so it matches every call");
    }
    if effect == Some(Effect::Deny) {
        refuse_lenient(table, &rule);
    }
    let id = id?;
    let number = id.integer(1..=i64::MAX)?;
    Some((id, Rule { id: number, ..rule }))
}

/// Scopes on a deny rule read as "denied unless", which is not what they would do.
fn refuse_lenient(table: &Table<'_>, rule: &Rule) {
    if let Some(scopes) = table.get("scopes") {
        let help = "they say what an allow rule asks for; leave them out, or write an allow rule";
        scopes.report_with("a deny rule takes no scopes", Some(help.into()));
    }
    if let (true, Some(entry)) = (rule.overrides_block, table.get("overrides_block")) {
        let help = "it lets an allow rule lift a channel's block_mutating; leave it out";
        entry.report_with("a deny rule overrides no block", Some(help.into()));
    }
}

/// The tests of one `where` table; all of them must hold.
fn argument_tests(entry: &Entry<'_>) -> Vec<ArgTest<String>> {
    let Some(table) = entry.table(&WHERE) else {
        return Vec::new();
    };
    let key = table.require("field").and_then(|field| field.filled_text()).unwrap_or_default();
    let test = |check| ArgTest { key: key.to_owned(), check, alternative: false };
    let (min, max) = (table.get("min").and_then(|min| min.number()), table.get("max").and_then(|max| max.number()));
    let single = [
        table
            .get("present")
            .and_then(|present| present.boolean())
            .map(|present| if present { ArgCheck::Present } else { ArgCheck::Absent }),
        table.get("equals").and_then(|value| plain_value(&value)).map(ArgCheck::Equals),
        min.map(ArgCheck::Min),
        max.map(ArgCheck::Max),
        table.get("prefix").and_then(|prefix| prefix.filled_text()).map(|text| ArgCheck::Prefix(text.to_owned())),
    ];
    let mut tests: Vec<_> = single.into_iter().flatten().map(test).collect();
    if let Some(list) = table.get("in") {
        let items = list.filled_list("no value is in an empty list, so the rule would never match");
        let one_of = list.set(&items, plain_value).into_iter().map(ArgCheck::Equals).map(test);
        tests.extend(one_of.enumerate().map(|(index, test)| ArgTest { alternative: index > 0, ..test }));
    }
    if WHERE.keys.iter().all(|key| key.name == "field" || table.get(key.name).is_none()) {
        let help = "add what must hold for the field: present, equals, in, min, max or prefix";
        table.report(format!("`{}` doesn't say what must hold", entry.path()), Some(help.into()));
    }
    if let (Some(min), Some(max)) = (min, max)
        && min.cmp_value(max).is_gt()
    {
        table.report(
            format!("min {min} is greater than max {max}"),
            Some("no value could be both, so the rule would never match".into()),
        );
    }
    tests
}

fn plain_value(entry: &Entry<'_>) -> Option<ArgValue<String>> {
    match entry.value() {
        DeValue::String(_) => entry.text().map(|text| ArgValue::Text(text.to_owned())),
        DeValue::Boolean(boolean) => Some(ArgValue::Bool(*boolean)),
        _ => entry.number().map(|number: Number| ArgValue::Number(number)),
    }
}
