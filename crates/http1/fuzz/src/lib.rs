//! Invariants for any input. The fuzz targets call these functions, and so do the crate's tests, with the
//! committed corpus and with generated input.

use weir_http::{Authority, Field, Method};
use weir_http1::{
    BodyDecoder, BodyError, Framing, Limits, Parse, Repaired, RequestHead, ResponseHead, Rule, Rules,
    TargetForm, Version, chunk, copy_fields, last_chunk,
};

/// Limits that a fuzzer's inputs can reach.
const LIMITS: Limits = Limits { head_bytes: 2048, fields: 24, line_bytes: 512, extension_bytes: 64 };

/// Room for more fields than [`LIMITS`] accepts.
const ORACLE_FIELDS: usize = 32;

/// Checks a request head: the decision does not depend on how the bytes arrive, httparse parses an accepted head in the
/// same way, and writing a head and parsing the result yields the same head. A rejected head is parsed once more with
/// all rules relaxed.
pub fn request_head(input: &[u8]) {
    repaired_request(input);
    let mut head = RequestHead::new();
    let length = decided_once(input, |bytes| head.parse(bytes, &LIMITS));
    let Some(length) = length else { return };
    let fresh = parse_request(&input[..length]);
    head.parse(input, &LIMITS).unwrap();
    assert_eq!(head, fresh, "a head that was used before keeps something");
    fields_are_sound(input, &head.fields, length);
    assert_ne!(head.framing, Framing::UntilClose);
    match head.host {
        Some(host) => assert!(Authority::parse(host.of(input)).is_some()),
        None => assert_eq!(head.version, Version::Http10),
    }

    let mut storage = [httparse::EMPTY_HEADER; ORACLE_FIELDS];
    let mut oracle = httparse::Request::new(&mut storage);
    assert_eq!(oracle.parse(input), Ok(httparse::Status::Complete(length)));
    assert_eq!(oracle.method.unwrap().as_bytes(), head.method_span.of(input));
    assert_eq!(oracle.path.unwrap().as_bytes(), head.target.of(input));
    assert_eq!(oracle.version.unwrap(), minor(head.version));
    same_fields(input, &head.fields, oracle.headers);

    let mut out = Vec::new();
    out.extend_from_slice(head.method_span.of(input));
    out.push(b' ');
    out.extend_from_slice(head.target.of(input));
    out.extend_from_slice(version(head.version));
    out.extend_from_slice(b"\r\n");
    copy_fields(input, &head.fields, |_| true, &mut out);
    out.extend_from_slice(b"\r\n");
    let again = parse_request(&out);
    assert_eq!(
        (
            again.method,
            again.target_form,
            again.version,
            again.framing,
            again.persistent,
            again.expect_continue
        ),
        (head.method, head.target_form, head.version, head.framing, head.persistent, head.expect_continue)
    );
    assert_eq!(again.path.of(&out), head.path.of(input));
    assert_eq!(again.host.map(|host| host.of(&out)), head.host.map(|host| host.of(input)));
    same_after_copy(input, &head.fields, &out, &again.fields);
}

/// Checks a response head, as [`request_head`] does a request head.
pub fn response_head(input: &[u8]) {
    repaired_response(input);
    let mut head = ResponseHead::new();
    let length = decided_once(input, |bytes| head.parse(bytes, &LIMITS));
    let Some(length) = length else { return };
    let fresh = parse_response(&input[..length]);
    head.parse(input, &LIMITS).unwrap();
    assert_eq!(head, fresh, "a head that was used before keeps something");
    fields_are_sound(input, &head.fields, length);
    assert!((100..1000).contains(&head.status));
    assert_eq!(head.framing(Method::Head), Framing::None);

    let mut storage = [httparse::EMPTY_HEADER; ORACLE_FIELDS];
    let mut oracle = httparse::Response::new(&mut storage);
    assert_eq!(oracle.parse(input), Ok(httparse::Status::Complete(length)));
    assert_eq!(oracle.code.unwrap(), head.status);
    assert_eq!(oracle.version.unwrap(), minor(head.version));
    // httparse returns no reason phrase unless it is ASCII.
    let reason = head.reason.of(input);
    assert_eq!(oracle.reason.unwrap().as_bytes(), if reason.is_ascii() { reason } else { b"" });
    same_fields(input, &head.fields, oracle.headers);

    let mut out = Vec::new();
    out.extend_from_slice(&version(head.version)[1..]);
    out.extend_from_slice(format!(" {} ", head.status).as_bytes());
    out.extend_from_slice(head.reason.of(input));
    out.extend_from_slice(b"\r\n");
    copy_fields(input, &head.fields, |_| true, &mut out);
    out.extend_from_slice(b"\r\n");
    let again = parse_response(&out);
    assert_eq!((again.status, again.version, again.persistent), (head.status, head.version, head.persistent));
    assert_eq!(again.framing(Method::Get), head.framing(Method::Get));
    assert_eq!(again.content_length(), head.content_length());
    same_after_copy(input, &head.fields, &out, &again.fields);
}

