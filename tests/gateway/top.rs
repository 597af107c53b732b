//! `weir top` on a terminal.

use super::named;
use crate::common::{Client, DEADLINE, Weir, poll_until};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

/// A terminal of 80 columns and 24 rows, and the program's output.
struct Terminal {
    keyboard: File,
    /// The program's side, kept open so that its modes are readable after the program exits.
    program: File,
    written: Arc<Mutex<String>>,
}

impl Terminal {
    fn new() -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let path = ptsname(&keyboard, Vec::new()).unwrap();
        let program = OpenOptions::new().read(true).write(true).open(path.to_str().unwrap()).unwrap();
        tcsetwinsize(&program, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let keyboard = File::from(keyboard);
        let written = Arc::new(Mutex::new(String::new()));
        let (mut screen, all) = (keyboard.try_clone().unwrap(), Arc::clone(&written));
        std::thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(read @ 1..) = screen.read(&mut some) {
                all.lock().unwrap().push_str(&String::from_utf8_lossy(&some[..read]));
            }
        });
        Self { keyboard, program, written }
    }

    fn spawn(&self, args: &[&str]) -> Child {
        let end = || self.program.try_clone().unwrap();
        Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(args)
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap()
    }

    fn written(&self) -> String {
        self.written.lock().unwrap().clone()
    }

    fn shows_keys(&self) -> bool {
        tcgetattr(&self.program).unwrap().local_modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    }
}

/// Regression test: SIGTERM left the terminal without echo and on the alternate screen, and 80-column screens lost
/// their first line.
#[test]
fn top_leaves_the_terminal_as_it_was() {
    let upstream = named("a");
    let names: Vec<_> = (0..30).map(|index| format!("a-service-with-a-long-name-{index}")).collect();
    let services: String = names
        .iter()
        .map(|name| format!("[service.{name}]\nservers = 'http://{}'\n", upstream.address))
        .collect();
    let routes: String =
        names.iter().map(|name| format!("[[route]]\npath = '/{name}'\nservice = '{name}'\n")).collect();
    let weir = Weir::configured(
        &format!("[listener.web]\nbind = '127.0.0.1:0'\n[admin]\nbind = '127.0.0.1:0'\n{services}{routes}"),
        1,
    );
    Client::connect(weir.address(), None).ask(format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", names[0]));
    let at = weir.admin().to_string();
    for end in [End::Key(b"q"), End::Key(b"\x03"), End::Signal(Signal::TERM), End::Signal(Signal::HUP)] {
        let terminal = Terminal::new();
        assert!(terminal.shows_keys());
        let mut top = terminal.spawn(&["top", "--admin", &at, "--every", "0.1"]);
        poll_until(DEADLINE, "two screens are shown", || terminal.written().matches("\x1b[J").count() >= 2);
        assert!(!terminal.shows_keys());
        match end {
            End::Key(key) => (&terminal.keyboard).write_all(key).unwrap(),
            End::Signal(signal) => kill_process(Pid::from_child(&top), signal).unwrap(),
        }
        poll_until(DEADLINE, "top ends", || top.try_wait().unwrap().is_some());
        assert_eq!(top.wait().unwrap().code(), Some(0), "{end:?}");
        poll_until(DEADLINE, "its screen is left", || terminal.written().ends_with("\x1b[?25h\x1b[?1049l"));
        assert!(terminal.shows_keys(), "{end:?}");

        let written = terminal.written();
        let screen = written.split("\x1b[H").nth(1).unwrap();
        let rows: Vec<_> = screen.split("\x1b[J").next().unwrap().lines().collect();
        assert!(rows.len() <= 23, "{screen}");
        assert!(rows[0].starts_with("weir at http://127.0.0.1:"), "{screen}");
        assert!(rows.iter().all(|row| row.trim_end_matches("\x1b[K").chars().count() <= 80), "{screen}");
        assert!(rows.last().unwrap().contains("more: make the window larger"), "{screen}");
    }
}

#[derive(Clone, Copy, Debug)]
enum End {
    Key(&'static [u8]),
    Signal(Signal),
}
