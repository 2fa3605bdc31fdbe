//! Runs the tests with a mutant.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::mutant::Mutant;
use crate::verdict::Verdict;

/// The programs with the tests, the quickest first, and how long each takes when nothing is changed.
pub(crate) struct Tests {
    programs: Vec<(Duration, PathBuf)>,
    package: PathBuf,
    /// How many mutants of a file a program has told, so that the most telling one is asked first.
    told: Mutex<BTreeMap<(String, PathBuf), u32>>,
}

/// What became of the tests of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ran {
    Passed,
    Failed,
    TooLong,
}

fn run(test: &Path, package: &Path, mutant: u32, filter: &str, patience: Duration) -> io::Result<Ran> {
    // A mutant that takes ever more memory must not take that of the whole machine: 4 GiB, in kilobytes.
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -v 4194304; exec \"$@\"", "sh"])
        .arg(test)
        .args(["--quiet", "--test-threads", "1", filter])
        .env("MUTANT", mutant.to_string())
        // What fails is not made smaller, and fails again the next time.
        .env("PROPTEST_MAX_SHRINK_ITERS", "0")
        .env("PROPTEST_RNG_SEED", "1")
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true")
        .env("RUST_BACKTRACE", "0")
        .current_dir(package)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (tell, told) = mpsc::channel();
    if let Some(mut dots) = child.stdout.take() {
        // An `F` for a test that failed. Nobody has to wait for the others.
        thread::spawn(move || {
            let mut chunk = [0; 256];
            while let Ok(read @ 1..) = dots.read(&mut chunk) {
                if chunk.iter().take(read).any(|byte| *byte == b'F') {
                    let _ = tell.send(());
                }
            }
        });
    }
    loop {
        let ran = match told.recv_timeout(Duration::from_secs(1)) {
            Ok(()) => Ran::Failed,
            Err(RecvTimeoutError::Disconnected) if child.wait()?.success() => return Ok(Ran::Passed),
            Err(RecvTimeoutError::Disconnected) => return Ok(Ran::Failed),
            // By the time that it had, not by the clock: a machine that is busy makes nothing endless.
            Err(RecvTimeoutError::Timeout) if worked(child.id()) > patience => Ran::TooLong,
            Err(RecvTimeoutError::Timeout) => continue,
        };
        child.kill()?;
        child.wait()?;
        return Ok(ran);
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

/// The name of a program without the hash that `cargo` gives it.
fn name(path: &Path) -> Option<String> {
    path.file_name()?.to_string_lossy().rsplit_once('-').map(|(name, _)| name.to_owned())
}

impl Tests {
    /// Looks how long the programs take without a mutant.
    ///
    /// # Errors
    /// One of them fails, or does not start.
    pub(crate) fn time(programs: Vec<PathBuf>, package: PathBuf) -> Result<Self, Box<dyn Error>> {
        let mut timed = Vec::new();
        for test in programs {
            let begun = Instant::now();
            if run(&test, &package, 0, "", Duration::from_secs(600))? != Ran::Passed {
                return Err(format!("{} fails without a mutant", test.display()).into());
            }
            timed.push((begun.elapsed(), test));
        }
        timed.sort();
        for (took, test) in &timed {
            eprintln!("{:6.2} s {}", took.as_secs_f64(), test.display());
        }
        Ok(Self { programs: timed, package, told: Mutex::default() })
    }

    /// The same tests in programs that were built for one mutant alone, which need not be switched on. They are taken by their names.
    pub(crate) fn rebuilt(&self, programs: Vec<PathBuf>) -> Self {
        let took =
            |path: &Path| self.programs.iter().find(|(_, known)| name(known) == name(path)).map(|(took, _)| *took);
        let mut programs: Vec<_> =
            programs.into_iter().map(|path| (took(&path).unwrap_or(Duration::from_secs(10)), path)).collect();
        programs.sort();
        Self { programs, package: self.package.clone(), told: Mutex::default() }
    }

    /// The name of the program that told most mutants of the same file.
    pub(crate) fn most_telling(&self, mutant: &Mutant) -> Option<String> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let here = told.iter().filter(|((file, _), _)| *file == mutant.file);
        name(&here.max_by_key(|(_, count)| **count)?.0.1)
    }

    /// Runs them until one of them tells `mutant`, which is the one with the number `on`.
    pub(crate) fn judge(&self, mutant: &Mutant, on: u32) -> io::Result<Verdict> {
        let key = |test: &Path| (mutant.file.clone(), test.to_owned());
        let mut programs: Vec<&(Duration, PathBuf)> = self.programs.iter().collect();
        {
            let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            programs.sort_by_key(|(_, test)| Reverse(told.get(&key(test)).copied().unwrap_or_default()));
        }
        // Those of other modules in the end: some of them look through this one.
        let elsewhere = self.programs.iter().filter(|(_, test)| !filter(test, &mutant.file).is_empty());
        let asked = programs.into_iter().map(|program| (program, filter(&program.1, &mutant.file)));
        for ((took, test), filter) in asked.chain(elsewhere.map(|program| (program, ""))) {
            let verdict = match run(test, &self.package, on, filter, *took * 5 + Duration::from_secs(4))? {
                Ran::Passed => continue,
                Ran::Failed => Verdict::Caught,
                Ran::TooLong => Verdict::Endless,
            };
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            *told.entry(key(test)).or_default() += 1;
            return Ok(verdict);
        }
        Ok(Verdict::Missed)
    }
}
