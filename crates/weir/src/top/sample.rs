//! The state of a gateway, as its admin address reports it.

use serde_json::Value;
use socket2::Socket;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use weir_gateway::{Row, ServerReport};
use weir_http::Method;
use weir_http1::{BodyDecoder, Limits, Parse, ResponseHead};
use weir_transport::{Address, Place};

/// A gateway and the persistent connection to it. Over this connection, a draining process still responds after its
/// successor has taken over the address.
#[derive(Debug)]
pub(super) struct Gateway<'a> {
    admin: &'a Place,
    stream: Option<Socket>,
}

/// The gateway's state at one moment.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub at: Instant,
    pub state: Value,
    /// The servers, in the configuration's order.
    pub servers: Vec<ServerReport>,
}

impl<'a> Gateway<'a> {
    pub(super) fn new(admin: &'a Place) -> Self {
        Self { admin, stream: None }
    }

    /// Asks the gateway for its state. The error is a message.
    pub(super) fn sample(&mut self) -> Result<Sample, String> {
        let body = match self.stream.take() {
            // The gateway may have closed the connection since the last request.
            Some(stream) => self.ask(stream).or_else(|_| self.connect().and_then(|stream| self.ask(stream))),
            None => self.connect().and_then(|stream| self.ask(stream)),
        }?;
        let state = serde_json::from_slice(&body).map_err(|_| STRANGER.to_owned())?;
        Sample::new(Instant::now(), state).ok_or_else(|| STRANGER.to_owned())
    }

    fn connect(&self) -> Result<Socket, String> {
        let connect = || {
            let stream: OwnedFd = match self.admin.resolve()? {
                Address::Tcp(address) => TcpStream::connect_timeout(&address, WITHIN)?.into(),
                Address::Unix(path) => UnixStream::connect(path)?.into(),
            };
            let stream = Socket::from(stream);
            stream.set_read_timeout(Some(WITHIN))?;
            stream.set_write_timeout(Some(WITHIN))?;
            io::Result::Ok(stream)
        };
        connect().map_err(|error| format!("{error}; add an [admin] table to the configuration"))
    }

    /// Sends a request and returns the response body. Keeps the connection if it is persistent.
    fn ask(&mut self, stream: Socket) -> Result<Vec<u8>, String> {
        let (head, body) = exchange(&stream, &self.admin.authority()).map_err(|error| error.to_string())?;
        if head.persistent {
            self.stream = Some(stream);
        }
        match head.status {
            200 => Ok(body),
            status => Err(format!("status {status}: {}", String::from_utf8_lossy(&body).trim_end())),
        }
    }
}

impl Sample {
    /// Parses the state; `None` if the JSON is not that of a gateway.
    pub(super) fn new(at: Instant, mut state: Value) -> Option<Self> {
        let servers = serde_json::from_value(state.get_mut("servers")?.take()).ok()?;
        Some(Self { at, state, servers })
    }

    /// The value of a metric without labels; 0 if the gateway does not report it.
    pub(super) fn count(&self, metric: &Row) -> f64 {
        number(self.of(metric))
    }

    /// The count at this index of a list.
    pub(super) fn at(&self, metric: &Row, index: usize) -> f64 {
        number(self.of(metric).and_then(|list| list.get(index)))
    }

    /// The count with this name in a list of names and counts.
    pub(super) fn named(&self, metric: &Row, name: &str) -> f64 {
        let mut pairs = self.of(metric).and_then(Value::as_array).into_iter().flatten();
        number(pairs.find(|pair| pair[0] == name).map(|pair| &pair[1]))
    }

    /// The names in a list of names and counts.
    pub(super) fn names(&self, metric: &Row) -> impl Iterator<Item = &str> {
        let pairs = self.of(metric).and_then(Value::as_array).into_iter().flatten();
        pairs.filter_map(|pair| pair[0].as_str())
    }

    /// The server of this sample that is the same as `other` of another sample.
    pub(super) fn same_server(&self, other: &ServerReport) -> Option<&ServerReport> {
        let is_same =
            |server: &&ServerReport| (&server.service, &server.server) == (&other.service, &other.server);
        self.servers.iter().find(is_same)
    }

    fn of(&self, metric: &Row) -> Option<&Value> {
        self.state.get(metric.key()?)
    }
}

fn number(value: Option<&Value>) -> f64 {
    value.and_then(Value::as_f64).unwrap_or_default()
}

fn exchange(stream: &Socket, host: &str) -> io::Result<(ResponseHead, Vec<u8>)> {
    let mut stream = stream;
    stream.write_all(format!("GET /status HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())?;
    let stranger = || io::Error::new(ErrorKind::InvalidData, STRANGER);
    let (mut bytes, mut some, mut head) = (Vec::new(), [0; 16 << 10], ResponseHead::new());
    let mut read = |bytes: &mut Vec<u8>| match stream.read(&mut some)? {
        0 => Err(io::Error::from(ErrorKind::UnexpectedEof)),
        _ if bytes.len() > LARGEST => Err(stranger()),
        read => {
            bytes.extend_from_slice(&some[..read]);
            Ok(())
        }
    };
    let len = loop {
        match head.parse(&bytes, &Limits::default()) {
            Ok(Parse::Complete(len)) => break len,
            Ok(Parse::Partial) => read(&mut bytes)?,
            Err(_) => return Err(stranger()),
        }
    };
    let mut raw = bytes.split_off(len);
    let mut decoder = BodyDecoder::new(head.framing(Method::Get), &Limits::default());
    let (mut body, mut at) = (Vec::new(), 0);
    while !decoder.is_complete() {
        let step = decoder.decode(&raw[at..]).map_err(|_| stranger())?;
        body.extend_from_slice(&raw[at..][step.data]);
        at += step.consumed;
        if step.consumed == 0 && !decoder.is_complete() {
            read(&mut raw)?;
        }
    }
    Ok((head, body))
}

const STRANGER: &str = "expected the admin address of a gateway";

/// The timeout of connecting, and of each read and write. A gateway normally responds within a second.
const WITHIN: Duration = Duration::from_secs(3);

/// The maximum size of a response: enough for the state of thousands of servers.
const LARGEST: usize = 16 << 20;
