//! From the arguments of a call to the arguments of a program.

use std::collections::BTreeSet;

use callgate_core::nearest::nearest;
use serde_json::{Map, Number, Value};

use super::Problem;
use crate::toolkit::error::ToolError;

/// The most bytes of one argument. Linux takes 131,072 with the final NUL.
pub(super) const MAX_ARG_BYTES: usize = 131_071;
/// The most bytes of all arguments.
pub(super) const MAX_ARGS_BYTES: usize = 1 << 19;
/// The most arguments.
pub(super) const MAX_ARGS: usize = 4_096;

/// From this argument on, programs by convention take nothing for an option.
const END_OF_OPTIONS: &str = "--";

/// An argument vector with places for values.
#[derive(Clone, Debug)]
pub(super) struct Template {
    args: Vec<Arg>,
    /// What a call may name; sorted.
    parameters: Vec<String>,
}

#[derive(Clone, Debug)]
enum Arg {
    /// Text with values in it: one argument, or none when a value is absent.
    One(Vec<Piece>),
    /// `{name...}`: an argument for each item of a list.
    Each(String),
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Value {
        name: String,
        /// Declared as an integer. Digits may stand where other values may not, so nothing else is taken for them.
        integer: bool,
    },
}

/// What values a parameter has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    /// A whole number.
    Integer,
    List,
    /// Nothing that could be an argument.
    Other,
}

impl Template {
    /// Reads `args`, and checks them against the parameters in `schema`.
    pub(super) fn read(args: &[String], schema: &Value, stdin: Option<&str>, problems: &mut Vec<Problem>) -> Self {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let mut check = Check { properties, used: BTreeSet::new(), options_ended: false, problems };
        if args.len() > MAX_ARGS {
            check.problem("args".to_owned(), format!("there are more than {MAX_ARGS}"), "pass a file instead");
        }
        let args =
            args.iter().enumerate().filter_map(|(index, text)| check.arg(&format!("args[{index}]"), text)).collect();
        check.stdin(stdin);
        check.unused();
        Self { args, parameters: properties.keys().cloned().collect() }
    }

    /// The arguments of the program for the arguments `values` of a call.
    pub(super) fn fill(&self, values: &Map<String, Value>) -> Result<Vec<String>, ToolError> {
        if values.keys().any(|name| self.parameters.binary_search(name).is_err()) {
            return Err(ToolError::refused("the tool has no such argument"));
        }
        let mut vector = Vector::default();
        for arg in &self.args {
            match arg {
                Arg::One(pieces) => {
                    if let Some((text, opened_by)) = join(pieces, values)? {
                        vector.push(text, opened_by)?;
                    }
                }
                Arg::Each(name) => {
                    let items = match values.get(name) {
                        None => continue,
                        Some(Value::Array(items)) => items,
                        Some(_) => return Err(ToolError::refused(format!("{name}: must be a list"))),
                    };
                    for item in items {
                        vector.push(text(name, item)?, Some(name))?;
                    }
                }
            }
        }
        Ok(vector.args)
    }
}

/// The argument vector as far as it is made.
#[derive(Default)]
struct Vector {
    args: Vec<String>,
    bytes: usize,
    options_ended: bool,
}

impl Vector {
    /// Adds an argument. `opened_by` names the value that it begins with; `None` when it begins with the template's own text.
    fn push(&mut self, text: String, opened_by: Option<&str>) -> Result<(), ToolError> {
        if let Some(name) = opened_by
            && text.starts_with('-')
            && !self.options_ended
        {
            return Err(ToolError::refused(format!(
                "{name}: must not begin with `-`, which the program would take for an option"
            )));
        }
        // It is the template's own: a value that begins with `-` was just refused, or comes after it.
        self.options_ended |= text == END_OF_OPTIONS;
        self.bytes = self.bytes.saturating_add(text.len());
        if text.len() > MAX_ARG_BYTES || self.bytes > MAX_ARGS_BYTES || self.args.len() >= MAX_ARGS {
            return Err(ToolError::refused("the arguments are too long for a program"));
        }
        self.args.push(text);
        Ok(())
    }
}

