//! What looks like a secret wherever it stands: tokens of well-known services, JSON Web Tokens, private keys, and what
//! follows `Bearer` or `Basic`.

use super::spans::Span;
use super::units::{Cursor, Unit};
use super::values::{self, Place};

/// How tokens of well-known services begin, by the fewest characters that follow; those that begin with the same letter as a
/// harmless word would have to (`task-force` holds `sk-`), only where a word begins.
const TOKENS: [(u32, bool, &str); 6] = [
    (8, true, "rk_live_ rk_test_ sk_live_ sk_test_ whsec_"),
    (8, false, "xapp- xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs-"),
    (16, true, "hvs. lin_api_ sk- ya29."),
    (16, false, "AGE-SECRET-KEY- dckr_pat_ gho_ ghp_ ghr_ ghs_ ghu_ github_pat_ glpat- shpat_ shpss_ sq0csp-"),
    (24, true, "ATATT SG. gsk_ hf_ npm_ pypi- r8_ xai-"),
    (24, false, "AIza dop_v1_"),
];

/// The secret that begins at `start` because of its shape. `before` is the unit before it; `cut` tells that the text goes on
/// where the cursor ends, so that what reaches there may be longer than can be seen.
pub(super) fn secret(start: &Cursor<'_>, before: Option<Unit>, cut: bool) -> Option<Span> {
    let first = start.peek()?;
    let begins_word = !before.is_some_and(|unit| unit.c.is_ascii_alphanumeric() || unit.c == '_');
    let begins_token = begins_word && before.is_none_or(|unit| unit.c != '-');
    match first.c {
        '-' => return private_key(start),
        'b' | 'B' if begins_word => return credentials(start, cut),
        'e' => {
            if let Some(span) = web_token(start, cut) {
                return Some(span);
            }
        }
        'A' => {
            if let Some(span) = access_key(start, cut) {
                return Some(span);
            }
        }
        _ => {}
    }
    if !matches!(first.c, 'A' | 'S' | 'd' | 'g' | 'h' | 'l' | 'n' | 'p' | 'r' | 's' | 'w' | 'x' | 'y') {
        return None;
    }
    TOKENS.iter().filter(|(_, word, _)| begins_token || !word).find_map(|(least, _, prefixes)| {
        let (prefix, mut cursor) =
            prefixes.split(' ').filter(|prefix| prefix.starts_with(first.c)).find_map(|prefix| {
                let mut cursor = start.clone();
                let fits = prefix.chars().all(|c| cursor.next_if(|unit| unit.c == c).is_some());
                fits.then_some((prefix, cursor))
            })?;
        let mut behind = cursor.clone();
        let count = cursor.pass(is_token);
        // A short one with a digit in it is no word either: `sk-live-4711`.
        let digits =
            prefix == "sk-" && count >= 8 && behind.any(|unit| unit.c.is_ascii_digit() && unit.start < cursor.at());
        let whole = count >= *least || cut && cursor.peek().is_none();
        (digits || whole).then_some(Span { start: first.start, end: cursor.at() })
    })
}

fn is_token(unit: Unit) -> bool {
    unit.c.is_ascii_alphanumeric() || matches!(unit.c, '_' | '-' | '.')
}

/// `AKIA` or `ASIA` and 16 capitals or digits.
fn access_key(start: &Cursor<'_>, cut: bool) -> Option<Span> {
    let mut cursor = start.clone();
    let from = cursor.at();
    cursor.next_if(|unit| unit.c == 'A')?;
    cursor.next_if(|unit| matches!(unit.c, 'K' | 'S'))?;
    cursor.next_if(|unit| unit.c == 'I')?;
    cursor.next_if(|unit| unit.c == 'A')?;
    let count = cursor.pass(|unit| unit.c.is_ascii_uppercase() || unit.c.is_ascii_digit());
    let enough = count >= 16 || cut && cursor.peek().is_none();
    cursor.pass(is_token);
    enough.then_some(Span { start: from, end: cursor.at() })
}

