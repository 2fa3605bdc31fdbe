//! User names and passwords in URLs.

use super::spans::Span;
use super::units::{Cursor, Unit};

/// The user information of the URL whose two slashes begin at `start`: what stands between them and the last `@` of the
/// authority (RFC 3986 section 3.2.1). `before` is the unit before the slashes. All of it, because a lone user name can be a token.
///
/// `searched` is how far such a search met no `@` already, so that many slashes in one long word are not searched again
/// and again.
pub(super) fn user_info(start: &Cursor<'_>, before: Option<Unit>, searched: &mut u32) -> Option<Span> {
    let mut cursor = start.clone();
    cursor.pass_char('/')?;
    let slash = cursor.pass_char('/')?;
    if slash.end < *searched {
        return None;
    }
    let scheme = before.is_some_and(|unit| unit.c == ':');
    let from = cursor.at();
    let mut found = None;
    let mut at_sign = false;
    let mut colon = None;
    let mut port = true;
    let mut brackets = false;
    // Past the authority's end, which a password with a slash in it only seems to be.
    let mut beyond = false;
    loop {
        let Some(unit) = cursor.next() else {
            // The end of what is visible, and the `@` may come behind it.
            if cursor.is_cut() && !beyond {
                found = Some(cursor.at());
            }
            break;
        };
        if unit.is_space() || unit.is_quote() || matches!(unit.c, '<' | '>') {
            break;
        }
        let literal = unit.depth <= slash.depth;
        at_sign |= unit.c == '@';
        match unit.c {
            '@' if literal && (scheme || colon.is_some()) => found = Some(unit.start),
            '/' | '?' | '#' | '\\' if literal => {
                // `host:8080/` is a host; `user:pa/ss@host` is not.
                if found.is_some() || colon.is_none() || port {
                    break;
                }
                beyond = true;
            }
            '[' => brackets = true,
            ']' => brackets = false,
            ':' if !brackets && literal => colon = Some(unit),
            c if colon.is_some() => port &= c.is_ascii_digit(),
            _ => {}
        }
    }
    if !at_sign {
        *searched = cursor.at();
    }
    found.map(|end| Span { start: from, end })
}