/// The text of an argument, and the value that it begins with. `None` when a value is absent.
fn join<'t>(pieces: &'t [Piece], values: &Map<String, Value>) -> Result<Option<(String, Option<&'t str>)>, ToolError> {
    let mut joined = String::new();
    let mut opened_by = None;
    for piece in pieces {
        match piece {
            Piece::Text(piece) => joined.push_str(piece),
            Piece::Value { name, integer } => {
                let Some(value) = values.get(name) else { return Ok(None) };
                if *integer && !value.is_number() {
                    return Err(ToolError::refused(format!("{name}: must be an integer")));
                }
                if joined.is_empty() && opened_by.is_none() {
                    opened_by = Some(name.as_str());
                }
                joined.push_str(&text(name, value)?);
            }
        }
    }
    Ok(Some((joined, opened_by)))
}

/// A value as a program reads it.
fn text(name: &str, value: &Value) -> Result<String, ToolError> {
    match value {
        Value::String(text) if text.contains('\0') => Err(ToolError::refused(format!("{name}: holds a NUL character"))),
        Value::String(text) => Ok(text.clone()),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Number(number) => Ok(number_text(number)),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(ToolError::refused(format!("{name}: must be a string, a number or a boolean")))
        }
    }
}

/// A whole number in digits alone: `1.0` is an integer to a schema, and not to most programs.
fn number_text(number: &Number) -> String {
    /// Up to here every whole number has a floating-point number of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        // Not `-0`: to a reader of JSON there is one zero.
        Some(0.0) => "0".to_owned(),
        Some(value) if number.is_f64() && value.fract() == 0.0 && value.abs() < EXACT => format!("{value:.0}"),
        _ => number.to_string(),
    }
}

/// The work of [`Template::read`].
struct Check<'a> {
    properties: &'a Map<String, Value>,
    used: BTreeSet<String>,
    options_ended: bool,
    problems: &'a mut Vec<Problem>,
}

impl Check<'_> {
    fn problem(&mut self, part: String, message: String, help: &str) {
        self.problems.push(Problem::new(part, message, help));
    }

    fn arg(&mut self, part: &str, text: &str) -> Option<Arg> {
        if text.contains('\0') {
            self.problem(part.to_owned(), "holds a NUL character".to_owned(), "no program can be given one");
            return None;
        }
        let mut pieces = match split(text) {
            Ok(pieces) => pieces,
            Err(message) => {
                self.problem(
                    part.to_owned(),
                    message.to_owned(),
                    "write `{name}` for a value, and `{{` or `}}` for a brace",
                );
                return None;
            }
        };
        self.options_ended |= text == END_OF_OPTIONS;
        if let [Piece::Value { name, .. }] = pieces.as_slice()
            && let Some(list) = name.strip_suffix("...")
        {
            return match self.shape(part, list)? {
                Shape::List => Some(Arg::Each(list.to_owned())),
                _ => {
                    self.problem(
                        part.to_owned(),
                        format!("`{list}` is no list of texts, numbers or booleans"),
                        "write it without the three dots",
                    );
                    None
                }
            };
        }
        let option_name = option_name(&pieces);
        for piece in &mut pieces {
            let Piece::Value { name, integer } = piece else { continue };
            if let Some(list) = name.strip_suffix("...") {
                let help = format!("let `{{{list}...}}` be an argument by itself");
                self.problem(part.to_owned(), "a list cannot be a part of an argument".to_owned(), &help);
                return None;
            }
            match self.shape(part, name)? {
                Shape::Text => {}
                Shape::Integer => *integer = true,
                Shape::List => {
                    let help = format!("let `{{{name}...}}` be an argument by itself");
                    self.problem(part.to_owned(), format!("`{name}` is a list"), &help);
                }
                Shape::Other => self.problem(
                    part.to_owned(),
                    format!("the values of `{name}` cannot be an argument"),
                    "give it the type string, integer, number or boolean",
                ),
            }
        }
        if let Some(option) = option_name
            && !self.options_ended
        {
            self.option(part, &option, &pieces);
        }
        Some(Arg::One(pieces))
    }

    /// An argument that is an option by the template's own text must be the same option whatever the value.
    fn option(&mut self, part: &str, option: &str, pieces: &[Piece]) {
        let attached = |piece: &Piece| match piece {
            Piece::Text(_) => true,
            // `-n5`: digits are no options.
            Piece::Value { integer, .. } => *integer && option.len() == 2,
        };
        if !pieces.iter().all(attached) {
            let help = "write `--option={name}`, or let the value be an argument by itself after the option";
            self.problem(part.to_owned(), "the value could change which option this is".to_owned(), help);
        }
    }

    /// The shape of the parameter `name`, which is now used.
    fn shape(&mut self, part: &str, name: &str) -> Option<Shape> {
        self.used.insert(name.to_owned());
        if let Some(property) = self.properties.get(name) {
            return Some(shape(Some(property)));
        }
        let near = nearest(name.chars(), self.properties.keys().map(String::as_str));
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "declare it among the parameters".to_owned(),
        };
        self.problem(part.to_owned(), format!("there is no parameter `{name}`"), &help);
        None
    }

    fn stdin(&mut self, stdin: Option<&str>) {
        if let Some(name) = stdin
            && self.shape("stdin", name).is_some_and(|shape| shape != Shape::Text)
        {
            self.problem("stdin".to_owned(), format!("`{name}` is no string"), "give it the type string");
        }
    }

    /// A parameter that nothing reads would be promised to the caller and then ignored.
    fn unused(&mut self) {
        let unused: Vec<String> = self.properties.keys().filter(|name| !self.used.contains(*name)).cloned().collect();
        for name in unused {
            let help = format!("use it in `args` as `{{{name}}}`, or leave it out");
            self.problem(name, "the program never gets this parameter".to_owned(), &help);
        }
    }
}

