//! Frames about streams and the connection: SETTINGS, PING, GOAWAY, WINDOW_UPDATE, RST_STREAM. `feed.rs` has already
//! rejected malformed ones with a `FrameError`.

use super::drain::{DRAIN_PING, Drain, OWNER_PING};
use super::event::{Event, StreamNo};
use super::{Connection, ConnectionError, Role, StreamError};
use crate::frame::{self, Frame};
use crate::stream::{Half, Reset};
use crate::{Abuse, ErrorCode};

/// The number subtracted from the count of [`Abuse::NoEffect`] for each stream that ends regularly: browsers send
/// PRIORITY or PRIORITY_UPDATE frames with a request and after it.
const NO_EFFECT_PER_STREAM: u32 = 4;

impl Connection {
    pub(super) fn control_frame(
        &mut self,
        id: u32,
        frame: Frame<'_>,
    ) -> Result<Option<Event>, ConnectionError> {
        match frame {
            Frame::Settings(parameters) => self.settings(parameters).map(Some),
            Frame::SettingsAck if !self.has_peer_settings => Err(ConnectionError::SettingsMissing),
            Frame::SettingsAck => {
                self.settings_ack();
                Ok(None)
            }
            Frame::Ping(payload) => {
                self.spend(Abuse::Ping)?;
                frame::write_ping(payload, true, &mut self.control);
                Ok(None)
            }
            Frame::Pong(DRAIN_PING) if matches!(self.drain, Drain::Announced { .. }) => {
                self.finish_drain();
                Ok(None)
            }
            Frame::Pong(payload) => Ok((payload == OWNER_PING).then_some(Event::Pong)),
            Frame::GoAway { last, code, .. } => Ok(Some(self.peer_goes_away(last, code))),
            Frame::WindowUpdate(increment) => self.window_update(id, increment),
            Frame::RstStream(code) => self.rst_stream(id, code),
            // PRIORITY, which is deprecated (section 5.3.2). `feed.rs` handles all remaining types.
            _ => {
                self.spend(Abuse::NoEffect)?;
                Ok(None)
            }
        }
    }

    fn settings(&mut self, parameters: &[u8]) -> Result<Event, ConnectionError> {
        self.spend(Abuse::Settings)?;
        let before = self.peer;
        if self.role == Role::Client {
            self.peer.enable_push = false;
        }
        for (id, value) in Frame::parameters(parameters) {
            self.peer.apply(id, value)?;
        }
        if self.role == Role::Client && self.peer.enable_push {
            return Err(ConnectionError::Push);
        }
        self.has_peer_settings = true;
        let by = i64::from(self.peer.initial_window_size) - i64::from(before.initial_window_size);
        let mut shifted = Ok(());
        self.streams
            .for_each(|_, stream| shifted = shifted.and(stream.send_window.shift(by).map_err(|_| ())));
        shifted.map_err(|()| ConnectionError::WindowOverflow)?;
        frame::write_settings_ack(&mut self.control);
        Ok(Event::Settings)
    }

    /// Applies our settings, which the peer has acknowledged, to the peer (RFC 9113, section 6.5.3). We send only one
    /// SETTINGS frame, so further acknowledgements change nothing.
    fn settings_ack(&mut self) {
        let settings = &self.config.settings;
        self.is_acknowledged = true;
        self.decoder.acknowledged(settings.header_table_size);
        self.initial_receive_window = settings.initial_window_size;
        // The preface has been sent, and idle connections should not keep its buffer.
        self.control.shrink_to_fit();
        self.streams.for_each(|id, stream| {
            let increment = stream.receive_window.resize(settings.initial_window_size);
            if let Some(increment) = increment.filter(|_| stream.receive != Half::Closed) {
                frame::write_window_update(id, increment, &mut self.control);
            }
        });
    }

    fn peer_goes_away(&mut self, last: u32, code: ErrorCode) -> Event {
        self.peer_drains = true;
        if self.role == Role::Client {
            self.streams.for_each(|id, stream| {
                if id > last {
                    stream.reset(Reset::ByUs);
                }
            });
        }
        Event::GoAway { last, code }
    }

    fn window_update(&mut self, id: u32, increment: u32) -> Result<Option<Event>, ConnectionError> {
        self.spend(Abuse::WindowUpdate)?;
        if id == 0 {
            self.send_window.shift(increment.into()).map_err(|_| ConnectionError::WindowOverflow)?;
            let was_blocked = std::mem::take(&mut self.blocked);
            return Ok(was_blocked.then_some(Event::Room { stream: None }));
        }
        if self.is_idle(id) {
            return Err(ConnectionError::IdleStream);
        }
        match self.streams.get(id).filter(|stream| stream.reset == Reset::No) {
            Some(stream) => match stream.send_window.shift(increment.into()) {
                Ok(()) => {
                    let has_room = stream.blocked && stream.send_window.available() > 0;
                    stream.blocked &= !has_room;
                    Ok(has_room.then_some(Event::Room { stream: Some(StreamNo(id)) }))
                }
                Err(_) => self.fail_stream(id, StreamError::WindowOverflow).map(Some),
            },
            None => Ok(None),
        }
    }

    fn rst_stream(&mut self, id: u32, code: ErrorCode) -> Result<Option<Event>, ConnectionError> {
        if self.is_idle(id) {
            return Err(ConnectionError::IdleStream);
        }
        // Only a client's resets count: a server that refuses requests is not an attacker.
        if self.role == Role::Server {
            self.spend(Abuse::Reset)?;
        }
        let Some(stream) = self.streams.get(id) else { return Ok(None) };
        if stream.reset != Reset::No {
            return Ok(None);
        }
        stream.reset(Reset::ByPeer);
        Ok(Some(Event::Reset { stream: StreamNo(id), code }))
    }

    /// Resets a stream because of the peer's frame. Fails once the budget for such resets is exceeded.
    pub(super) fn provoked_reset(&mut self, id: u32, code: ErrorCode) -> Result<(), ConnectionError> {
        self.spend(Abuse::ProvokedReset)?;
        frame::write_rst_stream(id, code, &mut self.control);
        Ok(())
    }

    /// Forgives earlier frames if a stream has ended regularly.
    pub(super) fn forgive_if_closed(&mut self, id: u32) {
        if self.streams.get(id).is_some_and(|stream| stream.is_closed()) {
            self.spent.forgive(Abuse::Reset, 1);
            self.spent.forgive(Abuse::ProvokedReset, 1);
            self.spent.forgive(Abuse::NoEffect, NO_EFFECT_PER_STREAM);
        }
    }
}
