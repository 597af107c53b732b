//! The null server as a separate process, with its own cores and CPU clock.

use crate::target::Target;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use weir_reactor::cores::Cores;

/// A listening null server; stopped on drop.
#[derive(Debug)]
pub(super) struct NullServer {
    child: Child,
    pub(super) http: Target,
    pub(super) https: Target,
    /// The CA of its certificate.
    pub(super) ca: PathBuf,
    /// Kept open: it prints more when it stops.
    _words: BufReader<ChildStdout>,
}

/// Timeout for stopping it: it drains for at most 5 seconds.
const PATIENCE: Duration = Duration::from_secs(6);

impl NullServer {
    /// Starts `program origin --null BYTES`, one worker per core, and waits until it listens.
    pub(super) fn start(program: &Path, bytes: u64, cores: &Cores) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args(["origin", "--listen", "http://127.0.0.1:0", "--listen", "https://127.0.0.1:0"])
            .args(["--null", &bytes.to_string(), "--workers", &cores.0.len().to_string()])
            .args(["--cores", &cores.to_string()])
            // Ctrl-C on the terminal is for the engine, which stops its servers itself.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let words = child.stdout.take().ok_or_else(|| io::Error::other("no standard output"))?;
        let mut words = BufReader::new(words);
        match listening(&mut words) {
            Ok((http, https, ca)) => Ok(Self { child, http, https, ca, _words: words }),
            Err(error) => {
                end(&mut child);
                Err(error)
            }
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Reads its address and its CA file.
fn listening(words: &mut impl BufRead) -> io::Result<(Target, Target, PathBuf)> {
    let (mut http, mut https, mut ca) = (None, None, None);
    for line in words.lines() {
        let line = line?;
        if let Some(file) = line.strip_prefix("authority in ") {
            ca = Some(PathBuf::from(file));
        } else if let Some(url) = line.strip_prefix("listening on ") {
            let target: Target = url.parse().map_err(io::Error::other)?;
            let place = if target.endpoint.tls { &mut https } else { &mut http };
            *place = Some(target);
        }
        if let (Some(http), Some(https), Some(ca)) = (&http, &https, &ca) {
            return Ok((http.clone(), https.clone(), ca.clone()));
        }
    }
    Err(io::Error::other("it exited before it listened"))
}

/// Stops it gracefully, so that it removes its files, and kills it otherwise.
fn end(child: &mut Child) {
    // An error means that it has already exited.
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(Duration::from_millis(2));
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says_is_understood() {
        let words = "authority in /tmp/x y/ca.pem\nlistening on http://127.0.0.1:81\n\
                     listening on https://127.0.0.1:82\nserved ..\n";
        let (http, https, ca) = listening(&mut words.as_bytes()).unwrap();
        assert_eq!((http.endpoint.port, https.endpoint.port), (81, 82));
        assert_eq!(ca, PathBuf::from("/tmp/x y/ca.pem"));
        let error = listening(&mut &b"listening on http://127.0.0.1:81\n"[..]).unwrap_err();
        assert!(error.to_string().contains("before it listened"));
    }

    #[test]
    fn a_program_other_than_the_null_server_is_rejected() {
        let error = NullServer::start(Path::new("/bin/echo"), 0, &Cores(vec![0])).unwrap_err();
        assert!(error.to_string().contains("before it listened"), "{error}");
        assert!(NullServer::start(Path::new("/nothing/here"), 0, &Cores(vec![0])).is_err());
    }
}
