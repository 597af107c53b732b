//! Forwards a request to the origin and the response back. Both bodies are streamed, frame by frame.

use bytes::Bytes;
use http_body_util::{Either, Empty};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode, Uri, http};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use std::net::IpAddr;

/// A worker's client, with its pool of upstream connections.
pub type Origin = Client<HttpsConnector<HttpConnector>, Incoming>;

/// Either the origin's body or none.
pub type Body = Either<Incoming, Empty<Bytes>>;

const VIA: HeaderValue = HeaderValue::from_static("1.1 hyper");

/// The values shared by all requests of a client connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Scheme and authority of the origin.
    pub origin: Uri,
    /// The client's address.
    pub client: HeaderValue,
    /// The client's scheme: `http` or `https`.
    pub scheme: HeaderValue,
    /// The version to the origin.
    pub version: http::Version,
}

impl Connection {
    /// For a client with this address, with TLS or not, and an origin with HTTP/2 or not.
    pub fn new(origin: &Uri, client: IpAddr, tls: bool, http2: bool) -> Self {
        let client = HeaderValue::from_str(&client.to_string()).expect("an address is a header value");
        let scheme = HeaderValue::from_static(if tls { "https" } else { "http" });
        let version = if http2 { http::Version::HTTP_2 } else { http::Version::HTTP_11 };
        Self { origin: origin.clone(), client, scheme, version }
    }
}

/// The origin's response, or 502.
pub async fn forward(
    origin: &Origin,
    connection: &Connection,
    mut request: Request<Incoming>,
) -> Response<Body> {
    prepare(connection, &mut request);
    match origin.request(request).await {
        Ok(mut answer) => {
            remove_hop_by_hop(answer.headers_mut());
            answer.headers_mut().insert(header::VIA, VIA);
            answer.map(Either::Left)
        }
        Err(fault) => {
            eprintln!("upstream: {fault}: {:?}", std::error::Error::source(&fault));
            let mut answer = Response::new(Either::Right(Empty::new()));
            *answer.status_mut() = StatusCode::BAD_GATEWAY;
            answer
        }
    }
}

fn prepare(connection: &Connection, request: &mut Request<Incoming>) {
    // With HTTP/2 the client's host is in the URI (RFC 9113, section 8.3.1).
    if let Some(authority) =
        request.uri().authority().filter(|_| !request.headers().contains_key(header::HOST))
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        request.headers_mut().insert(header::HOST, host);
    }
    let mut parts = connection.origin.clone().into_parts();
    parts.path_and_query = request.uri().path_and_query().cloned();
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
    *request.version_mut() = connection.version;
    let headers = request.headers_mut();
    remove_hop_by_hop(headers);
    // The same headers as Weir adds, so that all targets do the same work. Host is forwarded unchanged.
    headers.insert(HeaderName::from_static("x-forwarded-for"), connection.client.clone());
    headers.insert(HeaderName::from_static("x-forwarded-proto"), connection.scheme.clone());
    if let Some(host) = headers.get(header::HOST).cloned() {
        headers.insert(HeaderName::from_static("x-forwarded-host"), host);
    }
    headers.insert(header::VIA, VIA);
}

/// Removes hop-by-hop headers (RFC 9110, section 7.6.1); hyper sets the body's framing.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    if let Some(named) = headers.remove(header::CONNECTION) {
        for name in named.to_str().unwrap_or_default().split(',') {
            headers.remove(name.trim());
        }
    }
    for name in
        [header::TE, header::TRAILER, header::TRANSFER_ENCODING, header::UPGRADE, header::PROXY_AUTHORIZATION]
    {
        headers.remove(name);
    }
    headers.remove("keep-alive");
}
