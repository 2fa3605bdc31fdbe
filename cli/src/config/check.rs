//! What `callgate config check` says.

use std::fmt::Write;

use super::problem::shown_path;
use super::settings::{Config, Origin};

/// Says what a configuration came to, in plain text: what it declares, and what is worth knowing about it. What is wrong with
/// one that couldn't be read is said by [`super::ConfigError`], all of it at once.
#[must_use]
pub fn check(config: &Config) -> String {
    let mut text = match &config.origin {
        Origin::Defaults => format!("no callgate.toml; the defaults hold in {}\n", shown_path(&config.dir)),
        Origin::File(source) => format!("{}: ok\n", shown_path(source.file())),
    };
    let toolkits = config.toolkits.iter().map(|toolkit| toolkit.as_str()).collect::<Vec<_>>().join(", ");
    let toolkits = if toolkits.is_empty() { "none" } else { &toolkits };
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(text, "  {name:<10} {value}"); // a string takes everything
    };
    line("root", &shown_path(&config.root));
    line("toolkits", &toolkits);
    line("channels", &config.channels.len());
    line("rules", &config.rules.len());
    line("exec", &config.exec.len());
    line("upstreams", &config.upstreams.len());
    line("audit", &shown_path(&config.audit_file));
    for note in &config.notes {
        line("note", note);
    }
    text
}
