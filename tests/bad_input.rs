//! Mistakes of users and peers: each results in a message that names the fault, or in a response, and in an exit code.
//! None causes a panic or an endless wait.

use crate::common::{Certificates, Client, DEADLINE, Ended, Weir, origin};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;

/// Failed.
const FAILED: i32 = 1;
/// Wrong usage.
const USAGE: i32 = 2;
/// It ran, but without the requested evidence.
const NO_EVIDENCE: i32 = 3;

/// Runs `weir ARGS`, which must exit with `code` and a message that contains all of `parts`, without a panic.
fn ends(args: &[&str], code: i32, parts: &[&str]) {
    let ended = Weir::run(args);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.code, Some(code), "{args:?}: {said}");
    assert!(!said.contains("panicked"), "{args:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "{args:?}: no `{part}` in {said}");
    }
    assert!(!said.contains("listening on"), "{args:?} was ready before it failed: {said}");
}

const FREE: &str = "http://127.0.0.1:0";
/// A URL that is never contacted, since the process fails first.
const UNUSED: &str = "http://127.0.0.1:1";

#[test]
fn unknown_flags_and_values() {
    let with = |command: &'static str| match command {
        "origin" => vec![command, "--listen", FREE],
        "serve" | "relay" => vec![command, "--listen", FREE, "--to", UNUSED],
        "load" => vec![command, UNUSED],
        "doctor" => vec![command],
        other => vec![other, "no-such-file"],
    };
    for command in ["serve", "relay", "origin", "load", "run", "plan", "report", "doctor"] {
        ends(&[&with(command)[..], &["--no-such-flag"]].concat(), USAGE, &["--no-such-flag", "Usage: weir"]);
    }
    ends(&["no-such-command"], USAGE, &["no-such-command"]);
    ends(&[], USAGE, &["Usage: weir"]);
    for command in ["serve", "relay", "origin"] {
        for url in ["127.0.0.1", "ftp://127.0.0.1", "http://127.0.0.1:99999", "http://"] {
            let to = if command == "origin" { &[][..] } else { &["--to", UNUSED] };
            ends(&[&[command, "--listen", url], to].concat(), USAGE, &["--listen", url, "http://HOST:PORT"]);
        }
    }
    ends(&["serve", "--listen", FREE, "--to", "nowhere"], USAGE, &["--to", "http://HOST:PORT"]);
    ends(
        &["serve", "--listen", FREE, "--to", "http://no-such-host.invalid"],
        USAGE,
        &["--to", "no-such-host.invalid"],
    );
    ends(&["load", "nowhere"], USAGE, &["nowhere", "http://HOST:PORT"]);
    for command in ["serve", "relay", "origin", "load"] {
        let cores = |list| [&with(command)[..], &["--cores", list]].concat();
        ends(&cores("1-x"), USAGE, &["--cores", "such as 0,2-3"]);
        // The last core in the kernel's mask, which does not exist.
        ends(&cores("1023"), USAGE, &["--cores", "1023"]);
        let workers = if command == "load" { "-t" } else { "--workers" };
        ends(&[&with(command)[..], &[workers, "0"]].concat(), USAGE, &["0"]);
    }
    let suite = ["serve", "--listen", FREE, "--to", UNUSED, "--suite", "rot13"];
    ends(&suite, USAGE, &["rot13", "aes128-gcm-sha256"]);
    ends(&["load", UNUSED, "--tls", "1.1"], USAGE, &["1.1", "1.2, 1.3"]);
    ends(&["load", UNUSED, "-d", "soon"], USAGE, &["soon", "500ms"]);
    ends(&["load", UNUSED, "--data", "/no/such/file"], USAGE, &["--data", "/no/such/file"]);
    ends(&["load", UNUSED, "-d", "50ms", "--json", "/no/such/folder/x"], FAILED, &["/no/such/folder/x"]);
}

