//! Heads that break a rule which may be let pass: they are written anew without what breaks it, and what is written is
//! held to all rules. So nothing that is not strict goes further, whatever the senders send.

mod answers;
mod requests;

use crate::{Limits, Parse, RequestError, RequestHead, ResponseError, ResponseHead, Rule, Rules};

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
        match parsed {
            Parse::Complete(_) => Ok(written.mended()),
            Parse::Partial if written.lines == 0 && written.is_too_long(head, limits) => {
                Err(RequestError::RequestLineTooLong)
            }
            Parse::Partial => Ok(written.fits(head, limits).map(|()| None)?),
        }
    }

    /// The rule that a head which is refused for `error` breaks, if letting it pass, beside `rules` and perhaps others, would
    /// let the head pass.
    #[cold]
    #[must_use]
    pub fn would_pass(buf: &[u8], limits: &Limits, rules: Rules, error: RequestError) -> Option<Rule> {
        let passes = |rules| Self::default().mend(buf, limits, rules, error, &mut Vec::new());
        let suspects = Rule::behind_request(error);
        if suspects.is_empty() || passes(Rule::OF_REQUESTS.into_iter().collect()).is_err() {
            return None;
        }
        suspects.iter().copied().find(|rule| passes(rules.with(*rule)) != Err(error))
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
        match self.parse(out, limits)? {
            Parse::Complete(_) => Ok(written.mended()),
            Parse::Partial if written.lines == 0 && written.is_too_long(head, limits) => {
                Err(ResponseError::StatusLineTooLong)
            }
            Parse::Partial => Ok(written.fits(head, limits).map(|()| None)?),
        }
    }

    /// As [`RequestHead::would_pass`].
    #[cold]
    #[must_use]
    pub fn would_pass(buf: &[u8], limits: &Limits, rules: Rules, error: ResponseError) -> Option<Rule> {
        let passes = |rules| Self::default().mend(buf, limits, rules, error, &mut Vec::new());
        let suspects = Rule::behind_response(error);
        if suspects.is_empty() || passes(Rule::OF_ANSWERS.into_iter().collect()).is_err() {
            return None;
        }
        suspects.iter().copied().find(|rule| passes(rules.with(*rule)) != Err(error))
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
    fn mended(self) -> Option<Mended> {
        Some(Mended { length: self.read, broken: self.broken })
    }

    /// Whether the line that is not complete has no room for another byte.
    fn is_too_long(self, head: &[u8], limits: &Limits) -> bool {
        head.len() - self.read >= limits.line_bytes || limits.head_is_full(head)
    }

    /// Errors: the line that is not complete, a field's, is too long, or the head is.
    fn fits(self, head: &[u8], limits: &Limits) -> Result<(), crate::HeadError> {
        if head.len() - self.read >= limits.line_bytes {
            return Err(crate::HeadError::FieldLineTooLong);
        }
        if limits.head_is_full(head) {
            return Err(crate::HeadError::HeadTooLong);
        }
        Ok(())
    }
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
