//! Decodes chunked bodies, valid and invalid, however the input is split.

use weir_http1::{BodyDecoder, BodyError, Framing, Limits};

/// Decodes input in pieces of `step` bytes; returns the body, the number of consumed bytes, and whether the
/// body ended.
fn decode(input: &[u8], step: usize, limits: &Limits) -> (Vec<u8>, usize, Result<bool, BodyError>) {
    let mut body = BodyDecoder::new(Framing::Chunked, limits);
    let (mut data, mut consumed, mut end) = (Vec::new(), 0, 0);
    loop {
        match body.decode(&input[consumed..end]) {
            Ok(decoded) if decoded.consumed > 0 => {
                data.extend_from_slice(&input[consumed..end][decoded.data]);
                consumed += decoded.consumed;
            }
            Ok(_) if end == input.len() || body.is_complete() => {
                return (data, consumed, Ok(body.is_complete()));
            }
            Ok(_) => end = (end + step).min(input.len()),
            // Before an error, the progress depends on how the input is split.
            Err(error) => return (data, 0, Err(error)),
        }
    }
}

fn same_in_pieces(input: &[u8], limits: &Limits) -> (Vec<u8>, usize, Result<bool, BodyError>) {
    let whole = decode(input, input.len().max(1), limits);
    for step in 1..8 {
        assert_eq!(decode(input, step, limits), whole, "{} by {step}", input.escape_ascii());
    }
    whole
}

