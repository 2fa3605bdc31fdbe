//! Which file is read, and what is refused of files as such.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use callgate::config::{Config, ConfigError, MAX_FILE_BYTES, Origin};

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn write(path: &Path, body: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("version = 1\n{body}\n")).unwrap();
}

#[track_caller]
fn refused(result: Result<Config, ConfigError>, message: &str) -> String {
    let text = result.expect_err(message).to_string();
    assert!(text.contains(message), "{text}");
    text
}

#[test]
fn the_nearest_file_above_counts() {
    let top = dir();
    write(&top.path().join("callgate.toml"), "root = \"a\"");
    write(&top.path().join("a/b/callgate.toml"), "toolkits = []");
    fs::create_dir_all(top.path().join("a/b/c")).unwrap();

    let config = Config::discover(&top.path().join("a"), None, None).unwrap();
    assert_eq!(config.root, top.path().join("a"));
    assert_eq!(config.dir, top.path());
    let config = Config::discover(&top.path().join("a/b/c"), None, None).unwrap();
    assert_eq!((config.toolkits.len(), config.root), (0, top.path().join("a/b")));
}

#[test]
fn without_a_file_the_defaults_hold_for_the_directory() {
    let top = dir();
    let config = Config::discover(top.path(), None, None).unwrap();
    assert_eq!(config, Config::default_for(top.path()));
    assert_eq!(config.origin, Origin::Defaults);
    let here = Config::discover(Path::new("."), None, None).unwrap();
    assert!(here.root.is_absolute());
}

#[test]
fn a_named_file_counts_before_the_variable_and_that_before_the_search() {
    let top = dir();
    for name in ["named.toml", "variable.toml", "callgate.toml"] {
        write(&top.path().join(name), &format!("[audit]\nfile = \"{name}.jsonl\""));
    }
    let audit = |named: Option<&Path>, variable: Option<&Path>| {
        let config = Config::discover(top.path(), named, variable.map(Path::as_os_str)).unwrap();
        config.audit_file.file_name().unwrap().to_str().unwrap().to_owned()
    };
    let (named, variable) = (top.path().join("named.toml"), top.path().join("variable.toml"));
    assert_eq!(audit(Some(&named), Some(&variable)), "named.toml.jsonl");
    assert_eq!(audit(None, Some(&variable)), "variable.toml.jsonl");
    assert_eq!(audit(None, None), "callgate.toml.jsonl");
}

/// F7: a file that somebody named and that isn't there is not "no file".
#[test]
fn f7_a_named_file_that_is_missing_is_refused() {
    let top = dir();
    let missing = top.path().join("nowhere.toml");
    let text = refused(Config::discover(top.path(), Some(&missing), None), "can't be read: No such file");
    assert!(text.contains("callgate init"), "{text}");
    refused(Config::discover(top.path(), None, Some(missing.as_os_str())), "No such file");
    refused(Config::discover(top.path(), None, Some(OsStr::new(""))), "is set and empty");
}

/// F7: whatever has the name is the configuration, also where it can't be read.
#[test]
fn f7_what_stands_in_the_place_of_the_file_is_refused() {
    let top = dir();
    let file = top.path().join("callgate.toml");
    let discover = || Config::discover(top.path(), None, None);

    fs::create_dir(&file).unwrap();
    refused(discover(), "is a directory");
    fs::remove_dir(&file).unwrap();

    symlink("nowhere", &file).unwrap();
    assert!(refused(discover(), "can't be read").contains("a link that leads nowhere"));
    fs::remove_file(&file).unwrap();

    symlink("callgate.toml", &file).unwrap();
    refused(discover(), "can't be read");
    fs::remove_file(&file).unwrap();

    // A FIFO without a writer would make the program wait for ever.
    rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    refused(discover(), "is not a regular file");
    fs::remove_file(&file).unwrap();

    symlink("/dev/zero", &file).unwrap();
    refused(discover(), "is not a regular file");
}

#[test]
fn a_link_to_a_file_is_followed_and_paths_start_at_the_link() {
    let top = dir();
    write(&top.path().join("shared/team.toml"), "");
    fs::create_dir(top.path().join("project")).unwrap();
    symlink("../shared/team.toml", top.path().join("project/callgate.toml")).unwrap();
    let config = Config::discover(&top.path().join("project"), None, None).unwrap();
    assert_eq!(config.root, top.path().join("project"));
}

/// P6: a gate that everybody may reconfigure is none.
#[test]
fn p6_a_file_that_everybody_may_change_is_refused() {
    let top = dir();
    let file = top.path().join("callgate.toml");
    write(&file, "");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    refused(Config::load(&file), "may be changed by everybody");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o664)).unwrap();
    assert!(Config::load(&file).is_ok());
}

/// P6: a directory that others write to must not slip in a file that declares programs.
#[test]
fn p6_a_found_file_of_somebody_else_is_refused_and_a_named_one_is_not() {
    if !rustix::process::geteuid().is_root() {
        return; // nobody else can give a file away
    }
    let top = dir();
    let file = top.path().join("callgate.toml");
    write(&file, "");
    std::os::unix::fs::chown(&file, Some(4711), None).unwrap();
    assert!(refused(Config::discover(top.path(), None, None), "belongs to somebody else").contains("--config FILE"));
    assert!(Config::discover(top.path(), Some(&file), None).is_ok());
}

#[test]
fn f5_a_file_is_bounded() {
    let top = dir();
    let file = top.path().join("callgate.toml");
    let text = |length: usize| format!("version = 1\n#{}", "x".repeat(length - 13));
    let max = usize::try_from(MAX_FILE_BYTES).unwrap();
    fs::write(&file, text(max)).unwrap();
    assert!(Config::load(&file).is_ok());
    fs::write(&file, text(max + 1)).unwrap();
    refused(Config::load(&file), "is larger than 1 MiB");
}

#[test]
fn bytes_that_are_not_utf8_are_refused_at_their_place() {
    let top = dir();
    let file = top.path().join("callgate.toml");
    fs::write(&file, b"version = 1\nroot = \"\xff\"\n").unwrap();
    refused(Config::load(&file), "callgate.toml:2:9: this byte is not UTF-8");
}

#[test]
fn f7_the_root_must_be_a_directory() {
    let top = dir();
    let file = top.path().join("callgate.toml");
    write(&file, "root = \"nowhere\"\n[quotas]\nlimit = 0");
    let text = refused(Config::load(&file), "callgate.toml:2:8: the root");
    assert!(text.contains("can't be used: No such file") && text.contains("2 problems"), "{text}");
    write(&file, "root = \"callgate.toml\"");
    refused(Config::load(&file), "is not a directory");
}
