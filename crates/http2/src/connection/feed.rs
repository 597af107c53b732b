//! Bytes in: parses one frame after another, and hands each to the code for its type.

use super::drain::is_beyond;
use super::event::{Event, SILENT_FRAMES, Step};
use super::{Connection, ConnectionError, PREFACE, Role, StreamError};
use crate::frame::{Frame, FrameError, FrameHeader, HEADER_BYTES, Kind};
use crate::stream::Reset;
use crate::{Abuse, Head, Settings};

/// The state before the next input byte.
#[derive(Debug)]
pub(super) enum Input {
    /// Within the client's preface.
    Preface,
    Frame,
    /// Within a DATA frame.
    Data(Data),
    /// Within an ignored frame, before this number of bytes.
    Skip(u32),
}

/// The remaining part of a DATA frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Data {
    pub(super) stream: u32,
    pub(super) data: u32,
    pub(super) padding: u32,
    /// Padding and its length byte, which flow control counts.
    pub(super) overhead: u32,
    pub(super) end: bool,
}

/// The result of parsing at one position.
pub(super) enum Next {
    /// More input is needed.
    More,
    /// This many bytes are processed, without an event.
    Done(usize),
    /// This many bytes are processed, with this event.
    Event(usize, Event),
}

impl Next {
    /// The result for a whole frame of `length` bytes, with or without an event.
    pub(super) fn of(length: usize, event: Option<Event>) -> Self {
        event.map_or(Self::Done(length), |event| Self::Event(length, event))
    }
}

impl Connection {
    /// Parses `input` up to the next event. Joins a fragmented field block in place. The caller keeps the unconsumed
    /// bytes, at most [`most_held`](Self::most_held), and passes them again with more input.
    ///
    /// # Errors
    /// The violated rule, which ends the connection: call [`fail`](Self::fail), send the output, and close.
    pub fn feed(&mut self, input: &mut [u8], head: &mut Head) -> Result<Step, ConnectionError> {
        let (mut at, mut silent) = (0, 0);
        loop {
            match self.next(&mut input[at..], head)? {
                Next::More => return Ok(Step { consumed: at, event: None }),
                Next::Done(length) => {
                    at += length;
                    silent += 1;
                    if silent == SILENT_FRAMES {
                        return Ok(Step { consumed: at, event: Some(Event::Pause) });
                    }
                }
                Next::Event(length, mut event) => {
                    if let Event::Data { range, .. } = &mut event {
                        *range = range.start + at..range.end + at;
                    }
                    return Ok(Step { consumed: at + length, event: Some(event) });
                }
            }
        }
    }

    fn next(&mut self, input: &mut [u8], head: &mut Head) -> Result<Next, ConnectionError> {
        match self.input {
            Input::Preface => self.preface(input),
            Input::Frame => self.frame(input, head),
            Input::Data(data) => Ok(self.data_piece(data, input)),
            Input::Skip(0) => {
                self.input = Input::Frame;
                Ok(Next::Done(0))
            }
            Input::Skip(_) if input.is_empty() => Ok(Next::More),
            Input::Skip(left) => {
                let skipped = left.min(u32::try_from(input.len()).unwrap_or(u32::MAX));
                self.input = Input::Skip(left - skipped);
                Ok(Next::Done(skipped as usize))
            }
        }
    }

    /// Rejects an invalid preface at its first wrong byte, so that a client of another protocol receives its response
    /// early.
    fn preface(&mut self, input: &[u8]) -> Result<Next, ConnectionError> {
        let length = input.len().min(PREFACE.len());
        if input[..length] != PREFACE[..length] {
            return Err(ConnectionError::BadPreface);
        }
        if length < PREFACE.len() {
            return Ok(Next::More);
        }
        self.input = Input::Frame;
        Ok(Next::Done(length))
    }

    fn frame(&mut self, input: &mut [u8], head: &mut Head) -> Result<Next, ConnectionError> {
        let Some(bytes) = input.first_chunk::<HEADER_BYTES>() else { return Ok(Next::More) };
        let header = FrameHeader::parse(bytes);
        if let Err(error) = header.check(Settings::default().max_frame_size) {
            return self.malformed(header, error);
        }
        if !self.has_peer_settings && header.kind != Kind::Settings {
            return Err(ConnectionError::SettingsMissing);
        }
        match header.kind {
            Kind::Data => return self.begin_data(header, input),
            Kind::Headers => return self.field_block(header, input, head),
            Kind::PushPromise => return Err(ConnectionError::Push),
            Kind::Continuation => return Err(ConnectionError::Continuation),
            Kind::PRIORITY_UPDATE if self.config.priorities => {}
            Kind::Unknown(_) => {
                self.spend(Abuse::NoEffect)?;
                self.input = Input::Skip(header.length);
                return Ok(Next::Done(HEADER_BYTES));
            }
            _ => {}
        }
        let length = HEADER_BYTES + header.length as usize;
        let Some(payload) = input.get(HEADER_BYTES..length) else { return Ok(Next::More) };
        if header.kind == Kind::PRIORITY_UPDATE {
            self.priority_update(header.stream, payload)?;
            return Ok(Next::Done(length));
        }
        match Frame::parse(header, payload) {
            Ok(frame) => Ok(Next::of(length, self.control_frame(header.stream, frame)?)),
            Err(error) => self.malformed(header, error),
        }
    }

    /// Handles a malformed frame. On a stream that is not open, a stream error becomes a connection error.
    fn malformed(&mut self, header: FrameHeader, error: FrameError) -> Result<Next, ConnectionError> {
        let is_open = self.streams.get(header.stream).is_some_and(|stream| stream.reset == Reset::No);
        if !is_open || !error.is_stream_error(header.stream) {
            return Err(error.into());
        }
        self.input = Input::Skip(header.length);
        let event = self.fail_stream(header.stream, StreamError::Frame(error))?;
        Ok(Next::Event(HEADER_BYTES, event))
    }

    /// Resets a stream that the owner knows, because the peer violated a rule.
    pub(super) fn fail_stream(&mut self, id: u32, error: StreamError) -> Result<Event, ConnectionError> {
        if let Some(stream) = self.streams.get(id) {
            stream.reset(Reset::ByUs);
        }
        self.provoked_reset(id, error.code())?;
        Ok(Event::Failed { stream: super::StreamNo(id), error })
    }

    /// Checks a frame on a stream that the owner does not know. Accepts it, to be ignored, if the peer may have sent it
    /// before it learned that the stream ended (RFC 9113, section 5.4.2).
    pub(super) fn late_frame(&self, id: u32) -> Result<(), ConnectionError> {
        match () {
            () if self.is_idle(id) => Err(ConnectionError::IdleStream),
            // A client ignores late frames on all its streams, since a server may have sent many before it learned of
            // the end.
            () if self.role == Role::Client && id % 2 == 1 => Ok(()),
            () if self.streams.is_ignored(id) || is_beyond(self.drain, id) => Ok(()),
            () => Err(ConnectionError::StreamClosed),
        }
    }

    /// Whether a stream was never opened (RFC 9113, section 5.1).
    pub(super) fn is_idle(&self, id: u32) -> bool {
        let is_own = (id % 2 == 1) == (self.role == Role::Client);
        if is_own { id >= self.next_own } else { id > self.last_peer }
    }
}
