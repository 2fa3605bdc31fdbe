//! The coarse way to look for secrets in a text: it only tells whether there may be one. A fraction of the code of the fine
//! way, for firmware.

use core::fmt;

use super::known::Needle;
use super::names::Words;
use super::text::{Search, Way, write_without};
use super::units::is_name;
use super::{REPLACEMENT, Redaction};

/// The most secrets of a call that are looked for in its texts. With more, whole texts are replaced: a stack is short on a device.
const MAX_KNOWN: usize = 4;

/// The coarse way.
pub(super) const COARSE: Way = Way { search, room: |lend| lend(&mut [Needle::NONE; MAX_KNOWN]) };

fn search(search: Search<'_>, redaction: &Redaction<'_>, out: Option<&mut dyn fmt::Write>) -> Result<bool, fmt::Error> {
    let harmless = is_harmless(search, redaction);
    match out {
        Some(out) if harmless => write_without(search, &[], out)?,
        Some(out) => out.write_str(REPLACEMENT)?,
        None => {}
    }
    Ok(!harmless)
}

/// The fewest characters of a word that is taken for a token when it holds a digit or a later capital.
const TOKEN: u32 = 16;
/// The same for a word in which the beginning of a token stands that can be shorter: `sk-`, `xox`, `xapp-`, `whsec_`, `eyJ`.
const SHORT_TOKEN: u32 = 11;

/// Whether nothing is to be replaced in the text; else it may hold a secret. It may when
/// - one of the call's own secrets stands in it, as it is;
/// - a word, or two or three in a row, would be a sensitive name, or is `Basic`; or `//` is followed by `@` in one word;
/// - a word of 16 or more characters (of 11, where it holds the beginning of a token that can be short) holds a digit, or a capital
///   that is not its first character;
/// - five dashes stand in a row, as before a private key;
/// - something in it is encoded (`%41`, `\u0041`, `\x41`), so that words can't be told, or the text is cut within a word.
#[inline(never)]
fn is_harmless(search: Search<'_>, redaction: &Redaction<'_>) -> bool {
    let Search { text, visible, cut, key, known } = search;
    if known.occurs_in(text) {
        return false;
    }
    let mut chars = text.chars();
    let mut words = Reader::new();
    let mut at = 0_u32;
    let mut slashes = false;
    let mut dashes = 0_u8;
    let mut before = (' ', ' ');
    loop {
        let c = chars.next().filter(|_| at < visible);
        // `\n`, `\r` and `\t` are spaces for the fine way: what follows them begins a word.
        let space = before.1 == '\\' && matches!(c, Some('n' | 'r' | 't'));
        if !words.read(if space { Some(' ') } else { c }, (!key).then_some(redaction)) {
            return false;
        }
        let Some(c) = c else { break };
        let Some(end) = u32::try_from(c.len_utf8()).ok().and_then(|len| at.checked_add(len)) else { return false };
        at = end;
        let telling = match (before, c) {
            ((_, '/'), '/') => {
                slashes = true;
                false
            }
            (_, '@') => slashes,
            (('%', first), second) => first.is_ascii_hexdigit() && second.is_ascii_hexdigit(),
            (('\\', 'u' | 'x'), digit) => digit.is_ascii_hexdigit(),
            _ => false,
        };
        // How a private key begins, whatever its words have become.
        dashes = if c == '-' { dashes.saturating_add(1) } else { 0 };
        if telling || dashes >= 5 || cut && at >= visible && !c.is_ascii_whitespace() {
            return false;
        }
        slashes &= !c.is_ascii_whitespace();
        before = (before.1, c);
    }
    true
}

/// Reads a text word by word.
struct Reader {
    /// The word that is being read.
    word: Words,
    /// The same, with the word before it.
    both: Words,
    /// The same, with the two words before it: `pre shared key`.
    three: Words,
    length: u32,
    /// It holds a digit, or a capital that is not its first character.
    odd: bool,
    /// It holds the beginning of a token that can be short.
    short: bool,
    /// Its last two characters.
    last: (char, char),
}

impl Reader {
    const fn new() -> Self {
        Self {
            word: Words::new(),
            both: Words::new(),
            three: Words::new(),
            length: 0,
            odd: false,
            short: false,
            last: (' ', ' '),
        }
    }

    /// Takes the next character, or the end of the text. Whether all is harmless so far, by the names in force if any.
    fn read(&mut self, c: Option<char>, redaction: Option<&Redaction<'_>>) -> bool {
        if let Some(c) = c.filter(|c| is_name(*c)) {
            self.word.push(c);
            self.both.push(c);
            self.three.push(c);
            self.odd |= c.is_ascii_digit() || self.length > 0 && c.is_ascii_uppercase();
            let begun = (self.last.0, self.last.1, c);
            self.short |= matches!(
                begun,
                ('s', 'k', '-') | ('x', 'o', 'x') | ('x', 'a', 'p') | ('w', 'h', 's') | ('e', 'y', 'J')
            );
            self.last = (self.last.1, c);
            self.length = self.length.saturating_add(1);
            return true;
        }
        if self.length == 0 {
            return true;
        }
        let name = redaction.is_some_and(|redaction| {
            [&self.both, &self.three].iter().any(|words| words.are_sensitive(redaction.names))
                || self.both.hold("basic")
        });
        let token = self.length >= if self.short { SHORT_TOKEN } else { TOKEN } && self.odd;
        self.three = core::mem::replace(&mut self.both, core::mem::replace(&mut self.word, Words::new()));
        self.both.push(' ');
        self.three.push(' ');
        self.length = 0;
        (self.odd, self.short, self.last) = (false, false, (' ', ' '));
        !name && !token
    }
}
