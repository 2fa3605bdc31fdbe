//! The body of a tool as a program that the command runs.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use crate::world::{Body, Tool};

/// Where each run of a program leaves its arguments, as a file of its own.
pub(super) const RUNS: &str = "runs";
/// While this file is there, the program that is run next kills whoever runs it.
pub(super) const KILL: &str = "kill";

/// A shell's own words, and `cat`. Its arguments are the values that its caller sent, which the shell only hands on.
const SCRIPT: &str = r#"for value in "$@"; do printf '%s\0' "$value"; done > "runs/$$"
if [ -e kill ]; then rm kill; kill -9 "$PPID"; exit 0; fi
"#;

/// Writes the program of a tool.
pub(super) fn write(directory: &Path, index: usize, tool: &Tool) -> io::Result<()> {
    let end = match &tool.body {
        Body::Echo | Body::Hang(_) => "printf null\n".to_owned(),
        Body::Return(value) => {
            fs::write(directory.join(format!("result-{index}.json")), value.to_string())?;
            format!("cat result-{index}.json\n")
        }
        Body::Fail(text) | Body::Refuse(text) | Body::Panic(text) => {
            fs::write(directory.join(format!("text-{index}")), text)?;
            let end = if matches!(tool.body, Body::Panic(_)) { "kill -6 $$" } else { "exit 1" };
            format!("cat text-{index} >&2\n{end}\n")
        }
    };
    fs::write(directory.join(script(index)), format!("{SCRIPT}{end}"))
}

fn script(index: usize) -> String {
    format!("body-{index}.sh")
}

/// The members of a tool's arguments that a program can be given: those that its schema names.
fn named(tool: &Tool) -> impl Iterator<Item = (&String, bool)> {
    let properties = tool.schema.as_ref().and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, schema)| (name, schema.get("type") == Some(&"string".into())))
}

/// The argument vector of a tool's program.
pub(super) fn arguments(index: usize, tool: &Tool) -> Vec<String> {
    let given = named(tool).map(|(name, _)| format!("--{name}={{{name}}}"));
    std::iter::once(script(index)).chain(given).collect()
}

/// What each run since the last time was given; takes it away.
pub(super) fn runs(directory: &Path) -> io::Result<Vec<Vec<String>>> {
    let mut runs = Vec::new();
    for entry in fs::read_dir(directory.join(RUNS))? {
        let path = entry?.path();
        let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        runs.push(text.split_terminator('\0').map(str::to_owned).collect());
        fs::remove_file(path)?;
    }
    Ok(runs)
}

/// The arguments of one run: those that the program was given, as it was given them, and the rest as the log says.
pub(super) fn seen(tool: Option<&Tool>, run: &[String], logged: Value) -> Value {
    let Value::Object(mut args) = logged else { return logged };
    for (name, is_text) in tool.into_iter().flat_map(named) {
        let prefix = format!("--{name}=");
        match run.iter().find_map(|given| given.strip_prefix(&prefix)) {
            // A secret is not in the log, and the program has it all the same.
            Some(text) if is_text => drop(args.insert(name.clone(), text.into())),
            Some(text) => drop(args.insert(name.clone(), serde_json::from_str(text).unwrap_or_else(|_| text.into()))),
            None => drop(args.remove(name)),
        }
    }
    Value::Object(args)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_program_was_given_counts_more_than_what_the_log_says() {
        let schema =
            json!({"properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "gone": {"type": "string"}}});
        let tool = Tool { schema: Some(schema), ..Tool::default() };
        let run = ["--n=5".to_owned(), "--s=7".to_owned()];
        let logged = json!({"n": 4, "s": "***", "gone": "x", "more": true});
        assert_eq!(seen(Some(&tool), &run, logged), json!({"n": 5, "s": "7", "more": true}));
    }
}
