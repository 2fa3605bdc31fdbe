//! Which names say that the value beside them is a secret.
//!
//! A name is cut into words (at `_ - . space` and every other character that is no letter, at digits, and where case changes
//! as in `apiKey` and `APIKey`), its letters are folded to lower case, and the words are compared with the tables below.
//! In doubt a name is sensitive: a masked count costs the reader of a record one more look elsewhere, a leaked token costs
//! the account.

use crate::json::SMALL;

/// The most letters of a name that are looked at. A longer name is sensitive, because nobody can say that it is not.
pub(super) const MAX_LETTERS: usize = if SMALL { 48 } else { 128 };

/// Patterns, as letters without borders, by where in a name they make it sensitive.
struct Patterns {
    /// Anywhere, borders of words or not. For letters that no harmless word contains.
    anywhere: &'static [&'static str],
    /// So that they end where a word ends: `clienttoken`, `token_2`, not `tokenizer`.
    tail: &'static [&'static str],
    /// As one or more complete words: `x-otp-code`, not `footprint`.
    words: &'static [&'static str],
    /// As complete words at the end of the name: `smtp_pass`, not `pass_count`.
    last: &'static [&'static str],
}

/// The patterns that begin with the letter `first`. All but those that stand anywhere may carry a plural `s`.
///
/// The ancestor's five names (`password`, `token`, `secret`, `api_key`, `apiKey`) are among them. Not among them, because
/// they mean something else more often than not, and a host that means the secret can add them: `pin` alone (the pin of a
/// chip), `key` alone, `code`, `session`, `signature`, `hash`, `nonce`, `user`.
#[rustfmt::skip]
const fn patterns(first: u8) -> Patterns {
    let (anywhere, tail, words, last): (&[&str], &[&str], &[&str], &[&str]) = match first {
        b'a' => (
            &["apikey", "authorization"],
            &["accesskey", "accountkey", "authkey"],
            &["accesspin", "adminkey", "adminpass", "aeskey", "appkey", "applicationkey", "apppass", "atmpin",
                "authcode", "authheader", "authstring"],
            &["auth"],
        ),
        b'b' => (&[], &["backupcode"], &["backupkey", "bearer", "botkey"], &[]),
        b'c' => (
            &["credential"],
            &["cardnumber", "connectionstring", "cookie"],
            &["cardpin", "cipherkey", "clientassertion", "clientkey", "connectionstr", "connstr", "connstring",
                "consumerkey", "cryptokey", "csrf", "cvc", "cvv"],
            &["cred"],
        ),
        b'd' => (&[], &["decryptionkey"], &["dbpass", "deploykey", "deploymentkey", "dsn"], &[]),
        b'e' => (&[], &["encryptionkey"], &["encryptkey"], &[]),
        // `2fa_code`: digits are borders and leave no letter.
        b'f' => (&[], &[], &["facode", "functionkey", "functionskey"], &[]),
        b'h' => (&[], &[], &["hmackey"], &[]),
        b'j' => (&[], &[], &["jwt"], &[]),
        b'k' => (&[], &[], &["keypass"], &[]),
        b'l' => (&[], &[], &["licensekey", "loginpin"], &[]),
        b'm' => (&[], &["masterkey"], &["mfacode", "mnemonic", "mypass"], &[]),
        b'o' => (&[], &[], &["onetimecode", "otp", "otpcode"], &[]),
        b'p' => (
            &["passcode", "passphrase", "passwd", "password"],
            &["privatekey", "pwd"],
            &["passkey", "pgpass", "pinblock", "pincode", "pinhash", "presharedkey", "psk"],
            &["pass", "pw"],
        ),
        b'r' => (&[], &["recoverycode"], &["recoverykey", "recoveryphrase", "rootkey", "rootpass"], &[]),
        b's' => (
            &[],
            &["secret", "secretkey", "securityanswer", "sessid", "sessionid", "sessionkey", "signingkey"],
            &["samlresponse", "saskey", "securitycode", "securitypin", "seedphrase", "servicekey", "servicerolekey",
                "sharedkey", "signkey", "simpin", "smtppass", "sshkey", "sshpass", "storagekey", "storepass",
                "subscriptionkey", "symmetrickey"],
            &[],
        ),
        b't' => (&[], &["token"], &["totp", "twofactorcode"], &[]),
        b'u' => (&[], &[], &["userpass", "userpin"], &[]),
        b'v' => (&[], &[], &["verificationcode"], &[]),
        b'w' => (&[], &[], &["webhookkey", "writekey"], &[]),
        b'x' => (&[], &[], &["xsrf"], &[]),
        _ => (&[], &[], &[], &[]),
    };
    Patterns { anywhere, tail, words, last }
}

