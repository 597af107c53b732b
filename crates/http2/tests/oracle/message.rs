//! Generated messages, in the form in which both sides send and compare them.

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::collection::vec;
use proptest::prelude::*;
use weir_http2::Head;
use weir_http2::hpack::Encoder;

pub(super) type Fields = Vec<(String, String)>;

/// Fields, body and trailers of a request or a response.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Message {
    pub(super) fields: Fields,
    pub(super) body: Vec<u8>,
    pub(super) trailers: Option<Fields>,
}

/// An exchange: path and request, status and response.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) path: String,
    pub(super) request: Message,
    pub(super) status: u16,
    pub(super) response: Message,
}

fn fields() -> impl Strategy<Value = Fields> {
    let name = prop_oneof![
        "x-[a-z0-9_]{1,12}",
        Just("user-agent".to_owned()),
        Just("accept".to_owned()),
        Just("authorization".to_owned()),
        Just("cache-control".to_owned()),
        Just("etag".to_owned()),
    ];
    vec((name, "([!-~]([ -~]{0,50}[!-~])?)?"), 0..8)
}

fn message() -> impl Strategy<Value = Message> {
    let body = prop_oneof![Just(0), 1usize..200, Just(65_535), 1usize..150_000,];
    (fields(), body, proptest::option::of(fields())).prop_map(|(fields, length, trailers)| {
        let body = (0..length).map(|at| (at % 253) as u8).collect();
        Message { fields, body, trailers: trailers.filter(|trailers| !trailers.is_empty()) }
    })
}

pub(super) fn exchanges() -> impl Strategy<Value = Vec<Planned>> {
    let status = prop_oneof![Just(200u16), Just(201), Just(404), Just(500), Just(503)];
    let one = ("/[a-zA-Z0-9/?=&_.-]{0,40}", message(), status, message())
        .prop_map(|(path, request, status, response)| Planned { path, request, status, response });
    vec(one, 1..6)
}

pub(super) fn to_map(fields: &Fields) -> HeaderMap {
    let field = |(name, value): &(String, String)| {
        (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
    };
    fields.iter().map(field).collect()
}

/// The oracle groups fields by name, so the tests sort the fields of both sides by name, and keep the order of equal
/// names.
pub(super) fn of_map(map: &HeaderMap) -> Fields {
    let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
    sorted(map.iter().map(|(name, value)| (name.to_string(), text(value))).collect())
}

pub(super) fn of_head(head: &Head) -> Fields {
    let text = |span: weir_http::Span| String::from_utf8(span.of(&head.bytes).to_vec()).unwrap();
    sorted(head.fields.iter().map(|field| (text(field.name), text(field.value))).collect())
}

pub(super) fn sorted(mut fields: Fields) -> Fields {
    fields.sort_by(|one, other| one.0.cmp(&other.0));
    fields
}

pub(super) fn encode(fields: &Fields, to: &mut Encoder<'_>) {
    fields.iter().for_each(|(name, value)| to.field(name.as_bytes(), value.as_bytes()));
}

impl Message {
    /// The message in the form in which the tests compare it.
    pub(super) fn normal(&self) -> Self {
        Self {
            fields: sorted(self.fields.clone()),
            body: self.body.clone(),
            trailers: self.trailers.clone().map(sorted),
        }
    }
}
