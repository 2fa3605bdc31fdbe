//! The digest of a configuration: what records name as the policy in force (invariants J7, P6).

use callgate_core::digest::{Digest, DigestBuilder};

use super::settings::{Config, Origin};

/// The domain of the digest. It ends with the version of what is digested.
const DOMAIN: &str = "callgate/config/v1";

impl Config {
    /// The digest of the file's text, and of this program's version, which brings the built-in channels and tools. Another
    /// file, and another program, is another policy.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut digest = DigestBuilder::new(DOMAIN);
        digest.str(env!("CARGO_PKG_VERSION"));
        match &self.origin {
            Origin::Defaults => digest.option(false),
            Origin::File(source) => digest.option(true).str(source.text()),
        };
        digest.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn j7_another_text_is_another_policy() {
        let digest = |text: &str| Config::parse(text, Path::new("callgate.toml")).unwrap().digest();
        assert_eq!(digest("version = 1\n"), digest("version = 1\n"));
        assert_ne!(digest("version = 1\n"), digest("version = 1\n[quotas]\nlimit = 5\n"));
        assert_ne!(digest("version = 1\n"), Config::default_for(Path::new(".")).digest());
    }
}
