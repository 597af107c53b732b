//! A plain pass-through on pingora: its listener, its proxy and its upstream pool, with rustls on both sides.

mod clients;
mod faults;
mod forward;
// Flags and TLS settings are shared with the target hyper, so that they cannot diverge.
#[path = "../../hyper/src/settings.rs"]
mod settings;
#[path = "../../hyper/src/tls.rs"]
mod tls;

use clients::Clients;
use forward::Forward;
use pingora::listeners::tls::Acceptor;
use pingora::proxy::http_proxy;
use pingora::server::Server;
use pingora::server::configuration::ServerConf;
use pingora::services::listening::Service;
use rustls::crypto::CryptoProvider;
use settings::Settings;
use std::error::Error;
use std::sync::Arc;

/// The usual choice for speed, at the cost of one line.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some("--version") {
        println!("{}", env!("RELEASE"));
        return Ok(());
    }
    let settings = Settings::read(std::env::args().skip(1))?;
    faults::to_stderr()?;
    // Pingora uses rustls' default provider and installs ring's only if none is set. The provider also
    // selects the group and the suite, and with the suite the TLS version.
    let upstream = tls::client(&settings)?;
    CryptoProvider::clone(upstream.crypto_provider())
        .install_default()
        .map_err(|_| "a crypto provider is already installed")?;

    let acceptor = match settings.tls("client-side")? {
        true => Some(Acceptor::from_server_config(Arc::new(tls::server(&settings)?))),
        false => None,
    };
    let forward =
        Forward::new(settings.number("upstream-port")?, settings.tls("upstream-side")?, acceptor.is_some());
    let mut server = Server::new_with_opt_and_conf(None, configuration(&settings)?);
    server.bootstrap();
    let proxy = Arc::new(http_proxy(&server.configuration, forward));
    let mut service = Service::new("clients".to_owned(), Clients { acceptor, proxy });
    service.add_tcp(&format!("127.0.0.1:{}", settings.number::<u16>("listen-port")?));
    server.add_service(service);
    server.run_forever()
}

fn configuration(settings: &Settings) -> Result<ServerConf, String> {
    Ok(ServerConf {
        threads: settings.number("workers")?,
        // One single-threaded runtime per worker: no work stealing, no cross-thread wake-ups.
        work_stealing: false,
        ca_file: Some(settings.text("ca").to_owned()),
        upstream_keepalive_pool_size: settings.number("pool")?,
        // TERM stops it at once; the window is over by then.
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(0),
        ..ServerConf::default()
    })
}
