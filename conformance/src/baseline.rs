//! Failures of a subject that are known, each with its reason.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::run::{Judged, Verdict};
use crate::vector::Vector;

/// A baseline: `{"format": 1, "expected": {"VECTOR": "why it fails"}}`.
///
/// It can't rot: an entry whose vector passes, or is not there any more, makes the run fail until it is taken out.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "BaselineFile", into = "BaselineFile")]
pub struct Baseline(BTreeMap<String, String>);

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BaselineFile {
    format: u32,
    expected: BTreeMap<String, String>,
}

impl TryFrom<BaselineFile> for Baseline {
    type Error = String;

    fn try_from(file: BaselineFile) -> Result<Self, String> {
        if file.format != crate::vector::FORMAT {
            return Err(format!("format {} is not known here; this is format {}", file.format, crate::vector::FORMAT));
        }
        match file.expected.iter().find(|(_, reason)| reason.trim().is_empty()) {
            Some((id, _)) => Err(format!("the failure of `{id}` needs a reason")),
            None => Ok(Self(file.expected)),
        }
    }
}

impl From<Baseline> for BaselineFile {
    fn from(baseline: Baseline) -> Self {
        Self { format: crate::vector::FORMAT, expected: baseline.0 }
    }
}

impl Baseline {
    /// Reads the text of a baseline file.
    ///
    /// # Errors
    /// It is not in the format, or an entry has no reason.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Why this vector is known to fail.
    #[must_use]
    pub fn reason(&self, id: &str) -> Option<&str> {
        self.0.get(id).map(String::as_str)
    }

    /// The entries that say something wrong: of vectors that passed, and of vectors that there are not. Of vectors that were left out
    /// of a run nothing is known.
    pub(crate) fn stale(&self, judged: &[Judged], all: &[Vector]) -> Vec<String> {
        let passed = |id: &String| judged.iter().any(|one| one.id == *id && one.verdict == Verdict::Passed);
        let exists = |id: &String| all.iter().any(|vector| vector.id == *id);
        self.0.keys().filter(|id| passed(id) || !exists(id)).cloned().collect()
    }
}
