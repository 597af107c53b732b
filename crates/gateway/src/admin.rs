//! The admin address: metrics, health, state. It is served by threads of its own, which ask the workers by mail; what waits
//! here keeps no request waiting.

mod answer;
mod change;
mod services;

use crate::control::gather;
use crate::in_force::InForce;
use crate::observe::Report;
use crate::observe::journal::Journal;
use crate::reload::{Ask, Outcome};
use crate::standing::Standing;
use crate::upgrade::{self, Upgrades};
use crate::worker::Control;
use answer::Answer;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use services::Target;
use socket2::Socket;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
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

/// The thread that accepts, and what is being answered.
#[derive(Debug)]
pub(crate) struct Door {
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Readable once nobody is let in any more.
    bell: OwnedFd,
    is_closed: AtomicBool,
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    /// Connections that wait for their first answer, and other requests that are being answered, but for upgrades.
    owed: usize,
    /// Requests that are being answered.
    answering: usize,
}

/// One that is counted until it is dropped.
#[derive(Debug)]
struct Counted {
    door: Arc<Door>,
    of: fn(&mut Counts) -> &mut usize,
}

impl Counted {
    fn new(door: &Arc<Door>, of: fn(&mut Counts) -> &mut usize) -> Self {
        *of(&mut door.lock()) += 1;
        Self { door: Arc::clone(door), of }
    }

    fn owed(door: &Arc<Door>) -> Self {
        Self::new(door, |counts| &mut counts.owed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        *(self.of)(&mut self.door.lock()) -= 1;
        self.door.changed.notify_all();
    }
}

impl Door {
    /// Closed; [`start`] opens it. Errors: the process has no descriptor left.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            thread: Mutex::default(),
            bell: eventfd(0, EventfdFlags::CLOEXEC)?,
            is_closed: AtomicBool::new(false),
            counts: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Lets nobody in any more, and closes the socket. Connections that are there get one more answer.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        // A full counter is readable already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A panic there has ended it, too.
            let _ = thread.join();
        }
    }

    /// Closes it, and waits, but not long, until all that were let in have their answer: it needs the workers. Who has asked for
    /// an upgrade is not waited for.
    pub(crate) fn clear(&self) {
        self.close();
        drop(self.changed.wait_timeout_while(self.lock(), LAST_ANSWERS, |counts| counts.owed > 0));
    }

    /// Closes it, and waits for answers that are being given, but not long.
    pub(crate) fn finish(&self) {
        self.close();
        drop(self.changed.wait_timeout_while(self.lock(), LAST_ANSWERS, |counts| counts.answering > 0));
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next connection; None: nobody is let in any more. Errors: as accept(2).
    fn accept(&self, listener: &Listener) -> io::Result<Option<OwnedFd>> {
        loop {
            let mut waits = [PollFd::new(listener, PollFlags::IN), PollFd::new(&self.bell, PollFlags::IN)];
            rustix::io::retry_on_intr(|| poll(&mut waits, None))?;
            if self.is_closed.load(Ordering::Relaxed) {
                return Ok(None);
            }
            // Another process may have been first.
            if let Some((stream, _)) = listener.accept()? {
                rustix::io::ioctl_fionbio(&stream, false)?;
                return Ok(Some(stream));
            }
        }
    }
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

/// An answer takes milliseconds, even to a reader that is slow.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Serves until the door is closed. Errors: no thread can be started.
pub(crate) fn start(listener: Listener, door: &Arc<Door>, admin: Admin) -> io::Result<()> {
    let (open, ours) = (Arc::new(AtomicUsize::new(0)), Arc::clone(door));
    let thread = thread::Builder::new().name("admin".into()).spawn(move || {
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
    *door.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    Ok(())
}

impl Admin {
    fn serve(&self, mut stream: Socket, owed: Counted) -> io::Result<()> {
        stream.set_read_timeout(Some(WITHIN))?;
        stream.set_write_timeout(Some(WITHIN))?;
        let (door, mut owed) = (Arc::clone(&owed.door), Some(owed));
        let (mut bytes, mut head, mut some) = (Vec::new(), RequestHead::new(), [0; 4096]);
        loop {
            match head.parse(&bytes, &Limits::default()) {
                Ok(Parse::Complete(len)) => {
                    let _answering = Counted::new(&door, |counts| &mut counts.answering);
                    let first = owed.take();
                    let _owed = match path(&head, &bytes) {
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
                    let persists = persists && !door.is_closed.load(Ordering::Relaxed);
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
        let mut parts = head.path.of(buf).splitn(2, |byte| *byte == b'?');
        let (path, query) = (parts.next().unwrap_or_default(), parts.next());
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
            b"/metrics" => match gather(&self.workers) {
                Ok(report) => Answer {
                    kind: "text/plain; version=0.0.4; charset=utf-8",
                    ..Answer::text(200, report.metrics(&self.standing, &self.upgrades))
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

/// The path of a request, without a query.
fn path<'a>(head: &RequestHead, buf: &'a [u8]) -> &'a [u8] {
    head.path.of(buf).split(|byte| *byte == b'?').next().unwrap_or_default()
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
