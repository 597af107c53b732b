//! A gateway between a client and a test's own upstream, in each of the four modes.

use super::{Client, Ended, Peer, Stream, Upstream, Weir};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use tempfile::TempDir;
use weir_tls::issue::{Authority, KeyKind};
use weir_tls::{
    Client as TlsClient, ClientSettings, Identity, PeerName, Roots, Server, ServerSettings, Session,
};

/// The protocols on the two sides of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    pub name: &'static str,
    /// TLS between client and gateway.
    pub client_tls: bool,
    /// TLS between gateway and upstream.
    pub upstream_tls: bool,
}

/// All modes; a name starts with the client side, and `c` stands for cleartext.
pub const MODES: [Mode; 4] = [
    Mode { name: "h1c-h1c", client_tls: false, upstream_tls: false },
    Mode { name: "h1-h1c", client_tls: true, upstream_tls: false },
    Mode { name: "h1c-h1", client_tls: false, upstream_tls: true },
    Mode { name: "h1-h1", client_tls: true, upstream_tls: true },
];

/// The test's CA and its certificate for 127.0.0.1 and localhost, in a temporary directory that is removed on drop.
pub struct Certificates {
    pub ca: PathBuf,
    pub cert: PathBuf,
    pub key: PathBuf,
    _directory: TempDir,
}

/// A gateway, its upstream and their certificates.
pub struct Case {
    pub mode: Mode,
    pub weir: Weir,
    pub upstream: Upstream,
    pub certificates: Certificates,
}

impl Certificates {
    /// Issues a certificate for 127.0.0.1 and localhost.
    pub fn new() -> Self {
        Self::for_names(&["127.0.0.1", "localhost"])
    }

    /// Issues a certificate for other names.
    pub fn for_names(names: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let issued = Authority::new().unwrap().issue(names, KeyKind::EcdsaP256).unwrap();
        let files = issued.write_to(directory.path()).unwrap();
        Self { ca: files.ca, cert: files.certificates, key: files.key, _directory: directory }
    }

    /// A server that presents the certificate.
    pub fn server(&self) -> Server {
        Server::new(&ServerSettings::new(Identity::files(&self.cert, &self.key))).unwrap()
    }

    /// A client that trusts only this CA.
    pub fn client(&self) -> TlsClient {
        let roots = Roots::File(self.ca.clone());
        TlsClient::new(&ClientSettings {
            roots,
            alpn: vec![b"http/1.1".to_vec()],
            ..ClientSettings::default()
        })
        .unwrap()
    }

    /// A client's session for a new connection to 127.0.0.1, without resumption.
    pub fn session(&self) -> Session {
        let name: PeerName = "127.0.0.1".parse().unwrap();
        self.client().core().connect(&name)
    }
}

impl Case {
    /// A gateway with one worker and further `weir serve` flags, and an upstream that runs `script` for each
    /// connection.
    pub fn new(mode: Mode, flags: &[&str], script: impl Fn(&mut Peer) + Send + Sync + 'static) -> Self {
        let certificates = Certificates::new();
        let acceptor = mode.upstream_tls.then(|| certificates.server().core());
        let upstream = Upstream::start(acceptor, script);
        let weir = serve(mode, &certificates, upstream.address, flags);
        Self { mode, weir, upstream, certificates }
    }

    /// Like [`Case::new`], from a configuration file with these listener settings.
    pub fn configured(
        mode: Mode,
        listener: &str,
        script: impl Fn(&mut Peer) + Send + Sync + 'static,
    ) -> Self {
        let certificates = Certificates::new();
        let acceptor = mode.upstream_tls.then(|| certificates.server().core());
        let upstream = Upstream::start(acceptor, script);
        let [cert, key, ca] =
            [&certificates.cert, &certificates.key, &certificates.ca].map(|path| path.display());
        let (certificate, tls) = match mode.client_tls {
            true => (format!("[[certificate]]\nchain = '{cert}'\nkey = '{key}'\n"), "[listener.web.tls]\n"),
            false => (String::new(), ""),
        };
        let (scheme, trust) = match mode.upstream_tls {
            true => ("https", format!("tls.ca = '{ca}'\n")),
            false => ("http", String::new()),
        };
        let config = format!(
            "workers = 1\n{certificate}[listener.web]\nbind = '127.0.0.1:0'\n{listener}\n{tls}[service.app]\n\
             servers = '{scheme}://{}'\n{trust}[[route]]\nservice = 'app'\n",
            upstream.address
        );
        Self { mode, weir: Weir::configured(&config, 1), upstream, certificates }
    }

    /// Like [`Case::new`], with an upstream that sends `answer` to every request.
    pub fn answering(mode: Mode, answer: &'static str) -> Self {
        Self::new(mode, &[], move |peer| peer.serve(answer))
    }

    /// A new client connection with a completed handshake.
    pub fn client(&self) -> Client {
        Client { stream: self.connect().unwrap() }
    }

    /// Like [`Case::client`], but may fail.
    ///
    /// # Errors
    /// Those of [`Stream::connect`].
    pub fn connect(&self) -> io::Result<Stream> {
        let session = self.mode.client_tls.then(|| self.certificates.session());
        Stream::connect(self.weir.address(), session)
    }

    /// Drains the gateway, which must exit with 0 and must not panic.
    pub fn stop(self) -> Ended {
        let ended = self.weir.stop();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        ended
    }
}

/// A gateway with one worker on a free port.
pub fn serve(mode: Mode, certificates: &Certificates, upstream: SocketAddr, flags: &[&str]) -> Weir {
    let listen = if mode.client_tls { "https://127.0.0.1:0" } else { "http://127.0.0.1:0" };
    let to = format!("{}://{upstream}", if mode.upstream_tls { "https" } else { "http" });
    let mut args = vec!["serve", "--listen", listen, "--to", &to];
    if !flags.contains(&"--workers") {
        args.extend(["--workers", "1"]);
    }
    let paths = [&certificates.cert, &certificates.key, &certificates.ca].map(|path| path.to_str().unwrap());
    if mode.client_tls {
        args.extend(["--cert", paths[0], "--key", paths[1]]);
    }
    if mode.upstream_tls && !flags.contains(&"--upstream-ca") {
        args.extend(["--upstream-ca", paths[2]]);
    }
    args.extend(flags);
    Weir::start(&args)
}

/// `weir origin` with one worker on a free port, over cleartext or with the certificate.
pub fn origin(tls: bool, certificates: &Certificates) -> Weir {
    let listen = if tls { "https://127.0.0.1:0" } else { "http://127.0.0.1:0" };
    let [cert, key] = [&certificates.cert, &certificates.key].map(|path| path.to_str().unwrap());
    let mut args = vec!["origin", "--listen", listen, "--workers", "1"];
    if tls {
        args.extend(["--cert", cert, "--key", key]);
    }
    Weir::start(&args)
}
