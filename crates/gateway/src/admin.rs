//! The admin address: metrics, health, state. It is served by threads of its own, which ask the workers by mail; what waits
//! here keeps no request waiting.

mod answer;
mod change;
mod door;
mod services;

use crate::control::gather;
use crate::gate::Gate;
use crate::in_force::InForce;
use crate::observe::Report;
use crate::observe::journal::Journal;
use crate::reload::{Ask, Outcome};
use crate::standing::Standing;
use crate::upgrade::{self, Upgrades};
use crate::worker::Control;
use answer::Answer;
use door::Counted;
pub(crate) use door::Door;
use services::Target;
use socket2::Socket;
use std::io::{self, Read as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use weir_http1::{Field, Limits, Method, Parse, RequestHead};
use weir_reactor::mailbox::Sender;
use weir_reactor::{Address, Listener};

/// What is served.
#[derive(Clone)]
pub(crate) struct Admin {
    pub workers: Vec<Sender<Control>>,
    pub standing: Arc<Standing>,
    /// Where servers are changed.
    pub in_force: Arc<InForce>,
    pub journal: Journal,
    /// Who reloads; `None`: nobody does.
    pub reload: Option<mpsc::Sender<Ask>>,
    pub upgrades: Arc<Upgrades>,
    /// Connections at one time, of which there are at most [`MOST`]; more are closed.
    pub most: usize,
}

/// In words: a URL, or `unix:PATH`.
pub(crate) fn place(listener: &Listener) -> String {
    match listener.address() {
        Address::Tcp(at) => format!("http://{at}"),
        path @ Address::Unix(_) => path.to_string(),
    }
}

/// Requests are short, and so are those who ask.
const WITHIN: Duration = Duration::from_secs(5);

/// A reload resolves names, which takes up to half a minute.
const RELOAD: Duration = Duration::from_secs(60);

/// Each has a thread.
const MOST: usize = 32;

/// Starts to serve once the gate is open, until the door is closed. Errors: no thread can be started.
pub(crate) fn start(listener: Listener, door: &Arc<Door>, gate: &Arc<Gate>, admin: Admin) -> io::Result<()> {
    let (open, ours, gate) = (Arc::new(AtomicUsize::new(0)), Arc::clone(door), Arc::clone(gate));
    let thread = thread::Builder::new().name("admin".into()).spawn(move || {
        if !gate.pass() {
            return;
        }
        loop {
            let stream = match ours.accept(&listener) {
                Ok(Some(stream)) => stream,
                Ok(None) => return,
                Err(_) => {
                    // Out of descriptors, say.
                    thread::sleep(Duration::from_millis(100));
                    continue;
                }
            };
            if open.fetch_add(1, Ordering::Relaxed) >= admin.most.min(MOST) {
                open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (admin, count, owed) = (admin.clone(), Arc::clone(&open), Counted::owed(&ours));
            let spawned = thread::Builder::new().name("admin".into()).spawn(move || {
                // A client that goes away is no fault of ours.
                let _ = admin.serve(Socket::from(stream), owed);
                count.fetch_sub(1, Ordering::Relaxed);
            });
            if spawned.is_err() {
                open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    })?;
    door.opened_by(thread);
    Ok(())
}

impl Admin {
    fn serve(&self, mut stream: Socket, owed: Counted) -> io::Result<()> {
        stream.set_read_timeout(Some(WITHIN))?;
        stream.set_write_timeout(Some(WITHIN))?;
        let (door, mut owed) = (Arc::clone(owed.door()), Some(owed));
        let (mut bytes, mut head, mut some) = (Vec::new(), RequestHead::new(), [0; 4096]);
        loop {
            match head.parse(&bytes, &Limits::default()) {
                Ok(Parse::Complete(len)) => {
                    let _answering = Counted::answering(&door);
                    let first = owed.take();
                    let _owed = match path_and_query(&head, &bytes).0 {
                        b"/upgrade" => {
                            drop(first);
                            None
                        }
                        _ => first.or_else(|| Some(Counted::owed(&door))),
                    };
                    let answer = self.answer(&head, &bytes);
                    bytes.drain(..len);
                    // A body would be taken for the next request.
                    let persists = head.persistent && head.framing.is_empty();
                    let persists = persists && !door.is_closed();
                    stream.write_all(&answer.bytes(head.method == Method::Head, persists))?;
                    if !persists {
                        return Ok(());
                    }
                }
                Ok(Parse::Partial) => match stream.read(&mut some)? {
                    0 => return Ok(()),
                    read => bytes.extend_from_slice(&some[..read]),
                },
                Err(error) => {
                    return stream.write_all(&Answer::text(400, format!("{error}\n")).bytes(false, false));
                }
            }
        }
    }

    fn answer(&self, head: &RequestHead, buf: &[u8]) -> Answer {
        let (path, query) = path_and_query(head, buf);
        if head.method == Method::Post {
            let is_origin = |field: &Field| field.name.of(buf).eq_ignore_ascii_case(b"origin");
            if head.fields.iter().any(is_origin) {
                // A browser on this machine reaches the loopback interface, and lets any page send a POST there.
                return Answer::text(403, "a web page cannot change anything\n");
            }
        }
        if let Some(target) = Target::of(path) {
            if !head.framing.is_empty() {
                return Answer::text(400, "expected no body: parameters follow the path and a `?`\n");
            }
            return self.services(head.method, &target, query);
        }
        match (head.method, path) {
            (Method::Post, b"/reload") => return self.reload(),
            (Method::Post, b"/upgrade") => return self.upgrade(),
            (_, b"/reload" | b"/upgrade") => return Answer::text(405, "expected POST\n"),
            (Method::Get | Method::Head, _) => {}
            _ => return Answer::text(405, "expected GET or HEAD\n"),
        }
        match path {
            b"/metrics" => {
                // Before the workers are asked: what they answer is of a configuration that is no older than is said here.
                let reloads = self.standing.reloads();
                match gather(&self.workers) {
                    Ok(report) => Answer {
                        kind: "text/plain; version=0.0.4; charset=utf-8",
                        ..Answer::text(200, report.metrics(&self.standing, reloads, &self.upgrades))
                    },
                    Err(partial) => partial.into(),
                }
            }
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
            b"/" => Answer::text(
                200,
                "/metrics  /status  /health  /ready  /config  /services  POST /reload  POST /upgrade\n",
            ),
            _ => Answer::text(
                404,
                "expected one of /metrics, /status, /health, /ready, /config, /services, \
                 /services/NAME/servers/SERVER, /reload, /upgrade\n",
            ),
        }
    }

    /// Reloads the configuration, and waits for what becomes of it.
    fn reload(&self) -> Answer {
        let (reply, outcome) = mpsc::channel();
        let is_asked =
            self.reload.as_ref().is_some_and(|reload| reload.send(Ask::Reload(Some(reply))).is_ok());
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
        Answer::json(status, &outcome)
    }

    /// Upgrades the program, and waits for what becomes of it.
    fn upgrade(&self) -> Answer {
        let Some(thread) = &self.reload else { return Answer::text(501, "this gateway does not upgrade\n") };
        if let Err(error) = self.upgrades.begin() {
            return Answer::json(409, &upgrade::Outcome::Refused { error });
        }
        let (reply, outcome) = mpsc::channel();
        if thread.send(Ask::Upgrade(Some(reply))).is_err() {
            return Answer::text(501, "this gateway does not upgrade\n");
        }
        // It ends within its own limit.
        match outcome.recv() {
            Ok(outcome @ upgrade::Outcome::Taken { .. }) => Answer::json(200, &outcome),
            Ok(outcome @ upgrade::Outcome::Refused { .. }) => Answer::json(409, &outcome),
            Err(_) => Answer::text(504, "the outcome of the upgrade will be in the log\n"),
        }
    }
}

/// The path of a request, and what stands behind its `?`.
fn path_and_query<'a>(head: &RequestHead, buf: &'a [u8]) -> (&'a [u8], Option<&'a [u8]>) {
    let mut parts = head.path.of(buf).splitn(2, |byte| *byte == b'?');
    (parts.next().unwrap_or_default(), parts.next())
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