/// Words that say, in a name with the plural `tokens`, that tokens are counted and not carried: `max_tokens`, `tokens_used`.
#[rustfmt::skip]
const COUNTS: &[&str] = &[
    "accepted", "audio", "available", "billed", "budget", "cache", "cached", "completion", "consumed", "context",
    "cost", "count", "counts", "estimate", "estimated", "generated", "in", "input", "length", "limit", "limits",
    "max", "maximum", "min", "minimum", "n", "num", "number", "out", "output", "overlap", "per", "prompt", "quota",
    "rate", "reasoning", "rejected", "remaining", "sampled", "size", "special", "spent", "stop", "thinking",
    "total", "usage", "used", "window",
];

/// Words that, before the singular `token`, say that it is a count or a symbol of a language model.
#[rustfmt::skip]
const BEFORE_ONE: &[&str] = &[
    "bos", "cls", "eos", "max", "min", "num", "pad", "sep", "special", "total", "unk",
];

/// Words that, after `token` or `authorization`, say that the value is about it and not it.
#[rustfmt::skip]
const AFTER_ONE: &[&str] = &[
    "age", "budget", "cost", "count", "counter", "decimals", "endpoint", "expiration", "expires", "expiry", "ids",
    "index", "length", "lifetime", "limit", "overlap", "position", "price", "rate", "size", "supply", "symbol",
    "ttl", "type", "types", "uri", "url", "usage", "used", "window",
];

/// Whether a value beside the name `key` is a secret by the built-in tables or by one of `extra`.
pub(super) fn is_sensitive(key: impl Iterator<Item = char>, extra: &[&str]) -> bool {
    let mut words = Words::new();
    words.extend(key);
    words.are_sensitive(extra)
}

/// A name, cut into words. Built letter by letter, so that a name can be read where it stands.
pub(super) struct Words {
    letters: [u8; MAX_LETTERS],
    len: usize,
    /// A bit for each letter, the first one's lowest: a word begins there.
    starts: [u32; MAX_LETTERS.div_ceil(32)],
    /// A letter came that had no room.
    overflow: bool,
    last: Kind,
    before_last: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Border,
    Lower,
    Upper,
    /// A letter without case as far as we know.
    Other,
}

impl Words {
    pub(super) const fn new() -> Self {
        Self {
            letters: [0; MAX_LETTERS],
            len: 0,
            starts: [0; MAX_LETTERS.div_ceil(32)],
            overflow: false,
            last: Kind::Border,
            before_last: Kind::Border,
        }
    }

    pub(super) fn extend(&mut self, chars: impl Iterator<Item = char>) {
        for c in chars {
            self.push(c);
        }
    }

    /// Adds the next character of the name.
    pub(super) fn push(&mut self, c: char) {
        let (letter, kind) = fold(c);
        let border = match (self.last, kind) {
            (Kind::Border, _) | (Kind::Lower | Kind::Other, Kind::Upper) => true,
            (Kind::Upper, Kind::Lower) => {
                // The last of several capitals begins the next word: `APIKey` is `API` and `Key`.
                if self.before_last == Kind::Upper {
                    self.mark_start(self.len.saturating_sub(1));
                }
                false
            }
            _ => false,
        };
        if border {
            self.mark_start(self.len);
        }
        if kind != Kind::Border {
            let (bytes, from) = encode(letter);
            for byte in bytes.iter().skip(from) {
                self.store(*byte);
            }
        }
        self.before_last = self.last;
        self.last = kind;
    }

