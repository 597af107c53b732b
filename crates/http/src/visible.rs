//! Printing a peer's text: a terminal acts on some characters and hides others.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a terminal may act on this character (C0, DEL and C1 controls), or show the surrounding text in
/// another order or on another line (bidirectional formatting, line and paragraph separators).
#[must_use]
pub fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Escapes hidden characters, as `\u{202e}`, except line ends and tabs.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_hidden = |char| is_hidden(char) && char != '\n' && char != '\t';
    if !text.contains(is_hidden) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        match is_hidden(char) {
            // Writing to a string cannot fail.
            true => drop(write!(out, "\\u{{{:x}}}", u32::from(char))),
            false => out.push(char),
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_terminals_is_hidden() {
        let bidi =
            "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
        let controls = ('\0'..' ').chain('\u{7f}'..='\u{9f}');
        for char in bidi.chars().chain(controls).chain(['\u{2028}', '\u{2029}']) {
            assert!(is_hidden(char), "{char:?}");
        }
        for char in (' '..='~')
            .chain("\u{a0}\u{ad}üשלום\u{200b}\u{200d}\u{2010}\u{202f}\u{2065}\u{206a}€😀\u{fffd}".chars())
        {
            assert!(!is_hidden(char), "{char:?}");
        }
    }

    #[test]
    fn hidden_characters_are_shown() {
        for (text, shown) in [
            ("plain, ünïcode", "plain, ünïcode"),
            ("two\n\tlines", "two\n\tlines"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("gpj.\u{202e}exe", "gpj.\\u{202e}exe"),
            ("\r", "\\u{d}"),
            ("", ""),
        ] {
            assert_eq!(visible(text), shown);
        }
    }
}
