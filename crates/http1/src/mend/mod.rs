//! Heads that break a rule which may be let pass: they are written anew without what breaks it, and what is written is
//! held to all rules. So nothing that is not strict goes further, whatever the senders send.

mod answers;
mod requests;

use crate::{HeadError, Limits, Parse, RequestError, RequestHead, ResponseError, ResponseHead, Rule, Rules};

/// A head that was mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mended {
    /// Bytes that it had before, its empty line included; the body starts there.
    pub length: usize,
    /// The rules that it broke, at least one.
    pub broken: Rules,
}

impl RequestHead {
    /// Parses a head that [`RequestHead::parse`] refuses for `error`, from the start of `buf`, with `rules` let pass. It is
    /// written to `out`, in place of what that holds, without what breaks them; the spans are positions there. `None`: it is
    /// not complete.
    ///
    /// # Errors
    /// `error`, if none of the rules is about that; else the next violated one. That is reported at the latest when its line
    /// is complete.
    #[cold]
    pub fn mend(
        &mut self,
        buf: &[u8],
        limits: &Limits,
        rules: Rules,
        error: RequestError,
        out: &mut Vec<u8>,
    ) -> Result<Option<Mended>, RequestError> {
        if !rules.have_one_of(Rule::behind_request(error)) {
            return Err(error);
        }
        let head = limits.window(buf);
        let written = requests::write(head, rules, error, out)?;
        let parsed = match written.broken.has(Rule::EmptyHost) {
            true => self.parse_mended(out, limits)?,
            false => self.parse(out, limits)?,
        };
        written.outcome(parsed, head, limits, RequestError::RequestLineTooLong)
    }

    /// The rule that a head which is refused for `error` breaks, if letting it pass, beside `rules` and perhaps others, would
    /// let the head pass.
    #[cold]
    #[must_use]
    pub fn would_pass(buf: &[u8], limits: &Limits, rules: Rules, error: RequestError) -> Option<Rule> {
        let mend = |rules| Self::default().mend(buf, limits, rules, error, &mut Vec::new());
        culprit(Rule::behind_request(error), Rule::OF_REQUESTS.into_iter().collect(), rules, error, mend)
    }
}

impl ResponseHead {
    /// As [`RequestHead::mend`].
    ///
    /// # Errors
    /// As [`RequestHead::mend`].
    #[cold]
    pub fn mend(
        &mut self,
        buf: &[u8],
        limits: &Limits,
        rules: Rules,
        error: ResponseError,
        out: &mut Vec<u8>,
    ) -> Result<Option<Mended>, ResponseError> {
        if !rules.have_one_of(Rule::behind_response(error)) {
            return Err(error);
        }
        let head = limits.window(buf);
        let written = answers::write(head, rules, out);
        written.outcome(self.parse(out, limits)?, head, limits, ResponseError::StatusLineTooLong)
    }

    /// As [`RequestHead::would_pass`].
    #[cold]
    #[must_use]
    pub fn would_pass(buf: &[u8], limits: &Limits, rules: Rules, error: ResponseError) -> Option<Rule> {
        let mend = |rules| Self::default().mend(buf, limits, rules, error, &mut Vec::new());
        culprit(Rule::behind_response(error), Rule::OF_ANSWERS.into_iter().collect(), rules, error, mend)
    }
}

/// What was written of a head.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    /// Bytes that were read: up to the empty line, or all complete lines.
    read: usize,
    /// Complete lines among them.
    lines: usize,
    broken: Rules,
}

impl Written {
    /// What came of it, as what was written is parsed. Errors: the line that is not complete, or the head, is too long;
    /// `first_too_long` if that line is the first one.
    fn outcome<E: From<HeadError>>(
        self,
        parsed: Parse,
        head: &[u8],
        limits: &Limits,
        first_too_long: E,
    ) -> Result<Option<Mended>, E> {
        if let Parse::Complete(_) = parsed {
            return Ok(Some(Mended { length: self.read, broken: self.broken }));
        }
        // There is no room for another byte.
        let (line_is_full, head_is_full) =
            (head.len() - self.read >= limits.line_bytes, limits.head_is_full(head));
        match (line_is_full, head_is_full) {
            (false, false) => Ok(None),
            _ if self.lines == 0 => Err(first_too_long),
            (true, _) => Err(HeadError::FieldLineTooLong.into()),
            (false, true) => Err(HeadError::HeadTooLong.into()),
        }
    }
}

/// Which of the suspected rules, beside those that are let pass, a head that is refused for `error` breaks, if it passes at
/// all under `every` rule.
fn culprit<E: Copy + PartialEq>(
    suspects: &[Rule],
    every: Rules,
    rules: Rules,
    error: E,
    mend: impl Fn(Rules) -> Result<Option<Mended>, E>,
) -> Option<Rule> {
    if suspects.is_empty() || mend(every).is_err() {
        return None;
    }
    suspects.iter().copied().find(|rule| mend(rules.with(*rule)) != Err(error))
}

/// The complete lines of a head from `at` on, up to the empty one, each with its LF.
fn lines(head: &[u8], mut at: usize) -> impl Iterator<Item = &[u8]> {
    let mut is_over = false;
    std::iter::from_fn(move || {
        let length = head[at..].iter().position(|byte| *byte == b'\n').filter(|_| !is_over)? + 1;
        let line = &head[at..at + length];
        at += length;
        is_over = matches!(line, b"\n" | b"\r\n");
        Some(line)
    })
}
