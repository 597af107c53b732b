//! Repairs heads that violate a relaxed rule: rewrites them without the violation, then checks the result with the
//! strict parser. So the gateway forwards only strict heads, whatever it receives.

mod requests;
mod responses;

use crate::{HeadError, Limits, Parse, RequestError, RequestHead, ResponseError, ResponseHead, Rule, Rules};

/// The result of a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The length of the original head with its empty line; the body starts after it.
    pub length: usize,
    /// The violated rules, at least one.
    pub broken: Rules,
}

impl RequestHead {
    /// Parses the head at the start of `buf`, which [`RequestHead::parse`] rejected with `error`, with `rules` relaxed.
    /// Replaces the contents of `out` with the repaired head; the spans refer to `out`. `None`: the head is not
    /// complete.
    ///
    /// # Errors
    /// `error`, if relaxing `rules` does not cure it; else the next violated rule, at the latest when its line is
    /// complete.
    #[cold]
    pub fn repair(
        &mut self,
        buf: &[u8],
        limits: &Limits,
        rules: Rules,
        error: RequestError,
        out: &mut Vec<u8>,
    ) -> Result<Option<Repaired>, RequestError> {
        if !rules.have_one_of(Rule::behind_request(error)) {
            return Err(error);
        }
        let head = limits.window(buf);
        let written = requests::write(head, rules, error, out)?;
        let parsed = match written.broken.has(Rule::EmptyHost) {
            true => self.parse_repaired(out, limits)?,
            false => self.parse(out, limits)?,
        };
        written.outcome(parsed, head, limits, RequestError::RequestLineTooLong)
    }

    /// A rule whose relaxation, in addition to `rules` and perhaps together with other rules, makes the parser accept
    /// this head, which it rejected with `error`; `None` if there is no such rule.
    #[cold]
    #[must_use]
    pub fn would_pass(buf: &[u8], limits: &Limits, rules: Rules, error: RequestError) -> Option<Rule> {
        let repair = |rules| Self::default().repair(buf, limits, rules, error, &mut Vec::new());
        culprit(Rule::behind_request(error), Rule::OF_REQUESTS.into_iter().collect(), rules, error, repair)
    }
}

impl ResponseHead {
    /// As [`RequestHead::repair`].
    ///
    /// # Errors
    /// Those of [`RequestHead::repair`].
    #[cold]
    pub fn repair(
        &mut self,
        buf: &[u8],
        limits: &Limits,
        rules: Rules,
        error: ResponseError,
        out: &mut Vec<u8>,
    ) -> Result<Option<Repaired>, ResponseError> {
        if !rules.have_one_of(Rule::behind_response(error)) {
            return Err(error);
        }
        let head = limits.window(buf);
        let written = responses::write(head, rules, out);
        written.outcome(self.parse(out, limits)?, head, limits, ResponseError::StatusLineTooLong)
    }

    /// As [`RequestHead::would_pass`].
    #[cold]
    #[must_use]
    pub fn would_pass(buf: &[u8], limits: &Limits, rules: Rules, error: ResponseError) -> Option<Rule> {
        let repair = |rules| Self::default().repair(buf, limits, rules, error, &mut Vec::new());
        culprit(Rule::behind_response(error), Rule::OF_RESPONSES.into_iter().collect(), rules, error, repair)
    }
}

/// The part of a head that a repair has read and rewritten.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    /// Input bytes up to the empty line, or of all complete lines.
    read: usize,
    /// The number of complete input lines.
    lines: usize,
    broken: Rules,
}

impl Written {
    /// Turns the strict parser's result for the output into the result of the repair; `None` if the head is not
    /// complete. Fails if the head or an incomplete line is too long, with `first_too_long` if no line is complete.
    fn outcome<E: From<HeadError>>(
        self,
        parsed: Parse,
        head: &[u8],
        limits: &Limits,
        first_too_long: E,
    ) -> Result<Option<Repaired>, E> {
        if let Parse::Complete(_) = parsed {
            return Ok(Some(Repaired { length: self.read, broken: self.broken }));
        }
        // Whether a limit leaves no room for another byte.
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

/// The first suspect whose relaxation, in addition to `rules`, cures `error`; `None` if there is none, or if the head
/// is rejected even with `every` rule relaxed.
fn culprit<E: Copy + PartialEq>(
    suspects: &[Rule],
    every: Rules,
    rules: Rules,
    error: E,
    repair: impl Fn(Rules) -> Result<Option<Repaired>, E>,
) -> Option<Rule> {
    if suspects.is_empty() || repair(every).is_err() {
        return None;
    }
    suspects.iter().copied().find(|rule| repair(rules.with(*rule)) != Err(error))
}

/// The complete lines of a head from `at` up to the empty line, each with its LF.
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