/// Checks a rejected request with all rules relaxed: the decision does not depend on how the bytes arrive, and the
/// repaired head is strict.
fn repaired_request(input: &[u8]) {
    let Err(error) = RequestHead::new().parse(input, &LIMITS) else { return };
    let (mut head, mut out) = (RequestHead::new(), Vec::new());
    let every = Rule::OF_REQUESTS.into_iter().chain(Rule::OF_RESPONSES).collect::<Rules>();
    assert!(head.repair(input, &LIMITS, Rules::NONE, error, &mut out).is_err());
    decided_once(input, |bytes| match head.parse(bytes, &LIMITS) {
        Err(error) => head.repair(bytes, &LIMITS, every, error, &mut out).map(progress),
        strict => strict,
    });
    let repaired = head.repair(input, &LIMITS, every, error, &mut out);
    let would_pass = RequestHead::would_pass(input, &LIMITS, Rules::NONE, error);
    assert!(would_pass.is_none_or(|rule| repaired.is_ok() && Rule::OF_REQUESTS.contains(&rule)));
    let Ok(Some(Repaired { broken, .. })) = repaired else { return };
    assert!(!broken.is_empty() && broken.iter().all(|rule| Rule::OF_REQUESTS.contains(&rule)));
    let mut again = RequestHead::new();
    assert_eq!(again.parse_repaired(&out, &LIMITS), Ok(Parse::Complete(out.len())));
    assert_eq!(again, head);
    if broken.has(Rule::EmptyHost) {
        assert!(head.host.is_none() || head.target_form == TargetForm::Absolute);
        // The gateway adds `Host` when it forwards such a request.
        let line = 2 + out.windows(2).position(|pair| pair == b"\r\n").unwrap();
        out.splice(line..line, *b"Host: h\r\n");
        if RequestHead::new().parse(&out, &LIMITS).is_err() {
            // The added line exceeds a limit.
            return;
        }
    }
    assert_eq!(parse_request(&out).framing, head.framing);
    request_head(&out);
}

/// Checks a rejected response, as [`repaired_request`] does a request.
fn repaired_response(input: &[u8]) {
    let Err(error) = ResponseHead::new().parse(input, &LIMITS) else { return };
    let (mut head, mut out) = (ResponseHead::new(), Vec::new());
    let every = Rule::OF_REQUESTS.into_iter().chain(Rule::OF_RESPONSES).collect::<Rules>();
    assert!(head.repair(input, &LIMITS, Rules::NONE, error, &mut out).is_err());
    decided_once(input, |bytes| match head.parse(bytes, &LIMITS) {
        Err(error) => head.repair(bytes, &LIMITS, every, error, &mut out).map(progress),
        strict => strict,
    });
    let repaired = head.repair(input, &LIMITS, every, error, &mut out);
    let would_pass = ResponseHead::would_pass(input, &LIMITS, Rules::NONE, error);
    assert!(would_pass.is_none_or(|rule| repaired.is_ok() && Rule::OF_RESPONSES.contains(&rule)));
    let Ok(Some(Repaired { broken, .. })) = repaired else { return };
    assert!(!broken.is_empty() && broken.iter().all(|rule| Rule::OF_RESPONSES.contains(&rule)));
    assert_eq!(parse_response(&out), head);
    response_head(&out);
}

fn progress(repaired: Option<Repaired>) -> Parse {
    repaired.map_or(Parse::Partial, |repaired| Parse::Complete(repaired.length))
}

/// Checks a chunked body: every split of the input yields the same data and the same end, the decoder consumes nothing
/// after the end, and writing the data and decoding the result yields the same data.
pub fn body(input: &[u8]) {
    let whole = decode(Framing::Chunked, &[input]);
    assert_eq!(decode(Framing::Chunked, &input.chunks(1).collect::<Vec<_>>()), whole);
    let step = (input.len() / 64).max(1);
    for at in (0..input.len()).step_by(step) {
        let (before, after) = input.split_at(at);
        assert_eq!(decode(Framing::Chunked, &[before, after]), whole, "split at {at}");
    }
    if let Ok(Some(consumed)) = whole.end {
        assert_eq!(decode(Framing::Chunked, &[&input[..consumed]]), whole);
        assert_eq!(decode(Framing::Chunked, &[&input[..consumed - 1]]).end, Ok(None));
    }
    assert!(whole.data.len() <= input.len());

    let mut out = Vec::new();
    whole.data.chunks(1 + whole.data.len() / 3).for_each(|data| chunk(data, &mut out));
    last_chunk(&mut out);
    let end = Ok(Some(out.len()));
    assert_eq!(decode(Framing::Chunked, &[&out]), Body { data: whole.data.clone(), end });

    let length = whole.data.len() as u64;
    let by_length = decode(Framing::Length(length), &[&whole.data, input]);
    assert_eq!(by_length, Body { end: Ok(Some(whole.data.len())), data: whole.data });
}

