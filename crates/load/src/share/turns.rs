//! The arrivals of one worker.

use crate::options::HttpVersion;

/// The numbers of a worker's arrivals, from 0 for the run's first. Of its version's arrivals worker `w` of `t` gets `w`,
/// `w + t`, `w + 2t`, ... With one version these are the run's arrivals; with both, the version's are spread evenly over
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turns {
    /// The next one, among those of its version.
    next: u64,
    /// The workers of its version.
    workers: u64,
    /// `None` with one version.
    part: Option<Part>,
}

/// The part of all arrivals that a version gets: as many of every `all` as it has connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    version: HttpVersion,
    all: u64,
    ours: u64,
}

impl Turns {
    /// The turns of worker `index` of `workers`, whose version has `ours` of `all` connections: 1 or more.
    pub(crate) fn new(all: u32, ours: u32, version: HttpVersion, index: u32, workers: u32) -> Self {
        let part = Part { version, all: all.into(), ours: ours.into() };
        Self { next: index.into(), workers: workers.into(), part: (ours < all).then_some(part) }
    }

    /// The first turn.
    pub(crate) fn first(&self) -> u64 {
        self.part.map_or(self.next, |part| part.arrival(self.next))
    }

    /// Takes a turn; the distance to the next one.
    pub(crate) fn skip(&mut self) -> u64 {
        let Some(part) = self.part else { return self.workers };
        let now = part.arrival(self.next);
        self.next += self.workers;
        part.arrival(self.next) - now
    }
}

impl Part {
    /// The number of the version's arrival number `own`. Of the first `n` arrivals, HTTP/2 has gotten its share of `n`
    /// rounded down, and HTTP/1.1 the others.
    fn arrival(self, own: u64) -> u64 {
        match self.version {
            HttpVersion::Http1 => own * self.all / self.ours,
            HttpVersion::Http2 => ((own + 1) * self.all).div_ceil(self.ours) - 1,
        }
    }
}
