//! Sending requests: heads, bodies and trailers, and credit for responses.

use super::behaviour::{Behaviour, Malformed};
use super::padding::pad;
use super::stream::{Stall, Stream, Upload, write_head};
use super::wire::INITIAL_WINDOW_SIZE;
use super::{Credit, H2Client, Phase};
use crate::ledger::{Entry, Ledger};
use crate::message::{Answer, Ask, BodyOf, TRAILER, name};
use crate::world::World;
use std::time::Duration;
use weir_http::Method;
use weir_http2::frame::{self, Kind};
use weir_http2::{Part, SILENT_FRAMES, StreamNo};

impl H2Client {
    /// Sends the heads of requests, up to the maximum number of concurrent streams.
    pub(super) fn ask(&mut self, world: &mut World, ledger: &mut Ledger) {
        if self.behaviour.naps && self.streams.is_empty() && self.asked > 0 && world.below(40) == 0 {
            self.asks_again = world.now + Duration::from_secs(world.below(100));
        }
        while self.phase == Phase::Asking && !self.is_closing && self.asks_again <= world.now {
            // A stalled stream must not keep the client from sending requests.
            let active = self.streams.iter().filter(|stream| stream.stall == Stall::No).count();
            if active >= self.behaviour.concurrency || self.asks.is_empty() {
                return;
            }
            if self.behaviour.goes_away_after.is_some_and(|most| self.asked >= most) {
                ledger.note(|| format!("client {} goes away", self.peer.link));
                self.connection.go_away();
                self.is_closing = true;
                return;
            }
            let Some(mut ask) = self.asks.pop_front() else { return };
            if ask.switch.is_some() && !self.connection.peer().enable_connect_protocol {
                // The gateway's SETTINGS, which allow tunnels, have not arrived.
                return self.asks.push_front(ask);
            }
            let Some(no) = self.connection.open(ask.method == Method::Head) else {
                return self.asks.push_front(ask);
            };
            self.asked += 1;
            let malformed = self.behaviour.malformed.take();
            ask.id = ledger.entries.len();
            suit(&mut ask, malformed, world);
            let stall = self.stall(&mut ask, world);
            ledger.note(|| {
                let (link, no) = (self.peer.link, no.get());
                format!("client {link} asks #{} {} on stream {no}", ask.id, name(ask.method))
            });
            self.connection.settle(&mut self.out);
            let from = self.said + self.out.len();
            let stream = self.begin(no, &ask, malformed, world);
            self.streams.push(Stream { stall, ..stream });
            let link = self.peer.link;
            let oldest = world.oldest_configuration(link);
            let entry = Ledger::entry(ask, link, world.now);
            ledger.entries.push(Entry { from, oldest, source: self.way.source, ..entry });
        }
    }

    /// Decides at random whether a response stalls, and makes a stalled response long.
    fn stall(&self, ask: &mut Ask, world: &mut World) -> Stall {
        if world.below(1000) >= self.behaviour.stalls {
            return Stall::No;
        }
        let length = 2000 + world.below(300_000) as usize;
        if let Some(switch) = &mut ask.switch {
            switch.down = length;
            return self.any_stall(world);
        }
        ask.answer = if world.below(2) == 0 { Answer::Length(length) } else { Answer::Chunked(length) };
        self.any_stall(world)
    }

    fn any_stall(&self, world: &mut World) -> Stall {
        if world.below(2) == 0 { Stall::WhileOthersAsk } else { Stall::Always }
    }

    /// Sends a request's head.
    fn begin(&mut self, no: StreamNo, ask: &Ask, malformed: Option<Malformed>, world: &mut World) -> Stream {
        let mut stream = Stream::new(no, ask);
        let behaviour = self.behaviour;
        // Padding uses window that the protocol state does not count, so the whole body must fit into the initial
        // window.
        if behaviour.pads && stream.body.len() < 40_000 {
            stream.paddings = world.below(20) as u32;
        }
        stream.resets_after = (world.below(1000) < behaviour.resets).then(|| world.below(60));
        let expects = ask.body.is_some() && world.below(4) == 0;
        if expects {
            let most = if world.faults.rough { 3000 } else { 10 };
            stream.upload = Upload::Waiting(world.now + Duration::from_millis(world.below(most)));
        }
        if ask.switch.is_some() && world.below(2) == 0 {
            stream.upload = Upload::Opening;
        }
        let length = ask.body.filter(|body| !body.chunked).map(|body| body.length);
        let part = Part::Head { end: stream.upload == Upload::Sent };
        let head = self.connection.head(
            no,
            part,
            |to| {
                write_head(ask, length, expects, behaviour.is_over_tls, to);
                match malformed {
                    Some(Malformed::Name) => to.field(b"a name", b""),
                    Some(Malformed::Size) => (0..1000).for_each(|_| to.field(b"a", b"")),
                    Some(Malformed::Length | Malformed::Frame) | None => {}
                }
            },
            &mut self.out,
        );
        debug_assert!(head.is_ok(), "a stream that was just opened");
        match malformed {
            Some(Malformed::Length) => drop(stream.body.pop()),
            // A violation: a client must not push.
            Some(Malformed::Frame) => {
                frame::write(Kind::PushPromise, 0, no.get(), &[0, 0, 0, 2], &mut self.out);
            }
            Some(Malformed::Name | Malformed::Size) | None => {}
        }
        stream
    }

