//! The client side. Pingora's TLS listener fixes the number of tickets and stores sessions in a small cache
//! behind a lock. So its TCP listener accepts, and the handshake runs here, with the experiment's settings.

use async_trait::async_trait;
use pingora::apps::ServerApp;
use pingora::listeners::tls::Acceptor;
use pingora::protocols::{Stream, l4};
use pingora::server::ShutdownWatch;
use std::sync::Arc;

/// Handles a connection accepted by pingora's listener.
pub struct Clients<P> {
    /// Set for TLS clients.
    pub acceptor: Option<Acceptor>,
    /// Serves the requests of a connection.
    pub proxy: Arc<P>,
}

#[async_trait]
impl<P: ServerApp + Send + Sync + 'static> ServerApp for Clients<P> {
    async fn process_new(self: &Arc<Self>, stream: Stream, shutdown: &ShutdownWatch) -> Option<Stream> {
        let Some(acceptor) = &self.acceptor else {
            return self.proxy.process_new(stream, shutdown).await;
        };
        let stream: Box<l4::stream::Stream> = stream.into_any().downcast().ok()?;
        match acceptor.tls_handshake(*stream).await {
            Ok(stream) => self.proxy.process_new(Box::new(stream), shutdown).await,
            Err(fault) => {
                eprintln!("client: {fault}");
                None
            }
        }
    }

    async fn cleanup(&self) {
        self.proxy.cleanup().await;
    }
}
