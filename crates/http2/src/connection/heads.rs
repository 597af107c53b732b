//! HEADERS and CONTINUATION: field blocks, decoded whole (RFC 9113, sections 4.3, 6.2 and 6.10).

use super::drain::Drain;
use super::event::{Event, StreamNo};
use super::feed::Next;
use super::{Connection, ConnectionError, Role, StreamError};
use crate::frame::{Frame, FrameHeader, HEADER_BYTES, Kind, flag};
use crate::stream::{Half, Reset, Stream};
use crate::{Abuse, ErrorCode, Head, HeadError, Section, Settings};
use std::ops::Range;

/// The role of a field block in its stream.
enum Meaning {
    Request,
    Response,
    Trailers,
    /// HEADERS after END_STREAM: decoded only to keep the table in sync.
    AfterEnd,
    /// A stream that was reset or refused: decoded, but without effect.
    Ignored,
}

impl Connection {
    /// Handles a field block, once all of its frames are received.
    pub(super) fn field_block(
        &mut self,
        header: FrameHeader,
        input: &mut [u8],
        head: &mut Head,
    ) -> Result<Next, ConnectionError> {
        let Some((block, length)) = self.gather(header, input)? else { return Ok(Next::More) };
        self.block_bytes += length as u64;
        let meaning = self.meaning(header.stream)?;
        let section = match meaning {
            Meaning::Request => {
                Section::Request { extended_connect: self.config.settings.enable_connect_protocol }
            }
            Meaning::Response => Section::Response,
            Meaning::Trailers | Meaning::AfterEnd | Meaning::Ignored => Section::Trailers,
        };
        let bytes = block.len();
        let decoded = self.decoder.decode(&input[block], section, &self.config.limits, head)?;
        self.received.count(bytes, self.decoder.lines());
        let (id, end) = (header.stream, header.has(flag::END_STREAM));
        let event = match meaning {
            Meaning::Request => self.request(id, end, decoded, head)?,
            Meaning::Response => Some(self.response(id, end, decoded, head)?),
            Meaning::Trailers => Some(self.trailers(id, end, decoded)?),
            Meaning::AfterEnd => Some(self.fail_stream(id, StreamError::AfterEnd)?),
            Meaning::Ignored => {
                if self.role == Role::Server {
                    self.spend(Abuse::NoEffect)?;
                }
                None
            }
        };
        Ok(Next::of(length, event))
    }

    /// Joins the fragments of a block after the first one, once the last is complete. Returns the block and the length
    /// of its frames, or `None` if more input is needed. Enforces the limits on incomplete blocks, too, so that the
    /// caller need not buffer larger ones.
    fn gather(
        &self,
        header: FrameHeader,
        input: &mut [u8],
    ) -> Result<Option<(Range<usize>, usize)>, ConnectionError> {
        let first = HEADER_BYTES + header.length as usize;
        let (mut at, mut bytes, mut frames) = (first, header.length as usize, 0);
        let mut is_last = header.has(flag::END_HEADERS);
        while !is_last {
            let next = input.get(at..).and_then(|rest| rest.first_chunk::<HEADER_BYTES>());
            let Some(next) = next.map(FrameHeader::parse) else { break };
            next.check(Settings::default().max_frame_size)?;
            if next.kind != Kind::Continuation || next.stream != header.stream {
                return Err(ConnectionError::Continuation);
            }
            frames += 1;
            bytes += next.length as usize;
            at += HEADER_BYTES + next.length as usize;
            is_last = next.has(flag::END_HEADERS);
            if frames > self.config.continuations {
                return Err(ConnectionError::BlockTooLong);
            }
        }
        if bytes > self.config.block_bytes {
            return Err(ConnectionError::BlockTooLong);
        }
        if !is_last || input.len() < at {
            return Ok(None);
        }
        let Frame::Headers { fragment } = Frame::parse(header, &input[HEADER_BYTES..first])? else {
            return Err(ConnectionError::Continuation);
        };
        let (start, mut end) = (HEADER_BYTES + fragment.start, HEADER_BYTES + fragment.end);
        let mut from = first;
        while let Some(next) = input[from..at].first_chunk::<HEADER_BYTES>().map(FrameHeader::parse) {
            let payload = from + HEADER_BYTES..from + HEADER_BYTES + next.length as usize;
            from = payload.end;
            input.copy_within(payload, end);
            end += next.length as usize;
        }
        Ok(Some((start..end, at)))
    }

