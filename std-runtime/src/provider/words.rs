//! What a provider's schemas have no keyword for, said in words.

use super::tree::Tree;

/// Collects sentences for the description of a schema.
#[derive(Default)]
pub(super) struct Words(Vec<String>);

impl Words {
    /// Says what a keyword says, where there is a sentence for it. Tells whether there is.
    pub(super) fn say(&mut self, keyword: &str, value: &Tree) -> bool {
        let sentence = match keyword {
            "default" => format!("Default: {value}."),
            "minLength" => format!("At least {value} characters."),
            "maxLength" => format!("At most {value} characters."),
            "minItems" => format!("At least {value} items."),
            "maxItems" => format!("At most {value} items."),
            "minimum" => format!("At least {value}."),
            "maximum" => format!("At most {value}."),
            "exclusiveMinimum" => format!("More than {value}."),
            "exclusiveMaximum" => format!("Less than {value}."),
            "multipleOf" => format!("A multiple of {value}."),
            "const" => format!("Always {value}."),
            "enum" => {
                let values: Vec<_> = value.items().iter().map(ToString::to_string).collect();
                format!("One of: {}.", values.join(", "))
            }
            "format" => format!("Format: {}.", value.as_text().unwrap_or_default()),
            "uniqueItems" if *value == Tree::Bool(true) => "No two items are the same.".to_owned(),
            "uniqueItems" => return true,
            "minProperties" => format!("At least {value} members."),
            "maxProperties" => format!("At most {value} members."),
            _ => return false,
        };
        self.0.push(sentence);
        true
    }

    pub(super) fn push(&mut self, sentence: String) {
        self.0.push(sentence);
    }

    /// The description with the sentences behind it.
    pub(super) fn behind(self, description: Option<&str>) -> Option<String> {
        let mut text = description.unwrap_or_default().to_owned();
        for sentence in self.0 {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&sentence);
        }
        (!text.is_empty()).then_some(text)
    }
}
