//! Runs the tests once for each mutant.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wait_timeout::ChildExt as _;

use crate::Ids;
use crate::mutant::Mutant;

/// What became of the tests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ran {
    Passed,
    Failed,
    TooLong,
}

fn run(test: &Path, package: &Path, mutant: u32, filter: &str, patience: Duration) -> Result<Ran, Box<dyn Error>> {
    let mut child = Command::new(test)
        .args(["--quiet", "--test-threads", "1", filter])
        .env("MUTANT", mutant.to_string())
        .current_dir(package)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    loop {
        match child.wait_timeout(Duration::from_secs(2))? {
            Some(status) if status.success() => return Ok(Ran::Passed),
            Some(_) => return Ok(Ran::Failed),
            // By the time that it had, not by the clock: a machine that is busy makes nothing endless.
            None if worked(child.id()) > patience => {
                child.kill()?;
                child.wait()?;
                return Ok(Ran::TooLong);
            }
            None => {}
        }
    }
}

/// The time of a processor that a process has had. Nothing where the system does not tell.
fn worked(process: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name may hold anything; the 14th and 15th field are user and system time in hundredths.
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split(' ');
    let ticks: u64 = fields.skip(12).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// The unit tests beside a file are told from those of other modules by the name of its module.
fn filter<'f>(test: &Path, file: &'f str) -> &'f str {
    let module = file.split_once("/src/").map_or("", |(_, path)| path).split(['/', '.']).next().unwrap_or_default();
    let units = test.file_name().is_some_and(|name| name.to_string_lossy().starts_with("callgate_core-"));
    if units && module != "lib" { module } else { "" }
}

/// Prints what becomes of each mutant: `caught`, `missed`, or `endless` (which counts as caught).
pub(crate) fn judge(tests: &[PathBuf], package: &Path, mutants: &[Mutant], placed: &Ids) -> Result<(), Box<dyn Error>> {
    let mut timed = Vec::new();
    for test in tests {
        let begun = Instant::now();
        if run(test, package, 0, "", Duration::from_secs(600))? != Ran::Passed {
            return Err(format!("{} fails without a mutant", test.display()).into());
        }
        timed.push((begun.elapsed(), test));
    }
    timed.sort();
    for (took, test) in &timed {
        eprintln!("{:6.2} s {}", took.as_secs_f64(), test.display());
    }
    let (mut caught, mut missed) = (0, 0);
    for mutant in mutants.iter().filter(|mutant| placed.contains(&mutant.id)) {
        let mut verdict = "missed";
        for (took, test) in &timed {
            verdict = match run(
                test,
                package,
                mutant.id,
                filter(test, &mutant.file),
                *took * 20 + Duration::from_secs(20),
            )? {
                Ran::Passed => continue,
                Ran::Failed => "caught",
                Ran::TooLong => "endless",
            };
            break;
        }
        if verdict == "missed" {
            missed += 1
        } else {
            caught += 1
        }
        println!("{verdict} {}", mutant.name);
    }
    eprintln!("{caught} caught, {missed} missed");
    Ok(())
}
