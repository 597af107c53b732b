//! Generated heads and bodies: the parser accepts valid ones and reads them as intended, however the input is split.
//! Invalid ones violate no invariant.

use crate::invariants;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::string::bytes_regex;
use weir_http::{FieldName, Method};
use weir_http1::{
    BodyDecoder, Framing, Limits, Parse, RequestHead, ResponseHead, Rule, chunk, chunk_head, copy_fields,
    decimal, framing_field, last_chunk,
};

/// A field line: name, white space, value, white space.
type Line = (Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>);

fn bytes(regex: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    bytes_regex(regex).unwrap()
}

fn framing() -> impl Strategy<Value = Framing> {
    prop_oneof![Just(Framing::None), any::<u64>().prop_map(Framing::Length), Just(Framing::Chunked)]
}

/// Fields whose names have no meaning to the parser.
fn lines() -> impl Strategy<Value = Vec<Line>> {
    let name = bytes("[!#$%&'*+.^_`|~0-9A-Za-z-]{1,24}")
        .prop_filter("has a meaning", |name| FieldName::of(name) == FieldName::Other);
    let value = bytes(r"(?-u:([!-~\x80-\xff]([\t -~\x80-\xff]{0,40}[!-~\x80-\xff])?)?)");
    vec((name, bytes("[ \t]{0,3}"), value, bytes("[ \t]{0,3}")), 0..20)
}

fn target() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        bytes(r#"/[!"$-~]{0,60}"#),
        bytes(r#"https?://[a-z0-9.-]{1,20}(:[0-9]{1,4})?([/?][!"$-~]{0,60})?"#),
    ]
}

/// A head with the `known` lines and the framing field, with the meaningless `lines` around the latter.
fn head(start: Vec<u8>, known: &[u8], framing: Framing, lines: &[Line]) -> Vec<u8> {
    let mut head = start;
    head.extend_from_slice(known);
    let (before, after) = lines.split_at(lines.len() / 2);
    before.iter().for_each(|line| push_line(line, &mut head));
    framing_field(framing, &mut head);
    after.iter().for_each(|line| push_line(line, &mut head));
    head.extend_from_slice(b"\r\n");
    head
}

