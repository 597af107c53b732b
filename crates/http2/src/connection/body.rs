//! DATA frames: forwarded as they arrive (RFC 9113, section 6.1).

use super::event::{Event, StreamNo};
use super::feed::{Data, Input, Next};
use super::{Connection, ConnectionError, StreamError};
use crate::Abuse;
use crate::frame::{FrameError, FrameHeader, HEADER_BYTES, flag};
use crate::stream::{Half, Reset};

impl Connection {
    /// Accepts, ignores or rejects a DATA frame, once its header and the padding's length are received.
    pub(super) fn begin_data(&mut self, header: FrameHeader, input: &[u8]) -> Result<Next, ConnectionError> {
        let (prefix, padding) = match (header.has(flag::PADDED), input.get(HEADER_BYTES)) {
            (false, _) => (0, 0),
            (true, Some(padding)) => (1, u32::from(*padding)),
            (true, None) => return Ok(Next::More),
        };
        let overhead = prefix + padding;
        let data = header.length.checked_sub(overhead).ok_or(FrameError::BadPadding)?;
        let end = header.has(flag::END_STREAM);
        if data <= 1 && !end {
            self.spend(Abuse::EmptyData)?;
        }
        self.receive_window.receive(header.length).map_err(|_| ConnectionError::FlowControl)?;
        let taken = HEADER_BYTES + prefix as usize;
        match self.accept_data(header.stream, header.length, data, end)? {
            Some(Ok(())) => {
                self.input = Input::Data(Data { stream: header.stream, data, padding, overhead, end });
                Ok(Next::Done(taken))
            }
            ignored => {
                self.credit_connection(header.length);
                self.input = Input::Skip(header.length - prefix);
                let error = ignored.and_then(Result::err);
                let event = error.map(|error| self.fail_stream(header.stream, error)).transpose()?;
                Ok(Next::of(taken, event))
            }
        }
    }

    /// Counts DATA on its stream; `None` if the frame is ignored.
    fn accept_data(
        &mut self,
        id: u32,
        length: u32,
        data: u32,
        end: bool,
    ) -> Result<Option<Result<(), StreamError>>, ConnectionError> {
        let Some(stream) = self.streams.get(id) else { return self.late_frame(id).map(|()| None) };
        let accepted = match (stream.reset, stream.receive) {
            (Reset::ByUs, _) => return Ok(None),
            (Reset::ByPeer, _) => return Err(ConnectionError::StreamClosed),
            (Reset::No, Half::Head) => Err(StreamError::DataBeforeHead),
            (Reset::No, Half::Closed) => Err(StreamError::AfterEnd),
            (Reset::No, Half::Body) => match stream.receive_window.receive(length) {
                Ok(()) => stream.count_body(data, end),
                Err(_) => Err(StreamError::FlowControl),
            },
        };
        if accepted.is_ok() {
            self.forgive_if_closed(id);
        }
        Ok(Some(accepted))
    }

    /// Takes the part of a DATA frame that `input` contains. The `flow` of the last piece includes the frame's padding,
    /// even if that has not been received.
    pub(super) fn data_piece(&mut self, data: Data, input: &[u8]) -> Next {
        if self.streams.get(data.stream).is_none_or(|stream| stream.reset != Reset::No) {
            // The stream was reset or released within the frame, so drop and credit the rest.
            self.credit_connection(data.data + data.overhead);
            self.input = Input::Skip(data.data + data.padding);
            return Next::Done(0);
        }
        let stream = StreamNo(data.stream);
        let length = data.data.min(u32::try_from(input.len()).unwrap_or(u32::MAX));
        let range = 0..length as usize;
        if length < data.data {
            if length == 0 {
                return Next::More;
            }
            self.input = Input::Data(Data { data: data.data - length, ..data });
            return Next::Event(range.end, Event::Data { stream, range, flow: length, end: false });
        }
        self.input = Input::Skip(data.padding);
        let flow = length + data.overhead;
        if length == 0 && !data.end {
            // The piece contains no data, at most padding, so there is nothing to forward.
            self.credit(stream, flow);
            return Next::Done(0);
        }
        Next::Event(range.end, Event::Data { stream, range, flow, end: data.end })
    }
}
