//! Streams that still send output after their exchanges: their limits, and their end if the client does not read.

use super::{H2, Stream};
use crate::deadlines::BodyDeadlines;
use weir_http2::{ErrorCode, StreamNo};

/// The limits on the remaining output of one stream.
#[derive(Debug)]
pub(super) struct LastOutput {
    pub no: StreamNo,
    deadlines: Option<Box<BodyDeadlines>>,
}

impl H2 {
    /// Whether streams without an exchange have made progress since the last call. Other streams use the deadlines of
    /// their exchanges.
    pub(crate) fn take_last_output_moved(&mut self) -> bool {
        std::mem::take(&mut self.last_output_moved)
    }

    /// Whether any stream has no exchange: it is over or, for a deferred request, has not begun.
    pub(crate) fn has_last_output(&self) -> bool {
        self.without_exchange().next().is_some()
    }

    /// The streams that still send output after their exchanges.
    pub(crate) fn with_last_output(&self) -> Vec<StreamNo> {
        self.without_exchange().filter(|stream| stream.pending() > 0).map(|stream| stream.no).collect()
    }

    /// Keeps the limits of a completed exchange for the remaining output of its stream.
    pub(crate) fn keep_deadlines(&mut self, no: StreamNo, deadlines: Option<Box<BodyDeadlines>>) {
        self.rare.get_or_insert_default().last_output.push(LastOutput { no, deadlines });
    }

    /// The limits on the output of a stream whose exchange is over.
    pub(crate) fn deadlines_of(&mut self, no: StreamNo) -> &mut Option<Box<BodyDeadlines>> {
        let all = &mut self.rare.get_or_insert_default().last_output;
        let index = all.iter().position(|last| last.no == no).unwrap_or_else(|| {
            all.push(LastOutput { no, deadlines: None });
            all.len() - 1
        });
        &mut all[index].deadlines
    }

    /// Resets all streams without an exchange, since the client does not read their output; returns their number.
    pub(crate) fn abort_last_output(&mut self) -> usize {
        let all: Vec<_> = self.without_exchange().map(|stream| stream.no).collect();
        for no in &all {
            self.abort(*no, ErrorCode::CANCEL);
        }
        all.len()
    }

    fn without_exchange(&self) -> impl Iterator<Item = &Stream> {
        self.streams.iter().filter(|stream| stream.exchange.is_none())
    }
}
