//! The responses of the hyper server by path.

use super::calls;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use tokio::sync::{Notify, mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

/// The part of a response before its stream is reset: more than hyper buffers.
const CUT_BYTES: usize = 200_000;

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Body = UnsyncBoxBody<Bytes, Failure>;
type Frames = mpsc::Sender<Result<Frame<Bytes>, Failure>>;

/// The server's counts.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) connections: AtomicUsize,
    /// Responses without an end that a client has abandoned.
    abandoned: AtomicUsize,
    /// The requests of `/together`.
    together: watch::Sender<usize>,
}

/// The response to a request. An error resets its stream.
pub(super) async fn respond(
    request: Request<Incoming>,
    counts: Arc<Counts>,
    last: Arc<Notify>,
) -> Result<Response<Body>, Failure> {
    let (path, is_head) = (request.uri().path().to_owned(), request.method() == Method::HEAD);
    let (name, number) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
    let size = || number.parse::<usize>();
    let mut response = match name {
        "bytes" => {
            let mut response = Response::new(pattern(size()?));
            response.headers_mut().insert(header::CONTENT_LENGTH, size()?.into());
            response
        }
        "chunked" => Response::new(pattern(size()?)),
        "echo" => echo(request),
        "request" => text(describe(&request)),
        "fields" => {
            let received = request.headers().get("x-large").map_or(0, HeaderValue::len);
            let mut response = text(received.to_string());
            response.headers_mut().insert("x-large", "x".repeat(size()?).try_into()?);
            response
        }
        "early" => {
            let mut response = text("too large".to_owned());
            *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
            response
        }
        "cut" => {
            let mut response = Response::new(cut());
            response.headers_mut().insert(header::CONTENT_LENGTH, (2 * CUT_BYTES).into());
            response
        }
        "silent" => return Err("no response".into()),
        "last" => {
            last.notify_one();
            text("last".to_owned())
        }
        "endless" => Response::new(endless(counts)),
        "abandoned" => text(counts.abandoned.load(SeqCst).to_string()),
        "connections" => text(counts.connections.load(SeqCst).to_string()),
        "together" => {
            let (expected, mut present) = (size()?, counts.together.subscribe());
            counts.together.send_modify(|count| *count += 1);
            text(present.wait_for(|count| *count >= expected).await?.to_string())
        }
        "weir.Test" => calls::respond(request).await.map(|body| body.map_err(Into::into).boxed_unsync()),
        _ => Response::new(whole(Bytes::new())),
    };
    // hyper would send a body in response to HEAD, which HTTP/2 forbids.
    if is_head {
        *response.body_mut() = whole(Bytes::new());
    }
    match name {
        "204" => *response.status_mut() = StatusCode::NO_CONTENT,
        "304" => *response.status_mut() = StatusCode::NOT_MODIFIED,
        _ => {}
    }
    Ok(response)
}

fn describe(request: &Request<Incoming>) -> String {
    let field = |name| request.headers().get(name).map_or("", |value| value.to_str().unwrap());
    let authority = request.uri().authority().map_or("", |authority| authority.as_str());
    format!("HTTP/2.0 {authority} te={} cookie={}", field("te"), field("cookie"))
}

fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

fn text(text: String) -> Response<Body> {
    Response::new(whole(text.into()))
}

/// Byte i is i mod 251, so that a shift by any power of two is detected.
fn pattern(size: usize) -> Body {
    const PIECE: usize = 251 * 64;
    let piece: Bytes = (0..PIECE).map(|at| (at % 251) as u8).collect();
    let starts = (0..size).step_by(PIECE);
    let frames = starts.map(move |at| Ok(Frame::data(piece.slice(..PIECE.min(size - at)))));
    StreamBody::new(tokio_stream::iter(frames)).boxed_unsync()
}

/// A body, and a sender for its frames.
fn streamed() -> (Frames, Body) {
    let (frames, received) = mpsc::channel(1);
    (frames, StreamBody::new(ReceiverStream::new(received)).boxed_unsync())
}

/// The body as it arrives, then the request's trailers and `x-sum` with its length.
fn echo(request: Request<Incoming>) -> Response<Body> {
    let (frames, body) = streamed();
    tokio::spawn(async move {
        let (mut received, mut sum, mut trailers) = (request.into_body(), 0_usize, HeaderMap::new());
        while let Some(frame) = received.frame().await {
            let frame = match frame.map(Frame::into_data) {
                Ok(Ok(data)) => {
                    sum += data.len();
                    Ok(Frame::data(data))
                }
                Ok(Err(other)) => {
                    trailers = other.into_trailers().unwrap_or_default();
                    continue;
                }
                Err(error) => Err(error.into()),
            };
            // The client has abandoned the response.
            if frames.send(frame).await.is_err() {
                return;
            }
        }
        trailers.insert("x-sum", sum.into());
        let _ = frames.send(Ok(Frame::trailers(trailers))).await;
    });
    let mut response = Response::new(body);
    response.headers_mut().insert(header::TRAILER, HeaderValue::from_static("x-sum"));
    response
}

/// A body that fails, which resets its stream. The reset drops the bytes that hyper buffers, but the body is larger.
fn cut() -> Body {
    let piece = Bytes::from(vec![b'x'; 10_000]);
    let frames = (0..CUT_BYTES).step_by(piece.len()).map(move |_| Ok(Frame::data(piece.clone())));
    StreamBody::new(tokio_stream::iter(frames.chain([Err("cut".into())]))).boxed_unsync()
}

/// A body without an end; counts clients that abandon it.
fn endless(counts: Arc<Counts>) -> Body {
    let (frames, body) = streamed();
    tokio::spawn(async move {
        let _ = frames.send(Ok(Frame::data(Bytes::from_static(b"the beginning")))).await;
        frames.closed().await;
        counts.abandoned.fetch_add(1, SeqCst);
    });
    body
}
