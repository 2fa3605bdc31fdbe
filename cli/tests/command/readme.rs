//! What the README shows is what happens.

use std::process::Command;

use crate::world::World;

/// Commands and their output, from the blocks that are marked as `console`.
fn transcripts(document: &str) -> Vec<(String, String)> {
    let mut told: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in document.lines() {
        match (inside, line.strip_prefix("$ ")) {
            (_, None) if line.starts_with("```") => inside = line == "```console",
            (true, Some(command)) => told.push((command.to_owned(), String::new())),
            (true, None) => {
                let (_, output) = told.last_mut().expect("a transcript begins with a command");
                output.push_str(line);
                output.push('\n');
            }
            (false, _) => {}
        }
    }
    told
}

/// The text without what differs from one run to the next: tokens and hashes, and times.
fn alike(text: &str) -> String {
    let random = |word: &str| word.len() >= 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let time = |word: &str| word.len() == 24 && word.ends_with('Z') && word.contains('T');
    let mut alike = String::new();
    for part in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && !"-.:".contains(c)) {
        let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let rest = &part[word.len()..];
        let (number, last) = word.rsplit_once(':').unwrap_or(("", word));
        if time(word) {
            alike.push_str("TIME");
        } else if random(last) {
            alike.push_str(number);
            alike.push_str("RANDOM");
        } else {
            alike.push_str(word);
        }
        alike.push_str(rest);
    }
    alike
}

#[test]
fn what_the_readme_shows_is_what_happens() {
    let readme = include_str!("../../../README.md");
    let told = transcripts(readme);
    assert!(told.len() > 4, "it shows something");
    let world = World::new();
    for file in ["src/main.rs", "notes.md", "done.md"] {
        std::fs::remove_file(world.path(file)).expect("it is there");
    }
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_callgate")).parent().expect("a directory").to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path))).expect("a path");
    let mut token = String::new();
    for (command, shown) in told {
        // The token in the text stands for the one that was given.
        let command = match command.split_once("--confirm ") {
            Some((before, _)) => format!("{before}--confirm {token}"),
            None => command,
        };
        let output = Command::new("sh")
            .args(["-c", &format!("({command}) 2>&1")])
            .current_dir(world.path("."))
            .env_clear()
            .env("PATH", &path)
            .output()
            .expect("it starts");
        let happened = String::from_utf8(output.stdout).expect("text");
        assert_eq!(alike(&happened), alike(&shown), "{command}\n{happened}");
        if let Some((_, given)) = happened.split_once("--confirm ") {
            given.trim().clone_into(&mut token);
        }
    }
}
