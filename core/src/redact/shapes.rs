//! What looks like a secret wherever it stands: tokens of well-known services, JSON Web Tokens, private keys, and what
//! follows `Bearer` or `Basic`.

use super::spans::Span;
use super::units::{Cursor, Unit};
use super::values::{self, Place};

/// The fewest characters of a token of any kind, so that no shorter word has to be looked at.
pub(super) const SHORTEST: u32 = 10;

/// How tokens of well-known services begin, the fewest characters that follow, and whether they begin a word: `task-force`
/// holds `sk-`.
#[rustfmt::skip]
const fn tokens(first: char) -> &'static [(&'static str, u32, bool)] {
    match first {
        's' => &[
            ("sk-", 16, true), ("sk_live_", 8, true), ("sk_test_", 8, true), ("shpat_", 16, false), ("shpss_", 16, false),
            ("sq0csp-", 16, false),
        ],
        'g' => &[
            ("ghp_", 16, false), ("gho_", 16, false), ("ghu_", 16, false), ("ghs_", 16, false), ("ghr_", 16, false),
            ("github_pat_", 16, false), ("glpat-", 16, false), ("gsk_", 24, true),
        ],
        'x' => &[("xox", 10, false), ("xapp-", 8, false), ("xai-", 24, true)],
        'A' => &[("AIza", 24, false), ("AGE-SECRET-KEY-", 16, false), ("ATATT", 24, true)],
        'S' => &[("SG.", 24, true)],
        'd' => &[("dop_v1_", 24, false), ("dckr_pat_", 16, false)],
        'h' => &[("hf_", 24, true), ("hvs.", 16, true)],
        'l' => &[("lin_api_", 16, true)],
        'n' => &[("npm_", 24, true)],
        'p' => &[("pypi-", 24, true)],
        'r' => &[("rk_live_", 8, true), ("rk_test_", 8, true), ("r8_", 24, true)],
        'w' => &[("whsec_", 8, true)],
        'y' => &[("ya29.", 16, true)],
        _ => &[],
    }
}

/// The secret that begins at `start` because of its shape. `before` is the unit before it, `dotted` tells whether the word at
/// `start` holds a point. What reaches to where the text is cut may be longer than can be seen, and counts as long enough.
pub(super) fn secret(start: &Cursor<'_>, before: Option<Unit>, dotted: bool) -> Option<Span> {
    let first = start.peek()?;
    match first.c {
        '-' => return private_key(start),
        'e' if dotted => return web_token(start),
        'A' => {
            if let Some(span) = access_key(start) {
                return Some(span);
            }
        }
        _ => {}
    }
    let begins = before.is_none_or(|unit| !is_token(unit) || unit.c == '.');
    for (prefix, least, word) in tokens(first.c) {
        let mut cursor = start.clone();
        if *word && !begins || !cursor.pass_text(prefix, false) {
            continue;
        }
        let mut behind = cursor.clone();
        let count = cursor.pass(is_token);
        // `xoxb-..`, not `xoxo`.
        if *prefix == "xox" && !behind.clone().nth(1).is_some_and(|unit| matches!(unit.c, '-' | '.')) {
            continue;
        }
        // A short one with a digit in it is no word either: `sk-live-4711`.
        let short =
            *prefix == "sk-" && count >= 8 && behind.any(|unit| unit.c.is_ascii_digit() && unit.start < cursor.at());
        if count >= *least || short || cursor.is_cut() {
            return Some(Span { start: first.start, end: cursor.at() });
        }
    }
    None
}

fn is_token(unit: Unit) -> bool {
    unit.c.is_ascii_alphanumeric() || matches!(unit.c, '_' | '-' | '.')
}

/// `AKIA` or `ASIA` and 16 capitals or digits.
fn access_key(start: &Cursor<'_>) -> Option<Span> {
    let mut cursor = start.clone();
    let from = cursor.at();
    cursor.pass_char('A')?;
    cursor.next_if(|unit| matches!(unit.c, 'K' | 'S'))?;
    cursor.pass_char('I')?;
    cursor.pass_char('A')?;
    let count = cursor.pass(|unit| unit.c.is_ascii_uppercase() || unit.c.is_ascii_digit());
    let enough = count >= 16 || cursor.is_cut();
    cursor.pass(is_token);
    enough.then_some(Span { start: from, end: cursor.at() })
}

