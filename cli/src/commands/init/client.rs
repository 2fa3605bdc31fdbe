//! Configurations of MCP clients: which servers they start, read and changed in place, so that comments and layout stay.

use callgate_core::nearest::nearest;
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};

use crate::command_line::ClientName;

/// A client's configuration that was read.
pub(super) struct ClientFile {
    root: CstRootNode,
    servers: CstObject,
}

/// One server of it.
pub(super) struct Server {
    /// What the client calls it.
    pub(super) name: String,
    /// How the client reaches it.
    pub(super) reach: Reach,
    /// The names of the environment variables that the client sets for it. Their values stay where they are.
    pub(super) env: Vec<String>,
    object: CstObject,
}

/// How a client reaches a server.
pub(super) enum Reach {
    /// It starts a program.
    Program(Vec<String>),
    /// It talks to a server over HTTP; the headers that it sends, by name.
    Url(String, Vec<(String, String)>),
    /// It starts the gate.
    Gated,
    /// In a way that the gate can't take over, and why.
    Other(String),
}

/// What stands in the place of a server's old entry.
pub(super) struct Replacement {
    /// The program.
    pub(super) command: String,
    /// Its arguments.
    pub(super) args: Vec<String>,
    /// Environment variables, added to those of the entry.
    pub(super) env: Vec<(String, String)>,
}

impl ClientFile {
    /// Reads the text.
    ///
    /// # Errors
    /// Says what is wrong with it, for people.
    pub(super) fn parse(client: ClientName, text: &str) -> Result<Self, String> {
        let loose = client != ClientName::Claude;
        let options = ParseOptions {
            // Cursor and VS Code read comments; Claude reads JSON.
            allow_comments: loose,
            allow_trailing_commas: loose,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        // The reader that keeps the layout lets comments pass whatever it is told.
        if !loose && let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
            return Err(format!("it is not JSON, which is what this client reads: {error}"));
        }
        let root = CstRootNode::parse(text, &options).map_err(|error| format!("it is not JSON: {error}"))?;
        let object = root.object_value().ok_or("it is no JSON object")?;
        let key = match client {
            ClientName::Claude | ClientName::Cursor => "mcpServers",
            ClientName::Vscode => "servers",
        };
        once(&object, "the file")?;
        let Some(servers) = object.get(key) else {
            let names: Vec<String> =
                object.properties().iter().filter_map(jsonc_parser::cst::CstObjectProp::decoded_name).collect();
            let near = nearest(key.chars(), names.iter().map(String::as_str));
            let near = near.map(|near| format!("; it has `{near}`")).unwrap_or_default();
            return Err(format!("it has no `{key}`, where this client keeps its servers{near}"));
        };
        let servers = servers.object_value().ok_or_else(|| format!("`{key}` is no object"))?;
        once(&servers, key)?;
        Ok(Self { root, servers })
    }

    /// The servers, in the order of the file.
    ///
    /// # Errors
    /// Says which entry can't be understood.
    pub(super) fn servers(&self) -> Result<Vec<Server>, String> {
        let read = |property: &jsonc_parser::cst::CstObjectProp| {
            let name = property.decoded_name().unwrap_or_default();
            let object = property.object_value().ok_or_else(|| format!("the server `{name}` is no object"))?;
            server(name, object)
        };
        self.servers.properties().iter().map(read).collect()
    }

    /// The text as it is now.
    pub(super) fn text(&self) -> String {
        self.root.to_string()
    }
}

impl Server {
    /// Puts the gate in the place of the server.
    pub(super) fn replace(&self, new: &Replacement) {
        for key in ["url", "headers"] {
            if let Some(property) = self.object.get(key) {
                property.remove();
            }
        }
        if let Some(kind) = self.object.get("type") {
            kind.set_value(CstInputValue::from("stdio"));
        }
        let set = |key: &str, value: CstInputValue| match self.object.get(key) {
            Some(property) => property.set_value(value),
            None => drop(self.object.append(key, value)),
        };
        set("command", CstInputValue::from(new.command.as_str()));
        set("args", CstInputValue::from(new.args.clone()));
        if !new.env.is_empty() {
            let env = self.object.object_value_or_set("env");
            for (name, value) in &new.env {
                drop(env.append(name, CstInputValue::from(value.as_str())));
            }
        }
    }
}

/// A key that is given twice means one thing to one reader and another to the next.
fn once(object: &CstObject, place: &str) -> Result<(), String> {
    let mut seen = std::collections::BTreeSet::new();
    for property in object.properties() {
        let name = property.decoded_name().unwrap_or_default();
        if !seen.insert(name.clone()) {
            return Err(format!("`{name}` stands twice in {place}"));
        }
    }
    Ok(())
}

fn server(name: String, object: CstObject) -> Result<Server, String> {
    once(&object, &format!("the server `{name}`"))?;
    let Some(Value::Object(entry)) = object.to_serde_value() else {
        return Err(format!("the server `{name}` can't be read"));
    };
    let env = match entry.get("env") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Object(env)) => {
            if let Some(env) = object.object_value("env") {
                once(&env, &format!("`env` of the server `{name}`"))?;
            }
            env.keys().cloned().collect()
        }
        Some(_) => return Err(format!("`env` of the server `{name}` is no object")),
    };
    let reach = reach(&entry).map_err(|reason| format!("the server `{name}`: {reason}"))?;
    Ok(Server { name, reach, env, object })
}

fn reach(entry: &Map<String, Value>) -> Result<Reach, String> {
    let text = |key: &str| match entry.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{key}` is no text")),
    };
    let (command, url, kind) = (text("command")?, text("url")?, text("type")?);
    if kind.as_deref() == Some("sse") {
        return Ok(Reach::Other("it speaks the old transport over SSE, which is not spoken here".to_owned()));
    }
    match (command, url) {
        (Some(_), Some(_)) => Err("it has both `command` and `url`".to_owned()),
        (None, None) => Ok(Reach::Other("it has neither `command` nor `url`".to_owned())),
        (None, Some(url)) => {
            let headers = match entry.get("headers") {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Object(headers)) => headers
                    .iter()
                    .map(|(name, value)| {
                        let value = value.as_str().ok_or_else(|| format!("the header `{name}` is no text"))?;
                        Ok((name.clone(), value.to_owned()))
                    })
                    .collect::<Result<_, String>>()?,
                Some(_) => return Err("`headers` is no object".to_owned()),
            };
            Ok(Reach::Url(url, headers))
        }
        (Some(command), None) => {
            let mut words = vec![command];
            match entry.get("args") {
                None | Some(Value::Null) => {}
                Some(Value::Array(args)) => {
                    for arg in args {
                        words.push(arg.as_str().ok_or("an item of `args` is no text")?.to_owned());
                    }
                }
                Some(_) => return Err("`args` is no list".to_owned()),
            }
            Ok(if is_gated(&words) { Reach::Gated } else { Reach::Program(words) })
        }
    }
}

/// Whether the words start the gate as a proxy.
fn is_gated(words: &[String]) -> bool {
    let program = words.first().map(std::path::Path::new).and_then(|path| path.file_stem()?.to_str());
    let options = words.iter().skip(1).take_while(|word| *word != "--");
    program == Some("callgate") && options.into_iter().any(|word| word == "proxy" || word == "serve")
}