    fn store(&mut self, letter: u8) {
        match self.letters.get_mut(self.len) {
            Some(room) => {
                *room = letter;
                self.len = self.len.saturating_add(1);
            }
            None => self.overflow = true,
        }
    }

    pub(super) fn are_sensitive(&self, extra: &[&str]) -> bool {
        self.overflow || (0..self.len).any(|at| self.pattern_begins(at)) || extra.iter().any(|name| self.hold(name))
    }

    /// Whether another name stands among the words, as complete words.
    pub(super) fn hold(&self, name: &str) -> bool {
        (0..self.len).any(|at| self.name_begins(at, name))
    }

    /// Whether the name carries a signature that grants access, as in the query of a signed URL. Only there: elsewhere a
    /// signature is that of a function or of a document.
    pub(super) fn are_signature(&self) -> bool {
        (0..self.len).any(|at| self.is_start(at) && is_in(self.letters_from(at), &["sig", "signature"]))
    }

    /// Whether the value of such a name goes on to the end of the line: that of a header, or a phrase.
    pub(super) fn take_the_line(&self) -> bool {
        const LONG: [&str; 6] = ["authheader", "authorization", "connectionstr", "cookie", "mnemonic", "phrase"];
        (0..self.len).any(|at| LONG.iter().any(|name| self.letters_from(at).starts_with(name.as_bytes())))
    }

    fn pattern_begins(&self, at: usize) -> bool {
        let letters = self.letters_from(at);
        let Some(first) = letters.first() else {
            return false;
        };
        let starts = self.is_start(at);
        let table = patterns(*first);
        let here = |list: &[&str], ends: bool, ends_all: bool| {
            list.iter().any(|pattern| {
                let Some(after) = letters.strip_prefix(pattern.as_bytes()) else {
                    return false;
                };
                let end = at.saturating_add(pattern.len());
                let plural = after.first() == Some(&b's') && self.is_end(end.saturating_add(1));
                let end = if plural { end.saturating_add(1) } else { end };
                (!ends || self.is_end(end))
                    && (!ends_all || end == self.len)
                    && !self.is_about(at, end, pattern, plural)
            })
        };
        here(table.anywhere, false, false)
            || here(table.tail, true, false)
            || starts && (here(table.words, true, false) || here(table.last, true, true))
    }

    /// Whether the pattern at `start..end` is only what the value is about: `max_tokens`, `token_type`.
    fn is_about(&self, start: usize, end: usize, pattern: &str, plural: bool) -> bool {
        let (before, after): (&[&str], &[&str]) = match (pattern, plural) {
            ("token", true) => (COUNTS, COUNTS),
            ("token", false) => (BEFORE_ONE, AFTER_ONE),
            ("authorization", _) => (&[], AFTER_ONE),
            _ => return false,
        };
        self.has_word(0, start, before) || self.has_word(end, self.len, after)
    }

    /// Whether one of the words between two letters is in a list. Words are cut at `from` and `to` even where no border is.
    fn has_word(&self, from: usize, to: usize, list: &[&str]) -> bool {
        let mut start = from;
        while start < to {
            let mut end = start.saturating_add(1);
            while end < to && !self.is_start(end) {
                end = end.saturating_add(1);
            }
            if self.letters.get(start..end).is_some_and(|word| is_in(word, list)) {
                return true;
            }
            start = end;
        }
        false
    }

