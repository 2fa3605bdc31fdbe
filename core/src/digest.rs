//! Digests over typed, length-prefixed encodings: what binds an approval, a record and a snapshot to exactly one value.
//!
//! Never over re-serialized JSON: two printers differ, and some print two values alike. Each part of an encoding says its
//! type and its length before its content, so no two different sequences of parts have the same bytes, and each encoding
//! starts with the name of what it is for, so no digest of one kind is one of another.
//!
//! # Encoding
//!
//! All integers are big-endian.
//!
//! | part | bytes |
//! |---|---|
//! | domain | `u64` length, UTF-8 bytes |
//! | null, false, true | `00`, `01`, `02` |
//! | integer from 0 | `03`, `u64` |
//! | integer below 0 | `04`, `i64` in two's complement |
//! | decimal | `05`, IEEE 754 binary64 bits; never -0, an infinity or NaN |
//! | string | `06`, `u64` length, UTF-8 bytes |
//! | array or list | `07`, `u64` count, then the items |
//! | object | `08`, `u64` count, then for each member the key (as string) and the value; sorted by the bytes of the keys |
//! | bytes | `09`, `u64` length, bytes |
//! | absent | `0a` |
//! | present | `0b`, then what it is |
//!
//! Arguments have the domain `gate/args/v1` and HMAC-SHA-256 (invariant L3: nobody may find low-entropy arguments by
//! hashing guesses until one meets an audit record); `1` and `1.0` are different values here. Tool definitions have
//! `gate/tool/v1` and plain SHA-256.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::str::FromStr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::digest::FixedOutput as _;
use sha2::{Digest as _, Sha256};

use crate::json::{Item, KeySlot, KeysFull, Number, Piece, Text, Value, visit_canonical};

/// The domain of argument digests.
pub const ARGS_DOMAIN: &str = "gate/args/v1";
/// The domain of tool definition digests.
pub const TOOL_DOMAIN: &str = "gate/tool/v1";

/// A 256-bit digest. `Display` prints 64 lower-case hexadecimal digits, and `parse` reads exactly those. Comparison takes
/// the same time wherever two digests differ.
#[derive(Clone, Copy)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes of the digest.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Plain SHA-256 of `bytes` (FIPS 180-4), without domain or lengths: for chained records and stored token hashes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        let difference = self.0.iter().zip(&other.0).fold(0, |sum, (a, b)| sum | (a ^ b));
        core::hint::black_box(difference) == 0
    }
}

impl Eq for Digest {}

impl Hash for Digest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut hex = [0; 64];
        let (pairs, _) = hex.as_chunks_mut::<2>();
        for (pair, byte) in pairs.iter_mut().zip(&self.0) {
            *pair = [hex_digit(byte >> 4), hex_digit(byte & 15)];
        }
        f.write_str(core::str::from_utf8(&hex).unwrap_or_default())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

const fn hex_digit(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'a' - 10 + value }
}

/// A text that is no digest: not exactly 64 of `0-9 a-f`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotADigest;

impl fmt::Display for NotADigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a digest has 64 hexadecimal digits in lower case")
    }
}

impl core::error::Error for NotADigest {}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return Err(NotADigest) };
        let mut bytes = [0; 32];
        if pairs.len() != bytes.len() {
            return Err(NotADigest);
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = hex_value(*high)? << 4 | hex_value(*low)?;
        }
        Ok(Self(bytes))
    }
}

const fn hex_value(digit: u8) -> Result<u8, NotADigest> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(NotADigest),
    }
}

/// The secret under which arguments are digested. One for each deployment: digests made under different keys never
/// match. `Debug` shows nothing.
#[derive(Clone)]
pub struct DigestKey(Hmac<Sha256>);

impl fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DigestKey(..)")
    }
}

impl DigestKey {
    /// The key with these 32 bytes, which must come from a cryptographic random generator.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        // RFC 2104: a shorter key is filled up with zeros to the block length.
        let mut block = [0; 64];
        for (to, from) in block.iter_mut().zip(key) {
            *to = from;
        }
        Self(Hmac::new(&block.into()))
    }

    /// The keyed digest of a value, clamps applied, for the purpose that `domain` names. Independent of the order of
    /// members, white space and escapes; nothing else is left out.
    ///
    /// `keys` is scratch: [`key_capacity`](crate::json::key_capacity) of the text says how much always suffices.
    ///
    /// # Errors
    /// `keys` is too small.
    pub fn digest(&self, domain: &str, value: Value<'_>, keys: &mut [KeySlot]) -> Result<Digest, KeysFull> {
        let mut digest = DigestBuilder::keyed(domain, self);
        visit_canonical(value, keys, &mut |item| digest.item(item))?;
        Ok(digest.finish())
    }
}

