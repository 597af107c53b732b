//! A server of HTTP/2 with faults, one thread for each connection.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use weir_http2::frame::write_go_away;
use weir_http2::{Config, Connection, ErrorCode, Event, Head, Part, Role, StreamNo};
use weir_tls::{Acceptor, Session};

/// The server's behaviour. Requests are numbered from 1 on each connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Respond,
    /// Responds to all requests with this status.
    Status(u16),
    /// Responds to gRPC calls with these messages and trailers, or without trailers.
    Call {
        messages: &'static [u8],
        status: Option<&'static str>,
    },
    /// Never responds.
    Silent,
    /// Resets each request whose number is a multiple.
    Reset {
        every: u64,
        code: ErrorCode,
    },
    /// GOAWAY with this request as the last; ignores those after it.
    GoAway {
        after: u64,
    },
    /// GOAWAY in two steps, from this request on.
    Drain {
        after: u64,
    },
    /// Closes the connection before the response to this request.
    Close {
        after: u64,
    },
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) connections: u64,
    pub(super) answers: u64,
    /// The maximum number of streams open at once on one connection.
    pub(super) peak: usize,
}

pub(super) struct Server {
    address: SocketAddr,
    stops: Arc<AtomicBool>,
    totals: Arc<Mutex<Totals>>,
    thread: JoinHandle<()>,
}

impl Server {
    pub(super) fn start(script: Script, config: Config) -> Self {
        Self::with(script, config, None)
    }

