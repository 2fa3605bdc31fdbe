//! Keys and signatures.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::Signature;
use ssh_key::private::{Ed25519Keypair, KeypairData};
use ssh_key::public::KeyData;
use ssh_key::{HashAlg, LineEnding, PrivateKey, PublicKey, SshSig};

/// The namespace of OpenSSH signatures (`ssh-keygen -Y sign -n callgate`): a signature for another use is none for the gate.
pub const NAMESPACE: &str = "callgate";
/// The most bytes of a signature's text.
const MAX_SIGNATURE: usize = 4 << 10;
/// What a bare key begins with.
const BARE: &str = "ed25519:";

/// Why a key can't be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It is no key in a form that is read here.
    #[error(
        "this is no public key: write `ssh-ed25519 AAAA...` as it stands in a .pub file, or `ed25519:` and 32 bytes in Base64"
    )]
    Malformed,
    /// It is of another kind.
    #[error("only Ed25519 keys are used; make one with `ssh-keygen -t ed25519`")]
    OtherKind,
    /// It is locked by a passphrase.
    #[error("the key is locked by a passphrase; sign with `ssh-keygen -Y sign -n callgate -f KEY FILE` instead")]
    Locked,
    /// It is no private key in OpenSSH's form, or one of another kind.
    #[error("this is no private key of OpenSSH for Ed25519")]
    NoPrivateKey,
    /// Signing failed.
    #[error("the text could not be signed")]
    Signing,
}

/// A public key of Ed25519.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    ssh: PublicKey,
    bare: ed25519_dalek::VerifyingKey,
}

impl VerifyingKey {
    /// Reads a key: `ssh-ed25519 AAAA... comment`, or `ed25519:` and its 32 bytes in Base64. A key of small order, under which many
    /// texts have one signature, is refused.
    ///
    /// # Errors
    /// Says what it is instead.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let bytes: [u8; 32] = match text.strip_prefix(BARE) {
            Some(text) => {
                let bytes = STANDARD.decode(text).map_err(|_| KeyError::Malformed)?;
                bytes.try_into().map_err(|_| KeyError::Malformed)?
            }
            None => {
                let kind = text.split_whitespace().next().unwrap_or_default();
                if kind != "ssh-ed25519" && ["ssh-", "ecdsa-", "sk-"].iter().any(|other| kind.starts_with(other)) {
                    return Err(KeyError::OtherKind);
                }
                let key = PublicKey::from_openssh(text).map_err(|_| KeyError::Malformed)?;
                match key.key_data() {
                    KeyData::Ed25519(key) => key.0,
                    _ => return Err(KeyError::OtherKind),
                }
            }
        };
        let bare = ed25519_dalek::VerifyingKey::from_bytes(&bytes).map_err(|_| KeyError::Malformed)?;
        if bare.is_weak() {
            return Err(KeyError::Malformed);
        }
        let ssh = PublicKey::new(KeyData::Ed25519(ssh_key::public::Ed25519PublicKey(bytes)), "");
        Ok(Self { ssh, bare })
    }

    /// The fingerprint, as `ssh-keygen -l` shows it: `SHA256:` and Base64.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        self.ssh.fingerprint(HashAlg::Sha256).to_string()
    }

    /// Whether `signature` is one of this key over `payload`: an OpenSSH signature in the namespace [`NAMESPACE`], or 64 bytes in Base64.
    #[must_use]
    pub fn verifies(&self, payload: &[u8], signature: &str) -> bool {
        if signature.len() > MAX_SIGNATURE {
            return false;
        }
        let signature = signature.trim();
        if signature.starts_with("-----BEGIN") {
            return SshSig::from_pem(signature).is_ok_and(|signature| {
                self.ssh.key_data() == signature.public_key() && self.ssh.verify(NAMESPACE, payload, &signature).is_ok()
            });
        }
        let bytes = STANDARD.decode(signature).ok().and_then(|bytes| <[u8; 64]>::try_from(bytes).ok());
        bytes.is_some_and(|bytes| self.bare.verify_strict(payload, &Signature::from_bytes(&bytes)).is_ok())
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VerifyingKey").field(&self.fingerprint()).finish()
    }
}

/// A private key of Ed25519 in OpenSSH's form.
pub struct SecretKey(PrivateKey);

impl SecretKey {
    /// Reads a key file's text.
    ///
    /// # Errors
    /// It is none, or locked by a passphrase.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let key = PrivateKey::from_openssh(text).map_err(|_| KeyError::NoPrivateKey)?;
        if key.is_encrypted() {
            return Err(KeyError::Locked);
        }
        if !matches!(key.public_key().key_data(), KeyData::Ed25519(_)) {
            return Err(KeyError::NoPrivateKey);
        }
        Ok(Self(key))
    }

    /// The key of these 32 secret bytes (the seed of RFC 8032), which must come from a cryptographically secure source.
    ///
    /// # Errors
    /// [`KeyError::NoPrivateKey`].
    pub fn from_seed(seed: &[u8; 32]) -> Result<Self, KeyError> {
        let key = KeypairData::Ed25519(Ed25519Keypair::from_seed(seed));
        PrivateKey::new(key, "").map(Self).map_err(|_| KeyError::NoPrivateKey)
    }

    /// The public key, as it stands in a `.pub` file.
    ///
    /// # Errors
    /// [`KeyError::Malformed`].
    pub fn public(&self) -> Result<String, KeyError> {
        self.0.public_key().to_openssh().map_err(|_| KeyError::Malformed)
    }

    /// The private key, as it stands in a key file without a passphrase. Keep it where nobody else reads.
    ///
    /// # Errors
    /// [`KeyError::NoPrivateKey`].
    pub fn private(&self) -> Result<String, KeyError> {
        self.0.to_openssh(LineEnding::LF).map(|text| text.to_string()).map_err(|_| KeyError::NoPrivateKey)
    }

    /// Signs a payload as `ssh-keygen -Y sign -n callgate` does.
    ///
    /// # Errors
    /// [`KeyError::Signing`].
    pub fn sign(&self, payload: &[u8]) -> Result<String, KeyError> {
        let signature = self.0.sign(NAMESPACE, HashAlg::Sha512, payload).map_err(|_| KeyError::Signing)?;
        signature.to_pem(LineEnding::LF).map_err(|_| KeyError::Signing)
    }

    /// The fingerprint of its public key.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        self.0.fingerprint(HashAlg::Sha256).to_string()
    }
}

/// Shows nothing of the key (invariant L1).
impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}
