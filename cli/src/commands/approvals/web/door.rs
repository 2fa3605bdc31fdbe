//! Who comes in: the host and the page that a request is from, the code that opens the door once, and what a session knows.

use callgate_core::digest::Digest;
use callgate_core::entropy::EntropyError;
use callgate_std::context::random_request_id;
use callgate_std::entropy::OsEntropy;

/// How many wrong codes are taken before no code is.
const ATTEMPTS: u8 = 10;

/// The headers of a request that say where it is from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct From<'r> {
    pub(super) host: Option<&'r str>,
    pub(super) origin: Option<&'r str>,
    /// `Sec-Fetch-Site`, which pages cannot set.
    pub(super) site: Option<&'r str>,
}

impl From<'_> {
    /// Whether the request was sent to this server by its name, and by a page of its own or by nobody's page: before anything else of it is
    /// looked at (invariant T1). `changes` is whether it is to change something; then a browser has to say which page sent it.
    pub(super) fn is_ours(self, port: u16, changes: bool) -> bool {
        let ours = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let Some(host) = self.host.filter(|host| ours.iter().any(|ours| ours == host)) else { return false };
        let own_page = |origin: &str| origin.strip_prefix("http://") == Some(host);
        match self.origin {
            Some(origin) if !own_page(origin) => return false,
            None if changes => return false,
            _ => {}
        }
        match self.site {
            None | Some("same-origin") => true,
            // Typed, or followed from a terminal.
            Some("none") => !changes,
            Some(_) => false,
        }
    }
}

/// Lets one browser in.
pub(super) struct Door {
    /// The hash of the code, until it was used.
    code: Option<Digest>,
    attempts: u8,
    session: Option<Session>,
}

/// A browser that was let in.
pub(super) struct Session {
    cookie: Digest,
    /// What every form of it holds, and no other page can read.
    pub(super) form: String,
    /// What became of the last form, and whether it went well.
    pub(super) message: Option<(String, bool)>,
}

impl Door {
    /// A door, and the code that opens it.
    ///
    /// # Errors
    /// The source of randomness failed.
    pub(super) fn new() -> Result<(Self, String), EntropyError> {
        let code = secret()?;
        Ok((Self { code: Some(hash(&code)), attempts: 0, session: None }, code))
    }

    /// Opens the door with a code and gives the cookie of the session. The code works once.
    pub(super) fn open(&mut self, code: &str) -> Option<String> {
        if self.attempts >= ATTEMPTS {
            return None;
        }
        self.attempts = self.attempts.saturating_add(1);
        if self.code != Some(hash(code.trim())) {
            return None;
        }
        let (cookie, form) = (secret().ok()?, secret().ok()?);
        self.code = None;
        self.session = Some(Session { cookie: hash(&cookie), form, message: None });
        Some(cookie)
    }

    /// The session of this cookie.
    pub(super) fn session(&mut self, cookie: Option<&str>) -> Option<&mut Session> {
        let cookie = hash(cookie?);
        self.session.as_mut().filter(|session| session.cookie == cookie)
    }
}

impl Session {
    /// Whether a form is one of this session's.
    pub(super) fn sent(&self, form: &str) -> bool {
        hash(&self.form) == hash(form)
    }
}

fn secret() -> Result<String, EntropyError> {
    random_request_id(&OsEntropy::default())
}

/// Secrets are compared by their hashes: how long that takes says nothing of them.
fn hash(secret: &str) -> Digest {
    Digest::of_bytes(secret.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: From<'static> =
        From { host: Some("127.0.0.1:7000"), origin: Some("http://127.0.0.1:7000"), site: Some("same-origin") };

    // T1: a foreign host or a foreign page alone is enough.
    #[test]
    fn t1_each_foreign_part_alone_refuses() {
        assert!(OURS.is_ours(7000, true) && OURS.is_ours(7000, false));
        let local = From { host: Some("localhost:7000"), origin: Some("http://localhost:7000"), ..OURS };
        assert!(local.is_ours(7000, true));
        for host in
            [None, Some(""), Some("127.0.0.1"), Some("127.0.0.1:7001"), Some("evil.test:7000"), Some("LOCALHOST:7000")]
        {
            let from = From { host, ..OURS };
            assert!(!from.is_ours(7000, false) && !from.is_ours(7000, true), "{host:?}");
        }
        for origin in
            ["null", "http://evil.test", "https://127.0.0.1:7000", "http://127.0.0.1:7001", "http://localhost:7000", ""]
        {
            let from = From { origin: Some(origin), ..OURS };
            assert!(!from.is_ours(7000, false) && !from.is_ours(7000, true), "{origin}");
        }
        for site in ["cross-site", "same-site", "x"] {
            let from = From { site: Some(site), ..OURS };
            assert!(!from.is_ours(7000, false) && !from.is_ours(7000, true), "{site}");
        }
        // A page is looked at without an origin; a form is not sent without one.
        let plain = From { origin: None, site: None, ..OURS };
        assert!(plain.is_ours(7000, false) && !plain.is_ours(7000, true));
        let typed = From { origin: None, site: Some("none"), ..OURS };
        assert!(typed.is_ours(7000, false) && !typed.is_ours(7000, true));
    }

    #[test]
    fn a_code_opens_the_door_once() {
        let (mut door, code) = Door::new().unwrap();
        assert!(door.session(Some("")).is_none() && door.session(None).is_none());
        assert!(door.open("").is_none() && door.open("0").is_none());
        let cookie = door.open(&format!(" {code}\n")).unwrap();
        assert_ne!(cookie, code);
        assert!(door.open(&code).is_none());
        assert!(door.session(Some(&code)).is_none());
        let session = door.session(Some(&cookie)).unwrap();
        let form = session.form.clone();
        assert!(session.sent(&form) && !session.sent("") && !session.sent(&cookie));
    }

    #[test]
    fn wrong_codes_close_the_door() {
        let (mut door, code) = Door::new().unwrap();
        for _ in 0..10 {
            assert!(door.open("guess").is_none());
        }
        assert!(door.open(&code).is_none());
    }
}