/// Parses growing prefixes of `input`: once a prefix is complete or rejected, every longer one has the same
/// result, with the same length. Returns the length of a complete head.
fn decided_once<E: std::fmt::Debug>(
    input: &[u8],
    mut parse: impl FnMut(&[u8]) -> Result<Parse, E>,
) -> Option<usize> {
    let outcome = parse(input);
    let step = (input.len() / 256).max(1);
    for length in (0..input.len()).step_by(step) {
        match (parse(&input[..length]), &outcome) {
            (Ok(Parse::Partial), Ok(Parse::Complete(complete))) => assert!(*complete > length),
            (Ok(Parse::Partial), _) | (Err(_), Err(_)) => {}
            (Ok(Parse::Complete(early)), Ok(Parse::Complete(complete))) => assert_eq!(early, *complete),
            (early, _) => panic!("{early:?} at {length}, later {outcome:?}"),
        }
    }
    match outcome {
        Ok(Parse::Complete(length)) => {
            assert!(length <= input.len() && input[..length].ends_with(b"\n"));
            Some(length)
        }
        Ok(Parse::Partial) => {
            assert!(input.len() < LIMITS.head_bytes);
            None
        }
        Err(_) => None,
    }
}

fn parse_request(bytes: &[u8]) -> RequestHead {
    let mut head = RequestHead::new();
    assert_eq!(head.parse(bytes, &LIMITS), Ok(Parse::Complete(bytes.len())), "{}", bytes.escape_ascii());
    head
}

fn parse_response(bytes: &[u8]) -> ResponseHead {
    let mut head = ResponseHead::new();
    assert_eq!(head.parse(bytes, &LIMITS), Ok(Parse::Complete(bytes.len())), "{}", bytes.escape_ascii());
    head
}

/// Checks that field lines follow each other up to the empty line, and contain nothing that a recipient could parse as
/// another line.
fn fields_are_sound(input: &[u8], fields: &[Field], length: usize) {
    assert!(fields.len() <= LIMITS.fields);
    for pair in fields.windows(2) {
        assert_eq!(pair[0].line.end, pair[1].line.start);
    }
    if let Some(last) = fields.last() {
        assert_eq!(last.line.end as usize + 2, length);
    }
    for field in fields {
        let (name, value, line) = (field.name.of(input), field.value.of(input), field.line.of(input));
        assert!(!name.is_empty() && name.iter().all(|b| b.is_ascii_graphic() && *b != b':'));
        assert!(line.starts_with(name) && line[name.len()] == b':' && line.ends_with(b"\r\n"));
        assert!(!line[..line.len() - 2].iter().any(|b| b.is_ascii_control() && *b != b'\t'));
        assert!(!matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']));
        assert_eq!(field.underscore, name.contains(&b'_'));
    }
}

fn same_fields(input: &[u8], fields: &[Field], oracle: &[httparse::Header<'_>]) {
    let ours = fields.iter().map(|field| (field.name.of(input), field.value.of(input)));
    assert!(ours.eq(oracle.iter().map(|field| (field.name.as_bytes(), field.value))));
}

fn same_after_copy(input: &[u8], fields: &[Field], copy: &[u8], copied: &[Field]) {
    let of =
        |bytes, field: &Field| (field.name.of(bytes), field.value.of(bytes), field.known, field.hop_by_hop);
    let before = fields.iter().map(|field| of(input, field));
    assert!(before.eq(copied.iter().map(|field| of(copy, field))));
}

fn minor(version: Version) -> u8 {
    match version {
        Version::Http10 => 0,
        Version::Http11 => 1,
    }
}

fn version(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b" HTTP/1.0",
        Version::Http11 => b" HTTP/1.1",
    }
}

/// A decoder's output: the data, and the offset at which the body ended.
#[derive(Debug, PartialEq)]
struct Body {
    data: Vec<u8>,
    end: Result<Option<usize>, BodyError>,
}

/// Feeds pieces of input to a decoder.
fn decode(framing: Framing, pieces: &[&[u8]]) -> Body {
    let mut decoder = BodyDecoder::new(framing, &LIMITS);
    let (mut data, mut consumed) = (Vec::new(), 0);
    for mut piece in pieces.iter().copied() {
        loop {
            let step = match decoder.decode(piece) {
                Ok(step) => step,
                Err(error) => return Body { data, end: Err(error) },
            };
            assert!(step.data.start <= step.data.end && step.data.end <= step.consumed);
            data.extend_from_slice(&piece[step.data]);
            consumed += step.consumed;
            piece = &piece[step.consumed..];
            if step.consumed == 0 {
                assert!(piece.is_empty() || decoder.is_complete(), "stuck");
                break;
            }
        }
    }
    Body { data, end: Ok(decoder.is_complete().then_some(consumed)) }
}
