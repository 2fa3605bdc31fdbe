//! What people read about the configuration says what the program does: the template, the reference, the examples in messages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use callgate::config::{Config, ConfigError, Origin, TEMPLATE, known_keys};

const REFERENCE: &str = include_str!("../../docs/configuration.md");

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("callgate.toml"))
}

/// The template with every example put to use: prose has a space after its `#`, an example doesn't.
fn uncommented() -> String {
    let line = |line: &'static str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|c: char| c == '[' || c.is_ascii_alphanumeric()) => rest,
        _ => line,
    };
    TEMPLATE.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Each `key = value` of the text, below its table.
fn entries(text: &str) -> impl Iterator<Item = (String, &str, &str)> {
    let mut table = String::new();
    text.lines().filter_map(move |line| {
        if let Some(header) = line.strip_prefix('[') {
            table = header.trim_matches(['[', ']']).to_owned();
        }
        let (key, value) = line.split_once(" = ")?;
        (!line.starts_with('#')).then(|| (table.clone(), key, value))
    })
}

#[test]
fn the_template_as_it_is_gives_the_defaults() {
    let mut config = parse(TEMPLATE).unwrap();
    assert!(matches!(config.origin, Origin::File(_)));
    config.origin = Origin::Defaults;
    assert_eq!(config, Config::default_for(Path::new(".")));
}

#[test]
fn each_example_of_the_template_can_be_put_to_use() {
    let text = uncommented();
    let config = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((config.channels.len(), config.rules.len(), config.exec.len()), (1, 2, 3));
    assert_eq!(config.tools.len(), 3);
    assert!(config.quotas.channels.len() == 1 && config.quotas.principals.len() == 1 && config.quotas.tools.len() == 1);
    assert!(text.lines().all(|line| !line.starts_with('#') || line == "#" || line.starts_with("# ")), "{text}");
}

#[test]
fn the_template_shows_every_key() {
    let text = uncommented();
    let tables = [
        "state",
        "audit",
        "redaction",
        "channels",
        "rules",
        "quotas",
        "confirmation",
        "tools",
        "exec",
        "serve",
        "upstream",
        "checkpoint",
        "verification",
    ];
    for keys in known_keys() {
        for key in keys.keys {
            // Only whether the word is there as a key; that it is in its place is shown by parsing.
            let shown = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == key.name);
            assert!(shown || tables.contains(&key.name), "{} of `{}`", key.name, keys.table);
        }
    }
}

/// Table, key, default of each row of the reference.
fn documented() -> Vec<(String, String, String)> {
    let mut table = None;
    let mut rows = Vec::new();
    for line in REFERENCE.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            table = Some(if heading == "Top level" { "" } else { heading.trim_matches('`') }.to_owned());
        } else if line.starts_with("## ") {
            table = None;
        }
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        if let (Some(table), ["", key, _, default, _, ""]) = (&table, cells.as_slice())
            && let Some(key) = key.strip_prefix('`').and_then(|key| key.strip_suffix('`'))
        {
            rows.push((table.clone(), key.to_owned(), (*default).to_owned()));
        }
    }
    rows
}

#[test]
fn the_reference_has_each_key_that_is_read_and_no_other() {
    let written: BTreeSet<_> = documented().into_iter().map(|(table, key, _)| (table, key)).collect();
    let read: BTreeSet<_> = known_keys()
        .into_iter()
        .flat_map(|keys| keys.keys.iter().map(|key| (keys.table.to_owned(), key.name.to_owned())))
        .collect();
    let only = |these: &BTreeSet<_>, those: &BTreeSet<_>| these.difference(those).cloned().collect::<Vec<_>>();
    assert_eq!(only(&read, &written), [], "read and not in the reference");
    assert_eq!(only(&written, &read), [], "in the reference and not read");
}