/// `eyJ..` with two points: header, payload and signature of a JSON Web Token, the last of which may be missing.
fn web_token(start: &Cursor<'_>, cut: bool) -> Option<Span> {
    let mut cursor = start.clone();
    let from = cursor.at();
    cursor.next_if(|unit| unit.c == 'e')?;
    cursor.next_if(|unit| unit.c == 'y')?;
    cursor.next_if(|unit| unit.c == 'J')?;
    let header = cursor.pass(|unit| is_token(unit) && unit.c != '.');
    let point = cursor.next_if(|unit| unit.c == '.').is_some();
    let payload = cursor.pass(is_token);
    let enough = header >= 5 && point && payload >= 5 || cut && cursor.peek().is_none();
    enough.then_some(Span { start: from, end: cursor.at() })
}

/// A private key in PEM, from its first line through its last, or to the end when that is not there.
fn private_key(start: &Cursor<'_>) -> Option<Span> {
    const KIND: &str = "PRIVATE KEY";
    let mut cursor = start.clone();
    let from = cursor.at();
    if !cursor.pass_word("-----BEGIN ") {
        return None;
    }
    loop {
        if cursor.pass_word(KIND) {
            break;
        }
        cursor.next_if(|unit| unit.c.is_ascii_alphanumeric() || matches!(unit.c, ' ' | '_'))?;
    }
    loop {
        cursor.pass(|unit| unit.c != '-');
        if cursor.pass_word("-----END ") {
            cursor.pass(|unit| unit.c.is_ascii_alphanumeric() || matches!(unit.c, ' ' | '_'));
            cursor.pass(|unit| unit.c == '-');
            break;
        }
        if cursor.next().is_none() {
            break;
        }
    }
    Some(Span { start: from, end: cursor.at() })
}

/// Words that, after `Bearer`, are no token.
const NO_TOKENS: [&str; 24] = [
    "a",
    "and",
    "auth",
    "authentication",
    "authorization",
    "error",
    "expected",
    "for",
    "format",
    "header",
    "in",
    "invalid",
    "is",
    "missing",
    "must",
    "not",
    "of",
    "or",
    "realm",
    "required",
    "scheme",
    "token",
    "tokens",
    "type",
];

/// What follows `Bearer`, or follows `Basic` and looks like Base64.
fn credentials(start: &Cursor<'_>, cut: bool) -> Option<Span> {
    let mut cursor = start.clone();
    let bearer = cursor.pass_word("bearer");
    if !bearer && !cursor.pass_word("basic") {
        return None;
    }
    let space = cursor.next_if(|unit| unit.is_space() || unit.c == '+')?;
    cursor.pass(|unit| unit.is_space() && !unit.is_newline());
    let place = Place { separator: space, quote: None, xml: false, query: false, line: false };
    let span = values::bare(cursor.clone(), place)?;
    let found = if bearer {
        !NO_TOKENS.iter().any(|word| {
            let mut cursor = cursor.clone();
            cursor.pass_word(word) && !cursor.peek().is_some_and(|unit| unit.c.is_ascii_alphanumeric())
        })
    } else {
        is_base64(&mut cursor, cut)
    };
    found.then_some(span)
}

/// Whether Base64 stands at the cursor, and no word: a digit, a capital that is not the first, or padding.
fn is_base64(cursor: &mut Cursor<'_>, cut: bool) -> bool {
    let mut count = 0_u32;
    let mut telling = false;
    while let Some(unit) =
        cursor.next_if(|unit| unit.c.is_ascii_alphanumeric() || matches!(unit.c, '+' | '/' | '=' | '-' | '_'))
    {
        telling |= unit.c.is_ascii_digit() || unit.c == '=' || count > 0 && unit.c.is_ascii_uppercase();
        count = count.saturating_add(1);
    }
    count >= 6 && telling || cut && cursor.peek().is_none()
}
