//! Watches files of ticket secrets, so that a rotation needs no restart.

use super::Debounce;
use crate::config::Snapshot;
use crate::observe::journal::Journal;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use weir_tls::{Server, TicketSecrets};

/// A file of ticket secrets, with counts of its changes.
#[derive(Debug)]
pub(crate) struct SecretsFile {
    pub path: PathBuf,
    /// Changes that took effect.
    pub reloads: AtomicU64,
    /// Changes that made the file unusable.
    pub failures: AtomicU64,
    /// Whether the file is unusable or missing, so that older secrets stay in use.
    pub is_stale: AtomicBool,
}

/// A watch on the files of ticket secrets, until it is dropped.
#[derive(Debug)]
pub(crate) struct SecretsWatch {
    files: Arc<[Arc<SecretsFile>]>,
    is_over: Arc<AtomicBool>,
}

impl SecretsWatch {
    /// Watches the files of ticket secrets that the TLS servers of `snapshot` have loaded. Counts continue from
    /// `before`. Compares files by content: with symbolic links, time and inode do not reliably show a change. Errors:
    /// the thread cannot be started.
    pub(crate) fn start(
        snapshot: &Snapshot,
        before: &[Arc<SecretsFile>],
        journal: Journal,
    ) -> io::Result<Self> {
        let mut watches: Vec<Watch> = Vec::new();
        for server in snapshot.listeners.iter().filter_map(|listener| listener.tls.as_ref()) {
            let Some((path, secrets)) = server.ticket_file().zip(server.ticket_secrets()) else { continue };
            match watches.iter_mut().find(|watch| watch.file.path == path) {
                Some(watch) => watch.servers.push(server.clone()),
                None => {
                    let file = before.iter().find(|file| file.path == path).cloned();
                    let file = file.unwrap_or_else(|| Arc::new(SecretsFile::new(path)));
                    file.is_stale.store(false, Ordering::Relaxed);
                    watches.push(Watch {
                        file,
                        servers: vec![server.clone()],
                        debounce: Debounce::new(Ok(secrets)),
                    });
                }
            }
        }
        let files = watches.iter().map(|watch| Arc::clone(&watch.file)).collect();
        let is_over = Arc::<AtomicBool>::default();
        if !watches.is_empty() {
            let is_over = Arc::clone(&is_over);
            thread::Builder::new().name("secrets".into()).spawn(move || {
                loop {
                    thread::sleep(EVERY);
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    for watch in &mut watches {
                        if let Some(change) = watch.look() {
                            journal.line(format_args!("weir: {change}"));
                        }
                    }
                }
            })?;
        }
        Ok(Self { files, is_over })
    }

    pub(crate) fn files(&self) -> Arc<[Arc<SecretsFile>]> {
        Arc::clone(&self.files)
    }
}

impl Drop for SecretsWatch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl SecretsFile {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            reloads: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            is_stale: AtomicBool::new(false),
        }
    }
}

/// The interval of checks. A change takes effect once two checks in a row have found it, so within about a second.
const EVERY: Duration = Duration::from_millis(400);

/// The secrets, or the reason why the file has none.
type Found = Result<TicketSecrets, String>;

#[derive(Debug)]
struct Watch {
    file: Arc<SecretsFile>,
    /// All servers that use the file.
    servers: Vec<Server>,
    debounce: Debounce<Found>,
}

impl Watch {
    /// Reads the file and applies a change. Returns a description of the change.
    fn look(&mut self) -> Option<Change<'_>> {
        let path = &self.file.path;
        let found = TicketSecrets::read(path).map_err(|error| error.to_string());
        match self.debounce.next(found)? {
            Ok(secrets) => {
                let was_stale = self.file.is_stale.swap(false, Ordering::Relaxed);
                // A file that is usable again may contain the same secrets that are still in use.
                let is_new =
                    self.servers.iter().any(|server| server.ticket_secrets().as_ref() != Some(secrets));
                for server in &self.servers {
                    server.replace_ticket_secrets(secrets);
                }
                self.file.reloads.fetch_add(u64::from(is_new), Ordering::Relaxed);
                (is_new || was_stale).then_some(Change::Taken { path, count: secrets.count() })
            }
            Err(why) => {
                self.file.is_stale.store(true, Ordering::Relaxed);
                self.file.failures.fetch_add(1, Ordering::Relaxed);
                Some(Change::Failed { why })
            }
        }
    }
}

#[derive(Debug)]
enum Change<'a> {
    Taken { path: &'a Path, count: usize },
    Failed { why: &'a str },
}

impl fmt::Display for Change<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken { path, count } => {
                write!(f, "{}: ticket secrets in use now: {count}", path.display())
            }
            Self::Failed { why } => write!(f, "{why}; the ticket secrets in use stay"),
        }
    }
}
