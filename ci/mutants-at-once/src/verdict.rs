//! What became of the mutants, kept in a file to which each verdict is added as it falls.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::mutant::Mutant;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Verdict {
    /// A test fails.
    Caught,
    /// A test does not end, which nobody would overlook.
    Endless,
    /// No test fails.
    Missed,
    /// It does not compile.
    Unviable,
}

/// What a line begins with that says that a mutant does not compile beside the others.
const APART: &str = "apart";

impl Verdict {
    const ALL: [Self; 4] = [Self::Caught, Self::Endless, Self::Missed, Self::Unviable];
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Caught => "caught",
            Self::Endless => "endless",
            Self::Missed => "missed",
            Self::Unviable => "unviable",
        })
    }
}

/// The verdicts so far.
pub(crate) struct Verdicts {
    file: Mutex<File>,
    known: BTreeMap<String, Verdict>,
    /// Those that do not compile beside the others.
    apart: BTreeSet<String>,
}

impl Verdicts {
    /// Those of earlier runs, if the file is there. A later line counts more than an earlier one.
    pub(crate) fn open(path: &Path, mutants: &[Mutant]) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        let text = std::fs::read_to_string(path)?;
        let keys: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.key.as_str()).collect();
        let (mut known, mut apart) = (BTreeMap::new(), BTreeSet::new());
        for line in text.lines() {
            let Some((word, rest)) = line.split_once(' ') else { continue };
            let Some(key) = rest.split_once('\t').map(|(key, _)| key).filter(|key| keys.contains(key)) else {
                continue;
            };
            if word == APART {
                apart.insert(key.to_owned());
            } else if let Some(verdict) = Verdict::ALL.into_iter().find(|known| known.to_string() == word) {
                known.insert(key.to_owned(), verdict);
            }
        }
        Ok(Self { file: Mutex::new(file), known, apart })
    }

    /// Whether nothing is left to find out about a mutant.
    pub(crate) fn is_settled(&self, mutant: &Mutant) -> bool {
        self.known.contains_key(&mutant.key) && !self.is_missed(mutant)
    }

    /// Whether it was missed the last time.
    pub(crate) fn is_missed(&self, mutant: &Mutant) -> bool {
        self.known.get(&mutant.key) == Some(&Verdict::Missed)
    }

    /// Whether it is known that it does not compile beside the others.
    pub(crate) fn is_apart(&self, mutant: &Mutant) -> bool {
        self.apart.contains(&mutant.key)
    }

    /// Adds that it does not.
    pub(crate) fn set_apart(&self, mutant: &Mutant) -> io::Result<()> {
        self.write(APART, mutant)
    }

    /// Adds a verdict.
    pub(crate) fn add(&self, mutant: &Mutant, verdict: Verdict) -> io::Result<()> {
        println!("{verdict} {}", mutant.name);
        self.write(&verdict.to_string(), mutant)
    }

    fn write(&self, word: &str, Mutant { key, name, .. }: &Mutant) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(format!("{word} {key}\t{name}\n").as_bytes())
    }

    /// How many of each kind there are in each file, as a table in Markdown.
    pub(crate) fn table(&self, mutants: &[Mutant]) -> String {
        let mut rows: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
        for mutant in mutants {
            for row in ["together", mutant.file.as_str()] {
                let counts = rows.entry(row).or_default();
                let at = self.known.get(&mutant.key).map_or(4, |verdict| *verdict as usize);
                if let Some(count) = counts.get_mut(at) {
                    *count += 1;
                }
            }
        }
        let together = rows.remove("together");
        let mut table = String::from(
            "| file | mutants | unviable | judged | caught | of these endless | missed |\n|---|---|---|---|---|---|---|\n",
        );
        for (file, [caught, endless, missed, unviable, unknown]) in
            rows.into_iter().chain(together.map(|counts| ("together", counts)))
        {
            let (found, judged) = (caught + endless, caught + endless + missed);
            let all = judged + unviable + unknown;
            table += &format!("| `{file}` | {all} | {unviable} | {judged} | {found} | {endless} | {missed} |\n");
        }
        table
    }
}
