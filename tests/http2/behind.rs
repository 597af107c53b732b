//! An HTTP/2 server after the gateway, with TLS on both sides or on neither.

use crate::common::{Certificates, Ended, Weir};
use crate::servers::Server;

pub(super) struct Behind {
    pub(super) weir: Weir,
    pub(super) certificates: Certificates,
    pub(super) server: Server,
    tls: bool,
}

impl Behind {
    /// Starts the server and the gateway; `None` if the server's program is missing.
    pub(super) fn start(
        tls: bool,
        server: impl FnOnce(&Certificates, Option<&Certificates>) -> Option<Server>,
    ) -> Option<Self> {
        Self::routed(tls, "", server)
    }

    /// As [`Self::start`], with further lines of the route.
    pub(super) fn routed(
        tls: bool,
        route: &str,
        server: impl FnOnce(&Certificates, Option<&Certificates>) -> Option<Server>,
    ) -> Option<Self> {
        let certificates = Certificates::new();
        let server = server(&certificates, tls.then_some(&certificates))?;
        let [ca, cert, key] =
            [&certificates.ca, &certificates.cert, &certificates.key].map(|path| path.display());
        let (scheme, address) = (if tls { "https" } else { "http" }, server.address(tls));
        let (listener, service, certificate) = match tls {
            true => (
                "tls = {}",
                format!("tls.ca = '{ca}'"),
                format!("[[certificate]]\nchain = '{cert}'\nkey = '{key}'"),
            ),
            false => ("", String::new(), String::new()),
        };
        let config = format!(
            "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n{listener}\n\
             [service.app]\nservers = '{scheme}://{address}'\nhttp2 = true\n{service}\n\
             [[route]]\nservice = 'app'\n{route}\n\
             [log]\naccess = '-'\nformat = '{{protocol}} {{method}} {{target}} {{status}}'\n{certificate}\n"
        );
        Some(Self { weir: Weir::configured(&config, 1), certificates, server, tls })
    }

    /// The URL of a path at the gateway.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.weir.urls[0])
    }

    /// curl's flag for HTTP/2.
    pub(super) fn curl_http2(&self) -> &'static str {
        if self.tls { "--http2" } else { "--http2-prior-knowledge" }
    }

    /// Stops the gateway. All its exchanges must be complete.
    pub(super) fn stop(self) -> Ended {
        let ended = self.weir.stop();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout.contains("ended early: none"), "{}\n{}", ended.stdout, ended.stderr);
        ended
    }
}
