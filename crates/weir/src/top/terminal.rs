//! The terminal of `weir top`: an alternate screen, and keys without waiting for Enter.

use super::screen::Size;
use crate::outcome::{Outcome, say};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGTERM};
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Dropping this restores the terminal.
pub(super) struct Terminal {
    /// The former settings of the input; `None`: stdin is not a terminal.
    before: Option<Termios>,
    /// Whether a signal has asked the program to end.
    is_ended: Arc<AtomicBool>,
}

impl Terminal {
    /// Switches to the alternate screen. `None`: the terminal cannot be set up.
    pub(super) fn enter() -> Option<Self> {
        let before = isatty(stdin()).then(|| tcgetattr(stdin()).ok()).flatten();
        if let Some(before) = &before {
            let mut keys = before.clone();
            // Read Ctrl-C as a key, too, so that the terminal is restored on exit.
            keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
            tcsetattr(stdin(), OptionalActions::Now, &keys).ok()?;
        }
        let terminal = Self { before, is_ended: Arc::default() };
        for signal in [SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&terminal.is_ended)).ok()?;
        }
        // Switch to the alternate screen, and hide the cursor.
        say(format_args!("\x1b[?1049h\x1b[?25l")).ok()?;
        Some(terminal)
    }

    /// The current size of the terminal; 80 columns and 23 rows if it is unknown.
    pub(super) fn size(&self) -> Size {
        match tcgetwinsize(stdout()) {
            // One row less, since the text ends with a line feed.
            Ok(size) if size.ws_col > 0 && size.ws_row > 1 => {
                Size { columns: size.ws_col.into(), rows: usize::from(size.ws_row) - 1 }
            }
            _ => Size { columns: 80, rows: 23 },
        }
    }

    /// Replaces the displayed text. Fails if the reader of stdout has closed it.
    pub(super) fn show(&self, text: &str) -> Outcome {
        // Clear the remainder of each line, and the rows below the last, instead of the whole screen, to avoid flicker.
        say(format_args!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n")))
    }

    /// Waits for this time; true: a key or a signal requests the end.
    pub(super) fn is_quit_within(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            if self.is_ended.load(Ordering::Relaxed) {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let wait = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            let keys = stdin();
            let mut keys = [PollFd::new(&keys, PollFlags::IN)];
            let watched = if self.before.is_some() { &mut keys[..] } else { &mut [] };
            match poll(watched, Some(&wait)) {
                Ok(0) => {}
                Ok(_) => {
                    let mut some = [0; 64];
                    match rustix::io::read(stdin(), &mut some) {
                        Ok(0) => return true,
                        Ok(read) if some[..read].iter().any(|key| QUIT.contains(key)) => return true,
                        Ok(_) | Err(_) => {}
                    }
                }
                // A signal interrupted the wait, for example when the window size changed.
                Err(_) => {}
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = std::io::stdout().write_all(b"\x1b[?25h\x1b[?1049l");
        let _ = std::io::stdout().flush();
        if let Some(before) = &self.before {
            let _ = tcsetattr(stdin(), OptionalActions::Now, before);
        }
    }
}

/// The keys that quit: q, Ctrl-C, Ctrl-D, and Ctrl-\.
const QUIT: &[u8] = &[b'q', b'Q', 3, 4, 28];