#[test]
fn certificates_and_keys() {
    let [ours, others] = [Certificates::new(), Certificates::new()];
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.pem");
    fs::write(&text, "no PEM at all").unwrap();
    let [cert, key, other_key, text] =
        [&ours.cert, &ours.key, &others.key, &text].map(|path| path.to_str().unwrap());
    let absent = "/no/such/cert.pem";
    for (cert, key, parts) in [
        (absent, key, &[absent, "No such file"][..]),
        (cert, absent, &[absent, "No such file"]),
        (text, key, &[text, "no certificate"]),
        (cert, text, &[text, "no usable private key"]),
        (key, key, &[key, "no certificate"]),
        (cert, other_key, &[cert, other_key, "does not match"]),
    ] {
        let https = "https://127.0.0.1:0";
        ends(&["serve", "--listen", https, "--cert", cert, "--key", key, "--to", UNUSED], USAGE, parts);
        ends(&["relay", "--listen", https, "--cert", cert, "--key", key, "--to", UNUSED], USAGE, parts);
        ends(&["origin", "--listen", https, "--cert", cert, "--key", key], USAGE, parts);
        ends(&["load", "https://127.0.0.1:1", "-k", "--cert", cert, "--key", key], USAGE, parts);
    }
    ends(
        &["serve", "--listen", "https://127.0.0.1:0", "--to", UNUSED],
        USAGE,
        &["--cert FILE", "--key FILE"],
    );
    ends(&["serve", "--listen", "https://127.0.0.1:0", "--cert", cert, "--to", UNUSED], USAGE, &["--key"]);
    for (file, why) in [(absent, "No such file"), (text, "no certificate")] {
        let to = ["serve", "--listen", FREE, "--to", "https://127.0.0.1:1", "--upstream-ca", file];
        ends(&to, USAGE, &[file, why]);
        ends(&["load", "https://127.0.0.1:1", "--cacert", file], USAGE, &[file, why]);
    }
}

#[test]
fn a_port_in_use_is_reported_with_its_process() {
    let certificates = Certificates::new();
    let holder = origin(false, &certificates);
    let url = holder.urls[0].as_str();
    let owner = format!("is in use by process {}", holder.pid());
    let parts = [holder.urls[0].strip_prefix("http://").unwrap(), &owner];
    ends(&["origin", "--listen", url], FAILED, &parts);
    ends(&["serve", "--listen", url, "--to", UNUSED], FAILED, &parts);
    ends(&["relay", "--listen", url, "--to", UNUSED], FAILED, &parts);
}

/// Any server that accepts connections can be measured: there is a result, it is invalid with a reason, and the exit
/// code reports that nothing was measured.
#[test]
fn load_against_a_server_without_http() {
    let certificates = Certificates::new();
    let tls = origin(true, &certificates);
    let other = Strange::start(b"SSH-2.0-Strange\r\n\r\n");
    for (url, class, words) in [
        (format!("http://{}", other.address), "malformed", "malformed"),
        (format!("http://127.0.0.1:{}", tls.address().port()), "closed", "ended before the response"),
    ] {
        let load = ["load", &url, "-c", "2", "-d", "300ms", "--warmup", "100ms"];
        ends(&load, NO_EVIDENCE, &["validity       invalid: ", class]);
        let json = Weir::run(&[&load[..], &["--json", "-"]].concat());
        let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
        let example = json["error_examples"][class].as_str().unwrap_or_default().to_ascii_lowercase();
        assert!(example.contains(&words.to_ascii_lowercase()), "{url}: no `{words}` in {json}");
        assert!(json["validity"].as_str().unwrap().starts_with("invalid: "), "{json}");
        assert_eq!(json["requests"], 0, "{json}");
    }
}

#[test]
fn errors_in_an_experiment_file() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let good = fs::read_to_string(repository.join("experiments/gateways.toml")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("experiments")).unwrap();
    std::os::unix::fs::symlink(repository.join("targets"), folder.path().join("targets")).unwrap();
    let file = folder.path().join("experiments/wrong.toml");
    let name = file.to_str().unwrap();
    let line_of = |text: &str, part| text.lines().position(|line| line.contains(part)).unwrap() + 1;
    for (from, to, wrong, parts) in [
        ("name = ", "nmae = ", "nmae", &["nmae", "did you mean `name`?"][..]),
        (
            "\"nginx\", \"haproxy\"]\n",
            "\"nginx\", \"haproxy\", \"apache\"]\n",
            "apache",
            &["apache", "weir", "haproxy"],
        ),
        ("\"h1c-h1c\"", "\"h3-h3\"", "h3-h3", &["h3-h3", "h1c-h1c"]),
        ("connections = 64", "connections = \"many\"", "= \"many\"", &["many"]),
        ("connections = 64", "connections == 64", "connections ==", &[]),
        ("aa = \"weir\"", "aa = \"wier\"", "wier", &["wier", "weir"]),
        ("rate_share = 0.", "rate_share = 7.", "rate_share = 7.", &["rate_share"]),
    ] {
        assert!(good.contains(from), "{from}");
        let text = good.replacen(from, to, 1);
        fs::write(&file, &text).unwrap();
        // For a missing target only the name is reported, not the line.
        let at = if wrong == "apache" {
            "apache".to_owned()
        } else {
            format!("wrong.toml:{}: ", line_of(&text, wrong))
        };
        for command in ["plan", "run"] {
            ends(&[command, name], USAGE, &[&[at.as_str()], parts].concat());
        }
    }
    fs::write(&file, &good).unwrap();
    for command in ["plan", "run"] {
        ends(&[command, "/no/such/file.toml"], USAGE, &["/no/such/file.toml", "no such experiment"]);
        ends(&[command, name, "--set", "windwo_ms=3"], USAGE, &["--set windwo_ms=3", "`window_ms`"]);
        ends(&[command, name, "--only", "colour=red"], USAGE, &["colour", "expected one of target, "]);
        let apache = ["--only target: invalid value `apache`: expected one of ", "weir"];
        ends(&[command, name, "--only", "target=apache"], USAGE, &apache);
        ends(&[command, name, "--blocks", "0"], USAGE, &["--blocks"]);
    }
    ends(&["report", "/no/such/folder"], FAILED, &["/no/such/folder"]);
}

