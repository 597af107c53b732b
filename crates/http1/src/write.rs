//! Writing: fields verbatim, framing regenerated.

use crate::Framing;
use weir_http::Field;

/// Appends the lines of the fields accepted by `keep`. Copies lines of the form `name: value`, nearly all of them,
/// verbatim from `buf`, adjacent lines as one run. Rewrites other lines in this form, without white space around the
/// value.
pub fn copy_fields(buf: &[u8], fields: &[Field], mut keep: impl FnMut(&Field) -> bool, out: &mut Vec<u8>) {
    let mut run = 0..0;
    for field in fields.iter().filter(|field| keep(field)) {
        let line = field.line.range();
        if !is_usual(buf, field) {
            out.extend_from_slice(&buf[run]);
            run = 0..0;
            write_field(buf, field, out);
        } else if line.start == run.end {
            run.end = line.end;
        } else {
            out.extend_from_slice(&buf[run]);
            run = line;
        }
    }
    out.extend_from_slice(&buf[run]);
}

/// Whether the line has the form that [`write_field`] produces.
#[inline]
fn is_usual(buf: &[u8], field: &Field) -> bool {
    let (name, value, line) = (field.name.range(), field.value.range(), field.line.range());
    match value.is_empty() {
        true => line.end == name.end + b":\r\n".len(),
        false => value.start == name.end + 2 && line.end == value.end + 2 && buf[name.end + 1] == b' ',
    }
}

#[cold]
fn write_field(buf: &[u8], field: &Field, out: &mut Vec<u8>) {
    let value = field.value.of(buf);
    out.extend_from_slice(field.name.of(buf));
    out.extend_from_slice(if value.is_empty() { b":" } else { b": " });
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends the field line that declares `framing`, with its CRLF; nothing for [`Framing::None`] and
/// [`Framing::UntilClose`].
pub fn framing_field(framing: Framing, out: &mut Vec<u8>) {
    match framing {
        Framing::None | Framing::UntilClose => {}
        Framing::Length(length) => {
            out.extend_from_slice(b"Content-Length: ");
            decimal(length, out);
            out.extend_from_slice(b"\r\n");
        }
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
    }
}

/// Appends one chunk with `data`; nothing if `data` is empty, since an empty chunk would end the body.
pub fn chunk(data: &[u8], out: &mut Vec<u8>) {
    if !data.is_empty() {
        chunk_head(data.len() as u64, out);
        out.extend_from_slice(data);
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends the size line of a chunk, for a caller that sends `size` bytes of data and the CRLF itself. Do not call it
/// with a size of 0, which would start the last chunk: use [`last_chunk`].
pub fn chunk_head(size: u64, out: &mut Vec<u8>) {
    let digits = (u64::BITS - size.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(size >> (4 * digit) & 0xf) as usize]);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends the last chunk and an empty trailer section, which end a chunked body.
pub fn last_chunk(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n\r\n");
}

/// As [`last_chunk`], with a trailer section whose lines `trailers` appends.
pub fn last_chunk_with(trailers: impl FnOnce(&mut Vec<u8>), out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    trailers(out);
    out.extend_from_slice(b"\r\n");
}

/// Appends `n` in decimal.
pub fn decimal(n: u64, out: &mut Vec<u8>) {
    let digit = |n: u64| b'0' + (n % 10) as u8;
    // Nearly all numbers are statuses and lengths of small messages, so these have a fast path.
    match n {
        100..1000 => out.extend_from_slice(&[digit(n / 100), digit(n / 10), digit(n)]),
        1000..10_000 => out.extend_from_slice(&[digit(n / 1000), digit(n / 100), digit(n / 10), digit(n)]),
        _ => any_decimal(n, out),
    }
}

fn any_decimal(mut n: u64, out: &mut Vec<u8>) {
    // 2^64 has 20 digits.
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers() {
        for n in [
            0,
            1,
            9,
            10,
            15,
            16,
            99,
            100,
            255,
            256,
            999,
            1000,
            4095,
            4096,
            9999,
            10_000,
            12_345_678_901,
            u64::MAX - 1,
            u64::MAX,
        ] {
            assert_eq!(written(|out| decimal(n, out)), n.to_string());
            assert_eq!(written(|out| chunk_head(n, out)), format!("{n:x}\r\n"));
        }
    }

    #[test]
    fn chunks() {
        assert_eq!(written(|out| chunk(b"", out)), "");
        assert_eq!(written(|out| chunk(&[b'x'; 17], out)), "11\r\nxxxxxxxxxxxxxxxxx\r\n");
        assert_eq!(written(last_chunk), "0\r\n\r\n");
    }

    #[test]
    fn framings() {
        assert_eq!(written(|out| framing_field(Framing::Length(70), out)), "Content-Length: 70\r\n");
        assert_eq!(written(|out| framing_field(Framing::Chunked, out)), "Transfer-Encoding: chunked\r\n");
        assert_eq!(written(|out| framing_field(Framing::None, out)), "");
        assert_eq!(written(|out| framing_field(Framing::UntilClose, out)), "");
    }
}
