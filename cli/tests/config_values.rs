//! What a configuration says arrives where the gate takes it.
#![expect(clippy::panic, reason = "helpers of tests")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use callgate::config::{Config, Confirm, Fault, OutputKind, Toolkit, check};
use callgate_core::clamp::{Bound, Clamp};
use callgate_core::fields;
use callgate_core::limit::Quota;
use callgate_core::policy::{By, ChannelPolicy, ChannelTable, Effect, RuleSet};
use callgate_core::tool::{ConfirmBy, FieldRule, ToolSpec};
use serde_json::json;

#[track_caller]
fn parse(body: &str) -> Config {
    let text = format!("version = 1\n{body}");
    Config::parse(&text, Path::new("etc/callgate.toml")).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn paths_start_at_the_file() {
    let config = parse("root = \"../notes\"\n[state]\nfile = \"/var/s.json\"\n[audit]\nfile = \"./log/a.jsonl\"");
    assert_eq!(config.root, Path::new("etc/../notes"));
    assert_eq!(config.state_file, Path::new("/var/s.json"));
    assert_eq!(config.audit_file, Path::new("etc/log/a.jsonl"));
    assert_eq!(config.file(), Some(Path::new("etc/callgate.toml")));
}

#[test]
fn without_an_entry_the_defaults_hold() {
    let config = parse("");
    let defaults = Config::default_for(Path::new("etc"));
    assert_eq!(Config { origin: defaults.origin.clone(), ..config }, defaults);
    assert_eq!(defaults.toolkits, [Toolkit::Time, Toolkit::Fs]);
    assert_eq!(defaults.state_file, Path::new("etc/.callgate/gate.db"));
    assert!(parse("toolkits = []").toolkits.is_empty());
}

/// P6: what no tool may write, wherever the files lie.
#[test]
fn p6_the_gate_says_which_files_are_its_own() {
    let config = parse("[state]\nfile = \"/var/s.json\"\n[audit]\nfile = \"a.jsonl\"");
    let own = config.protected_paths();
    for path in ["/var/s.json", "etc/a.jsonl", "etc/callgate.toml", "etc/.callgate"] {
        assert!(own.contains(&PathBuf::from(path)), "{path}: {own:?}");
    }
    let defaults = Config::default_for(Path::new("/srv")).protected_paths();
    assert!(defaults.contains(&PathBuf::from("/srv/callgate.toml")), "it must not be brought into being");
}

#[test]
fn channels_are_policies_that_replace_the_builtin_ones() {
    let config = parse(
        "\
[channels.telegram]
require_auth = false
require_confirmation_for_mutating = true
confirm_by = \"approver\"
consent_required = true
[channels.bot]
block_mutating = true
require_rule = true
",
    );
    let policies: Vec<ChannelPolicy<'_>> = config.channels.values().map(callgate::config::Channel::policy).collect();
    let table = ChannelTable::over_defaults(&policies);
    table.check().unwrap();
    let telegram = ChannelPolicy::new("telegram").without_auth().confirming_mutating().requiring_consent();
    assert_eq!(table.get("telegram").policy, telegram.confirmed_by_approver());
    assert_eq!(table.get("bot").policy, ChannelPolicy::new("bot").blocking_mutating().requiring_rule());
    assert!(config.channels["telegram"].replaces_builtin && !config.channels["bot"].replaces_builtin);
    assert_eq!(config.channels["bot"].location.line, 7);
    assert_eq!(config.channels["telegram"].policy().confirm_by, By::Approver);
}

/// F2: an empty table opens nothing.
#[test]
fn f2_an_empty_channel_asks_for_a_principal() {
    let config = parse("[channels.bot]");
    assert_eq!(config.channels["bot"].policy(), ChannelPolicy::new("bot"));
    assert!(ChannelPolicy::new("bot").require_auth);
}

#[test]
fn rules_are_what_the_gate_takes() {
    let config = parse(
        r#"
[[rules]]
id = 7
effect = "deny"
channel = "web"
principal = "alice b"
tool = "fs.*"
mutating = true
description = "no"
where = [
    { field = "mode", in = ["a", 2, true] },
    { field = "n", min = -1, max = 2.5 },
    { field = "path", prefix = "x/", present = true },
    { field = "q", equals = "v" },
    { field = "r", present = false },
]
[[rules]]
id = 3
effect = "allow"
tool = "fs.read"
scopes = ["a", "b:c"]
overrides_block = true
"#,
    );
    RuleSet::new(&config.rules).check().unwrap();
    let [deny, allow] = &config.rules[..] else { panic!("{:?}", config.rules) };
    assert_eq!((deny.id, deny.effect, deny.mutating), (7, Effect::Deny, Some(true)));
    assert_eq!(deny.channel.as_deref(), Some("web"));
    assert_eq!(deny.principal.as_deref(), Some("alice b"));
    assert_eq!(deny.tool.as_deref(), Some("fs.*"));
    assert_eq!(deny.description.as_deref(), Some("no"));
    let tests: Vec<_> = deny.arguments.iter().map(|test| (test.key.as_str(), test.alternative)).collect();
    let expected = [
        ("mode", false),
        ("mode", true),
        ("mode", true),
        ("n", false),
        ("n", false),
        ("path", false),
        ("path", false),
        ("q", false),
        ("r", false),
    ];
    assert_eq!(tests, expected);
    assert_eq!(allow.scopes.as_deref(), Some("a b:c"));
    assert!(allow.overrides_block && allow.arguments.is_empty());
}

#[test]
fn quotas_inherit_what_they_leave_out() {
    let config = parse(
        "\
[quotas]
limit = 200
window = \"2m\"
burst = 50
attempts = { limit = 10 }
channels.web = { limit = 20 }
principals.\"alice b\" = { window = \"1h\" }
tools.\"fs.write\" = { burst = 5 }
",
    );
    let quota = |limit, window_ms, burst| Quota::new(limit, window_ms, burst).unwrap();
    let quotas = &config.quotas;
    assert_eq!(quotas.default, quota(200, 120_000, 50));
    assert_eq!(quotas.attempts, quota(10, 60_000, 10));
    assert_eq!(quotas.channels["web"], quota(20, 120_000, 20));
    assert_eq!(quotas.principals["alice b"], quota(200, 3_600_000, 50));
    assert_eq!(quotas.tools["fs.write"], quota(200, 120_000, 5));
    assert_eq!(quotas.quota_for("web", Some("alice b"), "fs.write"), quota(200, 3_600_000, 50));
    assert_eq!(quotas.quota_for("cli", Some("bob"), "fs.read"), quotas.default);
}

/// R3: a lower quota for calls does not lower, or raise, the budget of attempts.
#[test]
fn r3_attempts_have_a_budget_of_their_own() {
    assert_eq!(parse("[quotas]\nlimit = 5").quotas.attempts, Quota::DEFAULT);
}

#[test]
fn confirmation_and_redaction_are_read() {
    let config = parse(
        "[confirmation]\nttl = \"5m\"\nmax_pending = 3\naccept_reserved_argument = true\n[redaction]\nfields = [\"iban\"]",
    );
    assert_eq!(config.confirmation.ttl, Duration::from_secs(300));
    assert_eq!(config.confirmation.max_pending, 3);
    assert!(config.confirmation.accept_reserved_argument);
    assert_eq!(config.redacted_fields, ["iban"]);
}

#[test]
fn adjustments_are_read() {
    let config = parse(
        r#"
[tools."fs.search"]
scopes = ["r", "s"]
confirm = "approver"
timeout = "500ms"
cost = 9
clamps = { max = { min = 1, max = 100 }, "/a/*/b" = { max = 0.5 }, "x/y" = { max_length = 7 } }
secrets = ["pattern", "max"]
[tools."time.now"]
disabled = true
"#,
    );
    let search = &config.tools["fs.search"];
    assert_eq!(search.scopes, ["r", "s"]);
    assert_eq!(search.confirm.as_ref().map(Confirm::by), Some(ConfirmBy::Approver { scope: "approve" }));
    assert_eq!((search.timeout, search.cost), (Some(Duration::from_millis(500)), Some(9)));
    assert!(!search.disabled && config.tools["time.now"].disabled);
    let rules: Vec<_> = search.fields.iter().collect();
    fields::check(&rules).unwrap();
    let clamp = |path: &str| rules.iter().find(|rule| rule.path == path).map(|rule| (rule.clamp, rule.secret));
    assert_eq!(clamp("/max"), Some((Some(Clamp::range(1, 100)), true)));
    assert_eq!(clamp("/a/*/b"), Some((Some(Clamp { max: Some(Bound::Float(0.5)), ..Clamp::default() }), false)));
    assert_eq!(clamp("/x~1y"), Some((Some(Clamp::max_length(7)), false)));
    assert_eq!(clamp("/pattern"), Some((None, true)));
}

/// K2, A2: an adjustment tightens. What would loosen is refused, at its place.
#[test]
fn an_adjustment_can_only_tighten() {
    let own_fields = [FieldRule::clamp("/max", Clamp::range(1, 1000)), FieldRule::secret("/content")];
    let own = ToolSpec::new("fs.write", "").with_fields(&own_fields).with_confirm(ConfirmBy::Caller);
    let apply = |entries: &str| {
        let config = parse(&format!("[tools.\"fs.write\"]\n{entries}"));
        match config.tools["fs.write"].apply(&own) {
            Ok(adjusted) => {
                let confirm = format!("{:?}", adjusted.confirm);
                let rules = adjusted.fields.iter().map(|rule| (rule.path.to_owned(), rule.clamp, rule.secret));
                Ok((confirm, rules.collect::<Vec<_>>()))
            }
            Err(faults) => Err(config.refuse(faults).to_string()),
        }
    };
    let own_rules = [("/content".to_owned(), None, true), ("/max".to_owned(), Some(Clamp::range(1, 1000)), false)];
    let (confirm, rules) = apply("").unwrap();
    assert_eq!((confirm.as_str(), rules.as_slice()), ("Caller", own_rules.as_slice()));

    let (confirm, rules) = apply(
        "confirm = \"approver\"\nclamps = { max = { max = 100 }, content = { max_length = 5 } }\nsecrets = [\"max\"]",
    )
    .unwrap();
    assert_eq!(confirm, "Approver { scope: \"approve\" }");
    let tightened = [
        ("/content".to_owned(), Some(Clamp::max_length(5)), true),
        ("/max".to_owned(), Some(Clamp::range(1, 100)), true),
    ];
    assert_eq!(rules, tightened);

    for (entries, message) in [
        ("confirm = \"nobody\"", "callgate.toml:3:11: `fs.write` is confirmed by the caller at least"),
        ("clamps = { max = { max = 1001 } }", "callgate.toml:3:10: the clamp of /max lets more through"),
        ("clamps = { max = { max = 1000.5 } }", "lets more through"),
        ("clamps = { max = { min = 0, max = 10 } }", "lets more through"),
        ("clamps = { max = { max = 0 } }", "leaves nothing"),
        ("confirm = \"nobody\"\nclamps = { max = { min = -1 } }", "2 problems"),
    ] {
        let refused = apply(entries).unwrap_err();
        assert!(refused.contains(message), "{entries}: {refused}");
    }
}

#[test]
fn parameters_become_a_closed_schema() {
    let config = parse(
        r#"
[[exec]]
name = "x"
description = "d"
program = "/bin/p"
args = ["{a}"]
[exec.parameters]
a = { type = "string", required = true, min_length = 1, max_length = 9, pattern = "^a", description = "A." }
b = { type = "integer", min = 1, max = 50, clamp = true, description = "B." }
c = { type = "integer", min = 0 }
d = { type = "number", max = 0.5 }
e = { type = "boolean", secret = true }
f = { type = "array", items = "integer", enum = [1, 2], min_items = 1 }
g = { type = "string", enum = ["u", "v"] }
h = { type = "string", max_length = 20, clamp = true }
"#,
    );
    let tool = &config.exec[0];
    let widest = 9_007_199_254_740_991_i64;
    let expected = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["a"],
        "properties": {
            "a": { "type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a", "description": "A." },
            // Validation comes before the clamp, so the bounds that the clamp brings a value into are not in the schema.
            "b": { "type": "integer", "minimum": -widest, "maximum": widest, "description": "B. Brought into 1 to 50." },
            "c": { "type": "integer", "minimum": 0, "maximum": widest },
            "d": { "type": "number", "maximum": 0.5 },
            "e": { "type": "boolean" },
            "f": {
                "type": "array", "minItems": 1, "maxItems": 64,
                "items": { "type": "integer", "minimum": -widest, "maximum": widest, "enum": [1, 2] },
            },
            "g": { "type": "string", "minLength": 0, "maxLength": 4096, "enum": ["u", "v"] },
            "h": { "type": "string", "minLength": 0, "maxLength": 4096, "description": "Cut to 20 characters." },
        },
    });
    assert_eq!(tool.schema, expected);
    let rules: Vec<_> = tool.fields.iter().map(|rule| (rule.path, rule.clamp, rule.secret)).collect();
    let expected =
        [("/b", Some(Clamp::range(1, 50)), false), ("/e", None, true), ("/h", Some(Clamp::max_length(20)), false)];
    assert_eq!(rules, expected);
}