/// A digest of typed parts, in the encoding that the [module](self) describes. The parts are told apart by type and length;
/// that a reader of the code knows which part means what is up to the caller, who gives the same parts in the same order.
///
/// ```
/// use callgate_core::digest::DigestBuilder;
/// let digest = |a, b| {
///     let mut key = DigestBuilder::new("doc/pair/v1");
///     key.str(a).str(b);
///     key.finish()
/// };
/// assert_ne!(digest("ab", "c"), digest("a", "bc"));
/// ```
#[derive(Clone)]
pub struct DigestBuilder(State);

#[derive(Clone)]
enum State {
    Plain(Sha256),
    Keyed(Hmac<Sha256>),
}

impl fmt::Debug for DigestBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DigestBuilder(..)")
    }
}

impl DigestBuilder {
    /// SHA-256, for the purpose that `domain` names.
    #[must_use]
    pub fn new(domain: &str) -> Self {
        Self(State::Plain(Sha256::new())).domain(domain)
    }

    /// HMAC-SHA-256 under `key`, for the purpose that `domain` names.
    #[must_use]
    pub fn keyed(domain: &str, key: &DigestKey) -> Self {
        Self(State::Keyed(key.0.clone())).domain(domain)
    }

    fn domain(mut self, domain: &str) -> Self {
        self.put(&(domain.len() as u64).to_be_bytes());
        self.put(domain.as_bytes());
        self
    }

