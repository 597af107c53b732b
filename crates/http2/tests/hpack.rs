//! HPACK: the examples of RFC 7541, appendix C, a model of the dynamic table, and round trips.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;
use weir_http2::hpack::{Decoder, Encoder, HpackError};
use weir_http2::{ErrorCode, Head, Limits, Scheme, Section};

pub(crate) const REQUEST: Section = Section::Request { extended_connect: false };

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// Decodes a block, which need not be a valid message, and returns its lines.
fn lines(decoder: &mut Decoder, section: Section, block: &[u8]) -> Result<String, HpackError> {
    let mut head = Head::new();
    let _malformed = decoder.decode(block, section, &Limits::default(), &mut head)?;
    Ok(head.bytes.escape_ascii().to_string().replace("\\r\\n", "\n"))
}

/// RFC 7541, appendices C.2 to C.6: each block with its lines and the size of the table after it.
#[test]
fn examples() {
    let first = ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n";
    let second = &format!("{first}cache-control: no-cache\n");
    let third = ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\n\
                 custom-key: custom-value\n";
    let moved = ":status: 302\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\n\
                 location: https://www.example.com\n";
    let other = &moved.replace("302", "307");
    let good = ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\n\
                location: https://www.example.com\ncontent-encoding: gzip\n\
                set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1\n";
    type Blocks<'a> = &'a [(&'a str, &'a str, usize)];
    let examples: [(Section, Blocks<'_>); 8] = [
        (
            Section::Trailers,
            &[(
                "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
                "custom-key: custom-header\n",
                55,
            )],
        ),
        (REQUEST, &[("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path\n", 0)]),
        (Section::Trailers, &[("1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret\n", 0)]),
        (REQUEST, &[("82", ":method: GET\n", 0)]),
        (
            REQUEST,
            &[
                ("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", first, 57),
                ("8286 84be 5808 6e6f 2d63 6163 6865", second, 110),
                ("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", third, 164),
            ],
        ),
        (
            REQUEST,
            &[
                ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", first, 57),
                ("8286 84be 5886 a8eb 1064 9cbf", second, 110),
                ("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", third, 164),
            ],
        ),
        (
            Section::Response,
            &[
                (
                    "3fe101 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 \
                     2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 \
                     2e63 6f6d",
                    moved,
                    222,
                ),
                ("4803 3330 37c1 c0bf", other, 222),
                (
                    "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 \
                     5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 \
                     5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
                    good,
                    215,
                ),
            ],
        ),
        (
            Section::Response,
            &[
                (
                    "3fe101 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 \
                     2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                    moved,
                    222,
                ),
                ("4883 640e ffc1 c0bf", other, 222),
                (
                    "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad \
                     94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 \
                     65c0 03ed 4ee5 b106 3d50 07",
                    good,
                    215,
                ),
            ],
        ),
    ];
    for (section, blocks) in examples {
        let mut decoder = Decoder::new(4096);
        for (block, expected, size) in blocks {
            assert_eq!(lines(&mut decoder, section, &hex(block)).as_deref(), Ok(*expected), "{block}");
            assert_eq!(decoder.table_size(), *size, "{block}");
        }
    }
}

#[test]
fn errors() {
    use HpackError::*;
    for (block, error) in [
        ("80", BadIndex),
        ("be", BadIndex),
        ("ff 80 80 80 80 00", IntegerTooLarge),
        ("40", Truncated),
        ("40 01 61", Truncated),
        ("40 01 61 02 62", Truncated),
        ("40 ff ff ff ff 7f", Truncated),
        ("7e 01 61", BadIndex),
        ("40 81 ff 00", BadHuffman),
        ("82 20", LateSizeUpdate),
        ("3f e2 1f", TableTooLarge),
    ] {
        assert_eq!(lines(&mut Decoder::new(4096), REQUEST, &hex(block)), Err(error), "{block}");
        assert_eq!(error.code(), ErrorCode::COMPRESSION_ERROR);
    }
}

/// RFC 7541, section 4.2: an encoder acknowledges a smaller table in its next block.
#[test]
fn a_smaller_table_must_be_signalled() {
    let mut decoder = Decoder::new(4096);
    assert!(lines(&mut decoder, REQUEST, &hex("8286 8441 0161")).is_ok());
    decoder.acknowledged(0);
    assert_eq!(lines(&mut decoder, REQUEST, &hex("82")), Err(HpackError::TableTooLarge));
    assert_eq!(lines(&mut decoder, REQUEST, &hex("20 82")).as_deref(), Ok(":method: GET\n"));
    assert_eq!(decoder.table_size(), 0);
    assert_eq!(lines(&mut decoder, REQUEST, &hex("be")), Err(HpackError::BadIndex));
}

/// A block with many references to a large entry is malformed. It is a connection error only if it decompresses to more
/// than four times the limit; below that, the table stays in sync.
#[test]
fn bombs() {
    let limits = Limits { head_bytes: 1000, fields: 100 };
    let large = [&b"\x40\x01a\x7f\x65"[..], &[b'x'; 228]].concat();
    for (references, expected) in [
        (2, Ok(Ok(()))),
        (3, Ok(Err(weir_http2::HeadError::HeadTooLong))),
        (14, Ok(Err(weir_http2::HeadError::HeadTooLong))),
        (15, Err(HpackError::Bomb)),
    ] {
        let mut decoder = Decoder::new(4096);
        let mut head = Head::new();
        let block = [&large[..], &vec![0xbe; references]].concat();
        let decoded = decoder.decode(&block, Section::Trailers, &limits, &mut head);
        assert_eq!(decoded, expected, "{references}");
        assert!(head.bytes.len() <= limits.head_bytes);
        assert_eq!(decoder.table_size(), 261);
    }
    assert_eq!(HpackError::Bomb.code(), ErrorCode::ENHANCE_YOUR_CALM);
}

/// The exact encoding of usual fields.
#[test]
fn encoded_fields() {
    let encoded = |write: fn(&mut Encoder<'_>)| {
        let mut out = Vec::new();
        write(&mut Encoder::new(&mut out));
        out
    };
    let mut first = Vec::new();
    Encoder::new(&mut first).without_table();
    assert_eq!(first, hex("20"));
    assert_eq!(encoded(|to| to.status(200)), hex("88"));
    assert_eq!(encoded(|to| to.status(500)), hex("8e"));
    assert_eq!(encoded(|to| to.status(302)), hex("08 82 6402"));
    assert_eq!(
        encoded(|to| to.request(b"GET", Scheme::Http, b"www.example.com", b"/")),
        hex("82 86 01 8c f1e3c2e5f23a6ba0ab90f4ff 84")
    );
    assert_eq!(encoded(|to| to.field(b"Accept-Encoding", b"gzip, deflate")), hex("90"));
    assert_eq!(encoded(|to| to.field(b"Cache-Control", b"no-cache")), hex("0f09 86 a8eb10649cbf"));
    assert_eq!(encoded(|to| to.field(b"X-a", b"1234")), hex("00 03 782d61 83 08996b"));
    for name in ["authorization", "proxy-authorization", "cookie", "set-cookie"] {
        let mut out = Vec::new();
        Encoder::new(&mut out).field(name.as_bytes(), b"");
        assert_eq!(out[0] & 0xf0, 0x10, "{name}");
    }
}

/// RFC 7541, section 6.2.3: a proxy encodes a never-indexed field as never indexed.
#[test]
fn never_indexed_fields_stay_so() {
    let (mut head, mut out) = (Head::new(), Vec::new());
    let block = hex("1001 6101 62 0001 6101 62");
    let decoded = Decoder::new(0).decode(&block, Section::Trailers, &Limits::default(), &mut head);
    assert_eq!(decoded, Ok(Ok(())));
    Encoder::new(&mut out).fields(&head.bytes, &head.fields, |_| true);
    assert_eq!(out, block);
}

/// One step of an encoder that uses its table.
#[derive(Clone, Debug)]
enum Step {
    Literal {
        name: String,
        value: String,
        indexed: bool,
    },
    /// A reference to an entry of the dynamic table, if it has one.
    Entry(prop::sample::Index),
    NamedByEntry(prop::sample::Index, String),
    Resize(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let value = || "[!-~]{0,80}";
    prop_oneof![
        4 => ("[a-z-]{1,40}", value(), any::<bool>())
            .prop_map(|(name, value, indexed)| Step::Literal { name, value, indexed }),
        4 => any::<prop::sample::Index>().prop_map(Step::Entry),
        2 => (any::<prop::sample::Index>(), value()).prop_map(|(index, value)| Step::NamedByEntry(index, value)),
        1 => (0usize..500).prop_map(Step::Resize),
    ]
}

/// A simple model of the dynamic table, as RFC 7541 describes it.
struct Model {
    entries: VecDeque<(String, String)>,
    max_size: usize,
}

impl Model {
    fn size(&self) -> usize {
        self.entries.iter().map(|(name, value)| name.len() + value.len() + 32).sum()
    }

    fn insert(&mut self, name: &str, value: &str) {
        self.entries.push_front((name.into(), value.into()));
        self.evict();
    }

    fn evict(&mut self) {
        while self.size() > self.max_size {
            self.entries.pop_back();
        }
    }
}

fn integer(value: usize, prefix: u32, pattern: u8) -> Vec<u8> {
    let mask = (1 << prefix) - 1;
    match value.checked_sub(mask) {
        None => vec![pattern | value as u8],
        Some(rest) if rest < 128 => vec![pattern | mask as u8, rest as u8],
        Some(rest) => vec![pattern | mask as u8, rest as u8 | 0x80, (rest >> 7) as u8],
    }
}

fn text(value: &str) -> Vec<u8> {
    [&integer(value.len(), 7, 0), value.as_bytes()].concat()
}

fn line(name: &str, value: &str) -> String {
    if value.is_empty() { format!("{name}:\n") } else { format!("{name}: {value}\n") }
}

proptest! {
    /// The decoder's ring and the model agree after every block, even if lines wrap around or evict other entries.
    #[test]
    fn the_table_agrees_with_a_model(steps in vec(step(), 0..80)) {
        let mut model = Model { entries: VecDeque::new(), max_size: 4096 };
        let mut decoder = Decoder::new(512);
        for step in steps {
            let (block, expected) = match step {
                Step::Literal { name, value, indexed } => {
                    let pattern = if indexed { 0x40 } else { 0 };
                    if indexed {
                        model.insert(&name, &value);
                    }
                    ([vec![pattern], text(&name), text(&value)].concat(), line(&name, &value))
                }
                Step::Resize(size) => {
                    model.max_size = size;
                    model.evict();
                    (integer(size, 5, 0x20), String::new())
                }
                Step::Entry(_) | Step::NamedByEntry(..) if model.entries.is_empty() => continue,
                Step::Entry(index) => {
                    let index = index.index(model.entries.len());
                    let (name, value) = &model.entries[index];
                    (integer(62 + index, 7, 0x80), line(name, value))
                }
                Step::NamedByEntry(index, value) => {
                    let index = index.index(model.entries.len());
                    let name = model.entries[index].0.clone();
                    model.insert(&name, &value);
                    ([integer(62 + index, 6, 0x40), text(&value)].concat(), line(&name, &value))
                }
            };
            let decoded = lines(&mut decoder, Section::Trailers, &block);
            prop_assert_eq!(decoded, Ok(expected.replace('\\', "\\\\").replace('"', "\\\"").replace('\'', "\\'")));
            prop_assert_eq!(decoder.table_size(), model.size());
        }
    }

    #[test]
    fn encoded_fields_are_read_back(
        fields in vec(("[!#$%&*+.^_`|~0-9A-Za-z-]{1,24}", "([!-~]([ -~]{0,60}[!-~])?)?"), 0..20),
    ) {
        let mut block = Vec::new();
        let mut encoder = Encoder::new(&mut block);
        encoder.without_table();
        fields.iter().for_each(|(name, value)| encoder.field(name.as_bytes(), value.as_bytes()));
        let mut head = Head::new();
        let decoded = Decoder::new(0).decode(&block, Section::Trailers, &Limits::default(), &mut head).unwrap();
        let is_of_connection = |name: &String| {
            ["te", "connection", "upgrade", "keep-alive", "cookie", "host"].contains(&&*name.to_ascii_lowercase())
        };
        if !fields.iter().any(|(name, _)| is_of_connection(name)) {
            prop_assert_eq!(decoded, Ok(()));
            let read = head.fields.iter().map(|field| (field.name.of(&head.bytes), field.value.of(&head.bytes)));
            let written: Vec<_> = fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
            prop_assert!(read.eq(written.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()))));
        }
    }

    #[test]
    fn any_blocks(blocks in vec(vec(any::<u8>(), 0..60), 0..6)) {
        let mut decoder = Decoder::new(256);
        for block in blocks {
            if lines(&mut decoder, REQUEST, &block).is_err() {
                break;
            }
            prop_assert!(decoder.table_size() <= 4096);
        }
    }
}
