//! A hyper server that speaks only HTTP/2, in a thread of this process, and a gRPC service on tonic. It supports the
//! paths of http2.go except interim responses, which hyper does not send in HTTP/2.

mod calls;
pub(crate) mod codec;
mod paths;

use crate::common::Certificates;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use paths::Counts;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::JoinHandle;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio_rustls::TlsAcceptor;

/// The maximum number of streams on a connection.
const STREAMS: u32 = 20;

/// The maximum head of a request, in bytes.
const HEAD_BYTES: u32 = 64 << 10;

/// The bytes of a response that hyper buffers while the client's windows are closed.
const SEND_BYTES: usize = 64 << 10;

/// A running server; dropping it ends its connections.
pub(crate) struct Hyper {
    pub(super) port: u16,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Hyper {
    /// Listens in cleartext or with a certificate.
    pub(super) fn start(tls: Option<&Certificates>) -> Self {
        let acceptor = tls.map(acceptor);
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = accept(listener, acceptor) => {}
                }
            });
        });
        Self { port, stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Hyper {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().unwrap().join();
        // The test reports its own panic.
        assert!(ended.is_ok() || std::thread::panicking(), "the server panicked");
    }
}

fn acceptor(files: &Certificates) -> TlsAcceptor {
    let chain = CertificateDer::pem_file_iter(&files.cert).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
    let builder = rustls::ServerConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut config = builder.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Arc::new(config).into()
}

/// The cryptography of Weir's own connections.
pub(crate) fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

async fn accept(listener: net::TcpListener, acceptor: Option<TlsAcceptor>) {
    let listener = TcpListener::from_std(listener).unwrap();
    let counts = Arc::new(Counts::default());
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        counts.connections.fetch_add(1, SeqCst);
        let (acceptor, counts) = (acceptor.clone(), Arc::clone(&counts));
        tokio::spawn(async move {
            match acceptor {
                None => serve(socket, counts).await,
                Some(acceptor) => {
                    if let Ok(session) = acceptor.accept(socket).await {
                        serve(session, counts).await;
                    }
                }
            }
        });
    }
}

/// Serves one connection; `/last` shuts it down.
async fn serve(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, counts: Arc<Counts>) {
    let last = Arc::new(Notify::new());
    let service = service_fn(|request| paths::respond(request, Arc::clone(&counts), Arc::clone(&last)));
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.max_concurrent_streams(STREAMS).max_header_list_size(HEAD_BYTES).max_send_buf_size(SEND_BYTES);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(io), service));
    tokio::select! {
        _ = &mut connection => return,
        () = last.notified() => connection.as_mut().graceful_shutdown(),
    }
    // The test checks the errors of a connection at the gateway.
    let _ = connection.await;
}
