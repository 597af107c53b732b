//! Rewriting of requests and responses.

use async_trait::async_trait;
use pingora::Result;
use pingora::http::RequestHeader;
use pingora::modules::http::HttpModules;
use pingora::proxy::{ProxyHttp, Session};
use pingora::upstreams::peer::HttpPeer;

/// Forwards every request to one origin.
pub struct Forward {
    origin: HttpPeer,
    /// The clients' scheme: `http` or `https`.
    scheme: &'static str,
}

impl Forward {
    /// For an origin on this machine; `origin_tls` and `client_tls` say which side speaks TLS.
    pub fn new(port: u16, origin_tls: bool, client_tls: bool) -> Self {
        // With TLS, the certificate is verified for this name, as pingora does by default.
        let origin = HttpPeer::new(("127.0.0.1", port), origin_tls, "localhost".to_owned());
        Self { origin, scheme: if client_tls { "https" } else { "http" } }
    }
}

#[async_trait]
impl ProxyHttp for Forward {
    type CTX = ();

    fn new_ctx(&self) {}

    /// No modules: pingora's default is a disabled compression module.
    fn init_downstream_modules(&self, _: &mut HttpModules) {}

    async fn early_request_filter(&self, session: &mut Session, _: &mut ()) -> Result<()> {
        // No idle timeout for client connections (default: a minute), which also saves the timer.
        session.set_keepalive(Some(0));
        Ok(())
    }

    async fn upstream_peer(&self, _: &mut Session, _: &mut ()) -> Result<Box<HttpPeer>> {
        Ok(Box::new(self.origin.clone()))
    }

    /// The same headers as Weir adds, so that all targets do the same work. Host is forwarded unchanged.
    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        request: &mut RequestHeader,
        _: &mut (),
    ) -> Result<()> {
        if let Some(client) = session.client_addr().and_then(|address| address.as_inet()) {
            request.insert_header("X-Forwarded-For", client.ip().to_string())?;
        }
        request.insert_header("X-Forwarded-Proto", self.scheme)?;
        if let Some(host) = request.headers.get("host").cloned() {
            request.insert_header("X-Forwarded-Host", host)?;
        }
        Ok(())
    }
}
