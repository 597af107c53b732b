//! A client that opens one connection at a time, counts TLS records, and times the parts of a response.

use rustix::net::sockopt::set_tcp_quickack;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use weir_http::Method;
use weir_http1::{BodyDecoder, Framing, Limits, Parse, ResponseHead};
use weir_load::Target;
use weir_tls::{Client, ClientSettings, Connector, Group, PeerName, Roots, Session, SettingsError};

/// Opens connections to a service.
pub(crate) struct Visitor {
    address: SocketAddr,
    /// `None` in cleartext.
    tls: Option<(Client, PeerName)>,
    request: Vec<u8>,
}

/// A connection, after its handshake if it uses TLS.
pub(crate) struct Visit {
    tcp: TcpStream,
    /// `None` in cleartext.
    session: Option<Session>,
    records: Records,
    plain: Vec<u8>,
    request: Vec<u8>,
    acks_at_once: bool,
    is_closed: bool,
}

/// A response.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Exchange {
    pub(crate) status: u16,
    /// The `Server` field.
    pub(crate) server: Option<String>,
    pub(crate) body_bytes: u64,
    /// The records that contain the response, and their payload bytes, including TLS overhead.
    pub(crate) records: u64,
    pub(crate) record_bytes: u64,
    /// From the first byte of the response to the last.
    pub(crate) spread: Duration,
    /// From the first byte of the request to the last of the response.
    pub(crate) took: Duration,
    /// Whether the server keeps the connection.
    pub(crate) persistent: bool,
}

/// The timeout of each wait.
const PATIENCE: Duration = Duration::from_secs(5);

/// More of a body would not show more about records.
const MOST_BODY: u64 = 4 << 20;

