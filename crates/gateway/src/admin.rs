//! The admin address: metrics, health, state. It is served by threads of its own, which ask the workers by mail; what waits
//! here keeps no request waiting.

use crate::control::gather;
use crate::observe::Report;
use crate::secrets::SecretsFile;
use crate::worker::Control;
use rustix::event::{PollFd, PollFlags, poll};
use socket2::Socket;
use std::io::{self, Read as _, Write as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use weir_http1::{Limits, Method, Parse, RequestHead};
use weir_reactor::mailbox::Sender;

/// What is served.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    pub workers: Vec<Sender<Control>>,
    /// The configuration in words.
    pub config: Arc<str>,
    /// The files of certificates, and when they expire, in seconds since 1970.
    pub expiry: Arc<[(String, i64)]>,
    /// The files of ticket secrets.
    pub secrets: Arc<[Arc<SecretsFile>]>,
}

/// Where it is served.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(weir_reactor::Listener),
}

impl Listener {
    /// As a URL, or `unix:PATH`. Errors: as getsockname(2).
    pub(crate) fn place(&self) -> io::Result<String> {
        match self {
            Self::Tcp(listener) => Ok(format!("http://{}", listener.local_addr()?)),
            Self::Unix(listener) => Ok(listener.address().to_string()),
        }
    }

    /// Takes a socket's name away.
    pub(crate) fn close(&self) {
        match self {
            Self::Tcp(_) => {}
            Self::Unix(listener) => listener.refuse_new(),
        }
    }

    /// Waits for the next connection. Errors: as accept(2).
    fn accept(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Tcp(listener) => Ok(listener.accept()?.0.into()),
            Self::Unix(listener) => loop {
                let mut waits = [PollFd::new(listener, PollFlags::IN)];
                rustix::io::retry_on_intr(|| poll(&mut waits, None))?;
                if let Some((stream, _)) = listener.accept()? {
                    rustix::io::ioctl_fionbio(&stream, false)?;
                    return Ok(stream);
                }
            },
        }
    }
}

/// Requests are short, and so are those who ask.
const WITHIN: Duration = Duration::from_secs(5);

/// Connections at one time; more are closed.
const MOST: usize = 32;

/// Serves until the process ends. Errors: no thread can be started.
pub(crate) fn start(listener: Arc<Listener>, admin: Admin) -> io::Result<()> {
    let open = Arc::new(AtomicUsize::new(0));
    thread::Builder::new().name("admin".into()).spawn(move || {
        loop {
            let Ok(stream) = listener.accept() else {
                // Out of descriptors, say.
                thread::sleep(Duration::from_millis(100));
                continue;
            };
            if open.fetch_add(1, Ordering::Relaxed) >= MOST {
                open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (admin, count) = (admin.clone(), Arc::clone(&open));
            let spawned = thread::Builder::new().name("admin".into()).spawn(move || {
                // A client that goes away is no fault of ours.
                let _ = admin.serve(Socket::from(stream));
                count.fetch_sub(1, Ordering::Relaxed);
            });
            if spawned.is_err() {
                open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    })?;
    Ok(())
}

impl Admin {
    fn serve(&self, mut stream: Socket) -> io::Result<()> {
        stream.set_read_timeout(Some(WITHIN))?;
        stream.set_write_timeout(Some(WITHIN))?;
        let (mut bytes, mut head, mut some) = (Vec::new(), RequestHead::new(), [0; 4096]);
        loop {
            let (answer, persists) = match head.parse(&bytes, &Limits::default()) {
                Ok(Parse::Complete(len)) => {
                    let answer = self.answer(&head, &bytes);
                    bytes.drain(..len);
                    (answer, head.persistent)
                }
                Ok(Parse::Partial) => match stream.read(&mut some)? {
                    0 => return Ok(()),
                    read => {
                        bytes.extend_from_slice(&some[..read]);
                        continue;
                    }
                },
                Err(error) => (Answer::text(400, format!("{error}\n")), false),
            };
            stream.write_all(&answer.bytes(head.method == Method::Head, persists))?;
            if !persists {
                return Ok(());
            }
        }
    }

    fn answer(&self, head: &RequestHead, buf: &[u8]) -> Answer {
        if !matches!(head.method, Method::Get | Method::Head) {
            return Answer::text(405, "expected GET or HEAD\n");
        }
        let path = head.path.of(buf).split(|byte| *byte == b'?').next().unwrap_or_default();
        match path {
            b"/metrics" => match gather(&self.workers) {
                Ok(report) => Answer {
                    kind: "text/plain; version=0.0.4; charset=utf-8",
                    ..Answer::text(200, report.metrics(&self.expiry, &self.secrets))
                },
                Err(partial) => partial.into(),
            },
            b"/status" => match gather(&self.workers) {
                Ok(report) => Answer { kind: "application/json", ..Answer::text(200, report.json()) },
                Err(partial) => partial.into(),
            },
            b"/health" => match gather(&self.workers) {
                Ok(_) => Answer::text(200, "healthy\n"),
                Err(partial) => partial.into(),
            },
            b"/ready" => match gather(&self.workers) {
                Ok(Report { draining: true, .. }) => Answer::text(503, "draining\n"),
                Ok(_) => Answer::text(200, "ready\n"),
                Err(partial) => partial.into(),
            },
            b"/config" => Answer::text(200, self.config.to_string()),
            b"/" => Answer::text(200, "/metrics  /status  /health  /ready  /config\n"),
            _ => Answer::text(404, "expected one of /metrics, /status, /health, /ready, /config\n"),
        }
    }
}

/// Some workers did not answer in time.
#[derive(Debug)]
pub(crate) struct Partial {
    pub answered: usize,
    pub workers: usize,
}

impl From<Partial> for Answer {
    fn from(Partial { answered, workers }: Partial) -> Self {
        Self::text(503, format!("{answered} of {workers} workers answer\n"))
    }
}

struct Answer {
    status: u16,
    kind: &'static str,
    body: String,
}

impl Answer {
    fn text(status: u16, body: impl Into<String>) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: body.into() }
    }

    fn bytes(&self, is_head: bool, persists: bool) -> Vec<u8> {
        let Self { status, kind, body } = self;
        let phrase = crate::heads::own::phrase(*status);
        let connection = if persists { "" } else { "Connection: close\r\n" };
        let head = format!(
            "HTTP/1.1 {status} {phrase}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n{connection}\r\n",
            body.len()
        );
        [head.as_bytes(), if is_head { b"" } else { body.as_bytes() }].concat()
    }
}