#[test]
fn complete_bodies() {
    let table: &[(&[u8], &[u8])] = &[
        (b"0\r\n\r\n", b""),
        (b"000\r\n\r\n", b""),
        (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", b"hello"),
        (b"000000000000000A\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
        (b"a\r\n\r\n0\r\n\r\n\r\n\r\r\n0\r\n\r\n", b"\r\n0\r\n\r\n\r\n\r"),
        (b"1;a\r\nx\r\n0;b=c\r\n\r\n", b"x"),
        (b"1;a;b=c;d=\"e;\\\"\tf\"\r\nx\r\n0\r\n\r\n", b"x"),
        (b"1 ; a = b ; c = \"d\" ;e\r\nx\r\n0\r\n\r\n", b"x"),
        (b"0\r\nX: y\r\nContent-Length: 7\r\n\r\n", b""),
        (b"0\r\nX:\r\nY:\t\xff \r\n\r\n", b""),
    ];
    for (input, body) in table {
        let (data, consumed, end) = same_in_pieces(input, &Limits::default());
        assert_eq!((&data[..], consumed, end), (*body, input.len(), Ok(true)), "{}", input.escape_ascii());
    }
}

#[test]
fn nothing_behind_the_end_is_consumed() {
    let (data, consumed, end) = same_in_pieces(b"1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\n", &Limits::default());
    assert_eq!((&data[..], consumed, end), (&b"x"[..], 11, Ok(true)));
}

#[test]
fn one_step_takes_the_framing_around_one_run_of_data() {
    let input = b"2\r\nab\r\n3;x\r\ncde\r\n0\r\n\r\nrest";
    let mut body = BodyDecoder::new(Framing::Chunked, &Limits::default());
    let first = body.decode(input).unwrap();
    assert_eq!((first.consumed, first.data), (12, 3..5));
    let second = body.decode(&input[12..]).unwrap();
    assert_eq!((second.consumed, second.data), (10, 0..3));
    assert!(body.is_complete());
}

#[test]
fn refused() {
    let long_extension = [b"1;".to_vec(), vec![b'a'; 256], b"\r\n".to_vec()].concat();
    let table: &[(&[u8], &str)] = &[
        (b"\r\n", "bad_chunk_size"),
        (b"g\r\n", "bad_chunk_size"),
        (b"-1\r\n", "bad_chunk_size"),
        (b"+1\r\n", "bad_chunk_size"),
        (b"0x1\r\n", "bad_chunk_size"),
        (b" 1\r\n", "bad_chunk_size"),
        (b";a\r\n", "bad_chunk_size"),
        (b"1_0\r\n", "bad_chunk_size"),
        (b"10000000000000000\r\n", "bad_chunk_size"),
        (b"00000000000000001\r\n", "bad_chunk_size"),
        (b"1\nx", "bare_lf"),
        (b"\n", "bare_lf"),
        (b"1\rx", "bare_cr"),
        (b"1\r\r\n", "bare_cr"),
        (b"1 \r\nx", "bad_chunk_extension"),
        (b"1;\r\nx", "bad_chunk_extension"),
        (b"1;a=\r\nx", "bad_chunk_extension"),
        (b"1;a \r\nx", "bad_chunk_extension"),
        (b"1;a b\r\nx", "bad_chunk_extension"),
        (b"1;=b\r\nx", "bad_chunk_extension"),
        (b"1;a=\"b\r\n\"", "bad_chunk_extension"),
        (b"1;a=\"b\\\r\n\"", "bad_chunk_extension"),
        (b"1;a=\"b\"c\r\n", "bad_chunk_extension"),
        (b"1;a\0\r\n", "bad_chunk_extension"),
        (b"1;a\nx\r\n", "bare_lf"),
        (b"1;a=\"b\n\"\r\n", "bare_lf"),
        (b"1;a\rb\r\n", "bare_cr"),
        (&long_extension, "chunk_extension_too_long"),
        (b"1\r\nxy", "bad_chunk_end"),
        (b"1\r\nx\n", "bare_lf"),
        (b"1\r\nx\rx", "bare_cr"),
        (b"0\r\nX\r\n", "bad_trailer"),
        (b"0\r\n: y\r\n", "bad_trailer"),
        (b"0\r\nX : y\r\n", "bad_trailer"),
        (b"0\r\n X: y\r\n", "bad_trailer"),
        (b"0\r\nX: y\r\n z\r\n", "bad_trailer"),
        (b"0\r\nX: \0\r\n", "bad_trailer"),
        (b"0\r\nX: y\n", "bare_lf"),
        (b"0\r\n\n", "bare_lf"),
        (b"0\r\n\rX", "bare_cr"),
        (b"0\r\nX: y\rz\r\n", "bare_cr"),
    ];
    for (input, reason) in table {
        let (_, _, end) = same_in_pieces(input, &Limits::default());
        let error = end.expect_err(&format!("accepted: {}", input.escape_ascii()));
        assert_eq!((error.reason(), error.status()), (*reason, 400), "{}", input.escape_ascii());
    }
}

#[test]
fn the_largest_chunk_size_is_only_a_number() {
    let (data, consumed, end) = same_in_pieces(b"ffffffffffffffff\r\nabc", &Limits::default());
    assert_eq!((&data[..], consumed, end), (&b"abc"[..], 21, Ok(false)));
}

#[test]
fn each_chunk_may_have_an_extension_at_the_limit() {
    for extension_bytes in [0, 1, 100, 1000] {
        let limits = Limits { extension_bytes, ..Limits::default() };
        let of = |length: usize| {
            let extension = [&b";"[..], &vec![b'a'; length]].concat();
            let chunk = [b"1", &extension[..length], b"\r\nx\r\n"].concat();
            same_in_pieces(&[&chunk[..], &chunk, b"0\r\n\r\n"].concat(), &limits).2
        };
        // A semicolon alone is not an extension.
        if extension_bytes != 1 {
            assert_eq!(of(extension_bytes), Ok(true), "{extension_bytes}");
        }
        assert_eq!(of(extension_bytes + 1), Err(BodyError::ChunkExtensionTooLong), "{extension_bytes}");
    }
}

#[test]
fn trailer_limits() {
    let input = b"0\r\nA: bc\r\nD: e\r\n\r\n";
    let exact = Limits { head_bytes: 15, fields: 2, line_bytes: 7, extension_bytes: 0 };
    assert_eq!(same_in_pieces(input, &exact).2, Ok(true));
    for limits in
        [Limits { head_bytes: 14, ..exact }, Limits { fields: 1, ..exact }, Limits { line_bytes: 6, ..exact }]
    {
        let error = same_in_pieces(input, &limits).2.unwrap_err();
        assert_eq!((error.reason(), error.status()), ("trailer_too_large", 431), "{limits:?}");
    }
}
