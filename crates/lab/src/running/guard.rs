//! The guard kills the processes of a run if the lab itself is killed.
//!
//! It is a process of ours outside the lab's group, informed of each group that starts and each that has ended. When
//! its standard input closes, the lab is gone, for whatever reason: the guard kills the listed groups and removes their
//! network namespaces.

use crate::base::error::LabError;
use crate::net::clean_of;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// The lab's side: dropping it releases the guard.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
    words: Option<ChildStdin>,
}

impl Guard {
    /// Starts the guard: `weir` is this program.
    pub(crate) fn start(weir: &Path) -> Result<Self, LabError> {
        let mut command = Command::new(weir);
        // A group of its own: a terminal's signals to the lab must not reach it.
        command.args(["guard", "--lab", &std::process::id().to_string()]).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command
            .spawn()
            .map_err(|source| LabError::System { action: "starting the guard of its processes", source })?;
        let words = child.stdin.take();
        Ok(Self { child, words })
    }

    /// A group leader was started.
    pub(crate) fn watch(&self, leader: u32) {
        self.say(format!("+{leader}\n"));
    }

    /// Its group has ended.
    pub(crate) fn release(&self, leader: u32) {
        self.say(format!("-{leader}\n"));
    }

    fn say(&self, line: String) {
        if let Some(mut words) = self.words.as_ref() {
            // A guard that is gone guards nothing; the lab still ends its own processes.
            let _ = words.write_all(line.as_bytes());
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.words = None;
        let _ = self.child.wait();
    }
}

/// The guard's main loop: returns when the lab with this pid is gone and nothing of it is left.
///
/// # Errors
/// When standard input cannot be read; the groups listed until then are killed.
pub fn guard(lab: u32) -> io::Result<()> {
    let mut leaders = BTreeSet::new();
    let read = follow(io::stdin().lock(), &mut leaders);
    for leader in &leaders {
        if let Some(leader) = Pid::from_raw(*leader) {
            // It may have exited by itself.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
    // By its pid: the lab's pipe closes before its process is gone. Without the right to create namespaces there are
    // none.
    let _ = clean_of(lab);
    read
}

fn follow(words: impl BufRead, leaders: &mut BTreeSet<i32>) -> io::Result<()> {
    for line in words.lines() {
        let line = line?;
        let leader = line.get(1..).and_then(|number| number.parse().ok()).filter(|leader| *leader > 1);
        match (line.as_bytes().first(), leader) {
            (Some(b'+'), Some(leader)) => leaders.insert(leader),
            (Some(b'-'), Some(leader)) => leaders.remove(&leader),
            _ => false,
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_groups_are_listed() {
        let mut leaders = BTreeSet::new();
        follow(&b"+20\n+21\n-20\n+x\n+1\n+0\n-99\n\n+22\n"[..], &mut leaders).expect("is read");
        assert_eq!(leaders, BTreeSet::from([21, 22]));
    }
}