/// L1: what is said to be a secret in one place is not unsaid in another.
#[test]
fn l1_a_secret_parameter_stays_one_when_it_is_clamped() {
    let config = parse(
        r#"
[[exec]]
name = "x"
description = "d"
program = "p"
clamps = { a = { max_length = 5 } }
secrets = ["b"]
parameters = { a = { type = "string", secret = true }, b = { type = "integer", min = 1, clamp = true } }
"#,
    );
    let rules: Vec<_> =
        config.exec[0].fields.iter().map(|rule| (rule.path, rule.clamp.is_some(), rule.secret)).collect();
    assert_eq!(rules, [("/a", true, true), ("/b", true, true)]);
}

#[test]
fn a_schema_in_toml_is_the_same_in_json() {
    let config = parse(
        r#"
[[exec]]
name = "x"
description = "d"
program = "p"
[exec.schema]
type = "object"
required = ["a"]
minProperties = 1
[exec.schema.properties.a]
anyOf = [{ type = "string" }, { type = "number", maximum = 0.5 }]
"#,
    );
    let expected = json!({
        "type": "object",
        "required": ["a"],
        "minProperties": 1,
        "properties": { "a": { "anyOf": [{ "type": "string" }, { "type": "number", "maximum": 0.5 }] } },
    });
    assert_eq!(config.exec[0].schema, expected);
}

