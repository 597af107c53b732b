//! A plain pass-through on hyper, hyper-util's client and rustls, as a user who wants speed would write it.
//! Each worker is a thread with a runtime, a listener and upstream connections of its own.

mod forward;
mod settings;
mod tls;

use forward::{Connection, Origin, forward};
use hyper::Uri;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use settings::{Settings, Side};
use socket2::{Domain, Protocol, Socket, Type};
use std::convert::Infallible;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

/// The usual choice for speed, at the cost of one line.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Idle timeout of upstream connections: longer than a run, as in the other targets.
const IDLE: Duration = Duration::from_secs(3600);

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some("--version") {
        println!("{}", env!("RELEASE"));
        return Ok(());
    }
    let settings = Settings::read(std::env::args().skip(1))?;
    let mut workers = Vec::new();
    for _ in 0..settings.number("workers")? {
        let worker = Worker::new(&settings)?;
        workers.push(std::thread::spawn(move || worker.run()));
    }
    for worker in workers {
        worker.join().map_err(|_| "a worker panicked")??;
    }
    Ok(())
}

struct Worker {
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    client: Side,
    upstream: Side,
    connector: hyper_rustls::HttpsConnector<HttpConnector>,
    uri: Uri,
    pool: usize,
}

impl Worker {
    fn new(settings: &Settings) -> Result<Self, Box<dyn Error>> {
        let (client, upstream) = (settings.side("client-side")?, settings.side("upstream-side")?);
        let acceptor = match client.tls {
            true => Some(TlsAcceptor::from(Arc::new(tls::server(settings)?))),
            false => None,
        };
        let scheme = if upstream.tls { "https" } else { "http" };
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        http.enforce_http(false);
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls::client(settings)?).https_or_http();
        // The mode's version only: the builder also sets ALPN.
        let connector = match upstream.http2 {
            true => connector.enable_http2().wrap_connector(http),
            false => connector.enable_http1().wrap_connector(http),
        };
        Ok(Self {
            listener: listen(settings.number("listen-port")?)?,
            acceptor,
            client,
            upstream,
            connector,
            uri: format!("{scheme}://localhost:{}/", settings.number::<u16>("upstream-port")?).parse()?,
            pool: settings.number("pool")?,
        })
    }

    fn run(self) -> std::io::Result<()> {
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(self.accept())
    }

    async fn accept(self) -> std::io::Result<()> {
        let origin: Origin = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(self.pool)
            .pool_idle_timeout(IDLE)
            .set_host(false)
            // Else the first connection decides; in cleartext there is no ALPN.
            .http2_only(self.upstream.http2)
            .build(self.connector);
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        loop {
            let (stream, client) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let connection = Connection::new(&self.uri, client.ip(), self.client.tls, self.upstream.http2);
            let http2 = self.client.http2;
            let (acceptor, origin) = (self.acceptor.clone(), origin.clone());
            tokio::spawn(async move {
                match acceptor {
                    None => serve(stream, http2, origin, connection).await,
                    Some(acceptor) => match acceptor.accept(stream).await {
                        Ok(stream) => serve(stream, http2, origin, connection).await,
                        Err(fault) => eprintln!("client: {fault}"),
                    },
                }
            });
        }
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    http2: bool,
    origin: Origin,
    connection: Connection,
) {
    // Streams of one connection are served at the same time.
    let shared = Arc::new((origin, connection));
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(forward(&shared.0, &shared.1, request).await) }
    });
    let stream = TokioIo::new(stream);
    // A client that disconnects early is not the gateway's error.
    match http2 {
        // As many streams on a connection as the load engine may have. The default is 200.
        true => {
            let mut server = http2::Builder::new(TokioExecutor::new());
            drop(server.max_concurrent_streams(1024).serve_connection(stream, service).await);
        }
        false => drop(http1::Builder::new().serve_connection(stream, service).await),
    }
}

/// Each worker has its own socket on the port, so that no two threads share an accept queue.
fn listen(port: u16) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    socket.listen(4096)?;
    Ok(socket.into())
}