#[test]
fn garbage_on_every_listener() {
    let certificates = Certificates::new();
    let [cert, key] = [&certificates.cert, &certificates.key].map(|path| path.to_str().unwrap());
    let listen = ["--listen", FREE, "--listen", "https://127.0.0.1:0", "--cert", cert, "--key", key];
    let origin = Weir::start(&[&["origin"][..], &listen].concat());
    let to = ["--to", origin.urls[0].as_str()];
    let serve = Weir::start(&[&["serve"][..], &listen, &to].concat());
    let relay = Weir::start(&[&["relay"][..], &listen, &to].concat());
    let mut noise = 0x2545_f491_u32;
    let mut random = |length: usize| -> Vec<u8> {
        let next = |_| {
            noise ^= noise << 13;
            noise ^= noise >> 17;
            noise ^= noise << 5;
            noise as u8
        };
        (0..length).map(next).collect()
    };
    let mut hello = Vec::new();
    certificates.session().receive(&mut [], &mut Vec::new(), &mut hello).unwrap();
    let mut garbage = vec![
        Vec::new(),
        vec![0; 100_000],
        vec![0xff; 20_000],
        vec![b'\n'; 20_000],
        vec![b'a'; 300_000],
        // A record that is longer than the bytes that follow, and one longer than allowed.
        vec![0x16, 3, 1, 0x40, 0, 1, 0, 0],
        vec![0x16, 3, 1, 0xff, 0xff, 1, 2, 3],
        hello[..hello.len() / 2].to_vec(),
        [&hello[..], b"GET / HTTP/1.1\r\n\r\n"].concat(),
        hello,
        b"GET /bytes/1 HTTP/1.1\r\nHost: h\r\n".to_vec(),
        b"GET /bytes/99999999999999999999999 HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(),
        b"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"
            .to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
    ];
    garbage.extend([1, 5, 100, 5000, 70_000].map(&mut random));
    for weir in [&serve, &relay, &origin] {
        for listener in 0..2 {
            for bytes in &garbage {
                throw(weir.address_of(listener), bytes);
            }
            let session = (listener == 1).then(|| certificates.session());
            let mut client = Client::connect(weir.address_of(listener), session);
            let answer = client.ask("GET /bytes/10 HTTP/1.1\r\nHost: h\r\n\r\n");
            assert_eq!((answer.status, answer.text()), (200, "0123456789"));
        }
    }
    for weir in [serve, relay, origin] {
        let Ended { code, stderr, .. } = weir.stop();
        assert_eq!(code, Some(0), "{stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
}

/// Sends bytes that the other side may not fully read, then reads until the other side closes, as it must.
fn throw(address: SocketAddr, bytes: &[u8]) {
    let mut tcp = TcpStream::connect(address).unwrap();
    tcp.set_read_timeout(Some(DEADLINE)).unwrap();
    tcp.set_write_timeout(Some(DEADLINE)).unwrap();
    for result in
        [tcp.write_all(bytes), tcp.shutdown(Shutdown::Write), tcp.read_to_end(&mut Vec::new()).map(drop)]
    {
        if let Err(error) = result {
            let gone = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe, ErrorKind::NotConnected];
            assert!(gone.contains(&error.kind()), "{address} on {} bytes: {error}", bytes.len());
        }
    }
}

/// A server of another protocol, with the same response to any input.
struct Strange {
    address: SocketAddr,
}

impl Strange {
    /// Serves until the test program ends.
    fn start(answer: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for tcp in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut tcp = tcp;
                    // A peer that disconnects meanwhile does not matter.
                    if tcp.read(&mut [0; 1024]).is_ok_and(|read| read > 0) {
                        let _ = tcp.write_all(answer);
                    }
                    let _ = tcp.read_to_end(&mut Vec::new());
                });
            }
        });
        Self { address }
    }
}