/// A program of which the file says little is taken for one that changes something (compare case O9).
#[test]
fn o9_what_a_tool_does_not_say_is_taken_against_it() {
    let config = parse(
        r#"
[[exec]]
name = "x"
description = "d"
program = "p"
[[exec]]
name = "y"
description = "d"
program = "p"
mutating = false
idempotent = true
timeout = "5s"
max_output = "1KiB"
env = ["HOME"]
cwd = "a/b"
output = "lines"
"#,
    );
    let [bare, full] = &config.exec[..] else { panic!("{:?}", config.exec) };
    assert!(bare.mutating && !bare.idempotent && bare.env.is_empty() && bare.scopes.is_empty());
    assert_eq!(bare.confirm, Confirm::Caller);
    assert_eq!(bare.schema, json!({ "type": "object", "properties": {}, "additionalProperties": false }));
    assert_eq!((bare.timeout, bare.max_output), (Duration::from_secs(30), 65_536));
    assert_eq!((&bare.cwd, &bare.stdin, bare.output), (&None, &None, OutputKind::Text));
    assert_eq!(full.confirm, Confirm::Nobody);
    assert_eq!((full.timeout, full.max_output), (Duration::from_secs(5), 1024));
    assert_eq!((full.cwd.as_deref(), full.output), (Some(Path::new("a/b")), OutputKind::Lines));
}