    /// Whether the host's name begins at `at` as complete words.
    fn name_begins(&self, at: usize, name: &str) -> bool {
        let mut end = at;
        if !self.is_start(at) {
            return false;
        }
        for c in name.chars() {
            let (letter, kind) = fold(c);
            if kind == Kind::Border {
                continue;
            }
            let (bytes, from) = encode(letter);
            for byte in bytes.iter().skip(from) {
                // Behind the last letter there is room that is none.
                if self.letters.get(end) != Some(byte) {
                    return false;
                }
                end = end.saturating_add(1);
            }
        }
        end > at && self.is_end(end)
    }

    fn letters_from(&self, at: usize) -> &[u8] {
        self.letters.get(at..self.len).unwrap_or_default()
    }

    fn is_start(&self, at: usize) -> bool {
        self.starts.get(at >> 5).is_some_and(|bits| bits >> (at & 31) & 1 == 1)
    }

    fn is_end(&self, at: usize) -> bool {
        at == self.len || self.is_start(at)
    }

    fn mark_start(&mut self, at: usize) {
        if let Some(bits) = self.starts.get_mut(at >> 5) {
            *bits |= 1 << (at & 31);
        }
    }
}

/// Whether a word is in a list.
pub(super) fn is_in(word: &[u8], list: &[&str]) -> bool {
    list.iter().any(|entry| entry.as_bytes() == word)
}

/// A letter in lower case and its kind. Beyond ASCII only what Unicode folds to ASCII is folded (long s, Kelvin sign,
/// full-width letters): the tables for all of Unicode are larger than the firmware that this runs in.
fn fold(c: char) -> (char, Kind) {
    match c {
        'a'..='z' => (c, Kind::Lower),
        'A'..='Z' => (c.to_ascii_lowercase(), Kind::Upper),
        '\u{17f}' => ('s', Kind::Lower),
        '\u{212a}' => ('k', Kind::Upper),
        '\u{ff41}'..='\u{ff5a}' => (narrow(c), Kind::Lower),
        '\u{ff21}'..='\u{ff3a}' => (narrow(c).to_ascii_lowercase(), Kind::Upper),
        // Spaces, dashes and what has no width.
        '\0'..='\u{a0}'
        | '\u{ad}'
        | '\u{180e}'
        | '\u{2000}'..='\u{206f}'
        | '\u{3000}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{fe63}'
        | '\u{feff}'
        | '\u{ff00}'..='\u{ff20}'
        | '\u{ff3f}'
        | '\u{e0000}'..='\u{e0fff}' => (c, Kind::Border),
        _ => (c, Kind::Other),
    }
}

/// A letter as bytes, right-aligned, and where they begin: one byte for ASCII, else three that are no ASCII.
const fn encode(letter: char) -> ([u8; 3], usize) {
    const fn seven_bits(code: u32) -> u8 {
        (code & 0x7f) as u8 | 0x80
    }
    let code = letter as u32;
    if letter.is_ascii() {
        ([0, 0, code as u8], 2)
    } else {
        ([seven_bits(code >> 14), seven_bits(code >> 7), seven_bits(code)], 0)
    }
}

