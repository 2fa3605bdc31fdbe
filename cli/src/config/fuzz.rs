//! The body of the fuzz target of configuration files. Those of the other targets are in the conformance crate.
#![expect(clippy::expect_used, reason = "a panic is how a fuzz body says that something does not hold")]

use std::path::Path;

use callgate_core::policy::{ChannelPolicy, ChannelTable};

use super::{Channel, Config, ConfigError, Origin, check};

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("callgate.toml"))
}

/// Invariants F7, N6, P6: every text is read or refused with places within it; a file with a key that nobody knows, or with a key
/// twice, is refused; a file that is read gives channels and rules that the gate takes, the same ones each time, and another digest
/// than any other text.
pub fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let config = match parse(&text) {
        Ok(config) => config,
        Err(error) => {
            assert!(!error.problems().is_empty() && !error.to_string().is_empty());
            let lines = text.split('\n').count();
            for location in error.problems().iter().filter_map(|problem| problem.location) {
                assert!((1..=lines).contains(&location.line) && location.column > 0, "{location:?} of {text:?}");
            }
            return;
        }
    };
    assert_eq!(parse(&text).as_ref(), Ok(&config), "read twice");
    for surplus in ["unheard_of = 1\n", "version = 1\n"] {
        assert!(parse(&format!("{surplus}{text}")).is_err(), "{surplus} goes unnoticed");
    }
    let other = parse(&format!("{text}\n# a remark\n")).expect("a remark changes nothing");
    assert_ne!(other.digest(), config.digest());
    let same_but_for_places = Config { origin: Origin::Defaults, ..other };
    assert_eq!(same_but_for_places, Config { origin: Origin::Defaults, ..config.clone() });
    let policies: Vec<ChannelPolicy<'_>> = config.channels.values().map(Channel::policy).collect();
    ChannelTable::over_defaults(&policies).check().expect("channels that were read are taken");
    assert!(!check(&config).is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate_conformance::fuzz::replay::replay;

    #[test]
    fn f7_config_holds_on_its_corpus_and_near_it() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds/config");
        let replayed = replay(("config", config), &corpus, mutations()).unwrap_or_else(|error| panic!("{error}"));
        assert!(replayed.inputs > 3);
    }

    fn mutations() -> usize {
        std::env::var("CALLGATE_FUZZ_MUTATIONS").map_or(200, |count| count.parse().expect("a number"))
    }
}
