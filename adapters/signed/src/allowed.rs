//! Who may sign: a file of allowed signers in the form of OpenSSH (`ssh-keygen(1)`, ALLOWED SIGNERS).

use crate::key::{KeyError, NAMESPACE, VerifyingKey};

/// The most lines that a file may have.
const MAX_LINES: usize = 10_000;

/// The signers of a file, in its order.
#[derive(Clone, Debug, Default)]
pub struct AllowedSigners(Vec<(String, VerifyingKey)>);

/// Why a file of allowed signers can't be used. None of its lines is skipped (invariant F7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AllowedSignersError {
    /// A line is none of such a file.
    #[error(
        "line {line}: a line has principals, options if there are any, and a key: `ann@example ssh-ed25519 AAAA...`"
    )]
    Malformed {
        /// The line, from 1.
        line: usize,
    },
    /// A line has an option that is not understood here, so it could allow more than it says.
    #[error("line {line}: only the option namespaces=\"...\" is understood here")]
    Option {
        /// The line, from 1.
        line: usize,
    },
    /// A key can't be used.
    #[error("line {line}: {reason}")]
    Key {
        /// The line, from 1.
        line: usize,
        /// Why not.
        reason: KeyError,
    },
    /// Nobody is allowed to sign for the gate.
    #[error("no line allows anybody to sign in the namespace `{NAMESPACE}`")]
    Nobody,
    /// There are too many lines.
    #[error("it has more than {MAX_LINES} lines")]
    TooLong,
}

impl AllowedSigners {
    /// Reads such a file's text: `PRINCIPALS [namespaces="..."] ssh-ed25519 AAAA... [comment]`, and lines that are empty or begin with `#`.
    /// A line whose namespaces are others than [`NAMESPACE`] allows nothing here. Certificate authorities and times of validity are not
    /// understood, and a file with them is refused.
    ///
    /// # Errors
    /// Says what can't be used.
    pub fn parse(text: &str) -> Result<Self, AllowedSignersError> {
        let mut signers = Vec::new();
        for (at, text) in text.lines().enumerate() {
            let line = at.saturating_add(1);
            if line > MAX_LINES {
                return Err(AllowedSignersError::TooLong);
            }
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let malformed = AllowedSignersError::Malformed { line };
            let (principals, rest) = text.split_once(char::is_whitespace).ok_or(malformed)?;
            let rest = rest.trim_start();
            let is_key = ["ssh-", "ecdsa-", "sk-"].iter().any(|kind| rest.starts_with(kind));
            let (options, key) = if is_key { ("", rest) } else { split_options(rest).ok_or(malformed)? };
            if principals.contains('"') || key.is_empty() {
                return Err(malformed);
            }
            let is_ours = match options {
                "" => true,
                options => namespaces(options)
                    .ok_or(AllowedSignersError::Option { line })?
                    .split(',')
                    .any(|namespace| namespace == NAMESPACE),
            };
            let key = VerifyingKey::parse(key).map_err(|reason| AllowedSignersError::Key { line, reason })?;
            if is_ours {
                signers.push((principals.to_owned(), key));
            }
        }
        if signers.is_empty() { Err(AllowedSignersError::Nobody) } else { Ok(Self(signers)) }
    }

    /// A file of one signer.
    #[must_use]
    pub fn one(principal: impl Into<String>, key: VerifyingKey) -> Self {
        Self(vec![(principal.into(), key)])
    }

    /// The principals, as the file has them, of the first signer whose signature of `payload` this is.
    #[must_use]
    pub fn who_signed(&self, payload: &[u8], signature: &str) -> Option<&str> {
        self.0.iter().find(|(_, key)| key.verifies(payload, signature)).map(|(principals, _)| principals.as_str())
    }
}

/// The options, and what stands behind them; a space within quotes belongs to an option.
fn split_options(text: &str) -> Option<(&str, &str)> {
    let mut quoted = false;
    let end = text.find(|c: char| {
        quoted ^= c == '"';
        !quoted && c.is_whitespace()
    })?;
    let (options, rest) = text.split_at_checked(end)?;
    Some((options, rest.trim_start()))
}

/// The value of the only option that there may be.
fn namespaces(options: &str) -> Option<&str> {
    let value = options.strip_prefix("namespaces=\"")?.strip_suffix('"')?;
    (!value.contains('"')).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::SecretKey;

    fn key(seed: u8) -> (SecretKey, String) {
        let secret = SecretKey::from_seed(&[seed; 32]).expect("a key");
        let public = secret.public().expect("a key");
        (secret, public.trim().to_owned())
    }

    #[test]
    fn a_file_allows_whom_it_names_and_nobody_else() {
        let ((one, one_key), (two, two_key), (three, three_key)) = (key(1), key(2), key(3));
        let text = format!(
            "# who may\n\nann@example,ann {one_key} laptop\r\nops namespaces=\"file,callgate\" {two_key}\nbob namespaces=\"git\" {three_key}\n"
        );
        let signers = AllowedSigners::parse(&text).expect("a good file");
        let signed_by = |key: &SecretKey| {
            let signature = key.sign(b"text").expect("signed");
            (
                signers.who_signed(b"text", &signature).map(str::to_owned),
                signers.who_signed(b"other", &signature).is_some(),
            )
        };
        assert_eq!(signed_by(&one), (Some("ann@example,ann".to_owned()), false));
        assert_eq!(signed_by(&two), (Some("ops".to_owned()), false));
        assert_eq!(signed_by(&three), (None, false), "for another use");
    }

    #[test]
    fn f7_what_is_not_understood_is_refused() {
        let (_, key) = key(1);
        let parse = |text: String| AllowedSigners::parse(&text).map(drop);
        assert_eq!(parse(String::new()), Err(AllowedSignersError::Nobody));
        assert_eq!(parse(format!("ann namespaces=\"git\" {key}")), Err(AllowedSignersError::Nobody));
        assert_eq!(parse(key.clone()).map_err(|_| ()), Err(()), "nobody is named");
        assert_eq!(parse("ann".to_owned()), Err(AllowedSignersError::Malformed { line: 1 }));
        for option in [
            "cert-authority",
            "valid-before=\"20200101\"",
            "namespaces=\"callgate\",cert-authority",
            "namespaces=callgate",
        ] {
            let text = format!("\nann {option} {key}");
            assert_eq!(parse(text), Err(AllowedSignersError::Option { line: 2 }), "{option}");
        }
        assert_eq!(
            parse("ann ssh-rsa AAAAB3NzaC1yc2E=".to_owned()),
            Err(AllowedSignersError::Key { line: 1, reason: KeyError::OtherKind })
        );
    }
}
