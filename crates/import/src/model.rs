//! The result of both translations: Weir's configuration, each part with its place in the source.

use crate::note::Notes;
use crate::values;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    pub workers: Option<u64>,
    pub listeners: Vec<Listener>,
    pub certificates: Vec<Certificate>,
    pub services: Vec<Service>,
    pub routes: Vec<Route>,
    /// Error pages: files by status.
    pub error_pages: BTreeMap<u16, String>,
    /// The field that carries the request ID.
    pub request_id: Option<String>,
    pub log: Table,
    pub limits: Table,
    pub timeouts: Timeouts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Number(u64),
    Flag(bool),
    List(Vec<Value>),
    Table(Table),
}

/// Keys with values, in the order of output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table(pub Vec<(String, Value)>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    pub name: String,
    pub bind: Vec<String>,
    pub settings: Table,
    /// TLS settings; `None`: cleartext.
    pub tls: Option<Table>,
    /// With TLS: indexes of the document's certificates, the default first.
    pub certificates: Vec<usize>,
    pub passthrough: Vec<Passthrough>,
    /// The settings of a listener for protocols other than HTTP.
    pub tcp: Option<Tcp>,
    pub notes: Vec<String>,
    pub from: String,
}

/// The service for all connections of a listener, which forwards bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tcp {
    pub service: String,
    pub idle_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Passthrough {
    pub names: Vec<String>,
    pub service: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    /// The certificate's name, if listeners refer to it.
    pub name: Option<String>,
    pub chain: String,
    pub key: String,
    pub ocsp: Option<String>,
    pub from: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    pub name: String,
    pub servers: Vec<Server>,
    pub settings: Table,
    pub notes: Vec<String>,
    pub from: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub url: String,
    pub weight: u64,
    pub backup: bool,
}

/// A route; an empty list of hosts, paths or conditions matches every request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Route {
    pub host: Vec<String>,
    pub path: Vec<String>,
    pub when: Conditions,
    pub then: Handler,
    pub from: String,
}

/// A route's conditions other than host and path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    pub method: Vec<String>,
    pub headers: BTreeMap<String, String>,
    pub client: Vec<String>,
    pub listener: Vec<String>,
}

/// A route's action and its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Handler {
    pub action: Action,
    pub strip_prefix: Option<String>,
    pub add_prefix: Option<String>,
    pub request: Edits,
    pub response: Edits,
    pub max_body: Option<u64>,
    pub rate: Option<Rate>,
    /// The keys `stall`, `response` and `tunnel`.
    pub timeouts: Table,
    pub notes: Vec<String>,
}

/// A limit on the request rate of each client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub requests: u64,
    pub per_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Service(String),
    /// Shares of the requests, and the cookie that assigns a client to its share permanently.
    Split {
        shares: Vec<Share>,
        sticky: Option<String>,
    },
    Redirect {
        to: String,
        status: u64,
    },
    Respond {
        status: u64,
        body: Option<String>,
        content_type: Option<String>,
    },
}

/// A share of a route's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub to: Destination,
    pub weight: u64,
    /// The `Host` of this share's requests, if it differs between shares.
    pub host: Option<String>,
}

/// The destination of a share's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Service(String),
    /// No service: the gateway responds with this status.
    Status(u64),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edits {
    pub set: BTreeMap<String, String>,
    pub add: BTreeMap<String, String>,
    pub remove: Vec<String>,
}

/// The gateway's timeouts, in milliseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeouts(BTreeMap<&'static str, u64>);

impl Document {
    /// Adds a service and returns its name; for an equal service, returns the existing name.
    pub(crate) fn service(&mut self, service: Service) -> String {
        let is_equal = |known: &&Service| {
            known.servers == service.servers && known.settings == service.settings && {
                let wanted = &service.name;
                known.name == *wanted || known.name.strip_prefix(wanted.as_str()).is_some_and(is_number)
            }
        };
        if let Some(known) = self.services.iter().find(is_equal) {
            return known.name.clone();
        }
        let name = values::unique(&service.name, |name| self.services.iter().any(|known| known.name == name));
        self.services.push(Service { name: name.clone(), ..service });
        name
    }

    /// Adds a certificate unless it exists, and returns its index.
    pub(crate) fn certificate(&mut self, certificate: Certificate) -> usize {
        let is_equal =
            |known: &Certificate| (&known.chain, &known.key) == (&certificate.chain, &certificate.key);
        match self.certificates.iter().position(is_equal) {
            Some(index) => {
                if let Some(known) = self.certificates.get_mut(index) {
                    known.ocsp = known.ocsp.take().or(certificate.ocsp);
                }
                index
            }
            None => {
                self.certificates.push(certificate);
                self.certificates.len() - 1
            }
        }
    }

    /// Adds a remark if a listener has TLS but there is no certificate, without which Weir does not start.
    pub(crate) fn lacks_certificate(&self, notes: &mut Notes) {
        let with_tls = self.listeners.iter().find(|listener| listener.tls.is_some());
        if let Some(listener) = with_tls.filter(|_| self.certificates.is_empty()) {
            notes.remark(format!(
                "listener {} has TLS and no certificate: add a [[certificate]]",
                listener.name
            ));
        }
    }

