//! Files of ticket secrets, watched while the gateway runs: a rotation needs no restart.

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

/// A file, and what has become of its changes.
#[derive(Debug)]
pub(crate) struct SecretsFile {
    pub path: PathBuf,
    /// Changes that were taken.
    pub reloads: AtomicU64,
    /// Changes to something unusable.
    pub failures: AtomicU64,
    /// The secrets in use are older than the file, which is unusable or gone.
    pub is_stale: AtomicBool,
}

/// Watches the files of ticket secrets until the process ends. Files are compared by what is in them, since the date and inode
/// behind a symbolic link say little. Errors: the thread cannot be started.
pub(crate) fn watch(snapshot: &Snapshot, journal: Journal) -> io::Result<Arc<[Arc<SecretsFile>]>> {
    let mut watches: Vec<Watch> = Vec::new();
    for server in snapshot.listeners.iter().filter_map(|listener| listener.tls.as_ref()) {
        let Some((path, secrets)) = server.ticket_file().zip(server.ticket_secrets()) else { continue };
        match watches.iter_mut().find(|watch| watch.file.path == path) {
            Some(watch) => watch.servers.push(server.clone()),
            None => watches.push(Watch::new(path, secrets, server.clone())),
        }
    }
    let files = watches.iter().map(|watch| Arc::clone(&watch.file)).collect();
    if !watches.is_empty() {
        thread::Builder::new().name("secrets".into()).spawn(move || {
            loop {
                thread::sleep(EVERY);
                for watch in &mut watches {
                    if let Some(change) = watch.look() {
                        journal.line(format_args!("weir: {change}"));
                    }
                }
            }
        })?;
    }
    Ok(files)
}

/// A change takes effect when it was seen twice, so within a second or so.
const EVERY: Duration = Duration::from_millis(400);

/// The secrets, or why there are none.
type Found = Result<TicketSecrets, String>;

#[derive(Debug)]
struct Watch {
    file: Arc<SecretsFile>,
    /// All that use the file.
    servers: Vec<Server>,
    settled: Settled,
}

impl Watch {
    fn new(path: &Path, secrets: TicketSecrets, server: Server) -> Self {
        let file = SecretsFile {
            path: path.to_owned(),
            reloads: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            is_stale: AtomicBool::new(false),
        };
        Self { file: Arc::new(file), servers: vec![server], settled: Settled::new(secrets) }
    }

    /// Reads the file and follows its change; says what it was.
    fn look(&mut self) -> Option<Change<'_>> {
        let path = &self.file.path;
        let found = TicketSecrets::read(path).map_err(|error| error.to_string());
        match self.settled.next(found)? {
            Ok(secrets) => {
                let was_stale = self.file.is_stale.swap(false, Ordering::Relaxed);
                // Also those that were in use before the file became unusable.
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

/// What an operator reads.
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

/// Tells a file that has changed from one that is being written: what counts is what is found twice in a row.
#[derive(Debug)]
struct Settled {
    last: Found,
    /// What was followed.
    followed: Found,
}

impl Settled {
    fn new(secrets: TicketSecrets) -> Self {
        Self { last: Ok(secrets.clone()), followed: Ok(secrets) }
    }

    /// What to follow now, once.
    fn next(&mut self, found: Found) -> Option<Result<&TicketSecrets, &str>> {
        let is_settled = found == self.last;
        self.last = found;
        if !is_settled || self.last == self.followed {
            return None;
        }
        self.followed = self.last.clone();
        Some(self.followed.as_ref().map_err(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(digit: char) -> TicketSecrets {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, digit.to_string().repeat(64)).unwrap();
        TicketSecrets::read(file.path()).unwrap()
    }

    #[test]
    fn a_change_is_followed_once_and_when_it_has_settled() {
        let [a, b, c] = ['a', 'b', 'c'].map(secrets);
        let mut settled = Settled::new(a.clone());
        let torn = || Err("torn".to_owned());
        assert_eq!(settled.next(Ok(a.clone())), None);
        assert_eq!(settled.next(torn()), None, "it is being written, perhaps");
        assert_eq!(settled.next(Ok(b.clone())), None);
        assert_eq!(settled.next(Ok(b.clone())), Some(Ok(&b)));
        assert_eq!(settled.next(Ok(b.clone())), None);
        assert_eq!(settled.next(torn()), None);
        assert_eq!(settled.next(torn()), Some(Err("torn")));
        assert_eq!(settled.next(torn()), None, "it is said once");
        assert_eq!(settled.next(Ok(c.clone())), None);
        assert_eq!(settled.next(torn()), None);
        assert_eq!(settled.next(torn()), None, "the same fault, after a glimpse of something else");
        assert_eq!(settled.next(Ok(b.clone())), None);
        assert_eq!(settled.next(Ok(b.clone())), Some(Ok(&b)), "the old ones count as a change after a fault");
    }
}