/// `eyJ..` with two points: header, payload and signature of a JSON Web Token, the last of which may be missing.
fn web_token(start: &Cursor<'_>) -> Option<Span> {
    let mut cursor = start.clone();
    let from = cursor.at();
    if !cursor.pass_text("eyJ", false) {
        return None;
    }
    let header = cursor.pass(|unit| is_token(unit) && unit.c != '.');
    let point = cursor.pass_char('.').is_some();
    let payload = cursor.pass(is_token);
    let enough = header >= 5 && point && payload >= 5 || cursor.is_cut();
    enough.then_some(Span { start: from, end: cursor.at() })
}

/// A private key in PEM, from its first line through its last, or to the end when that is not there.
fn private_key(start: &Cursor<'_>) -> Option<Span> {
    let mut cursor = start.clone();
    let from = cursor.at();
    if !cursor.pass_text("-----BEGIN ", false) {
        return None;
    }
    pass_label(&mut cursor)?;
    loop {
        cursor.pass(|unit| unit.c != '-');
        if cursor.pass_text("-----END ", false) {
            // A last line that breaks off is none: it could take the name of a secret behind it along.
            if pass_label(&mut cursor).is_some() && cursor.pass_text("-----", false) {
                break;
            }
        } else if cursor.next().is_none() {
            break;
        }
    }
    Some(Span { start: from, end: cursor.at() })
}

/// Passes over the kind of a key: `EC PRIVATE KEY`, `PGP PRIVATE KEY BLOCK`.
fn pass_label(cursor: &mut Cursor<'_>) -> Option<()> {
    // To the end of a word: `PRIVATE KEYS` is no kind.
    while !cursor.pass_text("PRIVATE KEY", false) || cursor.is(|unit| unit.c.is_ascii_alphanumeric()) {
        cursor.next_if(|unit| unit.c.is_ascii_alphanumeric() || matches!(unit.c, ' ' | '_'))?;
    }
    cursor.pass_text(" BLOCK", false);
    Some(())
}

/// Words that, after `Bearer`, are no token.
#[rustfmt::skip]
const NO_TOKENS: &[&str] = &[
    "a", "and", "auth", "authentication", "authorization", "error", "expected", "for", "format", "header", "in", "invalid",
    "is", "missing", "must", "not", "of", "or", "required", "scheme", "token", "tokens", "type",
];

/// What follows `Bearer`, or follows `Basic` and looks like Base64.
pub(super) fn credentials(start: &Cursor<'_>) -> Option<Span> {
    let mut cursor = start.clone();
    let bearer = cursor.pass_text("bearer", true);
    if !bearer && !cursor.pass_text("basic", true) {
        return None;
    }
    let space = cursor.next_if(|unit| unit.is_space() || unit.c == '+')?;
    cursor.pass(Unit::is_blank);
    let place = Place { separator: space, quote: None, xml: false, query: false, line: false };
    let span = values::bare(cursor.clone(), place)?;
    let found = if bearer { !cursor.is_word_of(NO_TOKENS) } else { is_base64(cursor) };
    found.then_some(span)
}

/// Whether Base64 stands at the cursor, and no word: a digit, a capital that is not the first, or padding.
fn is_base64(mut cursor: Cursor<'_>) -> bool {
    let mut count = 0_u32;
    let mut telling = false;
    while let Some(unit) =
        cursor.next_if(|unit| unit.c.is_ascii_alphanumeric() || matches!(unit.c, '+' | '/' | '=' | '-' | '_'))
    {
        telling |= unit.c.is_ascii_digit() || unit.c == '=' || count > 0 && unit.c.is_ascii_uppercase();
        count = count.saturating_add(1);
    }
    count >= 6 && telling || cursor.is_cut()
}