fn push_line((name, before, value, after): &Line, out: &mut Vec<u8>) {
    for part in [&name[..], b":", before, value, after, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

fn request() -> impl Strategy<Value = (Vec<u8>, Vec<u8>, Vec<u8>, Framing, Vec<Line>)> {
    (bytes("[A-Z]{1,10}"), target(), framing(), lines())
        .prop_filter("CONNECT has its own form", |(method, ..)| method != b"CONNECT")
        .prop_map(|(method, target, framing, lines)| {
            let start = [&method, &b" "[..], &target, b" HTTP/1.1\r\n"].concat();
            (head(start, b"hOST: example.com:80\r\n", framing, &lines), method, target, framing, lines)
        })
}

fn response() -> impl Strategy<Value = (Vec<u8>, u16, Vec<u8>, Framing, Vec<Line>)> {
    (100u16..1000, bytes(r"(?-u:[\t -~\x80-\xff]{0,30})"), framing(), lines()).prop_map(
        |(status, reason, framing, lines)| {
            let start = [format!("HTTP/1.1 {status} ").as_bytes(), &reason, b"\r\n"].concat();
            (head(start, b"", framing, &lines), status, reason, framing, lines)
        },
    )
}

/// Applies one change to valid input: replaces, inserts or removes bytes, or inserts a run of framing bytes.
fn broken(valid: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    const RUNS: [&[u8]; 16] = [
        b"\r",
        b"\n",
        b"\r\n",
        b" ",
        b"\r\n ",
        b":",
        b"0",
        b",chunked",
        b"\r\nContent-Length: 5",
        b"\r\nTransfer-Encoding: chunked",
        b"\r\nConnection: Transfer-Encoding",
        b"\r\nHost:\r\n",
        b"\r\n\r\n",
        b" :",
        b".2",
        b"\xc3\xa4",
    ];
    let change = prop_oneof![any::<u8>().prop_map(|byte| vec![byte]), select(&RUNS[..]).prop_map(Vec::from)];
    (valid, vec((any::<Index>(), 0usize..3, change), 1..4)).prop_map(|(mut bytes, changes)| {
        for (at, removed, new) in changes {
            let at = at.index(bytes.len() + 1);
            let removed = removed.min(bytes.len() - at);
            bytes.splice(at..at + removed, new);
        }
        bytes
    })
}

/// A chunked body: chunks of data with extensions and leading zeros, and trailers.
fn chunked() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let extension = bytes(
        r#"([ \t]{0,3};[ \t]{0,3}[a-z0-9_-]{1,9}([ \t]{0,3}=[ \t]{0,3}([a-z]{1,9}|"([ !#-Z]|\\[ -~]){0,9}"))?){0,3}"#,
    );
    let chunks = vec((vec(any::<u8>(), 1..40), extension, 0usize..4), 0..8);
    (chunks, lines()).prop_map(|(chunks, trailers)| {
        let (mut coded, mut plain) = (Vec::new(), Vec::new());
        for (data, extension, zeros) in chunks {
            coded.extend(std::iter::repeat_n(b'0', zeros));
            coded.extend_from_slice(format!("{:X}", data.len()).as_bytes());
            coded.extend_from_slice(&extension);
            coded.extend_from_slice(b"\r\n");
            coded.extend_from_slice(&data);
            coded.extend_from_slice(b"\r\n");
            plain.extend_from_slice(&data);
        }
        coded.extend_from_slice(b"0\r\n");
        trailers.iter().for_each(|line| push_line(line, &mut coded));
        coded.extend_from_slice(b"\r\n");
        (coded, plain)
    })
}

/// Cuts the input at these places and decodes it piece by piece, offering unconsumed bytes again.
fn decode(framing: Framing, input: &[u8], cuts: &[Index]) -> (Vec<u8>, usize, bool) {
    let mut body = BodyDecoder::new(framing, &Limits::default());
    let mut ends: Vec<_> = cuts.iter().map(|cut| cut.index(input.len() + 1)).chain([input.len()]).collect();
    ends.sort_unstable();
    let (mut data, mut consumed) = (Vec::new(), 0);
    for end in ends {
        while !body.is_complete() && consumed < end {
            let step = body.decode(&input[consumed..end]).unwrap();
            assert!(step.consumed > 0);
            data.extend_from_slice(&input[consumed..end][step.data]);
            consumed += step.consumed;
        }
    }
    (data, consumed, body.is_complete())
}

fn names_and_values(lines: &[Line]) -> Vec<(&[u8], &[u8])> {
    lines.iter().map(|(name, _, value, _)| (&name[..], &value[..])).collect()
}

proptest! {
    #[test]
    fn valid_requests_are_read_as_meant((head, method, target, framing, lines) in request()) {
        let mut parsed = RequestHead::new();
        prop_assert_eq!(parsed.parse(&head, &Limits::default()), Ok(Parse::Complete(head.len())));
        prop_assert_eq!(parsed.method_span.of(&head), &method);
        prop_assert_eq!(parsed.method, Method::of(&method));
        prop_assert_eq!(parsed.target.of(&head), &target);
        prop_assert_eq!(parsed.framing, framing);
        let others = parsed.fields.iter().filter(|field| field.known == FieldName::Other);
        let others: Vec<_> = others.map(|field| (field.name.of(&head), field.value.of(&head))).collect();
        prop_assert_eq!(others, names_and_values(&lines));
        for length in 0..head.len() {
            prop_assert_eq!(parsed.parse(&head[..length], &Limits::default()), Ok(Parse::Partial), "{}", length);
        }
        invariants::request_head(&head);
    }

    #[test]
    fn valid_responses_are_read_as_meant((head, status, reason, framing, lines) in response()) {
        let mut parsed = ResponseHead::new();
        prop_assert_eq!(parsed.parse(&head, &Limits::default()), Ok(Parse::Complete(head.len())));
        prop_assert_eq!(parsed.status, status);
        prop_assert_eq!(parsed.reason.of(&head), &reason);
        let expected = match (framing, status) {
            (_, 100..=199 | 204 | 304) => Framing::None,
            (Framing::None, _) => Framing::UntilClose,
            (framing, _) => framing,
        };
        prop_assert_eq!(parsed.framing(Method::Get), expected);
        let others = parsed.fields.iter().filter(|field| field.known == FieldName::Other);
        let others: Vec<_> = others.map(|field| (field.name.of(&head), field.value.of(&head))).collect();
        prop_assert_eq!(others, names_and_values(&lines));
        for length in 0..head.len() {
            prop_assert_eq!(parsed.parse(&head[..length], &Limits::default()), Ok(Parse::Partial), "{}", length);
        }
        invariants::response_head(&head);
    }

    /// A bare LF, white space before a colon, and a folded value do not change the meaning of a line.
    #[test]
    fn repaired_responses_are_read_as_meant(
        (head, status, _, framing, lines) in response(), mask in vec(any::<(bool, bool, bool)>(), 32),
    ) {
        let (mut broken, mut masks) = (Vec::new(), mask.iter().cycle());
        for (index, line) in head.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let (lf, space, fold) = *masks.next().unwrap();
            let mut line = line.strip_suffix(b"\r\n").unwrap().to_vec();
            if index > 0 && let Some(colon) = line.iter().position(|byte| *byte == b':') {
                let is_other = FieldName::of(&line[..colon]) == FieldName::Other;
                let text = line.iter().rposition(|byte| !b" \t".contains(byte)).unwrap();
                if fold && is_other && text > colon {
                    let start = (colon + 1..=text).find(|at| !b" \t".contains(&line[*at])).unwrap();
                    line.splice(start..start, *b"\r\n\t ");
                }
                if space {
                    line.splice(colon..colon, *b" \t");
                }
            }
            line.extend_from_slice(if lf { b"\n" } else { b"\r\n" });
            broken.extend_from_slice(&line);
        }
        let (mut parsed, mut out) = (ResponseHead::new(), Vec::new());
        let every = Rule::OF_RESPONSES.into_iter().collect();
        let Err(error) = parsed.parse(&broken, &Limits::default()) else { return Ok(()) };
        let repaired = parsed.repair(&broken, &Limits::default(), every, error, &mut out).unwrap().unwrap();
        prop_assert_eq!(repaired.length, broken.len());
        prop_assert_eq!(parsed.status, status);
        let mut strict = ResponseHead::new();
        strict.parse(&head, &Limits::default()).unwrap();
        prop_assert_eq!(parsed.framing(Method::Get), strict.framing(Method::Get), "{:?}", framing);
        let others = parsed.fields.iter().filter(|field| field.known == FieldName::Other);
        let others: Vec<_> = others.map(|field| (field.name.of(&out), field.value.of(&out))).collect();
        prop_assert_eq!(others, names_and_values(&lines));
        invariants::response_head(&broken);
    }

    #[test]
    fn broken_requests_break_nothing(bytes in broken(request().prop_map(|(head, ..)| head))) {
        invariants::request_head(&bytes);
    }

    #[test]
    fn broken_responses_break_nothing(bytes in broken(response().prop_map(|(head, ..)| head))) {
        invariants::response_head(&bytes);
    }

    #[test]
    fn broken_bodies_break_nothing(bytes in broken(chunked().prop_map(|(coded, _)| coded))) {
        invariants::body(&bytes);
    }

    #[test]
    fn any_bytes_break_nothing(bytes in vec(any::<u8>(), 0..300)) {
        invariants::request_head(&bytes);
        invariants::response_head(&bytes);
        invariants::body(&bytes);
    }

    #[test]
    fn chunked_bodies_are_read_as_meant(
        (coded, plain) in chunked(), behind in vec(any::<u8>(), 0..20), cuts in vec(any::<Index>(), 0..20),
    ) {
        let input = [&coded[..], &behind].concat();
        prop_assert_eq!(decode(Framing::Chunked, &input, &[]), (plain.clone(), coded.len(), true));
        prop_assert_eq!(decode(Framing::Chunked, &input, &cuts), (plain, coded.len(), true));
    }

    #[test]
    fn bodies_with_a_length_are_read_as_meant(
        body in vec(any::<u8>(), 0..200), behind in vec(any::<u8>(), 0..20), cuts in vec(any::<Index>(), 0..20),
    ) {
        let input = [&body[..], &behind].concat();
        let length = body.len();
        prop_assert_eq!(decode(Framing::Length(length as u64), &input, &cuts), (body, length, true));
    }

    #[test]
    fn written_chunks_are_read_back(
        pieces in vec(vec(any::<u8>(), 0..600), 0..8), cuts in vec(any::<Index>(), 0..20),
    ) {
        let mut coded = Vec::new();
        for piece in &pieces {
            chunk(piece, &mut coded);
        }
        last_chunk(&mut coded);
        prop_assert_eq!(decode(Framing::Chunked, &coded, &cuts), (pieces.concat(), coded.len(), true));
    }

    #[test]
    fn copied_fields_are_those_that_were_kept((head, ..) in response(), mask in vec(any::<bool>(), 32)) {
        let mut parsed = ResponseHead::new();
        parsed.parse(&head, &Limits::default()).unwrap();
        let mut out = b"HTTP/1.1 200 OK\r\n".to_vec();
        let start = out.len();
        let mut kept = mask.iter();
        copy_fields(&head, &parsed.fields, |field| *kept.next().unwrap() && !field.hop_by_hop, &mut out);
        let expected: Vec<_> = parsed.fields.iter().zip(&mask)
            .filter(|(field, kept)| **kept && !field.hop_by_hop)
            .map(|(field, _)| {
                let (name, value) = (field.name.of(&head), field.value.of(&head));
                [name, if value.is_empty() { b":" } else { b": " }, value, b"\r\n"].concat()
            })
            .collect();
        prop_assert_eq!(&out[start..], expected.concat());
        out.extend_from_slice(b"\r\n");
        let length = out.len();
        prop_assert_eq!(ResponseHead::new().parse(&out, &Limits::default()), Ok(Parse::Complete(length)));
    }

    #[test]
    fn numbers_are_written_as_others_write_them(n in any::<u64>(), shift in 0u32..64) {
        let n = n >> shift;
        let mut out = Vec::new();
        decimal(n, &mut out);
        out.push(b' ');
        chunk_head(n, &mut out);
        prop_assert_eq!(out, format!("{n} {n:x}\r\n").into_bytes());
    }
}