/// Splits `text` into its own text and placeholders.
fn split(text: &str) -> Result<Vec<Piece>, &'static str> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, brace)) = rest.find(['{', '}']).and_then(|at| rest.split_at_checked(at)) {
        plain.push_str(before);
        if let Some((after, literal)) =
            [("{{", '{'), ("}}", '}')].into_iter().find_map(|(twice, c)| Some((brace.strip_prefix(twice)?, c)))
        {
            plain.push(literal);
            rest = after;
            continue;
        }
        let Some(inside) = brace.strip_prefix('{') else { return Err("there is a `}` without a `{`") };
        let Some((name, after)) = inside.split_once('}') else { return Err("there is a `{` without a `}`") };
        if name.is_empty() || name == "..." || name.contains('{') {
            return Err("there is a placeholder without a name");
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(Piece::Value { name: name.to_owned(), integer: false });
        rest = after;
    }
    plain.push_str(rest);
    if !plain.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

/// What stands before the first value in an argument that is an option by the template's text, unless the option's name
/// ends there with a `=`.
fn option_name(pieces: &[Piece]) -> Option<String> {
    match pieces {
        [Piece::Text(text), _, ..] if text.starts_with('-') && !text.contains('=') => Some(text.clone()),
        _ => None,
    }
}

fn shape(property: Option<&Value>) -> Shape {
    match property_type(property) {
        Some("string" | "number" | "boolean") => Shape::Text,
        Some("integer") => Shape::Integer,
        Some("array") => match property_type(property.and_then(|property| property.get("items"))) {
            Some("string" | "number" | "boolean" | "integer") => Shape::List,
            _ => Shape::Other,
        },
        _ => Shape::Other,
    }
}