    pub(super) fn with(script: Script, config: Config, acceptor: Option<Acceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stops, totals) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let (is_over, sums) = (Arc::clone(&stops), Arc::clone(&totals));
        let thread = thread::spawn(move || {
            let mut threads = Vec::new();
            for stream in listener.incoming() {
                if is_over.load(Ordering::Acquire) {
                    break;
                }
                let (session, totals) = (acceptor.as_ref().map(Acceptor::accept), Arc::clone(&sums));
                let peer = Peer::new(stream.unwrap(), session, script, config, totals);
                threads.push(thread::spawn(move || peer.serve()));
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        Self { address, stops, totals, thread }
    }

    pub(super) fn url(&self, scheme: &str, path: &str) -> String {
        format!("{scheme}://{}{path}", self.address)
    }

    pub(super) fn stop(self) -> Totals {
        self.stops.store(true, Ordering::Release);
        drop(TcpStream::connect(self.address).unwrap());
        self.thread.join().unwrap();
        *self.totals.lock().unwrap()
    }
}

/// One connection.
struct Peer {
    socket: TcpStream,
    session: Option<Session>,
    connection: Connection,
    head: Head,
    script: Script,
    totals: Arc<Mutex<Totals>>,
    exchanges: HashMap<StreamNo, Exchange>,
    /// Requests so far, and the last one of GOAWAY.
    requests: u64,
    last: Option<u32>,
    /// Received plaintext, and bytes to send.
    input: Vec<u8>,
    out: Vec<u8>,
}

#[derive(Default)]
struct Exchange {
    path: String,
    is_head: bool,
    body: Vec<u8>,
    /// The rest of the response.
    response: Option<Vec<u8>>,
}

/// Whether the connection continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Goes,
    Ends,
}

impl Peer {
    fn new(
        socket: TcpStream,
        session: Option<Session>,
        script: Script,
        config: Config,
        totals: Arc<Mutex<Totals>>,
    ) -> Self {
        totals.lock().unwrap().connections += 1;
        Self {
            socket,
            session,
            connection: Connection::new(Role::Server, config),
            head: Head::new(),
            script,
            totals,
            exchanges: HashMap::new(),
            requests: 0,
            last: None,
            input: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Until either side closes.
    fn serve(mut self) {
        if self.session.is_none() {
            self.send();
        }
        while self.receive() {
            let next = self.handle();
            self.send();
            let is_over = self.last.is_some() && self.exchanges.is_empty() || self.connection.is_drained();
            if next == Next::Ends || is_over {
                break;
            }
        }
        let _ = self.socket.shutdown(Shutdown::Write);
        // Without unread bytes the close sends no RST.
        let _ = self.socket.read_to_end(&mut Vec::new());
    }

    fn receive(&mut self) -> bool {
        let mut raw = vec![0; 64 * 1024];
        let length = match self.socket.read(&mut raw) {
            Ok(0) | Err(_) => return false,
            Ok(length) => length,
        };
        let Some(session) = &mut self.session else {
            self.input.extend_from_slice(&raw[..length]);
            return true;
        };
        let mut sealed = Vec::new();
        let received = session.receive(&mut raw[..length], &mut self.input, &mut sealed);
        let sent = self.socket.write_all(&sealed);
        received.is_ok_and(|received| !received.peer_closed) && sent.is_ok()
    }

    fn send(&mut self) {
        self.connection.settle(&mut self.out);
        let bytes = std::mem::take(&mut self.out);
        // The client may be gone.
        let _ = match &mut self.session {
            None => self.socket.write_all(&bytes),
            Some(session) if session.is_handshaking() => {
                self.out = bytes;
                Ok(())
            }
            Some(session) => {
                let mut sealed = Vec::new();
                session.send(&bytes, &mut sealed).unwrap();
                self.socket.write_all(&sealed)
            }
        };
    }

    /// Handles all whole events.
    fn handle(&mut self) -> Next {
        let mut input = std::mem::take(&mut self.input);
        let mut at = 0;
        let next = loop {
            let step = self.connection.feed(&mut input[at..], &mut self.head).unwrap();
            let Some(event) = step.event else {
                at += step.consumed;
                break Next::Goes;
            };
            if self.event(&event, &input[at..]) == Next::Ends {
                break Next::Ends;
            }
            at += step.consumed;
        };
        let ready: Vec<StreamNo> = self.exchanges.keys().copied().collect();
        ready.into_iter().for_each(|stream| self.respond(stream));
        self.input = input.split_off(at);
        next
    }

    fn event(&mut self, event: &Event, input: &[u8]) -> Next {
        match event {
            Event::Head { stream, end } => return self.request(*stream, *end),
            Event::Data { stream, range, flow, end } => {
                self.connection.credit(*stream, *flow);
                if let Some(exchange) = self.exchanges.get_mut(stream) {
                    exchange.body.extend_from_slice(&input[range.clone()]);
                    if *end {
                        self.begin_response(*stream);
                    }
                }
            }
            Event::Reset { stream, .. } => {
                self.exchanges.remove(stream);
                self.connection.release(*stream);
            }
            _ => {}
        }
        Next::Goes
    }

    fn request(&mut self, stream: StreamNo, end: bool) -> Next {
        self.requests += 1;
        let open = self.connection.streams();
        let mut totals = self.totals.lock().unwrap();
        totals.peak = totals.peak.max(open);
        drop(totals);
        match self.script {
            Script::Close { after } if self.requests == after => return Next::Ends,
            Script::Reset { every, code } if self.requests.is_multiple_of(every) => {
                self.connection.reset(stream, code);
                self.connection.release(stream);
                return Next::Goes;
            }
            Script::GoAway { .. } if self.last.is_some_and(|last| stream.get() > last) => return Next::Goes,
            Script::GoAway { after } if self.requests == after => {
                self.last = Some(stream.get());
                write_go_away(stream.get(), ErrorCode::NO_ERROR, &mut self.out);
            }
            Script::Drain { after } if self.requests == after => self.connection.go_away(),
            _ => {}
        }
        let path = String::from_utf8_lossy(self.head.path.of(&self.head.bytes)).into_owned();
        let is_head = self.head.method_span.of(&self.head.bytes) == b"HEAD";
        self.exchanges.insert(stream, Exchange { path, is_head, ..Exchange::default() });
        if end {
            self.begin_response(stream);
        }
        Next::Goes
    }

    /// Sends the head of the response to a complete request. `/bytes/N` has N bytes, other paths echo the body.
    fn begin_response(&mut self, stream: StreamNo) {
        let Some(exchange) = self.exchanges.get_mut(&stream) else { return };
        if self.script == Script::Silent {
            return;
        }
        let status = if let Script::Status(status) = self.script { status } else { 200 };
        let body = match exchange.path.strip_prefix("/bytes/") {
            Some(length) => vec![b'x'; length.parse().unwrap()],
            None => std::mem::take(&mut exchange.body),
        };
        let length = body.len().to_string();
        if let Script::Call { messages, .. } = self.script {
            let write = |to: &mut weir_http2::hpack::Encoder<'_>| {
                to.status(200);
                to.field(b"content-type", b"application/grpc");
            };
            self.connection.head(stream, Part::Head { end: false }, write, &mut self.out).unwrap();
            exchange.response = Some(messages.to_vec());
            return;
        }
        let end = body.is_empty() || exchange.is_head;
        let write = |to: &mut weir_http2::hpack::Encoder<'_>| {
            to.status(status);
            to.field(b"content-length", length.as_bytes());
        };
        self.connection.head(stream, Part::Head { end }, write, &mut self.out).unwrap();
        exchange.response = Some(if end { Vec::new() } else { body });
        if end {
            self.finish(stream);
        }
    }

    /// Sends the body as far as the windows allow.
    fn respond(&mut self, stream: StreamNo) {
        let Some(rest) = self.exchanges.get_mut(&stream).and_then(|exchange| exchange.response.as_mut())
        else {
            return;
        };
        let status = if let Script::Call { status, .. } = self.script { status } else { None };
        let taken = self.connection.data(stream, rest, status.is_none(), &mut self.out).unwrap();
        rest.drain(..taken);
        if rest.is_empty() {
            if let Some(status) = status {
                let write =
                    |to: &mut weir_http2::hpack::Encoder<'_>| to.field(b"grpc-status", status.as_bytes());
                self.connection.head(stream, Part::Trailers, write, &mut self.out).unwrap();
            }
            self.finish(stream);
        }
    }

    fn finish(&mut self, stream: StreamNo) {
        self.exchanges.remove(&stream);
        self.connection.release(stream);
        self.totals.lock().unwrap().answers += 1;
    }
}
