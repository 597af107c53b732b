//! A name server on loopback (RFC 1035, UDP).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A name server with scripted responses.
pub(crate) struct NameServer {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    zone: Mutex<BTreeMap<String, Says>>,
    /// Queries of type A: the name and the message ID, which a retransmission repeats.
    asked: Mutex<Vec<(String, u16)>>,
    stopping: AtomicBool,
}

/// The response for a name; other names do not exist.
#[derive(Clone, Debug)]
pub(crate) enum Says {
    /// Addresses, with their TTL in seconds.
    Addresses(u32, Vec<IpAddr>),
    /// An alias, with its TTL in seconds.
    Alias(u32, &'static str),
    /// An error code.
    Code(u8),
    /// No response.
    Nothing,
}

pub(crate) const SERVFAIL: u8 = 2;
pub(crate) const NXDOMAIN: u8 = 3;

impl NameServer {
    pub(crate) fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (address, shared) = (socket.local_addr().unwrap(), Arc::<Shared>::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question) {
                if own.stopping.load(Ordering::SeqCst) {
                    break;
                }
                if let Some(answer) = own.answer(&question[..length]) {
                    // The resolver may have closed its socket.
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        Self { address, shared, thread: Some(thread) }
    }

    /// Sets the response for a name.
    pub(crate) fn say(&self, name: &str, says: Says) {
        self.shared.zone.lock().unwrap().insert(name.to_owned(), says);
    }

    /// Sets the IPv4 addresses of a name.
    pub(crate) fn say_addresses(&self, name: &str, ttl: u32, addresses: &[Ipv4Addr]) {
        self.say(name, Says::Addresses(ttl, addresses.iter().copied().map(IpAddr::V4).collect()));
    }

    /// The number of A queries for a name.
    pub(crate) fn asked(&self, name: &str) -> usize {
        let asked = self.shared.asked.lock().unwrap();
        let mut ids: Vec<_> = asked.iter().filter(|(of, _)| of == name).map(|(_, id)| id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.len()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wake the thread.
        let _ = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(&[0], self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        let id = u16::from_be_bytes([*question.first()?, *question.get(1)?]);
        let (name, end) = name(question, 12)?;
        let kind = u16::from_be_bytes([*question.get(end)?, *question.get(end + 1)?]);
        if kind == A {
            self.asked.lock().unwrap().push((name.clone(), id));
        }
        let (code, records) = self.records(&name, kind)?;
        let mut answer = question[..end + 4].to_vec();
        // The header of a recursive server's response to one question.
        answer[2..12].copy_from_slice(&[0x81, 0x80 | code, 0, 1, 0, records.len() as u8, 0, 0, 0, 0]);
        answer.extend(records.concat());
        Some(answer)
    }

    fn records(&self, name: &str, kind: u16) -> Option<(u8, Vec<Vec<u8>>)> {
        let says = self.zone.lock().unwrap().get(name).cloned().unwrap_or(Says::Code(NXDOMAIN));
        match says {
            Says::Nothing => None,
            Says::Code(code) => Some((code, Vec::new())),
            Says::Alias(ttl, other) => Some((0, vec![record(name, CNAME, ttl, &encoded(other))])),
            Says::Addresses(ttl, addresses) => {
                let of_kind = addresses.iter().filter_map(|address| match (address, kind) {
                    (IpAddr::V4(address), A) => Some(record(name, A, ttl, &address.octets())),
                    (IpAddr::V6(address), AAAA) => Some(record(name, AAAA, ttl, &address.octets())),
                    _ => None,
                });
                Some((0, of_kind.collect()))
            }
        }
    }
}

fn record(name: &str, kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let mut record = encoded(name);
    record.extend(kind.to_be_bytes());
    record.extend([0, 1]);
    record.extend(ttl.to_be_bytes());
    record.extend((data.len() as u16).to_be_bytes());
    record.extend(data);
    record
}

fn encoded(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.') {
        bytes.push(label.len() as u8);
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

/// Parses the name at this offset; returns it and the offset after it.
fn name(message: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        labels.push(String::from_utf8_lossy(message.get(at..at + length)?).to_ascii_lowercase());
        at += length;
    }
}

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
