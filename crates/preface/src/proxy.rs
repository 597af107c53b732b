//! The PROXY protocol: a load balancer reports the addresses of a connection that it forwards.
//!
//! Source: haproxy.org, "The PROXY protocol, Versions 1 & 2" (2020-03-05).

use crate::Look;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A parsed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The addresses of the forwarded connection; `None` if the proxy itself is the client, or reports no addresses.
    pub addresses: Option<Addresses>,
    /// The length of the header in bytes.
    pub len: usize,
}

/// The addresses of both sides of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The client's address.
    pub source: SocketAddr,
    /// The address that the client connected to.
    pub destination: SocketAddr,
}

/// The format of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// The reason for rejecting bytes as a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// The bytes match the beginning of neither version.
    #[error("no PROXY protocol header")]
    Missing,
    /// A line that is too long or does not follow version 1.
    #[error("an invalid line of version 1")]
    BadLine,
    /// A version that is not 2, or an unknown command.
    #[error("an unknown version or command")]
    BadCommand,
    /// Addresses of a kind other than stream sockets, or of an invalid length.
    #[error("invalid addresses")]
    BadAddresses,
    /// More than [`LONGEST`] bytes.
    #[error("longer than {LONGEST} bytes")]
    TooLong,
}

/// Reads the header at the beginning of `bytes`. Fails if no further bytes can make `bytes` a header.
pub fn read(bytes: &[u8]) -> Result<Look<Header>, ProxyError> {
    if begins(bytes, SIGNATURE) {
        return read_v2(bytes);
    }
    if begins(bytes, LINE_START) {
        return read_v1(bytes);
    }
    Err(ProxyError::Missing)
}

/// Whether `bytes` begins with `with`, or may do so once more bytes arrive.
fn begins(bytes: &[u8], with: &[u8]) -> bool {
    let common = bytes.len().min(with.len());
    bytes[..common] == with[..common]
}

fn read_v1(bytes: &[u8]) -> Result<Look<Header>, ProxyError> {
    let within = &bytes[..bytes.len().min(LONGEST_LINE)];
    let Some(end) = within.windows(2).position(|two| two == b"\r\n") else {
        let is_over = bytes.len() >= LONGEST_LINE;
        return if is_over { Err(ProxyError::BadLine) } else { Ok(Look::Partial) };
    };
    let line = std::str::from_utf8(&bytes[..end]).map_err(|_| ProxyError::BadLine)?;
    let len = end + 2;
    let mut words = line.split(' ').skip(1);
    let family = words.next().ok_or(ProxyError::BadLine)?;
    if family == "UNKNOWN" {
        return Ok(Look::Complete(Header { addresses: None, len }));
    }
    let words: Vec<&str> = words.collect();
    let [source, destination, source_port, destination_port] = words[..] else {
        return Err(ProxyError::BadLine);
    };
    let address = |text: &str| -> Result<IpAddr, ProxyError> {
        let address = match family {
            "TCP4" => text.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
            "TCP6" => text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            _ => None,
        };
        address.ok_or(ProxyError::BadLine)
    };
    let port = |text: &str| -> Result<u16, ProxyError> {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        plain.then(|| text.parse().ok()).flatten().ok_or(ProxyError::BadLine)
    };
    let addresses = Addresses {
        source: SocketAddr::new(address(source)?, port(source_port)?),
        destination: SocketAddr::new(address(destination)?, port(destination_port)?),
    };
    Ok(Look::Complete(Header { addresses: Some(addresses), len }))
}

