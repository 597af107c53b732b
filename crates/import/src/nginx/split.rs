//! `split_clients`: a variable with several values, each for a share of the clients.

use super::variables::{Piece, pieces};
use crate::model::Action;
use crate::note::Notes;
use weir_syntax::nginx::Directive;

/// A `split_clients` block.
#[derive(Debug)]
pub(super) struct Split<'a> {
    pub directive: &'a Directive,
    /// The variable, without its `$`.
    pub variable: &'a str,
    /// The values with their shares in hundredths of a percent.
    shares: Vec<(&'a str, u64)>,
    /// Whether a `proxy_pass` uses the variable.
    pub is_used: bool,
}

/// An address, and its share of the clients.
pub(super) type Share = (String, u64);

/// The blocks of `http`, except invalid ones.
pub(super) fn splits(block: &[Directive]) -> Vec<Split<'_>> {
    block.iter().filter(|directive| directive.is("split_clients")).filter_map(split).collect()
}

fn split(directive: &Directive) -> Option<Split<'_>> {
    let variable = directive.args.get(1)?.strip_prefix('$')?;
    let (mut shares, mut rest) = (Vec::new(), ALL);
    for entry in directive.block() {
        let share = if entry.is("*") { rest } else { hundredths(&entry.name)? };
        rest = rest.checked_sub(share)?;
        shares.push((entry.arg(), share));
    }
    // nginx gives the remaining clients an empty value.
    shares.push(("", rest));
    shares.retain(|(_, share)| *share > 0);
    Some(Split { directive, variable, shares, is_used: false })
}

/// The share of all clients, in hundredths of a percent.
const ALL: u64 = 10_000;

/// Parses a percentage with up to two decimals.
fn hundredths(text: &str) -> Option<u64> {
    let (whole, decimals) = text.strip_suffix('%')?.split_once('.').unwrap_or((text.strip_suffix('%')?, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() > 3 || decimals.len() > 2 || !is_digits(whole) || !is_digits(decimals) {
        return None;
    }
    format!("{whole}{decimals:0<2}").parse().ok()
}

impl Split<'_> {
    /// Whether a text contains this variable and no other.
    pub(super) fn decides(&self, text: &str) -> bool {
        let pieces = pieces(text);
        let mut variables = pieces.iter().filter(|piece| matches!(piece, Piece::Variable(_))).peekable();
        let is_own = |piece: &Piece| *piece == Piece::Variable(self.variable.to_owned());
        variables.peek().is_some() && variables.all(is_own)
    }

    /// Remarks that Weir divides requests by weight alone.
    pub(super) fn remark(&self, action: &Action, notes: &mut Notes) {
        let Action::Split { sticky, .. } = action else { return };
        let then = match sticky {
            Some(cookie) => format!(
                "a cookie `{cookie}` keeps a client on its share; without `sticky`, Weir divides each request anew"
            ),
            None => "`sticky` would keep a client on its share".to_owned(),
        };
        notes.remark(format!(
            "${}: Weir divides requests by weight, not by a hash of {}; {then}",
            self.variable,
            self.directive.arg()
        ));
    }

    /// The text with each of the variable's values, and the shares in their lowest terms.
    pub(super) fn values(&self, text: &str) -> Vec<Share> {
        let divisor = self.shares.iter().fold(ALL, |divisor, (_, share)| gcd(divisor, *share));
        let with = |value: &str| -> String {
            let piece = |piece| match piece {
                Piece::Text(text) => text,
                Piece::Variable(name) if name == self.variable => value.to_owned(),
                Piece::Variable(name) => format!("${{{name}}}"),
            };
            pieces(text).into_iter().map(piece).collect()
        };
        self.shares.iter().map(|(value, share)| (with(value), share / divisor)).collect()
    }

    /// The name of a cookie that keeps a client on its share, if nginx selects the share by values that a client sends
    /// with every request.
    pub(super) fn sticky(&self) -> Option<String> {
        const OF_CLIENTS: [&str; 8] = [
            "binary_remote_addr",
            "http_authorization",
            "http_user_agent",
            "http_x_forwarded_for",
            "proxy_add_x_forwarded_for",
            "proxy_protocol_addr",
            "remote_addr",
            "remote_user",
        ];
        let mut names = pieces(self.directive.arg())
            .into_iter()
            .filter_map(|piece| match piece {
                Piece::Variable(name) => Some(name),
                Piece::Text(_) => None,
            })
            .peekable();
        names.peek()?;
        let is_of_clients = |name: String| {
            OF_CLIENTS.contains(&name.as_str())
                || name.starts_with("cookie_")
                || name.starts_with("ssl_client_")
        };
        names.all(is_of_clients).then(|| {
            let own = format!("cookie_{}", self.variable);
            match self.directive.arg().contains(&own) {
                // The application itself uses a cookie of this name.
                true => format!("{}-share", self.variable),
                false => self.variable.to_owned(),
            }
        })
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages() {
        for (text, share) in [
            ("0.5%", Some(50)),
            ("33.33%", Some(3333)),
            ("100%", Some(10_000)),
            ("5%", Some(500)),
            (".5%", Some(50)),
            ("0.125%", None),
            ("5", None),
            ("+5%", None),
            ("%", Some(0)),
            ("x%", None),
        ] {
            assert_eq!(hundredths(text), share, "{text}");
        }
    }
}