#[test]
fn what_is_right_but_worth_knowing_is_noted() {
    let config = parse(
        "\
[channels.web]
require_auth = false
[[rules]]
id = 1
effect = \"allow\"
[quotas.tools.\"fs.write\"]
limit = 3
[[exec]]
name = \"x\"
description = \"d\"
program = \"p\"
confirm = \"nobody\"
",
    );
    let notes: Vec<_> = config.notes.iter().map(ToString::to_string).collect();
    let expected = [
        "line 2: [channels.web] replaces the built-in channel `web` whole",
        "line 2: channel `web` takes calls from callers that nobody knows",
        "line 4: this rule has no condition",
        "line 7: a call that changes something costs 5",
        "line 9: `x` changes something and nobody confirms it",
    ];
    assert_eq!(notes.len(), expected.len(), "{notes:#?}");
    for (note, start) in notes.iter().zip(expected) {
        assert!(note.starts_with(start), "{note}");
    }
    let said = check(&config);
    assert!(said.starts_with("etc/callgate.toml: ok\n") && said.contains(expected[0]), "{said}");
    assert!(parse("").notes.is_empty());
}

/// A fault that is found when an entry is put to use is reported like one of the file.
#[test]
fn later_faults_have_a_place_too() {
    let config = parse(
        "[[exec]]\nname = \"x\"\ndescription = \"d\"\nprogram = \"p\"\nargs = [\"a\", \"b\"]\n[tools.\"fs.write\"]\ncost = 2",
    );
    let place = |entry: &str| {
        let fault = Fault { entry: entry.into(), message: "can't be used".into(), help: Some("mend it".into()) };
        let error = config.refuse([fault]);
        let location = error.problems()[0].location.unwrap();
        (location.line, location.column)
    };
    assert_eq!(place("exec[0].args[1]"), (6, 14));
    assert_eq!(place("exec[0].program"), (5, 11));
    assert_eq!(place("exec[0]"), (2, 1));
    assert_eq!(place("tools.\"fs.write\".cost"), (8, 8));
    // What isn't there is shown at the nearest entry that is.
    assert_eq!(place("exec[0].args[7]"), (6, 8));
    assert_eq!(place("exec[0].parameters.n"), (2, 1));
    assert_eq!(place("exec[9]"), (2, 1));
    assert_eq!(place(""), (1, 1));

    let program = Fault { entry: "exec[0].program".into(), message: "`p` is not in PATH".into(), help: None };
    let shown = config.refuse([program]).to_string();
    assert_eq!(shown, "etc/callgate.toml:5:11: `p` is not in PATH\n  |\n5 | program = \"p\"\n  |           ^^^");
}

/// The names that rules and adjustments may use are those of the tools that there are.
#[test]
fn the_builtin_tools_are_known_by_name_and_no_others() {
    let mut known: Vec<_> = Toolkit::ALL.into_iter().flat_map(Toolkit::tools).map(|name| (*name).to_owned()).collect();
    let mut defined: Vec<_> = callgate::toolkit::definitions().into_iter().map(|tool| tool.name).collect();
    known.sort();
    defined.sort();
    assert_eq!(known, defined);
}