    /// Sends more of the bodies once the network has taken the earlier frames.
    pub(super) fn send_bodies(&mut self, world: &mut World) {
        let has_room = self.peer.is_flushed();
        for stream in &mut self.streams {
            if matches!(stream.upload, Upload::Waiting(until) if until <= world.now) {
                stream.upload = Upload::Sending;
            }
            if stream.upload != Upload::Sending || !has_room {
                continue;
            }
            let rest = &stream.body[stream.sent..];
            let most = match self.behaviour.trickles && !rest.is_empty() {
                true => 1 + world.below(rest.len().min(2000) as u64) as usize,
                false => world.piece(rest.len()),
            };
            let end = most == rest.len() && !stream.has_trailers;
            self.connection.settle(&mut self.out);
            let mut frames = Vec::new();
            let Ok(taken) = self.connection.data(stream.no, &rest[..most], end, &mut frames) else {
                // The gateway has reset the stream, so no more of the body can be sent.
                stream.upload = Upload::Sent;
                continue;
            };
            let is_padded = stream.paddings > 0 && !frames.is_empty();
            stream.paddings -= u32::from(is_padded);
            let padding = if is_padded { world.below(256) as u8 } else { 0 };
            let added = if is_padded { pad(&mut frames, padding) } else { 0 };
            self.out.append(&mut frames);
            self.wire.sends(stream.no.get(), taken + added);
            stream.sent += taken;
            world.moves += u64::from(taken > 0);
            if taken < most || stream.sent < stream.body.len() {
                continue;
            }
            stream.upload = Upload::Sent;
            if stream.has_trailers {
                let id = stream.id.to_string();
                let write =
                    |to: &mut weir_http2::hpack::Encoder<'_>| to.field(TRAILER.as_bytes(), id.as_bytes());
                let trailers = self.connection.head(stream.no, Part::Trailers, write, &mut self.out);
                debug_assert!(trailers.is_ok(), "a body that was just sent");
            }
        }
        self.release_ended();
    }

    /// Gives credit that is due, and ends stalls once only stalled requests remain.
    pub(super) fn give_credit(&mut self, world: &mut World) {
        let is_asking = !self.asks.is_empty() && !self.is_closing;
        if !is_asking && self.streams.iter().all(|stream| stream.stall != Stall::No) {
            for stream in self.streams.iter_mut().filter(|stream| stream.stall == Stall::WhileOthersAsk) {
                stream.stall = Stall::No;
                let bytes = std::mem::take(&mut stream.owed);
                self.credits.push(Credit { at: world.now, stream: stream.no.get(), bytes });
            }
        }
        self.connection.settle(&mut self.out);
        for credit in self.credits.extract_if(.., |credit| credit.at <= world.now) {
            if credit.bytes > 0 {
                frame::write_window_update(credit.stream, credit.bytes, &mut self.out);
                self.wire.gives(credit.stream, credit.bytes);
            }
        }
    }

    /// Sends a random frame that changes nothing, or only the windows.
    pub(super) fn say_without_effect(&mut self, world: &mut World) {
        if !self.behaviour.fidgets || self.phase != Phase::Asking || world.now < self.fidgets_again {
            return;
        }
        // The gateway tolerates any total number of frames without effect, but not many at once. Many PING frames at
        // once make it pause to serve other connections.
        self.fidgets_again = world.now + Duration::from_millis(100 + world.below(2000));
        self.connection.settle(&mut self.out);
        match world.below(4) {
            0 => {
                for _ in 0..[1, 3 * SILENT_FRAMES][world.below(2) as usize] {
                    frame::write_ping([7; 8], false, &mut self.out);
                }
            }
            1 => frame::write(
                Kind::Priority,
                0,
                1 + 2 * world.below(20) as u32,
                &[0, 0, 0, 0, 9],
                &mut self.out,
            ),
            2 => frame::write(Kind::Unknown(0xfa), 0, 0, &[0; 7], &mut self.out),
            _ => {
                let size = Behaviour::window(world);
                frame::write_settings([(INITIAL_WINDOW_SIZE, size)].into_iter(), &mut self.out);
                self.wire.resizes(size);
            }
        }
    }

    /// Removes streams that have ended in both directions.
    pub(super) fn release_ended(&mut self) {
        for stream in self.streams.extract_if(.., |stream| stream.is_over()) {
            self.connection.release(stream.no);
        }
    }
}

/// Adapts a request to HTTP/2, and applies its fault.
fn suit(ask: &mut Ask, malformed: Option<Malformed>, world: &mut World) {
    (ask.is_old, ask.closes) = (false, false);
    if malformed.is_some() && ask.switch.take().is_some() {
        ask.answer = Answer::NoContent;
    }
    if let Some(switch) = &mut ask.switch {
        switch.is_on_stream = true;
    }
    ask.has_trailers = ask.switch.is_none() && world.below(4) == 0;
    match malformed {
        None => {}
        Some(Malformed::Length) => {
            ask.method = Method::Post;
            ask.body = Some(BodyOf { length: 1 + world.below(2000) as usize, chunked: false });
        }
        Some(Malformed::Name | Malformed::Size | Malformed::Frame) => {
            (ask.method, ask.body) = (Method::Get, None);
        }
    }
}
