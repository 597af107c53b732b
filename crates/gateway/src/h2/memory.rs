//! The memory of a connection and its streams.

use super::last_output::LastOutput;
use super::{DeferredRequest, H2, Rare, Stream};
use weir_http2::StreamNo;

impl H2 {
    /// The connection's memory in bytes, including stored bodies.
    pub(crate) fn memory(&self) -> usize {
        let streams = self.streams.iter().map(Stream::memory).sum::<usize>();
        let lists = self.streams.capacity() * size_of::<Stream>()
            + (self.touched.capacity() + self.settled.capacity()) * size_of::<StreamNo>();
        let rare = self.rare.as_ref().map_or(0, |rare| rare.memory());
        size_of::<Self>() + self.connection.memory() + streams + lists + rare
    }
}

impl Rare {
    /// The memory of this state in bytes, including deferred requests.
    fn memory(&self) -> usize {
        let heads = self.deferred.iter().map(|request| request.head.memory()).sum::<usize>();
        let lists = self.last_output.capacity() * size_of::<LastOutput>()
            + self.deferred.capacity() * size_of::<DeferredRequest>();
        size_of::<Self>() + lists + heads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::downstream::Client;
    use crate::h2::client_config;
    use allocation_counter::measure;
    use std::net::TcpStream;
    use std::sync::Arc;
    use weir_http1::Limits;
    use weir_http2::frame::{self, Kind, flag};
    use weir_http2::hpack::Encoder;
    use weir_http2::{ErrorCode, Event, Head, PREFACE, Part, Scheme};

    /// The first bits of literals with and without incremental indexing (RFC 7541 sections 6.2.1 and 6.2.2).
    const WITH_INDEXING: u8 = 0x40;
    const WITHOUT_INDEXING: u8 = 0;

    const CONNECTIONS: usize = 1000;
    const STREAMS: u32 = 100;

    /// The maximum sizes in bytes: of an idle connection, with its [`Client`], before its first request; of an idle
    /// connection after its first request, with a browser's entries in the header table; and of each of [`STREAMS`]
    /// requests in flight, with the unused capacity of the lists.
    const IDLE: usize = 1024;
    const USED: usize = 2064;
    const STREAM: usize = 256;

    /// The bytes that `work` allocates and does not free.
    fn allocated(work: impl FnOnce()) -> usize {
        usize::try_from(measure(work).bytes_current).unwrap()
    }

    /// Feeds a connection; returns the first request.
    fn feed(h2: &mut H2, input: &mut [u8], head: &mut Head, out: &mut Vec<u8>) -> Option<StreamNo> {
        let (mut at, mut first) = (0, None);
        loop {
            let step = h2.connection.feed(&mut input[at..], head).unwrap();
            at += step.consumed;
            match step.event {
                Some(Event::Head { stream, end }) => {
                    h2.begin(stream, end, false);
                    first = first.or(Some(stream));
                }
                Some(_) => {}
                None => break,
            }
        }
        h2.connection.settle(out);
        out.clear();
        first
    }

    /// A browser's request, whose fields have literals of this kind.
    fn request(id: u32, literal: u8, input: &mut Vec<u8>) {
        let mut block = Vec::new();
        Encoder::new(&mut block).request(b"GET", Scheme::Https, b"www.example.com", b"/index.html");
        for (name, value) in [
            ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
            ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
            ("accept-language", "en-US,en;q=0.5"),
            ("accept-encoding", "gzip, deflate, br, zstd"),
            ("upgrade-insecure-requests", "1"),
            ("sec-fetch-dest", "document"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-site", "none"),
            ("sec-fetch-user", "?1"),
            ("te", "trailers"),
        ] {
            block.push(literal);
            for text in [name, value] {
                block.push(text.len() as u8);
                block.extend_from_slice(text.as_bytes());
            }
        }
        frame::write(Kind::Headers, flag::END_HEADERS | flag::END_STREAM, id, &block, input);
    }

    #[test]
    fn connections_and_streams_need_little_memory() {
        let (mut head, mut out) = (Head::new(), Vec::with_capacity(4096));
        let mut all: Vec<Box<H2>> = Vec::with_capacity(CONNECTIONS);
        let mut preface = PREFACE.to_vec();
        frame::write_settings([].into_iter(), &mut preface);
        // A client acknowledges SETTINGS that it has received.
        let mut ack = Vec::new();
        frame::write_settings_ack(&mut ack);
        let mut first = Vec::new();
        request(1, WITH_INDEXING, &mut first);
        let mut many = Vec::new();
        (0..STREAMS).for_each(|nth| request(3 + 2 * nth, WITHOUT_INDEXING, &mut many));
        // A first connection lets the buffers of `head` grow, so that the measurement does not include them.
        let config = Arc::new(client_config(&Limits::default(), true));
        let mut warm = H2::of_client(&config);
        feed(&mut warm, &mut [preface.clone(), ack.clone(), first.clone()].concat(), &mut head, &mut out);

        let idle = allocated(|| {
            for _ in 0..CONNECTIONS {
                let mut h2 = Box::new(H2::of_client(&config));
                feed(&mut h2, &mut preface, &mut head, &mut out);
                feed(&mut h2, &mut ack, &mut head, &mut out);
                all.push(h2);
            }
        });
        let memory = |all: &[Box<H2>]| all.iter().map(|h2| h2.memory()).sum::<usize>();
        assert_eq!(idle, memory(&all));
        let mut lines = Vec::new();
        let used = allocated(|| {
            for h2 in &mut all {
                let no = feed(h2, &mut first, &mut head, &mut out).unwrap();
                h2.touch(no);
                h2.head(
                    no,
                    Part::Head { end: true },
                    |block| block.encoder.status(200),
                    &mut lines,
                    &mut out,
                );
                let touched = h2.take_touched();
                h2.settled(touched);
                h2.exchange_is_over(no, ErrorCode::NO_ERROR);
                let settled = h2.take_settled();
                h2.give_back_touched(settled);
                out.clear();
                assert!(h2.is_idle());
            }
        });
        assert_eq!(idle + used, memory(&all));
        let streams = allocated(|| {
            for h2 in &mut all {
                feed(h2, &mut many, &mut head, &mut out);
                assert_eq!(h2.len(), STREAMS as usize);
            }
        });
        assert_eq!(idle + used + streams, memory(&all));
        let client = size_of::<Client<TcpStream>>();
        let (idle, used) = (client + idle / CONNECTIONS, client + (idle + used) / CONNECTIONS);
        let stream = streams / CONNECTIONS / STREAMS as usize;
        let found = [idle, used, stream];
        let is_within = found.iter().zip([IDLE, USED, STREAM]).all(|(bytes, most)| *bytes <= most);
        assert!(is_within, "{found:?}, of which {client} for Client");
    }
}
