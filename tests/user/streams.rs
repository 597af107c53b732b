//! Standard streams that cannot be written: a full disk, a reader that has exited (`| head -1`, `2>&1 | head -1`), a
//! closed stream. Servers keep serving, measurements keep measuring, and no command aborts.

use crate::common::{Client, DEADLINE, Experiment, Upstream, poll_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, pipe};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use weir_http::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/// A stream on which every write fails: the disk is full.
fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

/// A stream whose reader has exited.
fn gone() -> Stdio {
    pipe().unwrap().1.into()
}

/// Both kinds of stream, with their names.
fn unwritable() -> [(&'static str, Stdio); 2] {
    [("full", full()), ("gone", gone())]
}

fn weir(args: &[&str], stdout: Stdio, stderr: Stdio) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(args).stdin(Stdio::null()).stdout(stdout).stderr(stderr).spawn().unwrap()
}

/// A process's exit code; `None` for an abort or another signal.
fn code(mut child: Child) -> Option<i32> {
    let mut status = None;
    poll_until(DEADLINE, "weir exits", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap().code()
}

/// The address in a server's first line, the only source of its port.
fn address(reader: PipeReader) -> SocketAddr {
    let mut line = String::new();
    BufReader::new(reader).read_line(&mut line).unwrap();
    line.trim().strip_prefix("listening on http://").unwrap_or_else(|| panic!("{line}")).parse().unwrap()
}

/// Sends a bad request, which causes a line on stderr, and a good one; then drains, which ends with a line on stdout.
fn serves_and_drains(child: Child, address: SocketAddr) {
    for _ in 0..3 {
        let mut client = Client::connect(address, None);
        client.send("nonsense\r\n\r\n");
        assert_eq!(client.answer(Method::Get).status, 400);
    }
    let mut client = Client::connect(address, None);
    assert_eq!(client.ask(GET).text(), "hi");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(code(child), Some(0));
}

#[test]
fn a_gateway_with_unwritable_stderr_keeps_serving() {
    for (_, stderr) in unwritable() {
        let upstream = Upstream::start(None, |peer| peer.serve(ANSWER));
        let to = format!("http://{}", upstream.address);
        let (reader, stdout) = pipe().unwrap();
        let child = weir(
            &["serve", "--listen", "http://127.0.0.1:0", "--to", &to, "--workers", "1"],
            stdout.into(),
            stderr,
        );
        // This call drops the pipe's reader, so from here on stdout cannot be written either.
        serves_and_drains(child, address(reader));
    }
}

#[test]
fn a_gateway_piped_to_head_keeps_serving() {
    let upstream = Upstream::start(None, |peer| peer.serve(ANSWER));
    let to = format!("http://{}", upstream.address);
    let (reader, stdout) = pipe().unwrap();
    let stderr = stdout.try_clone().unwrap();
    let child = weir(
        &["serve", "--listen", "http://127.0.0.1:0", "--to", &to, "--workers", "1"],
        stdout.into(),
        stderr.into(),
    );
    serves_and_drains(child, address(reader));
}

#[test]
fn a_gateway_with_full_stdout_keeps_serving() {
    let upstream = Upstream::start(None, |peer| peer.serve(ANSWER));
    let to = format!("http://{}", upstream.address);
    // An address unique to this process, since the port is not printed.
    let [.., high, low] = std::process::id().to_be_bytes();
    let address = SocketAddr::from(([127, 88, high, low], 8080));
    let listen = format!("http://{address}");
    let child = weir(&["serve", "--listen", &listen, "--to", &to, "--workers", "1"], full(), full());
    poll_until(DEADLINE, "weir listens", || std::net::TcpStream::connect(address).is_ok());
    serves_and_drains(child, address);
}

#[test]
fn an_experiment_with_unwritable_stderr_is_measured() {
    for (how, stderr) in unwritable() {
        let experiment = Experiment::of_repository(&[]);
        // A busy machine may invalidate a run, which this test does not check.
        let words = [experiment.words("--out"), vec!["--allow-invalid".into()]].concat();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let child = weir(&words, Stdio::null(), stderr);
        assert_eq!(code(child), Some(0), "stderr is {how}");
        assert!(experiment.text("out/summary.json").contains("\"cells\""), "stderr is {how}");
    }
}

#[test]
fn an_experiment_without_a_reader_exits_by_its_result() {
    let experiment = Experiment::of_repository(&[]);
    let words = [experiment.words("--out"), vec!["--allow-invalid".into()]].concat();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(code(weir(&words, gone(), gone())), Some(0));
    assert!(experiment.text("out/report.html").contains("</html>"));
    let out = experiment.file("out");
    let out = out.to_str().unwrap();
    assert_eq!(code(weir(&["report", out], gone(), gone())), Some(0));
    // The requested output was lost.
    assert_eq!(code(weir(&["report", out], full(), full())), Some(1));
}

#[test]
fn exit_codes_do_not_depend_on_a_reader() {
    for (args, expected) in [
        (&["man", "load"][..], 0),
        (&["completions", "bash"], 0),
        (&["doctor"], 0),
        (&["load", "--help"], 0),
        (&["targets", "--directory", "no/such/folder"], 2),
        (&["load", "nowhere"], 2),
        (&["no-such-command"], 2),
        (&["load", "http://127.0.0.1:1", "-d", "50ms", "--json", "/no/such/folder/x"], 1),
    ] {
        assert_eq!(code(weir(args, gone(), gone())), Some(expected), "{args:?} 2>&1 | head -0");
        assert_eq!(code(weir(args, Stdio::null(), full())), Some(expected), "{args:?} 2>/dev/full");
    }
    assert_eq!(code(weir(&["man", "load"], full(), full())), Some(1), "the page was lost");
}
