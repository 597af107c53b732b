//! Compares the cost of parsing a head with httparse's, for heads from load generators, curl and browsers.
//!
//! `cargo run --release -p weir-http1 --example parse_cost`
//!
//! httparse finds names, values and control characters. Its caller still has to recognise names and determine framing,
//! persistence and `Host`. So the example times httparse alone, and with a lookup of each name, one part of that work.
//! Each figure is the fastest of many rounds, the one with the least disturbance, in nanoseconds per head.

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use weir_http::FieldName;
use weir_http1::{Limits, Parse, RequestHead, ResponseHead};

const LOAD: &[u8] = b"GET /api/v1/items?id=42 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";

const GET: &[u8] = b"GET /api/v1/items/8412?fields=name,price HTTP/1.1\r\n\
    Host: shop.example.com\r\n\
    User-Agent: curl/8.5.0\r\n\
    Accept: */*\r\n\
    Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n\
    X-Request-Id: 7f3c1b9a\r\n\r\n";

const BROWSER: &[u8] = b"GET /articles/2024/08/a-long-read?utm_source=feed HTTP/1.1\r\n\
    Host: www.example.com\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
    Accept-Language: en-GB,en;q=0.7,de;q=0.3\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\n\
    Referer: https://www.example.com/articles/2024/08/\r\n\
    Connection: keep-alive\r\n\
    Cookie: session=8c1f0d2e4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a6978; theme=dark; consent=a%3A1%7Cb%3A0; \
    tracking=0a1b2c3d4e5f60718293a4b5c6d7e8f9; seen=2024-08-19T10%3A11%3A12Z\r\n\
    Upgrade-Insecure-Requests: 1\r\n\
    Sec-Fetch-Dest: document\r\n\
    Sec-Fetch-Mode: navigate\r\n\
    Sec-Fetch-Site: same-origin\r\n\
    If-None-Match: \"5f2b-61e0a1c2d3e4f\"\r\n\
    Priority: u=0, i\r\n\r\n";

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\n\
    Server: nginx/1.27.0\r\n\
    Date: Mon, 19 Aug 2024 10:11:12 GMT\r\n\
    Content-Type: application/json; charset=utf-8\r\n\
    Content-Length: 500\r\n\
    Connection: keep-alive\r\n\
    Cache-Control: public, max-age=60\r\n\
    ETag: \"66c31c20-1f4\"\r\n\r\n";

fn main() {
    println!(
        "{:<22} {:>6} {:>10} {:>10} {:>16}",
        "ns per head", "bytes", "weir", "httparse", "httparse + names"
    );
    let limits = Limits::default();
    for (name, head) in [("load generator", LOAD), ("curl, token", GET), ("browser", BROWSER)] {
        let mut ours = RequestHead::new();
        let theirs = |then: fn(&[httparse::Header<'_>])| {
            let mut fields = [httparse::EMPTY_HEADER; 32];
            let mut request = httparse::Request::new(&mut fields);
            assert!(request.parse(black_box(head)).unwrap().is_complete());
            then(black_box(&request).headers);
        };
        let ours = || {
            assert_eq!(ours.parse(black_box(head), &limits), Ok(Parse::Complete(head.len())));
            black_box(&ours);
        };
        row(name, head, ours, || theirs(|_| ()), || theirs(look_up));
    }
    let mut ours = ResponseHead::new();
    let theirs = |then: fn(&[httparse::Header<'_>])| {
        let mut fields = [httparse::EMPTY_HEADER; 32];
        let mut response = httparse::Response::new(&mut fields);
        assert!(response.parse(black_box(ANSWER)).unwrap().is_complete());
        then(black_box(&response).headers);
    };
    let ours = || {
        assert_eq!(ours.parse(black_box(ANSWER), &limits), Ok(Parse::Complete(ANSWER.len())));
        black_box(&ours);
    };
    row("response", ANSWER, ours, || theirs(|_| ()), || theirs(look_up));
}

fn row(name: &str, head: &[u8], weir: impl FnMut(), httparse: impl FnMut(), with_names: impl FnMut()) {
    let (weir, httparse, with_names) = (fastest(weir), fastest(httparse), fastest(with_names));
    println!("{name:<22} {:>6} {weir:>10.1} {httparse:>10.1} {with_names:>16.1}", head.len());
}

fn look_up(fields: &[httparse::Header<'_>]) {
    for field in fields {
        black_box(FieldName::of(field.name.as_bytes()));
    }
}

/// Nanoseconds per call in the fastest of many rounds.
fn fastest(mut call: impl FnMut()) -> f64 {
    const ROUNDS: usize = 200;
    const CALLS: u32 = 2000;
    let round = |_| {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}
