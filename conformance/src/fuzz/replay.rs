//! Replays a corpus, and what is near it, with an ordinary compiler.

use std::fmt;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::Target;

/// What a mutation puts in: mostly what means something to a reader.
const BYTES: &[u8] = b"{}[]\",:0123456789.eE+-\\u \0ab\x80\xff\n=";

/// What a body held on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "two plain counts")]
pub struct Replayed {
    /// The inputs of the corpus.
    pub inputs: usize,
    /// The mutations of them.
    pub mutations: usize,
}

/// A body did not hold, or there is no corpus.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The directory of the corpus could not be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The body panicked.
    #[error("{target} does not hold on {input}")]
    Fails {
        /// The target.
        target: &'static str,
        /// What it was given.
        input: Input,
    },
}

/// An input that a body does not hold on. Shown so that it can be put into a test.
#[derive(Clone, PartialEq, Eq)]
pub struct Input(pub Vec<u8>);

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Gives a body every file of the directory, and `mutations` inputs that are near them. The same ones on every machine.
///
/// # Errors
/// The body panicked, or the directory could not be read.
pub fn replay((target, body): Target, corpus: &Path, mutations: usize) -> Result<Replayed, ReplayError> {
    let mut paths: Vec<_> =
        fs::read_dir(corpus)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    let inputs: Vec<Vec<u8>> = paths.iter().map(fs::read).collect::<Result<_, _>>()?;
    let holds = |input: &[u8]| {
        catch_unwind(AssertUnwindSafe(|| body(input)))
            .map_err(|_| ReplayError::Fails { target, input: Input(input.to_vec()) })
    };
    inputs.iter().try_for_each(|input| holds(input))?;
    holds(&[])?;
    let mut mutator = Mutator(0x9e37_79b9_7f4a_7c15);
    for turn in 0..mutations {
        let Some(input) = inputs.get(turn % inputs.len().max(1)) else { break };
        let other = inputs.get(mutator.below(inputs.len())).map(Vec::as_slice).unwrap_or_default();
        holds(&mutator.mutated(input, other))?;
    }
    Ok(Replayed { inputs: inputs.len(), mutations: if inputs.is_empty() { 0 } else { mutations } })
}

/// A small generator (xorshift).
struct Mutator(u64);

impl Mutator {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }

    /// `input` with up to four things changed; sometimes with a piece of `other`.
    fn mutated(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len().saturating_add(1));
            let byte = BYTES.get(self.below(BYTES.len())).copied().unwrap_or_default();
            match (self.below(6), bytes.get_mut(at)) {
                (0, _) => bytes.insert(at, byte),
                (1, Some(found)) => *found = byte,
                (2, Some(found)) => *found ^= 1 << self.below(8),
                (3, Some(_)) => drop(bytes.remove(at)),
                (4, _) => {
                    let from = self.below(other.len());
                    let piece = other.iter().skip(from).take(self.below(16)).copied();
                    bytes.splice(at..at, piece.collect::<Vec<_>>());
                }
                (_, Some(_)) => {
                    let end = bytes.len().min(at.saturating_add(self.below(16)));
                    drop(bytes.drain(at..end));
                }
                (_, None) => {}
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_that_does_not_hold_is_told() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/seed");
        let replayed = replay(("holds", |_| ()), &corpus, 5).unwrap();
        assert!(replayed.inputs > 0 && replayed.mutations == 5);
        let error = replay(("fails", |data| assert!(data.len() < 10)), &corpus, 0).unwrap_err();
        assert!(error.to_string().starts_with("fails does not hold on b\"{"), "{error}");
        assert!(replay(("holds", |_| ()), &corpus.join("none"), 0).is_err());
    }
}
