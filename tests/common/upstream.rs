//! An upstream that runs a test's script and records what it receives.

use super::{DEADLINE, Ending, Stream, poll_until};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use weir_http1::{BodyDecoder, Limits, Parse, RequestHead};
use weir_tls::Acceptor;

/// A listener that runs a script for each connection, on a thread of its own.
pub struct Upstream {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// One accepted connection, as seen by its script.
pub struct Peer {
    pub stream: Stream,
    /// The number of this connection, from 0.
    pub index: usize,
    shared: Arc<Shared>,
    /// The number of bytes put back that the record already contains.
    unread: usize,
}

/// One request as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The number of its connection.
    pub connection: usize,
    /// The head, including its empty line.
    pub head: String,
    /// The body, decoded.
    pub body: Vec<u8>,
    /// The body as received, with its framing.
    pub raw_body: Vec<u8>,
}

#[derive(Default)]
struct Shared {
    /// All bytes received, by connection; over TLS, decrypted.
    received: Mutex<Vec<Vec<u8>>>,
    requests: Mutex<Vec<Message>>,
    endings: Mutex<Vec<(usize, Ending)>>,
    stopping: AtomicBool,
}

impl Upstream {
    /// Listens on a free port and runs `script` for each connection, which closes when the script returns.
    pub fn start(tls: Option<Acceptor>, script: impl Fn(&mut Peer) + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), tls, script)
    }

    /// Like [`Upstream::start`], on this listener.
    pub fn on(
        listener: TcpListener,
        tls: Option<Acceptor>,
        script: impl Fn(&mut Peer) + Send + Sync + 'static,
    ) -> Self {
        super::enough_files();
        let (address, shared) = (listener.local_addr().unwrap(), Arc::<Shared>::default());
        let seen = Arc::clone(&shared);
        let script = Arc::new(script);
        let thread = std::thread::spawn(move || {
            for (index, tcp) in listener.incoming().enumerate() {
                if seen.stopping.load(Ordering::SeqCst) {
                    break;
                }
                let (Ok(tcp), tls) = (tcp, tls.clone()) else { continue };
                let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
                seen.received.lock().unwrap().push(Vec::new());
                std::thread::spawn(move || {
                    // The other side reports a failed handshake.
                    let Ok(stream) = Stream::over(tcp, tls.map(|tls| tls.accept())) else { return };
                    let mut peer = Peer { stream, index, shared: seen, unread: 0 };
                    script(&mut peer);
                    peer.stream.finish();
                });
            }
        });
        Self { address, shared, thread: Some(thread) }
    }

    /// The number of connections accepted.
    pub fn connections(&self) -> usize {
        self.shared.received.lock().unwrap().len()
    }

    /// All bytes received on connection number `index`; over TLS, decrypted.
    pub fn received(&self, index: usize) -> Vec<u8> {
        self.shared.received.lock().unwrap().get(index).cloned().unwrap_or_default()
    }

    /// The number of bytes received on all connections.
    pub fn received_bytes(&self) -> usize {
        self.shared.received.lock().unwrap().iter().map(Vec::len).sum()
    }

    /// The complete requests, in the order of their completion.
    pub fn requests(&self) -> MutexGuard<'_, Vec<Message>> {
        self.shared.requests.lock().unwrap()
    }

    /// Waits for this many complete requests.
    pub fn wait_for_requests(&self, count: usize) {
        poll_until(DEADLINE, &format!("{count} requests at the upstream"), || self.requests().len() >= count);
    }

    /// Waits until the gateway has closed connection number `index`; returns the kind of close. Its script must be
    /// reading.
    pub fn wait_for_ending(&self, index: usize) -> Ending {
        let mut ending = None;
        poll_until(DEADLINE, &format!("the end of upstream connection {index}"), || {
            let endings = self.shared.endings.lock().unwrap();
            ending = endings.iter().find(|(of, _)| *of == index).map(|(_, ending)| *ending);
            ending.is_some()
        });
        ending.unwrap()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wake the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Peer {
    /// Reads one request with its body; `None` at the end of the connection.
    pub fn request(&mut self) -> Option<Message> {
        let (head, framing) = self.head()?;
        let (mut body, mut raw_body, mut unread) = (Vec::new(), Vec::new(), Vec::new());
        let mut decoder = BodyDecoder::new(framing, &Limits::default());
        while !decoder.is_complete() {
            if self.receive(&mut unread).is_some() {
                return None;
            }
            let mut at = 0;
            while !decoder.is_complete() && at < unread.len() {
                let step = decoder.decode(&unread[at..]).expect("the gateway's framing");
                body.extend_from_slice(&unread[at..][step.data]);
                at += step.consumed;
            }
            raw_body.extend_from_slice(&unread[..at]);
            unread.drain(..at);
        }
        self.put_back(&unread);
        let message = Message { connection: self.index, head, body, raw_body };
        self.shared.requests.lock().unwrap().push(message.clone());
        Some(message)
    }

    /// Reads one request head and leaves the rest unread; `None` at the end of the connection.
    pub fn head(&mut self) -> Option<(String, weir_http1::Framing)> {
        let (mut bytes, mut head) = (Vec::new(), RequestHead::new());
        // Generous limits: this server must not reject what the gateway forwards.
        let most = Limits { head_bytes: 1 << 20, line_bytes: 1 << 20, fields: 1000, ..Limits::default() };
        loop {
            if self.receive(&mut bytes).is_some() {
                return None;
            }
            match head.parse(&bytes, &most) {
                Ok(Parse::Complete(len)) => {
                    self.put_back(&bytes[len..]);
                    bytes.truncate(len);
                    return Some((String::from_utf8_lossy(&bytes).into_owned(), head.framing));
                }
                Ok(Parse::Partial) => {}
                Err(error) => panic!("{error}: {:?}", String::from_utf8_lossy(&bytes)),
            }
        }
    }

    /// Sends all of `bytes`; returns whether that succeeded.
    pub fn answer(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.send(bytes.as_ref()).is_ok()
    }

    /// Reads to the end of the connection; returns the kind of close.
    pub fn read_to_end(&mut self) -> Ending {
        loop {
            if let Some(ending) = self.receive(&mut Vec::new()) {
                return ending;
            }
        }
    }

    /// Sends the same bytes to every request until the gateway closes the connection.
    pub fn serve(&mut self, answer: impl AsRef<[u8]>) {
        while self.request().is_some() {
            self.answer(answer.as_ref());
        }
    }

    /// Appends at least one byte to `into` and the record, or returns the kind of close.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> Option<Ending> {
        let before = into.len();
        let ending = self.stream.receive(into);
        if let Some(ending) = ending {
            self.shared.endings.lock().unwrap().push((self.index, ending));
        }
        // The record already contains bytes that were put back.
        let known = std::mem::take(&mut self.unread);
        self.shared.received.lock().unwrap()[self.index].extend_from_slice(&into[before + known..]);
        ending
    }

    fn put_back(&mut self, bytes: &[u8]) {
        self.stream.unread(bytes);
        self.unread = bytes.len();
    }
}

/// The values of the fields with this name in a head, in any case.
pub(super) fn fields<'a>(head: &'a str, name: &str) -> Vec<&'a str> {
    head.lines()
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .filter(|(field, _)| field.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
        .collect()
}

impl Message {
    /// The values of the fields with this name, in any case.
    pub fn fields(&self, name: &str) -> Vec<&str> {
        fields(&self.head, name)
    }
}