/// The ASCII form of a full-width form.
fn narrow(c: char) -> char {
    u32::from(c).checked_sub(0xfee0).and_then(char::from_u32).unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;
    use std::vec::Vec;

    fn sensitive(key: &str) -> bool {
        is_sensitive(key.chars(), &[])
    }

    /// Facts about the ancestor: the five names of its list, in every case (16.35: `apiKey` never matched).
    #[test]
    fn the_ancestors_names_are_sensitive_in_every_spelling() {
        for name in ["password", "token", "secret", "api_key", "apiKey"] {
            assert!(sensitive(name), "{name}");
            assert!(sensitive(&name.to_uppercase()), "{name}");
            assert!(sensitive(&name.to_lowercase()), "{name}");
        }
    }

    const SENSITIVE: &str = "passwd, pwd, PASSWORD, Password1, user_password, userPassword, userpassword, db.password, password_hash, \
        passphrase, ssh-passphrase, passcode, db_pass, smtpPass, pass, pw, user_pw, dbpwd, DB_PWD, htpasswd, \
        client_secret, clientSecret, CLIENT-SECRET, clientsecret, secrets, app_secrets, webhookSecret, \
        secret_id, access_token, accessToken, ACCESS_TOKEN, accesstoken, refreshToken, id_token, confirm_token, \
        xAuthToken, x-auth-token, csrf_token, bot-token, token2, tokens, api_tokens, accessTokens, device token, \
        TOKEN_VALUE, token_id, personalAccessToken, next_token, oauth2_token, cached_token, apikey, apiKeys, \
        APIKey, APIKEY, API_KEY, x-api-key, X-Api-Key, api key, api.key, my_api_key_2, openaiApiKey, APIKEYs, HTTPAuth, RSAOtp, \
        access_key, accessKey, aws_secret_access_key, AWS_ACCESS_KEY_ID, secretKey, secret-key, private_key, \
        privateKey, PRIVATE KEY, signing_key, encryptionKey, session_key, sessionKeys, master_key, ssh_key, \
        consumer_key, subscription-key, Ocp-Apim-Subscription-Key, x-functions-key, appKey, AccountKey, \
        client-key-data, SharedKey, psk, authorization, Authorization, proxy-authorization, Proxy_Authorization, \
        xAuthorization, authorization_header, authorizationCode, auth, basic_auth, auth_header, authHeader, auth \
        key, bearer, Bearer, bearer_value, credential, credentials, awsCredentials, \
        GOOGLE_APPLICATION_CREDENTIALS, creds, db_creds, cookie, Cookie, cookies, set-cookie, setCookie, \
        Set-Cookie2, session_cookie, session_id, sessionId, SESSION-ID, PHPSESSID, JSESSIONID, otp, otpCode, \
        totp, 2fa_code, mfaCode, pin_code, card_pin, cvv, CVV2, cvc, card_number, connection_string, \
        connectionString, ConnectionStrings, conn_str, dsn, SENTRY_DSN, jwt, jwts, xsrf, seed_phrase, \
        recovery_codes, licenseKey, login_pin, user_pass, userPin, verification_code, webhook_key, writeKey, keypass, hmac_key, pa\u{200b}ssword, \u{ff30}\u{ff21}\u{ff33}\u{ff33}word, pa\u{17f}\u{17f}word, \
        to\u{212a}en, pAsSwOrD, dbPASSWORD, p_a_s_s_w_o_r_d";

    #[test]
    fn names_of_secrets_are_sensitive() {
        for name in SENSITIVE.split(", ") {
            assert!(sensitive(name), "{name}");
        }
    }

    const HARMLESS: &str = ", _, 42, author, authors, co_author, authority, authorize, authorized, authored_by, tokenizer, tokenize, \
        tokenization, detokenize, secretary, secretariat, undersecretary, keyboard, key, keys, monkey, hockey, \
        turkey, passenger, passengers, passage, passive, bypass, compass, passed, pass_count, passing, passw, \
        max_tokens, maxTokens, maxtokens, tokens_used, tokensUsed, total_tokens, totalTokens, prompt_tokens, \
        completionTokens, n_tokens, num_tokens, max_new_tokens, MAX_OUTPUT_TOKENS, cache_read_input_tokens, \
        tokens_per_minute, token_count, tokenCount, token_limit, token_budget, token_type, token_endpoint, \
        tokenUrl, token_expires_at, eos_token, pad_token, max_token, authorization_endpoint, authorizationUrl, \
        public_key, publicKey, primary_key, foreign_key, sort_key, partition_key, keyword, key_name, pin, \
        gpio_pin, pin_number, pinned, shipping, spin, opinion, session, sessions, session_name, signature, \
        design_key, footprint, hotplug, cookbook, card, idle, path, file, max, url, user, username, email, \
        content, query, name, description, code, country_code, status_code, hash, id, request_id, encryption, \
        access, private, client, master, dnsname, credit, incredible, secrecy, sacred, \
        \u{43f}\u{430}\u{440}\u{43e}\u{43b}\u{44c}, r\u{e9}sum\u{e9}, \u{5bc6}\u{7801}, otpauth_uri_label, \
        authenticated, oauth_provider";

    #[test]
    fn harmless_names_are_not_sensitive() {
        for name in HARMLESS.split(", ") {
            assert!(!sensitive(name), "{name}");
        }
    }

    #[test]
    fn a_hosts_names_are_compared_word_by_word() {
        let extra = ["pin", "tenant-id", "\u{5bc6}\u{7801}", "", "_", "7"];
        let sensitive = |key: &str| is_sensitive(key.chars(), &extra);
        for name in
            "pin PIN user_pin pinValue tenantId TENANT_ID x-tenant-id tenantid \u{5bc6}\u{7801} db_\u{5bc6}\u{7801}"
                .split(' ')
        {
            assert!(sensitive(name), "{name}");
        }
        for name in "spin pinned tenant id tenantidentity 7 page_7 ".split(' ') {
            assert!(!sensitive(name), "{name}");
        }
    }

    /// A letter beyond ASCII is itself and no other.
    #[test]
    fn a_hosts_names_are_compared_by_all_bits_of_their_letters() {
        for letter in ['\u{5bc6}', '\u{1f00d}'] {
            let name = String::from_iter(['x', letter]);
            assert!(is_sensitive(name.chars(), &[&name]), "{name}");
            for bit in 0..17 {
                let Some(other) = char::from_u32(u32::from(letter) ^ 1 << bit) else { continue };
                assert!(!is_sensitive(['x', other].into_iter(), &[&name]), "{other}");
                assert!(!is_sensitive(['x'].into_iter(), &[&name]));
            }
        }
        let wide: String = "password".chars().filter_map(|c| char::from_u32(u32::from(c) + 0xfee0)).collect();
        assert!(sensitive(&wide) && sensitive(&wide.to_uppercase()), "{wide}");
    }

    #[test]
    fn f5_a_name_too_long_to_look_at_is_sensitive() {
        assert!(!sensitive(&"a".repeat(MAX_LETTERS)));
        assert!(sensitive(&"a".repeat(MAX_LETTERS + 1)));
        assert!(sensitive(&"\u{5bc6}".repeat(MAX_LETTERS)));
        assert!(sensitive(&"Ab".repeat(MAX_LETTERS)));
    }

    /// The tables are looked up by first letter and compared in folded form.
    #[test]
    fn each_pattern_stands_under_its_letter_and_matches_itself() {
        let mut all = Vec::new();
        for first in 0..=u8::MAX {
            let Patterns { anywhere, tail, words, last } = patterns(first);
            for pattern in [anywhere, tail, words, last].into_iter().flatten() {
                assert!(pattern.bytes().all(|byte| byte.is_ascii_lowercase()), "{pattern}");
                assert!(pattern.is_empty() || pattern.bytes().next() == Some(first), "{pattern}");
                assert!(pattern.is_empty() || sensitive(pattern), "{pattern}");
                assert!(pattern.is_empty() || !all.contains(pattern), "{pattern} stands twice");
                all.push(*pattern);
            }
        }
        assert!(all.contains(&"password"));
    }

    #[test]
    fn borders_never_hide_a_sensitive_word() {
        for name in "password apikey clientsecret authtoken authorization credentials".split(' ') {
            for border in ["_", "-", ".", " ", "/", ":", "\u{200b}", "3", "[", "\\"] {
                for at in 0..=name.len() {
                    let (left, right) = name.split_at(at);
                    let key: String = [left, border, right].concat();
                    assert!(sensitive(&key), "{key}");
                }
            }
        }
    }
}
