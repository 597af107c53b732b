//! The admin address: metrics, health, state. It is served by threads of its own, which ask the workers by mail; what waits
//! here keeps no request waiting.

use crate::control::gather;
use crate::observe::Report;
use crate::reload::{Ask, Outcome};
use crate::standing::Standing;
use crate::worker::Control;
use rustix::event::{PollFd, PollFlags, poll};
use socket2::Socket;
use std::io::{self, Read as _, Write as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use weir_http1::{Limits, Method, Parse, RequestHead};
use weir_reactor::mailbox::Sender;

/// What is served.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    pub workers: Vec<Sender<Control>>,
    pub standing: Arc<Standing>,
    /// Who reloads; `None`: nobody does.
    pub reload: Option<mpsc::Sender<Ask>>,
    /// Connections at one time, of which there are at most [`MOST`]; more are closed.
    pub most: usize,
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

/// A reload resolves names, which takes up to half a minute.
const RELOAD: Duration = Duration::from_secs(60);

/// Each has a thread.
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
            if open.fetch_add(1, Ordering::Relaxed) >= admin.most.min(MOST) {
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
                    // A body would be taken for the next request.
                    (answer, head.persistent && head.framing.is_empty())
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
        let path = head.path.of(buf).split(|byte| *byte == b'?').next().unwrap_or_default();
        match (head.method, path) {
            (Method::Post, b"/reload") => return self.reload(),
            (_, b"/reload") => return Answer::text(405, "expected POST\n"),
            (Method::Get | Method::Head, _) => {}
            _ => return Answer::text(405, "expected GET or HEAD\n"),
        }
        match path {
            b"/metrics" => match gather(&self.workers) {
                Ok(report) => Answer {
                    kind: "text/plain; version=0.0.4; charset=utf-8",
                    ..Answer::text(200, report.metrics(&self.standing))
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
            b"/config" => Answer::text(200, self.standing.current().in_words.to_string()),
            b"/" => Answer::text(200, "/metrics  /status  /health  /ready  /config  POST /reload\n"),
            _ => Answer::text(404, "expected one of /metrics, /status, /health, /ready, /config, /reload\n"),
        }
    }

    /// Reloads the configuration, and waits for what becomes of it.
    fn reload(&self) -> Answer {
        let (reply, outcome) = mpsc::channel();
        let is_asked = self.reload.as_ref().is_some_and(|reload| reload.send(Some(reply)).is_ok());
        if !is_asked {
            return Answer::text(501, "this gateway does not reload\n");
        }
        let Ok(outcome) = outcome.recv_timeout(RELOAD) else {
            return Answer::text(504, "the reload goes on; its outcome will be in the log\n");
        };
        let status = match outcome {
            Outcome::Taken { .. } => 200,
            Outcome::Refused { .. } => 409,
        };
        let json = serde_json::to_string(&outcome).unwrap_or_default();
        Answer { kind: "application/json", ..Answer::text(status, json + "\n") }
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
