//! A tonic channel to the gateway, and calls with plain bytes as messages.

use crate::common::Certificates;
use crate::servers::hyper::codec::Plain;
use crate::servers::hyper::provider;
use bytes::Bytes;
use http::Uri;
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_stream::Stream;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{IntoStreamingRequest, Request, Response, Status, Streaming};

/// A channel, which is one connection.
#[derive(Clone)]
pub(super) struct Calls(Grpc<Channel>);

impl Calls {
    /// Connects in cleartext, or over TLS if a CA is given.
    pub(super) async fn connect(address: SocketAddr, ca: Option<&Certificates>) -> Self {
        let channel = match ca {
            None => Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await,
            Some(files) => {
                let connector = connector(files);
                let connect = tower::service_fn(move |_: Uri| {
                    let connector = connector.clone();
                    async move {
                        let socket = TcpStream::connect(address).await?;
                        let name = ServerName::from(address.ip());
                        connector.connect(name, socket).await.map(TokioIo::new)
                    }
                });
                let endpoint = Endpoint::from_shared(format!("https://{address}")).unwrap();
                endpoint.connect_with_connector(connect).await
            }
        };
        Self(Grpc::new(channel.unwrap()).max_decoding_message_size(usize::MAX))
    }

    pub(super) async fn unary(
        &mut self,
        path: &'static str,
        request: impl tonic::IntoRequest<Bytes>,
    ) -> Result<Response<Bytes>, Status> {
        self.ready().await?;
        self.0.unary(request.into_request(), PathAndQuery::from_static(path), Plain).await
    }

    pub(super) async fn upload(
        &mut self,
        path: &'static str,
        messages: impl Stream<Item = Bytes> + Send + 'static,
    ) -> Result<Bytes, Status> {
        self.ready().await?;
        let path = PathAndQuery::from_static(path);
        let call = self.0.client_streaming(Request::new(messages), path, Plain);
        call.await.map(Response::into_inner)
    }

    pub(super) async fn download(
        &mut self,
        path: &'static str,
        message: Bytes,
    ) -> Result<Streaming<Bytes>, Status> {
        self.ready().await?;
        let path = PathAndQuery::from_static(path);
        self.0.server_streaming(Request::new(message), path, Plain).await.map(Response::into_inner)
    }

    pub(super) async fn both_ways(
        &mut self,
        path: &'static str,
        messages: impl IntoStreamingRequest<Message = Bytes>,
    ) -> Result<Streaming<Bytes>, Status> {
        self.ready().await?;
        let path = PathAndQuery::from_static(path);
        self.0.streaming(messages.into_streaming_request(), path, Plain).await.map(Response::into_inner)
    }

    async fn ready(&mut self) -> Result<(), Status> {
        self.0.ready().await.map_err(|error| Status::from_error(error.into()))
    }
}

fn connector(files: &Certificates) -> TlsConnector {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&files.ca).unwrap()).unwrap();
    let builder = rustls::ClientConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Arc::new(config).into()
}