#[test]
fn the_reference_gives_the_defaults_of_the_template() {
    let written: BTreeMap<_, _> =
        documented().into_iter().map(|(table, key, default)| ((table, key), default)).collect();
    let mut compared = 0;
    for (table, key, value) in entries(TEMPLATE) {
        let default = written.get(&(table.clone(), key.to_owned())).unwrap_or_else(|| panic!("{table} {key}"));
        if default != "required" && default != "the limit" {
            assert_eq!(*default, format!("`{value}`"), "{table} {key}");
            compared += 1;
        }
    }
    assert!(compared > 8, "{compared}");
}

#[test]
fn each_example_of_the_reference_can_be_put_to_use() {
    let mut blocks = 0;
    for block in REFERENCE.split("```toml\n").skip(1) {
        let (block, _) = block.split_once("```").unwrap();
        parse(&format!("version = 1\n{block}")).unwrap_or_else(|error| panic!("{error}"));
        blocks += 1;
    }
    assert!(blocks >= 6, "{blocks}");
}

/// The examples of programs fit their parameters; only the programs need not be there.
#[test]
#[cfg(unix)]
fn each_example_of_a_program_could_be_run() {
    use callgate::toolkit::exec::{Declaration, Environment, Program};
    let reference = REFERENCE.split("```toml\n").skip(1).filter_map(|block| block.split_once("```"));
    let texts = reference.map(|(block, _)| format!("version = 1\n{block}")).chain([uncommented()]);
    let mut programs = 0;
    for config in texts.map(|text| parse(&text).unwrap()) {
        for tool in &config.exec {
            programs += 1;
            let nothing = Environment { var: &|_| None };
            let problems = Program::prepare(&Declaration::from(tool), nothing).err().unwrap_or_default();
            let others: Vec<_> = problems.iter().filter(|problem| problem.part != "program").collect();
            assert!(others.is_empty(), "{}: {others:#?}", tool.name);
        }
    }
    assert!(programs >= 4, "{programs}");
}

