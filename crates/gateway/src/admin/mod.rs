//! The admin address: metrics, health, state. Separate threads serve it and query the workers by message, so a slow
//! admin client delays no request.

mod apply;
mod body;
mod certificates;
mod connections;
mod metrics_page;
mod paths;
mod response;
mod server_change;
mod service_servers;
mod services;

use crate::config::document::Rights;
use crate::observe::Report;
use crate::observe::journal::Journal;
use crate::process::{
    ActiveConfig, AdminListener, Ask, ConfigStatus, Counted, Next, Partial, ReloadOutcome, StartBarrier,
    UpgradeOutcome, Upgrades, gather,
};
use crate::worker::Control;
use connections::{Connections, Entered};
use paths::Asked;
use response::Response;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::IpAddr;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use weir_http::{Authority, Field, Method};
use weir_http1::{Limits, Parse, RequestHead};
use weir_reactor::mailbox::Sender;
use weir_reactor::{Address, Listener};

/// The state that the admin address shows and changes.
#[derive(Clone)]
pub(crate) struct Admin {
    pub rights: Rights,
    pub workers: Vec<Sender<Control>>,
    pub status: Arc<ConfigStatus>,
    /// The active configuration; changes of servers take effect through it.
    pub active: Arc<ActiveConfig>,
    pub journal: Journal,
    /// The queue of the reload thread; `None` if this gateway does not reload.
    pub reload: Option<mpsc::Sender<Ask>>,
    pub upgrades: Arc<Upgrades>,
    /// The maximum number of concurrent connections, up to [`MOST`].
    pub most: usize,
    /// The host names that requests may use; `None` for any, as on a Unix socket.
    pub hosts: Option<Arc<[String]>>,
}

/// The address of a listener: a URL, or `unix:PATH`.
pub(crate) fn place(listener: &Listener) -> String {
    match listener.address() {
        Address::Tcp(at) => format!("http://{at}"),
        path @ Address::Unix(_) => path.to_string(),
    }
}

/// The timeout of waiting for a request head, of reading a body, and of each write of a response.
const WITHIN: Duration = Duration::from_secs(5);

/// The timeout of a reload, which resolves names for up to half a minute.
const RELOAD: Duration = Duration::from_secs(60);

/// The upper limit of [`Admin::most`], since each connection has a thread.
const MOST: usize = 32;

/// Starts a thread that serves the address from the opening of `barrier` until `listener` is closed or another process
/// claims the address. Fails if the thread cannot be started.
pub(crate) fn start(
    socket: Listener,
    listener: &Arc<AdminListener>,
    barrier: &Arc<StartBarrier>,
    admin: Admin,
) -> io::Result<()> {
    let connections = Connections::new(admin.most.min(MOST));
    let (ours, barrier) = (Arc::clone(listener), Arc::clone(barrier));
    let thread = thread::Builder::new().name("admin".into()).spawn(move || {
        if !barrier.pass() {
            return;
        }
        let mut claims = None;
        loop {
            let stream = match ours.next(&socket, &mut claims) {
                Ok(Next::Client(stream)) => stream,
                Ok(Next::Claimed(claim)) => {
                    drop(socket);
                    return claim.grant();
                }
                Ok(Next::Closed) => return,
                Err(_) => {
                    // The process is probably out of descriptors: try again later.
                    thread::sleep(Duration::from_millis(100));
                    continue;
                }
            };
            let Some(entered) = connections.enter(stream) else { continue };
            let (admin, owed) = (admin.clone(), Counted::owed(&ours));
            // If the thread cannot start, the connection closes.
            let _ = thread::Builder::new().name("admin".into()).spawn(move || {
                // A client that disconnects is not an error.
                let _ = admin.serve(&entered, owed);
            });
        }
    })?;
    listener.opened_by(thread);
    Ok(())
}