fn read_v2(bytes: &[u8]) -> Result<Look<Header>, ProxyError> {
    let Some(command) = bytes.get(SIGNATURE.len()) else { return Ok(Look::Partial) };
    let is_local = match command {
        0x20 => true,
        0x21 => false,
        _ => return Err(ProxyError::BadCommand),
    };
    let Some([family, high, low]) = bytes.get(SIGNATURE.len() + 1..FIXED) else { return Ok(Look::Partial) };
    let rest = usize::from(u16::from_be_bytes([*high, *low]));
    let len = FIXED + rest;
    if len > LONGEST {
        return Err(ProxyError::TooLong);
    }
    let Some(block) = bytes.get(FIXED..len) else { return Ok(Look::Partial) };
    let addresses = match (is_local, family) {
        // LOCAL, for example in a health check by the proxy: ignores the addresses.
        (true, _) => None,
        // Unspecified addresses, or Unix sockets.
        (false, 0x00 | 0x31) => None,
        (false, 0x11) => Some(of::<4>(block)?),
        (false, 0x21) => Some(of::<16>(block)?),
        _ => return Err(ProxyError::BadAddresses),
    };
    Ok(Look::Complete(Header { addresses, len }))
}

/// Parses two addresses of `N` bytes and two ports; extensions may follow.
fn of<const N: usize>(block: &[u8]) -> Result<Addresses, ProxyError>
where
    IpAddr: From<[u8; N]>,
{
    let bad = ProxyError::BadAddresses;
    let address = |at: usize| -> Result<IpAddr, ProxyError> {
        let bytes: [u8; N] = block.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).ok_or(bad)?;
        Ok(bytes.into())
    };
    let port = |at: usize| -> Result<u16, ProxyError> {
        let bytes: [u8; 2] = block.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).ok_or(bad)?;
        Ok(u16::from_be_bytes(bytes))
    };
    Ok(Addresses {
        source: SocketAddr::new(address(0)?, port(2 * N)?),
        destination: SocketAddr::new(address(N)?, port(2 * N + 2)?),
    })
}

/// Writes a header. Without addresses, writes the header of a proxy that is itself the client or does not know the
/// client.
pub fn write(version: Version, addresses: Option<Addresses>, out: &mut Vec<u8>) {
    let addresses = addresses.map(of_one_family);
    match version {
        Version::V1 => match addresses {
            Some(Addresses { source, destination }) => {
                let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
                let (from, to) = (source.ip(), destination.ip());
                let (from_port, to_port) = (source.port(), destination.port());
                out.extend_from_slice(
                    format!("PROXY {family} {from} {to} {from_port} {to_port}\r\n").as_bytes(),
                );
            }
            None => out.extend_from_slice(b"PROXY UNKNOWN\r\n"),
        },
        Version::V2 => {
            out.extend_from_slice(SIGNATURE);
            match addresses {
                Some(Addresses { source, destination }) => {
                    let is_v4 = source.is_ipv4();
                    out.extend_from_slice(&[0x21, if is_v4 { 0x11 } else { 0x21 }]);
                    out.extend_from_slice(&(if is_v4 { 12u16 } else { 36 }).to_be_bytes());
                    for address in [source.ip(), destination.ip()] {
                        match address {
                            IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
                            IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
                        }
                    }
                    out.extend_from_slice(&source.port().to_be_bytes());
                    out.extend_from_slice(&destination.port().to_be_bytes());
                }
                None => out.extend_from_slice(&[0x20, 0x00, 0, 0]),
            }
        }
    }
}

/// Converts both addresses to IPv4 if possible, else both to IPv6, since a header has one address family.
fn of_one_family(Addresses { source, destination }: Addresses) -> Addresses {
    let with = |at: SocketAddr, ip: IpAddr| SocketAddr::new(ip, at.port());
    let (from, to) = (source.ip().to_canonical(), destination.ip().to_canonical());
    if from.is_ipv4() && to.is_ipv4() {
        return Addresses { source: with(source, from), destination: with(destination, to) };
    }
    let wide = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => IpAddr::V6(ip.to_ipv6_mapped()),
        IpAddr::V6(_) => ip,
    };
    Addresses { source: with(source, wide(from)), destination: with(destination, wide(to)) }
}

/// The first bytes of version 2.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// The first bytes of version 1.
const LINE_START: &[u8] = b"PROXY ";
/// The maximum length of a version 1 line with its CRLF.
const LONGEST_LINE: usize = 107;
/// The length of a version 2 header up to the addresses.
const FIXED: usize = 16;
/// The maximum length of a header with its extensions, such as certificate names. The protocol allows 64 KiB.
pub const LONGEST: usize = 4096;
