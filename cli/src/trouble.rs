//! Why a command didn't do what it was asked, written for the person who asked.

use callgate_core::code::Code;

use crate::assemble::AssembleError;
use crate::config::ConfigError;
use crate::exit::Exit;
use crate::terminal::{BAD, Brush, visible, visible_lines};

/// A failed command: what to say, and how to end.
#[derive(Debug)]
pub(crate) struct Trouble {
    exit: Exit,
    code: Option<Code>,
    text: String,
    help: Option<String>,
    /// Whether the text is a report that says for itself what is wrong.
    report: bool,
}

impl Trouble {
    /// The command line or the configuration can't be used.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, code: None, text: text.into(), help: None, report: false }
    }

    /// It was tried and failed.
    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, ..Self::usage(text) }
    }

    /// The gate refuses.
    pub(crate) fn refused(code: Code, text: impl Into<String>) -> Self {
        Self { exit: Exit::Refused, code: Some(code), ..Self::usage(text) }
    }

    /// The same, with what would help.
    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// How the command ends.
    pub(crate) const fn exit(&self) -> Exit {
        self.exit
    }

    /// What to say, with a line break at the end.
    pub(crate) fn render(&self, brush: Brush) -> String {
        let mut text = match self.code {
            _ if self.report => visible_lines(&self.text),
            Some(code) => format!("{}: {}", brush.paint(BAD, format!("error[{code}]")), visible_lines(&self.text)),
            None => format!("{}: {}", brush.paint(BAD, "error"), visible_lines(&self.text)),
        };
        if let Some(help) = &self.help {
            text.push_str("\n  = ");
            text.push_str(&visible(help));
        }
        text.push('\n');
        text
    }
}

impl From<AssembleError> for Trouble {
    fn from(error: AssembleError) -> Self {
        let (exit, code) = (error.exit(), error.code());
        let report = matches!(error, AssembleError::Config(_));
        Self { exit, code, text: error.to_string(), help: None, report }
    }
}

impl From<ConfigError> for Trouble {
    fn from(error: ConfigError) -> Self {
        AssembleError::from(error).into()
    }
}
