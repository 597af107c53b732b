//! What a recipient may let pass that is refused otherwise.

use crate::{HeadError, RequestError, ResponseError};
use std::fmt;

/// A rule that a recipient need not hold senders to: RFC 9112 lets it repair what breaks it, and real senders break it. Each
/// is about requests or about answers, never both: what is a repair in an answer would be request smuggling in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Requests: HTTP/1.2 and later minor versions are taken for HTTP/1.1 (RFC 9110, section 2.5).
    HttpMinor,
    /// Requests: an empty `Host`, as for a target without authority, is taken for none (RFC 9112, sections 3.2 and 3.3).
    EmptyHost,
    /// Requests: `Host: name:` is taken for `Host: name` (RFC 3986, section 6.2.3).
    HostWithoutPort,
    /// Requests: up to eight empty lines before a request line are skipped in place of one (RFC 9112, section 2.2).
    EmptyLines,
    /// Requests: UTF-8 in a target is percent-encoded (RFC 3987, section 3.1).
    RawUtf8Target,
    /// Answers: `Connection` may name the fields that frame the message; they keep their meaning (RFC 9110, section 7.6.1).
    ConnectionNamesFraming,
    /// Answers: `chunked` that is said twice, of a body that is chunked once (RFC 9112, section 6.1).
    ChunkedTwice,
    /// Answers: lines of a head may end with a LF alone (RFC 9112, section 2.2).
    BareLf,
    /// Answers: a field line may go on in the next line; a space replaces the fold (RFC 9112, section 5.2).
    ObsFold,
    /// Answers: white space before a colon is removed (RFC 9112, section 5.1).
    SpaceBeforeColon,
}

impl Rule {
    /// Those about requests.
    pub const OF_REQUESTS: [Self; 5] =
        [Self::HttpMinor, Self::EmptyHost, Self::HostWithoutPort, Self::EmptyLines, Self::RawUtf8Target];

    /// Those about answers.
    pub const OF_ANSWERS: [Self; 5] = [
        Self::ConnectionNamesFraming,
        Self::ChunkedTwice,
        Self::BareLf,
        Self::ObsFold,
        Self::SpaceBeforeColon,
    ];

    /// Its name in a configuration, such as `bare-lf`.
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

    /// Its name in metrics, such as `bare_lf`.
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

    /// The rules without which a request that is refused so might pass.
    pub(crate) fn behind_request(error: RequestError) -> &'static [Self] {
        match error {
            RequestError::Head(HeadError::UnsupportedVersion) => &[Self::HttpMinor],
            RequestError::BadHost => &[Self::EmptyHost, Self::HostWithoutPort],
            RequestError::BadMethod => &[Self::EmptyLines],
            RequestError::BadTargetCharacter => &[Self::RawUtf8Target],
            _ => &[],
        }
    }

    /// Likewise for an answer.
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

/// Some rules.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Rules(u16);

impl Rules {
    /// None: everything is held to all of them.
    pub const NONE: Self = Self(0);

    /// These and this one.
    #[must_use]
    pub const fn with(self, rule: Rule) -> Self {
        Self(self.0 | 1 << rule as u16)
    }

    /// Whether there is none.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this one is there.
    #[must_use]
    pub const fn has(self, rule: Rule) -> bool {
        self.0 & 1 << rule as u16 != 0
    }

    /// Whether one of these is there.
    pub(crate) fn have_one_of(self, rules: &[Rule]) -> bool {
        rules.iter().any(|rule| self.has(*rule))
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Rule> {
        let all = Rule::OF_REQUESTS.into_iter().chain(Rule::OF_ANSWERS);
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