    fn put(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Plain(hash) => hash.update(bytes),
            State::Keyed(mac) => Mac::update(mac, bytes),
        }
    }

    fn tagged(&mut self, tag: u8, value: u64) -> &mut Self {
        let [a, b, c, d, e, f, g, h] = value.to_be_bytes();
        self.put(&[tag, a, b, c, d, e, f, g, h]);
        self
    }

    /// Adds a string.
    pub fn str(&mut self, text: &str) -> &mut Self {
        self.tagged(6, text.len() as u64).put(text.as_bytes());
        self
    }

    /// Adds a string of checked text, unescaped.
    pub fn text(&mut self, text: Text<'_>) -> &mut Self {
        if let Some(plain) = text.as_plain() {
            return self.str(plain);
        }
        self.tagged(6, text.byte_count() as u64);
        for piece in text.pieces() {
            match piece {
                Piece::Run(run) => self.put(run.as_bytes()),
                Piece::Char(c) => self.put(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        self
    }

    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.tagged(9, bytes.len() as u64).put(bytes);
        self
    }

    /// Adds a truth value.
    pub fn bool(&mut self, value: bool) -> &mut Self {
        self.put(&[if value { 2 } else { 1 }]);
        self
    }

    /// Adds an integer.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.tagged(3, value)
    }

    /// Adds an integer.
    pub fn i64(&mut self, value: i64) -> &mut Self {
        match u64::try_from(value) {
            Ok(value) => self.u64(value),
            Err(_) => self.number(Number::I64(value)),
        }
    }

    /// Adds a floating-point number, whatever it is.
    pub fn f64(&mut self, value: f64) -> &mut Self {
        self.number(Number::F64(value))
    }

    /// Adds a number. Its kind counts: `1` and `1.0` give different digests.
    pub fn number(&mut self, value: Number) -> &mut Self {
        match value {
            Number::U64(value) => self.tagged(3, value),
            Number::I64(value) => self.tagged(4, value.cast_unsigned()),
            Number::F64(value) => self.tagged(5, value.to_bits()),
        }
    }

    /// Adds the number of parts that follow as one list.
    pub fn list(&mut self, count: usize) -> &mut Self {
        self.tagged(7, count as u64)
    }

    /// Adds whether an optional part is there; when it is, that part must follow.
    pub fn option(&mut self, present: bool) -> &mut Self {
        self.put(&[if present { 11 } else { 10 }]);
        self
    }

    /// Adds an optional string.
    pub fn option_str(&mut self, text: Option<&str>) -> &mut Self {
        self.option(text.is_some());
        match text {
            Some(text) => self.str(text),
            None => self,
        }
    }

    /// Adds another digest.
    pub fn digest(&mut self, digest: &Digest) -> &mut Self {
        self.bytes(&digest.0)
    }

    fn item(&mut self, item: Item<'_>) {
        match item {
            Item::Null => self.put(&[0]),
            Item::Bool(value) => drop(self.bool(value)),
            Item::Number(value) => drop(self.number(value)),
            Item::String(text) | Item::Key(text) => drop(self.text(text)),
            Item::Array(count) => drop(self.tagged(7, u64::from(count))),
            Item::Object(count) => drop(self.tagged(8, u64::from(count))),
        }
    }

    /// The digest of all parts.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(match self.0 {
            State::Plain(hash) => hash.finalize_fixed().into(),
            State::Keyed(mac) => mac.finalize_fixed().into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use crate::json::Limits;
    use std::string::ToString;

    fn key() -> DigestKey {
        DigestKey::new(core::array::from_fn(|i| i as u8))
    }

    fn digest(text: &str) -> Digest {
        let mut keys = [KeySlot::default(); 32];
        let args = Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT).expect("good text");
        args.digest(&key(), &mut keys).expect("enough keys")
    }

    // G4, K4: golden vectors, made by another implementation of the table above (Python's hashlib and hmac). A change
    // here breaks every approval and audit record that is kept: it needs a new domain.
    #[test]
    fn k4_golden_vectors_of_arguments() {
        let cases = [
            ("{}", "eb93b98cfad189cbba85eabdf632856cdf7b3ad8b643b80340db78239f01db23"),
            (r#"{"a":1}"#, "1fe0bdfb959da33080bf53d2a618eb3ef239b783e0a5e0e64baf8a7bd925e228"),
            (r#"{"a":1.0}"#, "9e80cfe6a938b68b83eefc339c07822f6a20cd00f44fb628f3fdba28c50b83f6"),
            (
                r#"{"b":[null,true,false,-1,1.5,18446744073709551615,-9223372036854775808],"a":{"z":"","é":"\ud83d\ude00\n"}}"#,
                "4447e4b8cd6eda77044810dc18d3e748d40ec953658e206cfadfd9e459ce7ec9",
            ),
            (
                "{\"aaaab\":1,\"aaaaa\":2,\"aaaa\":3,\"\":4,\"\\u0000\":5,\"\u{ffff}\":6,\"😀\":7}",
                "a0d72e21c763963d0705118d6cc1a3b63e3db5ef8e8567cadbbd4b896b206976",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(digest(text).to_string(), expected, "{text}");
        }
    }

    #[test]
    fn golden_vector_of_typed_parts() {
        let mut parts = DigestBuilder::new("gate/test/v1");
        parts.str("x").bytes(&[1, 2]).u64(7).i64(-7).bool(true).option(false).option_str(Some("y")).list(3).f64(2.5);
        assert_eq!(parts.finish().to_string(), "932349b1cf113cc4e6e0204087ca73bfdd6a2ddead91c84f7ea56a86735d314c");
    }

    #[test]
    fn plain_digests_are_sha_256() {
        assert_eq!(
            Digest::of_bytes(b"abc").to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    // L3: without the key nobody can make the digest of a guess.
    #[test]
    fn l3_argument_digests_depend_on_the_key() {
        let args = Args::EMPTY;
        let mut other = [0; 32];
        other[31] = 1;
        assert_ne!(args.digest(&key(), &mut []), args.digest(&DigestKey::new(other), &mut []));
        assert_eq!(std::format!("{:?}", key()), "DigestKey(..)");
    }

    #[test]
    fn digests_are_read_in_one_form_only() {
        let digest = Digest::of_bytes(b"");
        let text = digest.to_string();
        assert_eq!(text.parse(), Ok(digest));
        let upper = text.to_uppercase();
        let tail = text.strip_prefix('e').expect("the SHA-256 of nothing starts with e3b0c442");
        for wrong in
            ["", "00", tail, &upper, &std::format!("{text}00"), &std::format!(" {tail}"), &std::format!("é{tail}")]
        {
            assert_eq!(wrong.parse::<Digest>(), Err(NotADigest), "{wrong}");
        }
    }

    #[test]
    fn one_bit_makes_another_digest() {
        let digest = Digest::of_bytes(b"");
        for bit in 0..256 {
            let mut bytes = *digest.as_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(Digest::from_bytes(bytes), digest);
        }
        assert_eq!(Digest::from_bytes(*digest.as_bytes()), digest);
    }

    // Two differences that are alike do not make up for each other, and what differs is looked up elsewhere.
    #[test]
    fn a4_equal_differences_do_not_cancel_out() {
        let hashed = |digest: Digest| {
            let mut hasher = std::hash::DefaultHasher::new();
            digest.hash(&mut hasher);
            hasher.finish()
        };
        let digest = Digest::of_bytes(b"");
        let mut bytes = *digest.as_bytes();
        (bytes[0], bytes[31]) = (bytes[0] ^ 4, bytes[31] ^ 4);
        let other = Digest::from_bytes(bytes);
        assert_ne!(other, digest);
        assert_ne!(hashed(other), hashed(digest));
        assert_eq!(hashed(Digest::of_bytes(b"")), hashed(digest));
    }

    // S5, F5: too small a key table refuses, whatever the nesting.
    #[test]
    fn s5_a_small_key_table_is_an_error() {
        let mut keys = [KeySlot::default(); 3];
        let text = br#"{"a":{"b":{"c":1}},"d":[{"e":1},{"f":2}]}"#;
        let args = Args::read(text, &mut keys, &Limits::DEFAULT).expect("three keys are enough to read it");
        assert!(args.digest(&key(), &mut [KeySlot::default(); 4]).is_ok());
        assert_eq!(args.digest(&key(), &mut keys), Err(KeysFull));
    }
}