/// A message that shows an example must show one that is right.
#[test]
fn each_example_of_a_message_is_accepted() {
    const NEW_EXEC: &[&str] = &["name = \"x.y\"", "description = \"d\"", "program = \"p\""];
    // For each table: what it takes to have one, and the entries that it can't do without.
    let tables: BTreeMap<&str, (&str, &[&str])> = [
        ("", ("", &["version = 1"][..])),
        ("state", ("[state]", &[])),
        ("audit", ("[audit]", &[])),
        ("audit.checkpoint", ("[audit.checkpoint]", &["key = \"k\"", "to = \"t\""])),
        ("redaction", ("[redaction]", &[])),
        ("channels.NAME", ("[channels.bot]", &[])),
        ("rules", ("[[rules]]", &["id = 9", "effect = \"allow\""])),
        (
            "rules.where",
            ("[[rules]]\nid = 9\neffect = \"deny\"\n[[rules.where]]", &["field = \"f\"", "present = true"]),
        ),
        ("quotas", ("[quotas]", &[])),
        ("quotas.attempts", ("[quotas.attempts]", &[])),
        ("quotas.channels.NAME", ("[quotas.channels.web]", &[])),
        ("quotas.principals.NAME", ("[quotas.principals.alice]", &[])),
        ("quotas.tools.NAME", ("[quotas.tools.\"fs.read\"]", &[])),
        ("confirmation", ("[confirmation]", &[])),
        ("signed", ("[signed]", &[])),
        (
            "signers",
            (
                "[[signers]]",
                &[
                    "name = \"a\"",
                    "key = \"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMUdi1d21Wf7JLI2DLzQy5tkIKMg/8s84t0Kg9eAc2LL\"",
                    "principal = \"p\"",
                ],
            ),
        ),
        ("tools.NAME", ("[tools.\"fs.read\"]", &[])),
        ("tools.NAME.clamps.FIELD", ("[tools.\"fs.read\".clamps.limit]", &[])),
        ("exec", ("[[exec]]", NEW_EXEC)),
        ("exec.clamps.FIELD", ("[[exec]]\nname = \"x.y\"\ndescription = \"d\"\nprogram = \"p\"\n[exec.clamps.n]", &[])),
        (
            "exec.parameters.NAME",
            ("[[exec]]\nname = \"x.y\"\ndescription = \"d\"\nprogram = \"p\"\n[exec.parameters.n]", &[]),
        ),
        ("verification", ("[verification]", &[])),
        ("serve", ("[serve]", &[])),
        (
            "serve.tokens",
            (
                "[[serve.tokens]]",
                &["principal = \"p\"", "sha256 = \"5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8\""],
            ),
        ),
        ("serve.jwt", ("[serve.jwt]", &["issuer = \"i\"", "audience = \"a\"", "jwks = \"j\""])),
        ("upstream", ("[[upstream]]", &["name = \"u\""])),
    ]
    .into();
    for keys in known_keys() {
        let (head, needed) = tables.get(keys.table).unwrap_or_else(|| panic!("no table `{}`", keys.table));
        for key in keys.keys {
            let mut text = String::from(if keys.table.is_empty() { "" } else { "version = 1\n" });
            text.push_str(head);
            for entry in *needed {
                if !entry.starts_with(&format!("{} ", key.name)) {
                    text.push_str(&format!("\n{entry}"));
                }
            }
            // What the key can't be without.
            text.push_str(match (keys.table, key.name) {
                (_, "approver_scope") => "\nconfirm = \"approver\"",
                ("upstream", "cwd") => "\ncommand = [\"p\"]",
                ("exec", "stdin") => "\nparameters = { text = { type = \"string\" } }",
                ("exec.parameters.NAME", "type") => "",
                ("exec.parameters.NAME", "min" | "max") => "\ntype = \"integer\"",
                ("exec.parameters.NAME", "clamp") => "\ntype = \"integer\"\nmin = 1",
                ("exec.parameters.NAME", "items" | "min_items" | "max_items") => "\ntype = \"array\"",
                ("exec.parameters.NAME", _) => "\ntype = \"string\"",
                _ => "",
            });
            text.push_str(&format!("\n{} = {}\n", key.name, key.example));
            parse(&text).unwrap_or_else(|error| panic!("`{}` of `{}`:\n{text}\n{error}", key.name, keys.table));
        }
    }
}

/// O1, V16, F7: whatever single entry is given twice, renamed or of another type, the program doesn't start.
#[test]
fn o1_v16_no_single_entry_can_be_wrong_and_pass() {
    let text = uncommented();
    let lines: Vec<&str> = text.lines().collect();
    let with = |index: usize, line: &str| {
        let mut lines = lines.clone();
        lines[index] = line;
        parse(&lines.join("\n"))
    };
    let mut tried = 0;
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let Some((key, value)) = line.split_once(" = ").filter(|_| !line.starts_with('[')) else {
            continue;
        };
        let place = |error: &ConfigError| error.problems().iter().any(|p| p.location.is_some_and(|l| l.line > index));
        let twice = with(index, &format!("{line}\n{line}")).unwrap_err();
        assert!(twice.to_string().contains(&format!("duplicate key `{key}`")), "{twice}");
        let renamed = with(index, &format!("{key}_x = {value}")).unwrap_err();
        assert!(renamed.to_string().contains(&format!("unknown key `{key}_x`")), "{renamed}");
        // Nothing in a configuration is a date, and no number may be beyond all numbers.
        for wrong in ["1979-05-27", "inf", "nan", "[1979-05-27]", "{ a = 1979-05-27 }", "\"\\u0000\""] {
            let error = with(index, &format!("{key} = {wrong}")).unwrap_err();
            assert!(place(&error), "{key} = {wrong}: {error}");
        }
        tried += 1;
    }
    assert!(tried > 80, "{tried}");
}
