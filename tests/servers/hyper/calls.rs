//! `/weir.Test/..`: gRPC calls that return the client's metadata, or a status.

use super::codec::Plain;
use bytes::Bytes;
use hyper::body::Incoming;
use std::future::{Ready, ready};
use tonic::body::Body;
use tonic::server::{Grpc, UnaryService};
use tonic::{Code, Request, Response, Status};

pub(super) async fn respond(request: hyper::Request<Incoming>) -> hyper::Response<Body> {
    let mut grpc = Grpc::new(Plain);
    match request.uri().path() {
        "/weir.Test/Metadata" => grpc.unary(Metadata, request).await,
        "/weir.Test/Status" => grpc.unary(Fail, request).await,
        path => Status::unimplemented(format!("no {path}")).into_http(),
    }
}

/// Returns the message, with the fields of the request as metadata before it.
struct Metadata;

impl UnaryService<Bytes> for Metadata {
    type Response = Bytes;
    type Future = Ready<Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let (sent, _, message) = request.into_parts();
        let mut response = Response::new(message);
        for value in sent.get_all_bin("x-sent-bin") {
            response.metadata_mut().append_bin("x-returned-bin", value.clone());
        }
        for value in sent.get_all("x-sent") {
            response.metadata_mut().append("x-returned", value.clone());
        }
        ready(Ok(response))
    }
}

/// Ends the call with the message as the status's text and details, and with the request's metadata.
struct Fail;

impl UnaryService<Bytes> for Fail {
    type Response = Bytes;
    type Future = Ready<Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let (sent, _, message) = request.into_parts();
        let text = String::from_utf8_lossy(&message);
        ready(Err(Status::with_details_and_metadata(Code::FailedPrecondition, text, message.clone(), sent)))
    }
}
