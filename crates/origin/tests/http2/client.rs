//! A client with many streams, which sends and receives only when told to.

use crate::server::Server;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use weir_http2::hpack::Encoder;
use weir_http2::{Config, Connection, ErrorCode, Event, Head, Part, Role, Scheme, Settings, StreamNo};

pub(super) struct Client {
    pub(super) socket: TcpStream,
    protocol: Connection,
    head: Head,
    input: Vec<u8>,
    pub(super) out: Vec<u8>,
    /// The responses so far, by stream.
    pub(super) responses: BTreeMap<StreamNo, Response>,
    /// The stream of each received piece of a body, and its length.
    pub(super) pieces: Vec<(StreamNo, usize)>,
    /// The last stream and the reason of each GOAWAY.
    pub(super) goaways: Vec<(u32, ErrorCode)>,
    pongs: usize,
    /// Whether bodies are consumed as they arrive.
    pub(super) credits: bool,
}

#[derive(Debug, Default)]
pub(super) struct Response {
    pub(super) interim: Vec<u16>,
    pub(super) status: u16,
    pub(super) fields: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
    pub(super) trailers: BTreeMap<String, String>,
    pub(super) is_complete: bool,
    pub(super) reset: Option<ErrorCode>,
}

/// Windows that no test fills.
pub(super) fn large_windows() -> Config {
    let settings = Settings { initial_window_size: (1 << 31) - 1, ..Config::default().settings };
    Config { settings: Settings { max_concurrent_streams: Some(1000), ..settings }, ..Config::default() }
}

impl Client {
    pub(super) fn new(server: &Server) -> Self {
        Self::with(server, Config::default())
    }

    /// After the exchange of settings.
    pub(super) fn with(server: &Server, config: Config) -> Self {
        let socket = server.connect();
        socket.set_nodelay(true).unwrap();
        let mut client = Self {
            socket,
            protocol: Connection::new(Role::Client, config),
            head: Head::new(),
            input: Vec::new(),
            out: Vec::new(),
            responses: BTreeMap::new(),
            pieces: Vec::new(),
            goaways: Vec::new(),
            pongs: 0,
            credits: true,
        };
        client.send();
        client.until(|client| client.protocol.is_acknowledged());
        client.barrier();
        client
    }