impl Admin {
    fn serve(&self, entered: &Entered, owed: Counted) -> io::Result<()> {
        let mut stream = entered.stream();
        stream.set_write_timeout(Some(WITHIN))?;
        let (listener, mut owed) = (Arc::clone(owed.listener()), Some(owed));
        let (mut bytes, mut head, mut some) = (Vec::new(), RequestHead::new(), [0; 4096]);
        let mut until = Instant::now() + WITHIN;
        loop {
            match head.parse(&bytes, &Limits::default()) {
                Ok(Parse::Complete(len)) => {
                    let body = match self.takes_body(&head, &bytes) {
                        true => Some(body::read(stream, &head, &mut bytes, len)?),
                        false => None,
                    };
                    let responding = Counted::responding(&listener);
                    let first = owed.take();
                    let owed_now = match Asked::of(&head, &bytes).is_for("/upgrade") {
                        true => {
                            drop(first);
                            None
                        }
                        false => first.or_else(|| Some(Counted::owed(&listener))),
                    };
                    // An unread body would be parsed as the next request.
                    let is_read = head.framing.is_empty() || matches!(body, Some(Ok(_)));
                    let response = match body.transpose() {
                        Err(rejected) => rejected,
                        Ok(body) => entered.responding(|| self.response(&head, &bytes, body.as_deref())),
                    };
                    bytes.drain(..len);
                    let persists = head.persistent && is_read && !listener.is_closed();
                    stream.write_all(&response.bytes(head.method == Method::Head, persists))?;
                    if !persists {
                        if !is_read {
                            drop((responding, owed_now));
                            body::discard(stream);
                        }
                        return Ok(());
                    }
                    until = Instant::now() + WITHIN;
                }
                Ok(Parse::Partial) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        let late = Response::text(408, "a request takes too long\n").bytes(false, false);
                        return if bytes.is_empty() { Ok(()) } else { stream.write_all(&late) };
                    }
                    stream.set_read_timeout(Some(left))?;
                    match stream.read(&mut some) {
                        Ok(0) => return Ok(()),
                        Ok(read) => bytes.extend_from_slice(&some[..read]),
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                        Err(error) => return Err(error),
                    }
                }
                Err(error) => {
                    return stream.write_all(&Response::text(400, format!("{error}\n")).bytes(false, false));
                }
            }
        }
    }

    /// Whether to read the request's body.
    fn takes_body(&self, head: &RequestHead, buf: &[u8]) -> bool {
        Asked::of(head, buf).takes_body(self.rights) && self.rejection(head, buf).is_none()
    }

    /// The rejection of a request for another host, or of a change that a web page requests; `None` for other requests.
    fn rejection(&self, head: &RequestHead, buf: &[u8]) -> Option<Response> {
        let host = head.host.map(|host| host.of(buf));
        if let Some(host) = host.filter(|host| !self.is_own(host)) {
            return Some(Response::text(
                421,
                format!(
                    "unknown host `{}`: expected an address, `localhost`, or one of `hosts` in the [{}] table\n",
                    String::from_utf8_lossy(host),
                    self.rights.name()
                ),
            ));
        }
        let is_change = !matches!(head.method, Method::Get | Method::Head);
        if is_change && head.fields.iter().any(|field| is_of_page(field, buf)) {
            // A browser on this machine can reach the loopback interface, and allows any page to send a POST there.
            return Some(Response::text(403, "a web page cannot change anything\n"));
        }
        None
    }

    /// Responds to a request. `body` is `None` unless [`Admin::takes_body`].
    fn response(&self, head: &RequestHead, buf: &[u8], body: Option<&[u8]>) -> Response {
        self.rejection(head, buf).unwrap_or_else(|| {
            let body = body.unwrap_or_default();
            paths::respond(self, Asked::of(head, buf), body)
        })
    }

    /// The response to `/metrics`: gathers the workers' metrics for Prometheus.
    fn metrics(&self) -> Response {
        // Count the reloads before the workers report: a counted reload has reached the workers, so no report precedes
        // it.
        let reloads = self.status.reloads();
        match gather(&self.workers) {
            Ok(report) => {
                let page = metrics_page::page(&report, &self.status, reloads, &self.upgrades);
                Response { kind: "text/plain; version=0.0.4; charset=utf-8", ..Response::text(200, page) }
            }
            Err(partial) => partial.into(),
        }
    }

    /// The response to `/status`: gathers the workers' metrics and the servers' state as JSON.
    fn report(&self) -> Response {
        match gather(&self.workers) {
            Ok(report) => Response { kind: "application/json", ..Response::text(200, report.json()) },
            Err(partial) => partial.into(),
        }
    }

    fn health(&self) -> Response {
        match gather(&self.workers) {
            Ok(_) => Response::text(200, "healthy\n"),
            Err(partial) => partial.into(),
        }
    }

    fn readiness(&self) -> Response {
        match gather(&self.workers) {
            Ok(Report { draining: true, .. }) => Response::text(503, "draining\n"),
            Ok(_) => Response::text(200, "ready\n"),
            Err(partial) => partial.into(),
        }
    }

    /// Whether a request for this host is meant for the admin address. A web page can reach it by DNS rebinding: the
    /// name of the page's host then resolves to an address of the browser's machine. The `Host` of such a request is
    /// still that name, never an address.
    fn is_own(&self, host: &[u8]) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        let host = Authority::parse(host).and_then(|authority| std::str::from_utf8(authority.host).ok());
        let Some(host) = host else { return false };
        let name = host.strip_suffix('.').unwrap_or(host);
        let address = name.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(name);
        address.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || hosts.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Reloads the configuration, and waits for the outcome.
    fn reload(&self) -> Response {
        let (reply, outcome) = mpsc::channel();
        let is_asked =
            self.reload.as_ref().is_some_and(|reload| reload.send(Ask::Reload(Some(reply))).is_ok());
        if !is_asked {
            return Response::text(501, "this gateway does not reload\n");
        }
        let Ok(outcome) = outcome.recv_timeout(RELOAD) else {
            return Response::text(504, "the reload continues; see the log for its outcome\n");
        };
        let status = match outcome {
            ReloadOutcome::Taken { .. } => 200,
            ReloadOutcome::Refused { .. } => 409,
        };
        Response::json(status, &outcome)
    }

    /// Upgrades the program, and waits for the outcome.
    fn upgrade(&self) -> Response {
        let Some(thread) = &self.reload else {
            return Response::text(501, "this gateway does not upgrade\n");
        };
        if let Err(error) = self.upgrades.begin() {
            return Response::json(409, &UpgradeOutcome::Refused { error });
        }
        let (reply, outcome) = mpsc::channel();
        if thread.send(Ask::Upgrade(Some(reply))).is_err() {
            return Response::text(501, "this gateway does not upgrade\n");
        }
        // No timeout here: `timeouts.upgrade` limits the upgrade.
        match outcome.recv() {
            Ok(outcome @ UpgradeOutcome::Taken { .. }) => Response::json(200, &outcome),
            Ok(outcome @ UpgradeOutcome::Refused { .. }) => Response::json(409, &outcome),
            Err(_) => Response::text(504, "the outcome of the upgrade will be in the log\n"),
        }
    }
}

/// Whether this field shows that a web page sent the request (Fetch Metadata). A request that the user started has the
/// site `none`.
fn is_of_page(field: &Field, buf: &[u8]) -> bool {
    let name = field.name.of(buf);
    name.eq_ignore_ascii_case(b"origin")
        || name.eq_ignore_ascii_case(b"sec-fetch-site") && !field.value.of(buf).eq_ignore_ascii_case(b"none")
}

impl From<Partial> for Response {
    fn from(Partial { responded, workers }: Partial) -> Self {
        Self::text(503, format!("{responded} of {workers} workers responded\n"))
    }
}