impl Visitor {
    pub(crate) fn new(target: &Target, roots: &Roots) -> io::Result<Self> {
        let tls = target.endpoint.tls.then(|| client(target, roots)).transpose()?;
        let (path, host) = (&target.path, target.endpoint.authority());
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: weir\r\nAccept: */*\r\n\r\n");
        Ok(Self { address: target.endpoint.resolve()?, tls, request: request.into_bytes() })
    }

    /// The address of the service.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connects, and completes a full handshake if the service uses TLS. With `acks_at_once`, this side does not delay
    /// acknowledgements.
    pub(crate) fn open(&self, acks_at_once: bool) -> io::Result<Visit> {
        let session = self.tls.as_ref().map(|(client, name)| client.core().connect_full(name));
        self.connect(session, acks_at_once)
    }

    /// A client that has completed one exchange, with its session; `None` without a session.
    pub(crate) fn leave_with_session(&self) -> io::Result<Option<Connector>> {
        let Some((client, name)) = &self.tls else { return Ok(None) };
        let connector = client.core();
        // In TLS 1.3 the session arrives with the response.
        self.connect(Some(connector.connect_full(name)), false)?.exchange()?;
        Ok((connector.sessions(name) > 0).then_some(connector))
    }

    /// Whether the server resumes the session of this client.
    pub(crate) fn resumes(&self, connector: &Connector) -> io::Result<bool> {
        let session = self.tls.as_ref().and_then(|(_, name)| connector.connect_resuming(name));
        let Some(session) = session else { return Ok(false) };
        let mut visit = self.connect(Some(session), false)?;
        let facts = visit.session.as_ref().and_then(Session::facts);
        let resumed = facts.is_some_and(|facts| facts.kind.is_resumption());
        visit.exchange()?;
        Ok(resumed)
    }

    fn connect(&self, session: Option<Session>, acks_at_once: bool) -> io::Result<Visit> {
        let tcp = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(PATIENCE))?;
        tcp.set_write_timeout(Some(PATIENCE))?;
        let (records, plain, request) = (Records::default(), Vec::new(), self.request.clone());
        let mut visit = Visit { tcp, session, records, plain, request, acks_at_once, is_closed: false };
        visit.process(&mut [])?;
        while visit.session.as_ref().is_some_and(Session::is_handshaking) {
            visit.fill()?;
            if visit.is_closed {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "closed in the handshake"));
            }
        }
        Ok(visit)
    }
}

fn client(target: &Target, roots: &Roots) -> io::Result<(Client, PeerName)> {
    let settings = ClientSettings {
        roots: roots.clone(),
        alpn: vec![b"http/1.1".to_vec()],
        groups: Group::CLASSICAL.to_vec(),
        ..ClientSettings::default()
    };
    let client = Client::new(&settings).map_err(|error: SettingsError| io::Error::other(error))?;
    Ok((client, target.endpoint.host.parse().map_err(io::Error::other)?))
}

impl Visit {
    /// Sends the request and reads the response; `None` if the server closed the connection before it.
    pub(crate) fn exchange(&mut self) -> io::Result<Option<Exchange>> {
        self.plain.clear();
        let started = Instant::now();
        let mut sealed = Vec::new();
        match &mut self.session {
            Some(session) => session.send(&self.request, &mut sealed).map_err(io::Error::other).map(drop)?,
            None => sealed.extend_from_slice(&self.request),
        }
        self.records =
            Records { partial: self.records.partial, left: self.records.left, ..Records::default() };
        if let Err(error) = self.tcp.write_all(&sealed) {
            return if is_gone(&error) { Ok(None) } else { Err(error) };
        }
        let mut reading = Reading::default();
        let mut first = None;
        loop {
            self.fill()?;
            if first.is_none() && !self.plain.is_empty() {
                first = Some(Instant::now());
            }
            let is_complete = reading.read(&mut self.plain, self.is_closed)?;
            if self.is_closed && !is_complete && reading.body.is_none() {
                return Ok(None);
            }
            if is_complete || reading.bytes > MOST_BODY {
                break;
            }
            if self.is_closed {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "the response is truncated"));
            }
        }
        let persistent = reading.persistent && !self.is_closed && reading.bytes <= MOST_BODY;
        Ok(Some(Exchange {
            status: reading.head.status,
            server: reading.server,
            body_bytes: reading.bytes,
            records: self.records.count,
            record_bytes: self.records.bytes,
            spread: first.map_or(Duration::ZERO, |first| first.elapsed()),
            took: started.elapsed(),
            persistent,
        }))
    }

    /// The time until the server closes the connection; `None` if it stays open for `most`.
    pub(crate) fn idle(&mut self, most: Duration) -> io::Result<Option<Duration>> {
        let started = Instant::now();
        while !self.is_closed {
            let left = most.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            self.tcp.set_read_timeout(Some(left))?;
            match self.fill() {
                Err(error) if error.kind() == ErrorKind::TimedOut => {}
                filled => filled?,
            }
        }
        Ok(Some(started.elapsed()))
    }

    /// Reads once.
    fn fill(&mut self) -> io::Result<()> {
        if self.acks_at_once {
            // The kernel resets the option, so set it before each read.
            set_tcp_quickack(&self.tcp, true)?;
        }
        let mut bytes = vec![0; 64 * 1024];
        match self.tcp.read(&mut bytes) {
            Ok(0) => self.is_closed = true,
            Ok(length) if self.session.is_none() => self.plain.extend_from_slice(&bytes[..length]),
            Ok(length) => {
                self.records.count(&bytes[..length]);
                self.process(&mut bytes[..length])?;
            }
            Err(error) if is_gone(&error) => self.is_closed = true,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(io::Error::new(ErrorKind::TimedOut, "the server did not respond in time"));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn process(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let Some(session) = &mut self.session else { return Ok(()) };
        let mut reply = Vec::new();
        let received = session.receive(bytes, &mut self.plain, &mut reply);
        if !reply.is_empty() {
            match self.tcp.write_all(&reply) {
                Err(error) if !is_gone(&error) => return Err(error),
                _ => {}
            }
        }
        self.is_closed |= received.map_err(io::Error::other)?.peer_closed;
        Ok(())
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted)
}

/// The response read so far.
#[derive(Default)]
struct Reading {
    head: ResponseHead,
    body: Option<BodyDecoder>,
    server: Option<String>,
    persistent: bool,
    bytes: u64,
}

impl Reading {
    /// Consumes bytes. Returns whether the response is complete.
    fn read(&mut self, plain: &mut Vec<u8>, is_closed: bool) -> io::Result<bool> {
        let limits = Limits::default();
        while self.body.is_none() {
            let Parse::Complete(length) = self.head.parse(plain, &limits).map_err(io::Error::other)? else {
                return Ok(false);
            };
            let framing = self.head.framing(Method::Get);
            let text = |span: &weir_http::Span| String::from_utf8_lossy(span.of(plain)).into_owned();
            let field = self.head.fields.iter().find(|one| text(&one.name).eq_ignore_ascii_case("server"));
            self.server = field.map(|one| text(&one.value));
            self.persistent = self.head.persistent && framing != Framing::UntilClose;
            plain.drain(..length);
            // Skip an interim response, which precedes the final one.
            if self.head.status >= 200 {
                self.body = Some(BodyDecoder::new(framing, &limits));
            }
        }
        let Some(body) = &mut self.body else { return Ok(false) };
        while !body.is_complete() && !plain.is_empty() {
            let decoded = body.decode(plain).map_err(io::Error::other)?;
            self.bytes += decoded.data.len() as u64;
            if decoded.consumed == 0 {
                break;
            }
            plain.drain(..decoded.consumed);
        }
        if is_closed && !body.is_complete() {
            body.end_of_input().map_err(io::Error::other)?;
            return Ok(true);
        }
        Ok(body.is_complete())
    }
}

/// Counts records of application data in ciphertext (RFC 8446 5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Records {
    count: u64,
    bytes: u64,
    /// The bytes received of the current header, and their number.
    partial: ([u8; HEADER], usize),
    /// The remaining payload bytes of the record.
    left: usize,
}

const HEADER: usize = 5;
const APPLICATION_DATA: u8 = 23;

impl Records {
    fn count(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left > 0 {
                let skipped = self.left.min(bytes.len());
                self.left -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            let (header, seen) = &mut self.partial;
            header[*seen] = bytes[0];
            *seen += 1;
            bytes = &bytes[1..];
            if *seen == HEADER {
                *seen = 0;
                self.left = usize::from(u16::from_be_bytes([header[3], header[4]]));
                if header[0] == APPLICATION_DATA {
                    self.count += 1;
                    self.bytes += self.left as u64;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_however_they_are_split() {
        let record = |kind: u8, length: u16| {
            let mut bytes = vec![kind, 3, 3];
            bytes.extend(length.to_be_bytes());
            bytes.resize(HEADER + usize::from(length), 7);
            bytes
        };
        let stream = [record(22, 90), record(23, 300), record(23, 0), record(23, 5)].concat();
        for size in [1, 4, 7, stream.len()] {
            let mut records = Records::default();
            stream.chunks(size).for_each(|piece| records.count(piece));
            assert_eq!((records.count, records.bytes, records.left), (3, 305, 0), "{size}");
        }
    }

    #[test]
    fn a_response_is_complete_by_its_framing() {
        let read = |pieces: &[&str], is_closed: bool| {
            let (mut reading, mut plain) = (Reading::default(), Vec::new());
            let mut is_complete = false;
            for piece in pieces {
                plain.extend_from_slice(piece.as_bytes());
                is_complete = reading.read(&mut plain, is_closed).expect("parses");
            }
            (is_complete, reading.bytes, reading.persistent)
        };
        let head = "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 3\r\n\r\n";
        assert_eq!(read(&[head, "ab", "c"], false), (true, 3, true));
        assert_eq!(read(&[head, "ab"], false), (false, 2, true));
        assert_eq!(read(&["HTTP/1.1 103 Early\r\n\r\n", head, "abc"], false), (true, 3, true));
        assert_eq!(read(&["HTTP/1.1 200 OK\r\n\r\n", "abcd"], false), (false, 4, false));
        assert_eq!(read(&["HTTP/1.1 200 OK\r\n\r\nab"], true), (true, 2, false));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
        assert_eq!(read(&[chunked, "2\r\nab\r\n", "0\r\n\r\n"], false), (true, 2, false));
    }
}