    /// Writes a request's head; it leaves with the next [`Client::send`].
    pub(super) fn request(
        &mut self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        end: bool,
    ) -> StreamNo {
        let no = self.protocol.open(method == "HEAD").unwrap();
        let write = |to: &mut Encoder<'_>| {
            to.request(method.as_bytes(), Scheme::Http, b"localhost", path.as_bytes());
            fields.iter().for_each(|(name, value)| to.field(name.as_bytes(), value.as_bytes()));
        };
        self.protocol.head(no, Part::Head { end }, write, &mut self.out).unwrap();
        self.responses.insert(no, Response::default());
        no
    }

    pub(super) fn get(&mut self, path: &str) -> StreamNo {
        self.request("GET", path, &[], true)
    }

    /// Writes as much of a body as the windows allow; returns the number of bytes.
    pub(super) fn data(&mut self, no: StreamNo, body: &[u8], end: bool) -> usize {
        self.protocol.data(no, body, end, &mut self.out).unwrap()
    }

    /// Writes the trailers that end a request.
    pub(super) fn trailers(&mut self, no: StreamNo, name: &str, value: &str) {
        let write = |to: &mut Encoder<'_>| to.field(name.as_bytes(), value.as_bytes());
        self.protocol.head(no, Part::Trailers, write, &mut self.out).unwrap();
    }

    /// Sends a whole body, while the server takes it.
    pub(super) fn upload(&mut self, no: StreamNo, body: &[u8]) {
        let mut sent = 0;
        loop {
            sent += self.data(no, &body[sent..], true);
            self.send();
            if sent == body.len() {
                return;
            }
            self.step();
        }
    }

    pub(super) fn reset(&mut self, no: StreamNo, code: ErrorCode) {
        self.protocol.reset(no, code);
        self.protocol.release(no);
    }

    /// Opens a stream with a frame that `write` makes of its number, and sends it.
    pub(super) fn opened_elsewhere(&mut self, write: impl FnOnce(u32) -> Vec<u8>) -> StreamNo {
        let no = self.request("POST", "/", &[], false);
        self.out = write(no.get());
        self.send();
        no
    }

    /// Gives back the received bytes of a stream.
    pub(super) fn credit(&mut self, no: StreamNo, bytes: usize) {
        self.protocol.credit(no, bytes as u32);
        self.send();
    }

    pub(super) fn send(&mut self) {
        self.protocol.settle(&mut self.out);
        self.socket.write_all(&self.out).unwrap();
        self.out.clear();
    }

    /// Waits until the server has handled everything sent before.
    pub(super) fn barrier(&mut self) {
        let pongs = self.pongs;
        self.protocol.ping();
        self.send();
        self.until(|client| client.pongs > pongs);
    }

    /// Receives until `condition` holds.
    #[track_caller]
    pub(super) fn until(&mut self, condition: impl Fn(&Self) -> bool) {
        while !condition(self) {
            assert!(self.step(), "the server closed the connection: {:?}", self.goaways);
        }
    }

    /// Waits for a whole response.
    #[track_caller]
    pub(super) fn response(&mut self, no: StreamNo) -> Response {
        self.send();
        self.until(|client| client.responses[&no].is_complete);
        let response = self.responses.remove(&no).unwrap();
        self.protocol.release(no);
        response
    }

    /// Receives until the server closes the connection.
    pub(super) fn read_to_end(&mut self) {
        while self.step() {}
    }

    /// Receives bytes, and sends what they cause. Returns whether there were any.
    pub(super) fn step(&mut self) -> bool {
        let mut bytes = [0; 64 * 1024];
        let length = self.socket.read(&mut bytes).unwrap();
        self.input.extend_from_slice(&bytes[..length]);
        let mut at = 0;
        loop {
            let step = self.protocol.feed(&mut self.input[at..], &mut self.head).unwrap();
            let Some(event) = step.event else {
                at += step.consumed;
                break;
            };
            self.handle(event, at);
            at += step.consumed;
        }
        self.input.drain(..at);
        if self.credits && length > 0 {
            self.protocol.settle(&mut self.out);
            // The server may have closed the connection.
            let _ = self.socket.write_all(&self.out);
            self.out.clear();
        }
        length > 0
    }

    /// The fields of the current head or trailers.
    fn fields(&self) -> BTreeMap<String, String> {
        let text = |span: weir_http::Span| String::from_utf8_lossy(span.of(&self.head.bytes)).into_owned();
        self.head.fields.iter().map(|field| (text(field.name), text(field.value))).collect()
    }

    fn handle(&mut self, event: Event, at: usize) {
        match event {
            Event::Head { stream, end } => {
                let (status, fields) = (self.head.status, self.fields());
                let response = self.responses.get_mut(&stream).unwrap();
                match status {
                    100..=199 => response.interim.push(status),
                    status => (response.status, response.fields) = (status, fields),
                }
                response.is_complete = end;
            }
            Event::Data { stream, range, flow, end } => {
                let data = &self.input[at + range.start..at + range.end];
                self.pieces.push((stream, data.len()));
                let response = self.responses.get_mut(&stream).unwrap();
                response.body.extend_from_slice(data);
                response.is_complete = end;
                if self.credits {
                    self.protocol.credit(stream, flow);
                }
            }
            Event::Trailers { stream } => {
                let trailers = self.fields();
                let response = self.responses.get_mut(&stream).unwrap();
                (response.trailers, response.is_complete) = (trailers, true);
            }
            Event::Reset { stream, code } => {
                self.responses.get_mut(&stream).unwrap().reset = Some(code);
            }
            Event::GoAway { last, code } => self.goaways.push((last, code)),
            Event::Pong => self.pongs += 1,
            Event::Room { .. } | Event::Settings | Event::Pause => {}
            other => panic!("{other:?}"),
        }
    }
}