    fn meaning(&mut self, id: u32) -> Result<Meaning, ConnectionError> {
        if let Some(stream) = self.streams.get(id) {
            return match (stream.reset, stream.receive) {
                (Reset::ByUs, _) => Ok(Meaning::Ignored),
                (Reset::ByPeer, _) => Err(ConnectionError::StreamClosed),
                (Reset::No, Half::Head) => Ok(Meaning::Response),
                (Reset::No, Half::Body) => Ok(Meaning::Trailers),
                (Reset::No, Half::Closed) => Ok(Meaning::AfterEnd),
            };
        }
        match (self.role, self.is_idle(id)) {
            (Role::Server, true) if id % 2 == 1 => {
                self.last_peer = id;
                match self.drain {
                    Drain::No => {}
                    Drain::Announced { late } => self.note_late_request(late),
                    Drain::Final(_) => return Ok(Meaning::Ignored),
                }
                Ok(Meaning::Request)
            }
            (_, true) => Err(ConnectionError::BadStream),
            (_, false) => self.late_frame(id).map(|()| Meaning::Ignored),
        }
    }

    fn request(
        &mut self,
        id: u32,
        end: bool,
        decoded: Result<(), HeadError>,
        head: &Head,
    ) -> Result<Option<Event>, ConnectionError> {
        if self.config.settings.max_concurrent_streams.is_some_and(|most| self.streams.len() >= most as usize)
        {
            self.streams.ignore(id);
            self.provoked_reset(id, ErrorCode::REFUSED_STREAM)?;
            return Ok(None);
        }
        let mut stream = Stream::new(Half::Body, self.peer.initial_window_size, self.initial_receive_window);
        stream.missing = head.content_length;
        if self.config.priorities {
            stream.priority = self.first_priority(id, head);
        }
        let accepted = decoded.map_err(StreamError::Head).and_then(|()| match end {
            true => stream.end(),
            false => Ok(()),
        });
        let no = StreamNo(id);
        Ok(Some(match accepted {
            Ok(()) => {
                self.streams.insert(id, stream);
                Event::Head { stream: no, end }
            }
            Err(error) => {
                self.streams.ignore(id);
                self.reject(id, end, error)?;
                Event::Rejected { stream: no, error }
            }
        }))
    }

    /// Responds with 431 to a request whose head is too large (RFC 9113, section 10.5.1), and resets any other
    /// malformed request. Fails once the budget for provoked resets is exceeded.
    fn reject(&mut self, id: u32, end: bool, error: StreamError) -> Result<(), ConnectionError> {
        if !matches!(error, StreamError::Head(HeadError::HeadTooLong | HeadError::TooManyFields)) {
            return self.provoked_reset(id, error.code());
        }
        let mut control = std::mem::take(&mut self.control);
        self.write_block(id, true, |to| to.status(431), &mut control);
        self.control = control;
        if end {
            return Ok(self.spend(Abuse::ProvokedReset)?);
        }
        self.provoked_reset(id, ErrorCode::NO_ERROR)
    }

    fn response(
        &mut self,
        id: u32,
        end: bool,
        decoded: Result<(), HeadError>,
        head: &Head,
    ) -> Result<Event, ConnectionError> {
        let accepted = decoded.map_err(StreamError::Head).and_then(|()| {
            let stream = self.streams.get(id).ok_or(StreamError::AfterEnd)?;
            match head.status {
                100..=199 if end => return Err(StreamError::InterimEnds),
                100..=199 => return Ok(()),
                // These responses have no body, whatever their `content-length` (RFC 9110, sections 6.4.1 and 8.6).
                204 | 304 => stream.no_body = true,
                _ => {}
            }
            stream.missing = match head.status {
                _ if stream.no_body => Some(0),
                200..=299 if stream.is_tunnel => None,
                _ => head.content_length,
            };
            stream.receive = Half::Body;
            if end { stream.end() } else { Ok(()) }
        });
        match accepted {
            Ok(()) => {
                self.forgive_if_closed(id);
                Ok(Event::Head { stream: StreamNo(id), end })
            }
            Err(error) => self.fail_stream(id, error),
        }
    }

    fn trailers(
        &mut self,
        id: u32,
        end: bool,
        decoded: Result<(), HeadError>,
    ) -> Result<Event, ConnectionError> {
        let ended = decoded.map_err(StreamError::Head).and_then(|()| match end {
            true => self.streams.get(id).ok_or(StreamError::AfterEnd)?.end(),
            false => Err(StreamError::TrailersWithoutEnd),
        });
        match ended {
            Ok(()) => {
                self.forgive_if_closed(id);
                Ok(Event::Trailers { stream: StreamNo(id) })
            }
            Err(error) => self.fail_stream(id, error),
        }
    }
}
