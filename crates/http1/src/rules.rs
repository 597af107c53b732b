//! Rules that a recipient may relax.

use crate::{HeadError, RequestError, ResponseError};
use std::fmt;

/// A rule that a recipient may relax: RFC 9112 permits recipients to repair violations, and real senders violate the
/// rule. Each rule concerns either requests or responses: a repair that is safe in a response would allow request
/// smuggling in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Requests: treat HTTP/1.2 and later minor versions as HTTP/1.1 (RFC 9110, section 2.5).
    HttpMinor,
    /// Requests: treat an empty `Host`, which a target without authority requires, as absent (RFC 9112, sections 3.2
    /// and 3.3).
    EmptyHost,
    /// Requests: treat `Host: name:` as `Host: name` (RFC 3986, section 6.2.3).
    HostWithoutPort,
    /// Requests: skip up to eight empty lines before a request line instead of one (RFC 9112, section 2.2).
    EmptyLines,
    /// Requests: percent-encode UTF-8 in a target (RFC 3987, section 3.1).
    RawUtf8Target,
    /// Responses: `Connection` may name the framing fields, which stay valid (RFC 9110, section 7.6.1).
    ConnectionNamesFraming,
    /// Responses: treat a repeated `chunked` as a single one, for a body that was chunked once (RFC 9112, section 6.1).
    ChunkedTwice,
    /// Responses: lines of a head may end with a bare LF (RFC 9112, section 2.2).
    BareLf,
    /// Responses: a field line may continue in the next line; a space replaces the fold (RFC 9112, section
    /// 5.2).
    ObsFold,
    /// Responses: remove white space before a colon (RFC 9112, section 5.1).
    SpaceBeforeColon,
}

impl Rule {
    /// The rules for requests.
    pub const OF_REQUESTS: [Self; 5] =
        [Self::HttpMinor, Self::EmptyHost, Self::HostWithoutPort, Self::EmptyLines, Self::RawUtf8Target];

    /// The rules for responses.
    pub const OF_RESPONSES: [Self; 5] = [
        Self::ConnectionNamesFraming,
        Self::ChunkedTwice,
        Self::BareLf,
        Self::ObsFold,
        Self::SpaceBeforeColon,
    ];

    /// The name in a configuration, such as `bare-lf`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::HttpMinor => "http-1.2",
            Self::EmptyHost => "empty-host",
            Self::HostWithoutPort => "host-without-port",
            Self::EmptyLines => "empty-lines",
            Self::RawUtf8Target => "raw-utf8-target",
            Self::ConnectionNamesFraming => "connection-names-framing",
            Self::ChunkedTwice => "chunked-twice",
            Self::BareLf => "bare-lf",
            Self::ObsFold => "obs-fold",
            Self::SpaceBeforeColon => "space-before-colon",
        }
    }

    /// The name in metrics, such as `bare_lf`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::HttpMinor => "http_1_2",
            Self::EmptyHost => "empty_host",
            Self::HostWithoutPort => "host_without_port",
            Self::EmptyLines => "empty_lines",
            Self::RawUtf8Target => "raw_utf8_target",
            Self::ConnectionNamesFraming => "connection_names_framing",
            Self::ChunkedTwice => "chunked_twice",
            Self::BareLf => "bare_lf",
            Self::ObsFold => "obs_fold",
            Self::SpaceBeforeColon => "space_before_colon",
        }
    }

    /// The rules whose relaxation may cure a request rejected with `error`.
    pub(crate) fn behind_request(error: RequestError) -> &'static [Self] {
        match error {
            RequestError::Head(HeadError::UnsupportedVersion) => &[Self::HttpMinor],
            RequestError::BadHost => &[Self::EmptyHost, Self::HostWithoutPort],
            RequestError::BadMethod => &[Self::EmptyLines],
            RequestError::BadTargetCharacter => &[Self::RawUtf8Target],
            _ => &[],
        }
    }

    /// The rules whose relaxation may cure a response rejected with `error`.
    pub(crate) fn behind_response(error: ResponseError) -> &'static [Self] {
        match error {
            ResponseError::Head(HeadError::ConnectionNamesReliedOnField) => &[Self::ConnectionNamesFraming],
            ResponseError::Head(HeadError::RepeatedChunked) => &[Self::ChunkedTwice],
            ResponseError::Head(HeadError::BareLf) => &[Self::BareLf],
            ResponseError::Head(HeadError::ObsFold) => &[Self::ObsFold],
            ResponseError::Head(HeadError::WhitespaceBeforeColon) => &[Self::SpaceBeforeColon],
            _ => &[],
        }
    }
}

/// A set of rules, relaxed or violated.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Rules(u16);

impl Rules {
    /// No relaxed rule: strict parsing.
    pub const NONE: Self = Self(0);

    /// This set with one more rule.
    #[must_use]
    pub const fn with(self, rule: Rule) -> Self {
        Self(self.0 | 1 << rule as u16)
    }

    /// Whether the set contains no rule.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set contains `rule`.
    #[must_use]
    pub const fn has(self, rule: Rule) -> bool {
        self.0 & 1 << rule as u16 != 0
    }

    /// Whether the set contains any of `rules`.
    pub(crate) fn have_one_of(self, rules: &[Rule]) -> bool {
        rules.iter().any(|rule| self.has(*rule))
    }

    /// The rules of the set.
    pub fn iter(self) -> impl Iterator<Item = Rule> {
        let all = Rule::OF_REQUESTS.into_iter().chain(Rule::OF_RESPONSES);
        all.filter(move |rule| self.has(*rule))
    }
}

impl FromIterator<Rule> for Rules {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        rules.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
