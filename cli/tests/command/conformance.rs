//! The conformance suite as a command.

use serde_json::Value;

use crate::world::World;

fn callgate() -> &'static str {
    env!("CARGO_BIN_EXE_callgate")
}

#[test]
fn this_gate_holds_and_so_does_it_in_a_process_of_its_own() {
    let world = World::new();
    let here = world.run(&["conformance", "run"]).ok().out;
    let there = world.run(&["conformance", "run", "--", callgate(), "conformance", "subject"]).ok().out;
    assert_eq!(here, there);
    assert!(here.contains(" 0 failed, "), "{here}");
}

#[test]
fn a_wrong_gate_is_told_all_that_is_wrong_in_every_format() {
    let world = World::new();
    let run = |more: &[&str]| {
        let subject = ["--", callgate(), "conformance", "subject", "wrong:token-reusable"];
        world.run(&[&["conformance", "run", "--filter", "token-single-use"], more, &subject].concat())
    };
    let ran = run(&[]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    assert!(ran.out.contains("FAILED: token-single-use"), "{}", ran.out);
    let report: Value = serde_json::from_str(&run(&["--format", "json"]).out).expect("JSON");
    assert_eq!(report["counts"]["failed"], 1);
    assert!(run(&["--format", "junit"]).out.contains("<failure"));

    world.put("known.json", r#"{"format":1,"expected":{"token-single-use":"on purpose"}}"#);
    assert_eq!(run(&["--baseline", "known.json"]).status, 0);
    world.put("stale.json", r#"{"format":1,"expected":{"token-single-use":"on purpose","token-gone":"renamed"}}"#);
    let ran = run(&["--baseline", "stale.json"]);
    assert_eq!(ran.status, 1);
    assert!(ran.out.contains("STALE"), "{}", ran.out);
}

#[test]
fn what_cannot_be_judged_is_said() {
    let world = World::new();
    let ran = world.run(&["conformance", "run", "--", "no-such-program-anywhere"]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("could not be started"), "{}", ran.err);
    assert_eq!(world.run(&["conformance", "run", "--filter", "no-such-vector"]).status, 2);
    assert_eq!(world.run(&["conformance", "run", "--baseline", "missing.json"]).status, 2);
    assert_eq!(world.run(&["conformance", "subject", "other"]).status, 2);
    world.put("own/one.json", "{}");
    assert_eq!(world.run(&["conformance", "run", "--vectors", "own"]).status, 2);
}

/// The report of a run, as JSON.
fn report(world: &World, args: &[&str], status: i32) -> Value {
    let ran = world.run(&[&["conformance", "run", "--format", "json"], args].concat());
    assert_eq!(ran.status, status, "{}{}", ran.out, ran.err);
    serde_json::from_str(&ran.out).expect("JSON")
}

/// The command itself, with its configuration and its files: what can't be seen or done from outside does not apply, and everything
/// else holds.
#[cfg(unix)]
#[test]
fn the_command_as_a_process_holds_every_vector_that_applies_to_it() {
    let world = World::new();
    let run = |subject: &str, more: &[&str], least: u64| {
        let command = ["--", callgate(), "conformance", "subject", subject];
        let report = report(&world, &[more, &command].concat(), 0);
        let counts = &report["counts"];
        assert_eq!(
            (&counts["failed"], &counts["errored"], &counts["lenient"]),
            (&0.into(), &0.into(), &0.into()),
            "{report}"
        );
        assert!(counts["passed"].as_u64().is_some_and(|passed| passed >= least), "{counts}");
    };
    run("command", &[], 150);
    run("command-files", &["--filter", "kill"], 5);
}

#[cfg(unix)]
#[test]
fn the_command_as_a_process_does_what_the_model_does() {
    let world = World::new();
    let command = ["--random", "15", "--seed", "3", "--", callgate(), "conformance", "subject", "command"];
    let report = report(&world, &command, 0);
    assert_eq!(report["random"]["run"], 15);
    assert!(report["random"]["not_applicable"].as_u64().is_some_and(|unfit| unfit < 10), "{}", report["random"]);
}

#[test]
fn a_script_of_chance_that_finds_something_is_saved_and_finds_it_again() {
    let world = World::new();
    let wrong = ["--", callgate(), "conformance", "subject", "wrong:token-reusable"];
    let random = ["--random", "2000", "--seed", "1", "--save", "found"];
    let found = report(&world, &[&random[..], &wrong].concat(), 1);
    let (id, script) = (&found["random"]["found"]["id"], &found["random"]["found"]["script"]);
    assert!(script.as_array().is_some_and(|steps| steps.len() <= 3), "it was not made smaller: {script}");
    assert_eq!(found["vectors"][0]["verdict"], "failed");

    let again = report(&world, &[&["--vectors", "found"], &wrong[..]].concat(), 1);
    assert_eq!((&again["vectors"][0]["id"], &again["counts"]["failed"]), (id, &1.into()));
    let right = report(&world, &["--vectors", "found"], 0);
    assert_eq!(right["counts"]["passed"], 1);
    let junit = world.run(&[&["conformance", "run", "--format", "junit"], &random[..4], &wrong].concat()).out;
    assert!(junit.contains("scripts of chance") && junit.contains("<failure"), "{junit}");

    let none = report(&world, &["--random", "30"], 0);
    assert_eq!((&none["random"]["run"], &none["random"]["found"]), (&30.into(), &Value::Null));
    assert_eq!(world.run(&["conformance", "run", "--random", "5", "--filter", "A5"]).status, 2);
    assert_eq!(world.run(&["conformance", "run", "--save", "found"]).status, 2);
}

/// A signal ends a run with what is known by then, while a subject is waited for that says nothing.
#[cfg(unix)]
#[test]
fn a_run_that_is_interrupted_tells_what_is_known() {
    let world = World::new();
    // It answers two worlds, and then never again.
    world.put(
        "slow.sh",
        "n=0\nwhile read -r line; do\n case $line in\n *hello*) cat declare.json;;\n *) n=$((n+1)); [ $n -gt 2 ] && { : > stuck; exec sleep 600; }; \
         echo '{\"unsupported\":\"no\"}';;\n esac\ndone\n",
    );
    world.put(
        "declare.json",
        "{\"declare\":{\"protocol\":1,\"name\":\"slow\",\"version\":\"1\",\"supports\":[],\"compares\":{\"codes\":false,\"effect\":false,\
         \"transcript\":[],\"records\":\"none\"}}}\n",
    );
    let mut child = world.start(&["conformance", "run", "--format", "json", "--timeout", "600", "--", "sh", "slow.sh"]);
    while !world.path("stuck").exists() {
        assert!(child.try_wait().expect("its state").is_none(), "it ended before");
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is there");
    let ran = crate::world::Ran::of(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.status, 130, "{}", ran.err);
    let report = ran.json();
    assert_eq!(report["holds"], false);
    let (judged, left) = (report["vectors"].as_array().map_or(0, Vec::len), report["not_run"].as_u64().unwrap_or(0));
    assert!(judged >= 2 && left > 0, "{judged} judged, {left} left");
}
