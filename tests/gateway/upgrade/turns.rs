//! Which process serves after the old or the new one exits, or is stopped, during an upgrade.

use super::super::activation::Supervisor;
use super::stand_in::StandIn;
use super::{GET, Line, RELOAD, UPGRADE, answering, exchange, threads};
use crate::common::{Client, DEADLINE, is_gone, pid_in, poll_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::exit;
use std::thread;
use std::time::Duration;

impl Line {
    /// Waits for a mark of the stand-in.
    fn wait_for(&self, mark: &str) {
        poll_until(DEADLINE, mark, || self.file(mark).exists());
    }

    /// The process of the stand-in, or of the gateway that it started.
    fn new_one(&self) -> Pid {
        self.wait_for("pid");
        pid_in(&fs::read_to_string(self.file("pid")).unwrap()).unwrap()
    }
}

/// Starts an upgrade, and returns the reason for its failure.
fn refused(line: &Line, meanwhile: impl FnOnce()) -> String {
    thread::scope(|scope| {
        let asked = scope.spawn(|| line.ask(UPGRADE));
        meanwhile();
        let answer = asked.join().unwrap();
        assert_eq!(answer.status, 409, "{}", answer.text());
        answer.text().to_owned()
    })
}

#[test]
fn a_process_goes_on_whose_successor_does_not_serve_when_it_may() {
    if let Some((part, mut stand_in)) = StandIn::of_process() {
        stand_in.take_turn();
        stand_in.mark("went", "");
        match part.as_str() {
            "ends" => exit(3),
            "tells" => stand_in.say("{\"failed\":{\"why\":\"no room\"}}"),
            _ => stand_in.hear_all(),
        }
        return;
    }
    let test = "gateway::upgrade::turns::a_process_goes_on_whose_successor_does_not_serve_when_it_may";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.sock");
    let config = answering("old").replace("bind = ", &format!("bind = ['unix:{}', ", path.display()));
    let config = config.replace("\n[[route]]", "]\n[[route]]");
    let mut line = Line::new(&config, 2);
    let address = line.weir.address_of(1);
    let mut kept = Client::connect(address, None);
    let mut serves = || {
        let answer = exchange(&path, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        assert!(answer.ends_with("\r\n\r\nold"), "{answer}");
        for client in [&mut kept, &mut Client::connect(address, None)] {
            let answer = client.ask(GET);
            assert_eq!((answer.text(), answer.says_close()), ("old", false));
        }
        assert_eq!(line.ask("GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n").text(), "ready\n");
    };
    for (part, why) in
        [("ends", "the new process ended before it served (exit status: 3)"), ("tells", "no room")]
    {
        line.play(test, part);
        line.fails(why);
        serves();
    }
    line.write(&format!("{config}[timeouts]\nupgrade = '5s'\n"));
    assert_eq!(line.ask(RELOAD).status, 200);
    line.play(test, "waits");
    let why = refused(&line, || {
        line.wait_for("went");
        // The old process accepts connections until the new one does.
        serves();
    });
    assert!(why.contains("the new process did not serve within 5s"), "{why}");
    assert!(is_gone(line.new_one()));
    serves();
    assert_eq!(line.counts(), [0, 3]);
    line.restore();
    line.upgrade();
    assert_eq!(line.weir.exit_code(), Some(0));
    assert_eq!(Client::connect(address, None).ask(GET).text(), "old");
    assert_eq!(line.counts(), [1, 3]);
}

/// The timeout covers all steps together.
#[test]
fn the_time_of_an_upgrade_begins_with_the_process() {
    if let Some((_, mut stand_in)) = StandIn::of_process() {
        stand_in.hear("{\"end\":");
        // Deliberately slow: each step is below the timeout, both together exceed it.
        let step = Duration::from_millis(2100);
        thread::sleep(step);
        stand_in.be_ready();
        stand_in.hear("\"go\"");
        thread::sleep(step);
        stand_in.say("\"serving\"");
        return stand_in.hear_all();
    }
    let line = Line::new(&format!("{}[timeouts]\nupgrade = '4s'\n", answering("old")), 1);
    line.play("gateway::upgrade::turns::the_time_of_an_upgrade_begins_with_the_process", "slow");
    line.fails(" within 4s");
    assert_eq!(line.get().text(), "old");
}

#[test]
fn a_process_that_is_stopped_in_the_middle_calls_the_upgrade_off_unless_the_new_one_serves() {
    if let Some((part, mut stand_in)) = StandIn::of_process() {
        stand_in.take_turn();
        stand_in.mark("went", "");
        if part == "serves" {
            stand_in.wait_for("on");
            stand_in.say("\"serving\"");
            stand_in.mark("said", "");
        }
        stand_in.hear_all();
        // The stand-in holds the sockets until it is killed.
        return stand_in.wait_for("end");
    }
    let test = "gateway::upgrade::turns::a_process_that_is_stopped_in_the_middle_calls_the_upgrade_off_unless_the_new_one_serves";
    let mut line = Line::new(&answering("old"), 1);
    line.play(test, "waits");
    let why = refused(&line, || {
        line.wait_for("went");
        line.weir.terminate();
    });
    assert!(why.contains("this process is stopping"), "{why}");
    assert_eq!(line.weir.exit_code(), Some(0));
    assert!(is_gone(line.new_one()));
    assert!(TcpStream::connect(line.weir.address()).is_err(), "the port is released");

    let mut line = Line::new(&answering("old"), 1);
    line.play(test, "serves");
    line.weir.signal(Signal::USR2);
    line.wait_for("went");
    // The old process receives two things at once: the message that the new one serves, and the signal to stop.
    line.weir.signal(Signal::STOP);
    fs::write(line.file("on"), "").unwrap();
    line.wait_for("said");
    line.weir.terminate();
    line.weir.signal(Signal::CONT);
    line.weir.wait_for_stderr(&["weir: upgraded; process ", " goes on, and this one drains"]);
    assert_eq!(line.weir.exit_code(), Some(0));
    assert!(!is_gone(line.new_one()), "it is the service");
    // If only the old process drained, the kernel would reject clients, since both processes hold the sockets.
    TcpStream::connect_timeout(&line.weir.address(), DEADLINE).unwrap();
}

#[test]
fn a_new_process_that_is_stopped_before_it_serves_leaves_the_service_to_the_old_one() {
    if let Some((_, stand_in)) = StandIn::of_process() {
        return stand_in.relay();
    }
    let test = "gateway::upgrade::turns::a_new_process_that_is_stopped_before_it_serves_leaves_the_service_to_the_old_one";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.sock");
    let supervisor = folder.path().join("notify");
    let heard = Supervisor::new(UnixDatagram::bind(&supervisor).unwrap());
    let mut line = Line::with(&answering("old"), 1, &[("NOTIFY_SOCKET", &supervisor)]);
    assert_eq!(heard.next(), "READY=1\nSTATUS=serving");
    let config =
        answering("new").replace("'127.0.0.1:0'", &format!("['127.0.0.1:0', 'unix:{}']", path.display()));
    line.write(&config);
    line.play(test, "relay");
    let why = refused(&line, || {
        line.wait_for("ready");
        let queued = UnixStream::connect(&path);
        assert!(path.exists() && queued.is_err(), "nobody is in a queue that may never be served");
        let new = line.new_one();
        let begun = ["worker-", "admin"].map(|name| threads(new, name) > 0);
        assert_eq!(begun, [true; 2], "a thread that cannot be started is known by now");
        kill_process(new, Signal::TERM).unwrap();
        // The new process handles signals in order.
        poll_until(DEADLINE, "it knows", || {
            let _ = kill_process(new, Signal::USR2);
            line.weir.stderr().contains("weir: upgrade refused: this process is stopping")
        });
        fs::write(line.file("on"), "").unwrap();
    });
    assert!(why.contains("upgrade: the new process was told to stop"), "{why}");
    // The supervisor gets no message from the new process, which does not run as the service.
    assert_eq!(heard.next(), "STATUS=upgrading");
    let refused = heard.next();
    assert!(refused.starts_with("STATUS=serving; the last upgrade was refused: "), "{refused}");
    assert!(heard.is_silent());
    assert_eq!(line.get().text(), "old");
    assert!(!path.exists());
    // The same, once the relay passes the message.
    line.play(test, "relay");
    fs::write(line.file("on"), "").unwrap();
    let taken = line.ask(UPGRADE);
    assert_eq!(taken.status, 200, "{}", taken.text());
    let new = line.new_one();
    assert_eq!(line.weir.exit_code(), Some(0));
    assert_eq!(line.get().text(), "new");
    assert!(
        exchange(&path, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").ends_with("\r\n\r\nnew")
    );
    kill_process(new, Signal::TERM).unwrap();
    poll_until(DEADLINE, "it ends", || is_gone(new));
}

/// For example, a tool that cleans temporary directories may remove it.
#[test]
fn a_socket_whose_file_is_gone_or_anothers_loses_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let [gone, taken] = ["gone.sock", "taken.sock"].map(|name| folder.path().join(name));
    let config = answering("old").replace(
        "'127.0.0.1:0'",
        &format!("['127.0.0.1:0', 'unix:{}', 'unix:{}']", gone.display(), taken.display()),
    );
    let line = Line::new(&config, 3);
    fs::remove_file(&gone).unwrap();
    fs::remove_file(&taken).unwrap();
    fs::write(&taken, "another's").unwrap();
    fs::set_permissions(&taken, fs::Permissions::from_mode(0o600)).unwrap();
    for _ in 0..2 {
        line.upgrade();
        assert_eq!(line.get().text(), "old");
    }
    for (path, why) in [(&gone, "the socket's file is gone"), (&taken, "another file has the socket's path")]
    {
        let place = format!("weir: warning: unix:{}: {why}: ", path.display());
        line.weir.wait_for_stderr(&[&place, "to make it anew, restart"]);
    }
    line.stop();
    assert_eq!(fs::read_to_string(&taken).unwrap(), "another's");
    assert_eq!(fs::metadata(&taken).unwrap().permissions().mode() & 0o777, 0o600);
}

/// The old process waits at most a second for the last responses of its admin address, but handles signals meanwhile.
#[test]
fn a_connection_to_the_admin_address_delays_no_signal() {
    // If the machine stalls for that second, an attempt proves nothing.
    let was_prompt = (0..3).any(|_| {
        let line = Line::new(&answering("old"), 1);
        let silent = Client::connect(line.admin(), None);
        thread::scope(|scope| {
            let asked = scope.spawn(|| line.ask(UPGRADE));
            line.weir.wait_for_stderr(&["weir: upgraded; process "]);
            line.weir.signal(Signal::USR2);
            line.weir
                .wait_for_stderr(&["weir: upgrade refused: process ", " taken this one's place already"]);
            for _ in 0..3 {
                assert_eq!(line.get().text(), "old");
            }
            // The response arrives at the end of that wait.
            let was_prompt = !asked.is_finished();
            drop(silent);
            assert_eq!(asked.join().unwrap().status, 200);
            was_prompt
        })
    });
    assert!(was_prompt);
}