fn property_type(schema: Option<&Value>) -> Option<&str> {
    schema?.get("type")?.as_str()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"properties": {
            "path": {"type": "string"}, "text": {"type": "string"}, "n": {"type": "integer"}, "x": {"type": "number"},
            "deep": {"type": "boolean"}, "list": {"type": "array", "items": {"type": "string"}},
            "object": {"type": "object"}, "any": {}, "lists": {"type": "array", "items": {"type": "array"}},
        }})
    }

    /// A template that only has to be right in itself: parameters that it does not use are no problem here.
    fn read(args: &[&str]) -> Result<Template, Vec<Problem>> {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        let mut problems = Vec::new();
        let template = Template::read(&args, &schema(), None, &mut problems);
        problems.retain(|problem| problem.message != "the program never gets this parameter");
        if problems.is_empty() { Ok(template) } else { Err(problems) }
    }

    #[expect(clippy::needless_pass_by_value, reason = "calls read better without a reference")]
    fn fill(args: &[&str], values: Value) -> Result<Vec<String>, ToolError> {
        read(args).unwrap().fill(values.as_object().unwrap())
    }

    #[test]
    fn values_take_their_places() {
        let args = ["log", "--max={n}", "--deep={deep}", "-n{n}", "{{{text}}}", "--", "{path}", "{list...}", "", "{x}"];
        let values = json!({"n": 5, "deep": true, "text": "a b\n\"$(c)\"", "path": "-p", "list": ["-x", ""], "x": 1.5});
        let vector = fill(&args, values).unwrap();
        assert_eq!(
            vector,
            ["log", "--max=5", "--deep=true", "-n5", "{a b\n\"$(c)\"}", "--", "-p", "-x", "", "", "1.5"]
        );
    }

    #[test]
    fn an_argument_goes_with_its_absent_value() {
        let vector = fill(&["a", "--n={n}", "{path}:{text}", "{list...}", "b"], json!({"path": "x"})).unwrap();
        assert_eq!(vector, ["a", "b"]);
    }

    #[test]
    fn numbers_are_written_as_programs_read_them() {
        for (value, text) in [
            (json!(1.0), "1"),
            (json!(-0.0), "0"),
            (json!(9_007_199_254_740_993_u64), "9007199254740993"),
            (json!(u64::MAX), "18446744073709551615"),
            (json!(i64::MIN), "-9223372036854775808"),
            (json!(0.1), "0.1"),
            (json!(1e300), "1e+300"),
        ] {
            assert_eq!(fill(&["v={x}"], json!({"x": value})).unwrap(), [format!("v={text}")]);
        }
    }

    #[test]
    fn x1_a_value_never_becomes_an_option() {
        for (args, values) in [
            (vec!["{path}"], json!({"path": "-rf"})),
            (vec!["{path}"], json!({"path": "--"})),
            (vec!["{path}"], json!({"path": "-"})),
            (vec!["{n}"], json!({"n": -5})),
            (vec!["{path}{text}"], json!({"path": "", "text": "-x"})),
            (vec!["{path}-x"], json!({"path": ""})),
            (vec!["{list...}"], json!({"list": ["a", "-x"]})),
            // Only the template's own `--` ends the options.
            (vec!["{path}", "{text}"], json!({"path": "--", "text": "-x"})),
            (vec!["{text}", "--", "{path}"], json!({"path": "x", "text": "-x"})),
        ] {
            let error = fill(&args, values.clone()).unwrap_err();
            assert!(error.message.contains("begin with `-`"), "{args:?} {values}: {}", error.message);
        }
        assert_eq!(
            fill(&["--", "{path}", "{list...}"], json!({"path": "-x", "list": ["--"]})).unwrap(),
            ["--", "-x", "--"]
        );
        assert_eq!(fill(&["--to={path}"], json!({"path": "-x --y"})).unwrap(), ["--to=-x --y"]);
    }

    #[test]
    fn x1_values_of_another_type_are_refused_though_the_schema_let_them_pass() {
        for (args, values) in [
            (vec!["-n{n}"], json!({"n": "rf"})),
            (vec!["{path}"], json!({"path": ["x"]})),
            (vec!["{path}"], json!({"path": null})),
            (vec!["{path}"], json!({"path": {"a": 1}})),
            (vec!["{list...}"], json!({"list": "x"})),
            (vec!["{list...}"], json!({"list": [["x"]]})),
            (vec!["--x={path}"], json!({"path": "a\0b"})),
            (vec!["{list...}"], json!({"list": ["a\0b"]})),
            (vec!["{path}"], json!({"path": "x", "unknown": "x"})),
        ] {
            assert!(fill(&args, values.clone()).is_err(), "{args:?} {values}");
        }
    }

    #[test]
    fn x1_templates_whose_options_depend_on_a_value_are_problems() {
        for arg in ["-{path}", "--{path}", "--{path}=x", "-o{path}", "--no-{deep}", "-ab{n}", "--n{n}", "-{path}=x"] {
            let problems = read(&[arg]).unwrap_err();
            assert!(problems[0].message.contains("which option this is"), "{arg}: {problems:?}");
            assert!(read(&["--", arg]).is_ok(), "{arg} is no option after `--`");
        }
    }

    #[test]
    fn a_template_that_does_not_fit_its_schema_is_a_problem_with_a_way_out() {
        for (arg, part, help) in [
            ("{pth}", "args[0]", "did you mean `path`?"),
            ("{}", "args[0]", "{{"),
            ("{path", "args[0]", "{{"),
            ("path}", "args[0]", "{{"),
            ("{{path}", "args[0]", "{{"),
            ("{{\"a\": {path}}}}", "args[0]", "{{"),
            ("{list}", "args[0]", "{list...}"),
            ("x{list...}", "args[0]", "by itself"),
            ("{path...}", "args[0]", "without the three dots"),
            ("{lists...}", "args[0]", "without the three dots"),
            ("{object}", "args[0]", "type string"),
            ("{any}", "args[0]", "type string"),
            ("a\0", "args[0]", "no program"),
        ] {
            let problems = read(&[arg]).unwrap_err();
            let problem = problems.iter().find(|problem| problem.help.contains(help));
            assert!(problem.is_some_and(|problem| problem.part == part), "{arg}: {problems:?}");
        }
    }

    #[test]
    fn a_parameter_that_nothing_reads_is_a_problem() {
        let schema = json!({"properties": {"used": {"type": "string"}, "unused": {"type": "string"}, "fed": {"type": "string"}}});
        let mut problems = Vec::new();
        Template::read(&["{used}".to_owned()], &schema, Some("fed"), &mut problems);
        assert_eq!(problems.iter().map(|problem| problem.part.as_str()).collect::<Vec<_>>(), ["unused"]);
    }

    #[test]
    fn x6_arguments_are_bounded() {
        let long = "x".repeat(MAX_ARG_BYTES);
        assert!(fill(&["{path}"], json!({"path": long})).is_ok());
        assert!(fill(&["{path}"], json!({"path": format!("{long}x")})).is_err());
        assert!(fill(&["{list...}"], json!({"list": vec![long; 5]})).is_err());
        assert!(fill(&["{list...}"], json!({"list": vec![""; MAX_ARGS]})).is_ok());
        assert!(fill(&["{list...}"], json!({"list": vec![""; MAX_ARGS + 1]})).is_err());
    }

    /// The options of a vector: what begins with `-` before `--`, up to the `=`.
    fn options(vector: &[String]) -> Vec<&str> {
        let before = vector.iter().take_while(|arg| *arg != END_OF_OPTIONS);
        before.filter(|arg| arg.starts_with('-')).map(|arg| arg.split('=').next().unwrap_or(arg)).collect()
    }

    proptest! {
        // X1: whatever the template that is accepted and whatever the values, the options are the template's own.
        #[test]
        fn x1_the_options_do_not_depend_on_the_values(
            args in prop::collection::vec("(-|=|a|\\{path\\}|\\{text\\}|--){0,4}|\\{list\\.\\.\\.\\}", 0..5),
            values in prop::collection::vec(("[-=a]{0,3}", "[-=a]{0,3}", prop::collection::vec("[-=a]{0,3}", 2)), 2),
        ) {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let Ok(template) = read(&args) else { return Ok(()) };
            let mut vectors = values.iter().filter_map(|(path, text, list)| {
                template.fill(json!({"path": path, "text": text, "list": list}).as_object().unwrap()).ok()
            });
            if let (Some(one), Some(other)) = (vectors.next(), vectors.next()) {
                prop_assert_eq!(options(&one), options(&other));
                prop_assert_eq!(one.len(), other.len());
            }
        }

        // Reading a template never panics, and what is no placeholder stays as it is.
        #[test]
        fn text_without_braces_is_itself(text in "[^{}\0]{0,20}", noise in "[{}.a\u{e9}-]{0,12}") {
            prop_assert_eq!(fill(&[&text], json!({})).unwrap(), [text]);
            drop(read(&[&noise]));
        }
    }
}