    /// Forms a listener name that is not in use.
    pub(crate) fn listener_name(&self, wanted: &str) -> String {
        values::unique(wanted, |name| self.listeners.iter().any(|known| known.name == name))
    }
}

impl Listener {
    /// Creates a cleartext listener; `from` is its place in the source.
    pub(crate) fn new(name: String, bind: Vec<String>, from: String) -> Self {
        Self {
            name,
            bind,
            settings: Table::default(),
            tls: None,
            certificates: Vec::new(),
            passthrough: Vec::new(),
            tcp: None,
            notes: Vec::new(),
            from,
        }
    }

    /// Adds certificates unless the listener has them.
    pub(crate) fn present(&mut self, certificates: Vec<usize>) {
        for index in certificates {
            if !self.certificates.contains(&index) {
                self.certificates.push(index);
            }
        }
    }

    /// Whether clients speak HTTP to the listener itself, so that routes may apply.
    pub(crate) fn is_http(&self) -> bool {
        self.tcp.is_none() && self.passthrough.is_empty()
    }
}

impl Service {
    /// Turns backup servers into regular ones if there are no others.
    pub(crate) fn promote_backups(&mut self) {
        if self.servers.iter().all(|server| server.backup) {
            self.servers.iter_mut().for_each(|server| server.backup = false);
        }
    }

    /// Sets the connection limit to the lowest of the servers' limits.
    pub(crate) fn limit_connections(&mut self, limits: &[u64], notes: &mut Notes) {
        let Some(least) = limits.iter().min() else { return };
        if limits.iter().any(|limit| limit != least) || limits.len() < self.servers.len() {
            notes.remark(format!("service {}: max_connections is one for all servers", self.name));
        }
        self.settings.number("max_connections", (*least).min(1_000_000));
    }
}

/// Whether this is a number suffix such as `-2` of `app-2`.
fn is_number(rest: &str) -> bool {
    rest.strip_prefix('-')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

impl Timeouts {
    /// Sets a timeout. The gateway has one per kind, so the longest in the source applies.
    pub(crate) fn set(&mut self, name: &'static str, ms: u64, source: &str, notes: &mut Notes) {
        // In the source, 0 disables a timeout; Weir's maximum is a year.
        let ms = if ms == 0 { 365 * 86_400_000 } else { ms };
        let known = self.0.entry(name).or_insert(ms);
        if *known != ms {
            notes.remark(format!(
                "{source} differs from place to place: timeouts.{name} is one for all, and has the longest"
            ));
            *known = ms.max(*known);
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// The timeouts as Weir writes them.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::default();
        for (name, ms) in &self.0 {
            if let Some(text) = values::duration(*ms) {
                table.text(name, text);
            }
        }
        table
    }
}

impl Table {
    pub(crate) fn set(&mut self, key: &str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => *known = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    pub(crate) fn text(&mut self, key: &str, value: impl Into<String>) {
        self.set(key, Value::Text(value.into()));
    }

    pub(crate) fn number(&mut self, key: &str, value: u64) {
        self.set(key, Value::Number(value));
    }

    pub(crate) fn flag(&mut self, key: &str, value: bool) {
        self.set(key, Value::Flag(value));
    }

    /// Sets a key to a list of texts. A single text needs no brackets.
    pub(crate) fn texts<T: Into<String>>(&mut self, key: &str, values: impl IntoIterator<Item = T>) {
        self.set(key, Value::texts(values));
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Value {
    pub(crate) fn texts<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        let mut values: Vec<_> = values.into_iter().map(|value| Self::Text(value.into())).collect();
        match values.len() {
            1 => values.remove(0),
            _ => Self::List(values),
        }
    }
}

impl Edits {
    /// Sets a field, discarding earlier edits of its name.
    pub(crate) fn put(&mut self, name: &str, value: String) {
        self.forget(name);
        self.set.insert(name.to_owned(), value);
    }

    /// Removes the fields of a name, discarding earlier edits of it.
    pub(crate) fn drop(&mut self, name: &str) {
        self.forget(name);
        self.remove.push(name.to_owned());
    }

    /// Discards the edits of a name.
    pub(crate) fn forget(&mut self, name: &str) {
        let differs = |known: &String| !known.eq_ignore_ascii_case(name);
        self.set.retain(|known, _| differs(known));
        self.add.retain(|known, _| differs(known));
        self.remove.retain(differs);
    }
}

impl Action {
    /// Creates a generated response that has only a status.
    pub(crate) fn status(status: u64) -> Self {
        Self::Respond { status, body: None, content_type: None }
    }
}

impl Default for Action {
    fn default() -> Self {
        Self::status(404)
    }
}

impl Handler {
    pub(crate) fn new(action: Action) -> Self {
        Self { action, ..Self::default() }
    }

    pub(crate) fn noted(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}
