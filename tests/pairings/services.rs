//! One gateway in front of all services.

use super::{adjacent, scheme};
use crate::common::{Certificates, Weir, installed_peer, peer, peers_directory};
use crate::servers::Server;
use std::fs;
use std::process::Command;
use tempfile::TempDir;

/// The running services and their gateway.
pub(super) struct Services {
    pub(super) weir: Weir,
    _site: Server,
    _application: Server,
    /// The directory of the service's Unix socket.
    _folder: TempDir,
}

impl Services {
    pub(super) fn start(certificates: &Certificates) -> Option<Self> {
        let (nginx, node) = (peer("nginx")?, peer("node")?);
        // The WebSocket service needs this package.
        installed_peer("node/node_modules/ws")?;
        let template = fs::read_to_string(adjacent("nginx.conf")).unwrap();
        let template = template.replace("@SITE@", adjacent("site").to_str().unwrap());
        let site = Server::nginx_with(&nginx, tempfile::tempdir().unwrap(), &template, certificates);
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("application.sock");
        let mut command = Command::new(node);
        command.env("NODE_PATH", peers_directory().join("node/node_modules"));
        let application = Server::script(command.arg(adjacent("services.js")).arg(&socket), None);
        let config = format!(
            "[listener.cleartext]
            bind = '127.0.0.1:0'
            [listener.secure]
            bind = '127.0.0.1:0'
            tls = {{}}
            [[certificate]]
            chain = '{}'
            key = '{}'
            [service.site]
            servers = 'http://{}'
            [service.application]
            servers = 'http://{}'
            [service.local]
            servers = 'unix:{}'
            [[route]]
            service = 'site'
            [[route]]
            path = ['/api/*', '/bulk/*', '/events/*', '/report/*', '/slow/*', '/websocket']
            service = 'application'
            [[route]]
            path = '/slow/never'
            service = 'application'
            timeouts.response = '300ms'
            [[route]]
            path = '/unix/*'
            strip_prefix = '/unix'
            service = 'local'",
            certificates.cert.display(),
            certificates.key.display(),
            site.address(false),
            application.address(false),
            socket.display(),
        );
        let weir = Weir::configured(&config, 2);
        Some(Self { weir, _site: site, _application: application, _folder: folder })
    }

    /// The gateway's address for clients.
    pub(super) fn base(&self, tls: bool) -> String {
        let scheme = scheme(tls);
        let mut urls = self.weir.urls.iter().filter(|url| url.starts_with(&format!("{scheme}:")));
        let (_, port) = urls.next().unwrap().rsplit_once(':').unwrap();
        format!("{scheme}://localhost:{port}")
    }
}
