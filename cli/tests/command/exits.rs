//! The exit status, and what stands on standard error.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::world::World;

#[test]
fn the_status_says_what_became_of_the_call() {
    let world = World::new();
    let cases: [(&[&str], i32, &str); 8] = [
        (&["time.now"], 0, ""),
        (&["fs.read", r#"{"path":"nix"}"#], 1, "error[NOT_FOUND]"),
        (&["fs.nix"], 3, "error[TOOL_NOT_FOUND]"),
        (&["fs.read", "{}"], 3, "error[VALIDATION_ERROR]: Missing required field: path"),
        (&["fs.read", r#"{"path":"a","path":"b"}"#], 3, "error[VALIDATION_ERROR]: malformed_arguments"),
        (&["fs.read", r#"{"path":"notes.md"}"#, "--channel", "mcp"], 3, "error[FORBIDDEN]"),
        (&["fs.write", r#"{"path":"a","content":"b"}"#], 4, ""),
        (&["fs.write", "{}", "--confirm", "nix"], 3, "error[CONFIRMATION_INVALID]"),
    ];
    for (args, status, error) in cases {
        let ran = world.call(args);
        assert_eq!(ran.status, status, "{args:?} {}{}", ran.out, ran.err);
        assert!(ran.err.contains(error), "{args:?} {}", ran.err);
        // The code is on standard error in every form of output, and the status is the same.
        let code = error.split(['[', ']']).nth(1).unwrap_or_default();
        for form in ["--json", "--quiet"] {
            let same = world.call(&[args, &[form]].concat());
            assert_eq!(same.status, status, "{args:?} {form}");
            assert!(same.err.contains(code), "{args:?} {form} {}", same.err);
        }
    }
}

#[test]
fn a_line_that_cannot_be_used_runs_nothing() {
    let world = World::new();
    let lines: [&[&str]; 11] = [
        &[],
        &["cal", "time.now"],
        &["call"],
        &["call", "time.now", "--jsn"],
        &["call", "time.now", "--json", "--quiet"],
        &["call", "time.now", "{}", "--args-file", "x"],
        &["call", "time.now", "--args-file", "no-such-file"],
        &["call", "time.now", "--confirm", "t", "--plan"],
        &["call", "time.now", "--scope", "two words"],
        &["call", "time.now", "--principal", ""],
        &["--config", "no-such-file.toml", "call", "time.now"],
    ];
    for line in lines {
        let ran = world.run(line);
        assert_eq!(ran.status, 2, "{line:?} {}{}", ran.out, ran.err);
        assert!(!ran.err.is_empty() && ran.out.is_empty(), "{line:?}");
    }
    assert!(!world.path(".callgate").exists());
    assert!(world.run(&["cal"]).err.contains("call"), "it says what was meant");
}

#[test]
fn a_misspelt_tool_is_answered_with_the_one_that_was_meant() {
    let world = World::with_config("[tools.\"fs.read\"]\nscopes = [\"files:read\"]\n");
    assert!(world.call(&["fs.serch"]).err.contains("did you mean fs.search?"));
    assert!(world.call(&["nothing.like.it"]).err.contains("`callgate tools` lists"));
    // A tool that this caller may not call is not given away.
    let bob = ["fs.raed", "--channel", "web", "--principal", "bob"];
    assert!(!world.call(&bob).err.contains("fs.read"));
    assert!(world.call(&[&bob[..], &["--scope", "files:read"]].concat()).err.contains("did you mean fs.read?"));
}

#[test]
fn arguments_come_from_the_line_a_file_or_standard_input() {
    let world = World::new();
    let arguments = br#"{"path":"notes.md"}"#;
    world.put("args.json", std::str::from_utf8(arguments).expect("text"));
    for args in [&["call", "fs.read", "-"][..], &["call", "fs.read", "--args-file", "-"]] {
        assert!(world.run_with(args, arguments).ok().out.contains("buy milk"));
    }
    assert!(world.call(&["fs.read", "--args-file", "args.json"]).ok().out.contains("buy milk"));
    let large = format!(r#"{{"path":"a","content":"{}"}}"#, "x".repeat(900_000));
    world.run_with(&["call", "fs.write", "-", "--plan"], large.as_bytes()).ok();
    // S5: what is too long is refused by the gate, and read no further than that.
    let long = vec![b' '; 3 << 20];
    world.run_with(&["call", "fs.read", "-"], &long).refused("VALIDATION_ERROR");
    world.run_with(&["call", "fs.read", "-"], b"{\"path\":\"\xff\"}").refused("VALIDATION_ERROR");
    let broken = OsString::from_vec(b"{\"path\":\"\xff\"}".to_vec());
    world.run(&["call".into(), "fs.read".into(), broken]).refused("VALIDATION_ERROR");
    world.run_with(&["call", "fs.read", "-"], b"").refused("VALIDATION_ERROR");
    assert_eq!(world.ends().len(), 8, "each call has its record");
}

#[test]
fn json_is_the_whole_outcome_on_one_line() {
    let world = World::new();
    let ran = world.call(&["fs.search", r#"{"pattern":"TODO","max":0}"#, "--json", "--request-id", "r-7"]).ok();
    assert_eq!(ran.out.lines().count(), 1);
    let json = ran.json();
    assert_eq!(json["success"], true);
    assert_eq!(json["meta"]["request_id"], "r-7");
    assert_eq!(json["meta"]["clamped"][0]["to"], "1");
    let refused = world.call(&["fs.nix", "--json"]);
    assert_eq!(refused.json()["meta"]["code"], "TOOL_NOT_FOUND");
    assert_eq!(refused.json()["meta"]["effect"], "none");
}

#[test]
fn quiet_is_the_result_alone() {
    let world = World::new();
    let ran = world.call(&["fs.search", r#"{"pattern":"TODO","max":5000}"#, "-q"]).ok();
    assert_eq!(ran.err, "");
    assert_eq!(ran.json()["matches"].as_array().expect("a list").len(), 2);
    assert_eq!(world.call(&["fs.nix", "-q"]).err, "TOOL_NOT_FOUND\n");
    let asked = world.call(&["fs.write", r#"{"path":"a","content":"b"}"#, "-q"]);
    assert_eq!((asked.status, asked.json()["requires_confirmation"].as_bool()), (4, Some(true)));
}
