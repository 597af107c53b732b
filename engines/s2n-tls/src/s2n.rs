//! The s2n-tls calls used here. Its safe binding lacks some of them: the number of tickets, the policy.
#![allow(unsafe_code)] // s2n-tls is C

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use s2n_tls_sys::*;
use weir_engine::callbacks::{Calls, Ended, Wire};
use weir_engine::{End, Error, Group, Kind, Outcome, Side, Version, notes};

/// A complete configuration.
pub(crate) struct Config(Arc<Owned>);

/// The parts that connections refer to; s2n-tls does not count references.
struct Owned {
    raw: NonNull<s2n_config>,
    side: Side,
    /// The server's certificate, which the configuration refers to.
    chain: Option<NonNull<s2n_cert_chain_and_key>>,
    /// A client's store. The callback has its address.
    store: Store,
}

// SAFETY: threads may share a complete s2n-tls configuration; these never change after their creation; the store has a
// lock.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

/// A client's last session.
struct Store {
    keeps: bool,
    session: Mutex<Option<Vec<u8>>>,
}

impl Config {
    /// A client's configuration, which trusts `root`. It requests tickets, and keeps the last one if sessions are
    /// resumed.
    pub(crate) fn client(root: &[u8], tickets: bool, keeps: bool) -> Result<Config, Error> {
        let config = Arc::new(Owned::new(Side::Client, keeps)?);
        let root = CString::new(root).map_err(|_| Error::scenario("ca: expected PEM"))?;
        let raw = config.raw.as_ptr();
        let store = ptr::from_ref(&config.store).cast_mut().cast();
        // SAFETY: the configuration is alive and not yet used; the string is null-terminated; the store lives as long.
        unsafe {
            check(weir_engine_s2n_policy::apply(raw, true), "client's policy")?;
            s2n_config_add_pem_to_trust_store(raw, root.as_ptr())
                .eq(&0)
                .then_some(())
                .ok_or_else(|| Error::scenario(format!("ca: {}: expected a PEM certificate", last())))?;
            if tickets {
                check(s2n_config_set_session_tickets_onoff(raw, 1), "client's tickets")?;
                check(s2n_config_set_session_ticket_cb(raw, Some(keep), store), "client's store")?;
            }
        }
        Ok(Config(config))
    }

    /// A server's configuration, with its own ticket key. `record`: maximum plaintext bytes of a record.
    pub(crate) fn server(chain: &[u8], key: &[u8], tickets: u8, record: u16) -> Result<Config, Error> {
        let mut config = Owned::new(Side::Server, false)?;
        let raw = config.raw.as_ptr();
        let (mut chain, mut key) = (chain.to_vec(), key.to_vec());
        // SAFETY: the configuration is alive and not yet used; pointers come with their lengths, and their data is
        // copied; the certificate is freed after the configuration.
        unsafe {
            check(weir_engine_s2n_policy::apply(raw, false), "server's policy")?;
            let pair = NonNull::new(s2n_cert_chain_and_key_new()).ok_or_else(|| failed("certificate"))?;
            config.chain = Some(pair);
            let (chain_size, key_size) = (chain.len() as u32, key.len() as u32);
            let (chain, key) = (chain.as_mut_ptr(), key.as_mut_ptr());
            if s2n_cert_chain_and_key_load_pem_bytes(pair.as_ptr(), chain, chain_size, key, key_size) != 0 {
                return Err(Error::scenario(format!(
                    "chain, key: {}: expected a PEM chain and its key",
                    last()
                )));
            }
            check(s2n_config_add_cert_chain_and_key_to_store(raw, pair.as_ptr()), "certificate")?;
            check(s2n_config_set_max_fragment_length(raw, record), "record size")?;
            if tickets > 0 {
                let mut secret = [0; 32];
                aws_lc_rs::rand::fill(&mut secret).map_err(|error| Error::stack("ticket key", error))?;
                let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
                check(s2n_config_set_session_tickets_onoff(raw, 1), "server's tickets")?;
                check(s2n_config_set_initial_ticket_count(raw, tickets), "number of tickets")?;
                let (name, secret) = (*b"weir", secret.as_mut_ptr());
                check(
                    s2n_config_add_ticket_crypto_key(raw, name.as_ptr(), 4, secret, 32, now),
                    "ticket key",
                )?;
            }
        }
        Ok(Config(Arc::new(config)))
    }
}

impl End for Config {
    type Session = Ended<Connection>;

    fn session(&self) -> Result<Ended<Connection>, Error> {
        Ended::new(self.0.side, |context| Connection::new(&self.0, context))
    }
}

impl Owned {
    /// A configuration without the system's roots.
    fn new(side: Side, keeps: bool) -> Result<Owned, Error> {
        // SAFETY: it takes no arguments, and returns a configuration or null.
        let raw = NonNull::new(unsafe { s2n_config_new_minimal() }).ok_or_else(|| failed("configuration"))?;
        Ok(Owned { raw, side, chain: None, store: Store { keeps, session: Mutex::new(None) } })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: no connection refers to it any more, and the certificate is freed after its users.
        unsafe {
            s2n_config_free(self.raw.as_ptr());
            if let Some(chain) = self.chain {
                s2n_cert_chain_and_key_free(chain.as_ptr());
            }
        }
    }
}

/// A connection.
pub(crate) struct Connection {
    raw: NonNull<s2n_connection>,
    /// The connection refers to it until it is dropped.
    _config: Arc<Owned>,
}

impl Connection {
    /// A new connection, whose callbacks get this context.
    fn new(config: &Arc<Owned>, context: *mut c_void) -> Result<Connection, Error> {
        let is_client = config.side == Side::Client;
        let mode = if is_client { s2n_mode::CLIENT } else { s2n_mode::SERVER };
        // SAFETY: it takes a number, and returns a connection or null.
        let raw = NonNull::new(unsafe { s2n_connection_new(mode) }).ok_or_else(|| failed("connection"))?;
        let connection = Connection { raw, _config: config.clone() };
        let raw = raw.as_ptr();
        // SAFETY: connection and configuration are alive; the context lives as long as the connection; the name is
        // null-terminated and copied.
        unsafe {
            // It would sleep on errors otherwise.
            check(s2n_connection_set_blinding(raw, s2n_blinding::SELF_SERVICE_BLINDING), "blinding")?;
            check(s2n_connection_set_config(raw, config.raw.as_ptr()), "configuration")?;
            check(s2n_connection_set_recv_cb(raw, Some(receive)), "input")?;
            check(s2n_connection_set_send_cb(raw, Some(send)), "output")?;
            check(s2n_connection_set_recv_ctx(raw, context), "input")?;
            check(s2n_connection_set_send_ctx(raw, context), "output")?;
            if is_client {
                check(s2n_set_server_name(raw, c"localhost".as_ptr()), "server's name")?;
                let session = config.store.session.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(session) = &*session {
                    check(s2n_connection_set_session(raw, session.as_ptr(), session.len()), "session")?;
                }
            }
        }
        Ok(connection)
    }
}

impl Calls for Connection {
    fn handshake(&mut self) -> isize {
        // SAFETY: the connection is alive.
        unsafe { s2n_negotiate(self.raw.as_ptr(), &mut s2n_blocked_status::NOT_BLOCKED.clone()) as isize }
    }

    fn write(&mut self, plain: &[u8]) -> isize {
        let (data, size) = (plain.as_ptr().cast(), plain.len() as isize);
        // SAFETY: the connection is alive; `data` has `size` bytes.
        unsafe { s2n_send(self.raw.as_ptr(), data, size, &mut s2n_blocked_status::NOT_BLOCKED.clone()) }
    }

    fn read(&mut self, plain: &mut [u8]) -> isize {
        let (data, size) = (plain.as_mut_ptr().cast(), plain.len() as isize);
        // SAFETY: the connection is alive; `data` has room for `size` bytes.
        unsafe { s2n_recv(self.raw.as_ptr(), data, size, &mut s2n_blocked_status::NOT_BLOCKED.clone()) }
    }

    fn done(&self, result: isize) -> Result<Option<usize>, String> {
        if result >= 0 {
            return Ok(Some(result as usize));
        }
        // SAFETY: it takes the number of the thread's last error.
        let kind = unsafe { s2n_error_get_type(*s2n_errno_location()) };
        if kind == s2n_error_type::BLOCKED as c_int {
            return Ok(None);
        }
        Err(last())
    }

    fn outcome(&self) -> Outcome {
        let raw = self.raw.as_ptr();
        let (mut first, mut second) = (0, 0);
        let (mut group, mut signature) = (ptr::null(), ptr::null());
        // SAFETY: the connection is alive and its handshake over; returned strings live in the library.
        unsafe {
            s2n_connection_get_cipher_iana_value(raw, &mut first, &mut second);
            // 33 and 34, for TLS 1.2 and 1.3.
            let version = 0x0303 + (s2n_connection_get_actual_protocol_version(raw) - 33) as u16;
            let resumed = s2n_connection_is_session_resumed(raw) == 1;
            let retried = text(s2n_connection_get_handshake_type_name(raw)).contains("HELLO_RETRY_REQUEST");
            let full = if retried { Kind::FullWithHelloRetry } else { Kind::Full };
            // Without a key exchange or a signature, it reports the session's.
            let agreed = !resumed || version == Version::Tls13.code();
            let has_group = agreed && s2n_connection_get_key_exchange_group(raw, &mut group) == 0;
            let has_signature = !resumed && s2n_connection_get_signature_scheme(raw, &mut signature) == 0;
            Outcome {
                version,
                kind: if resumed { Kind::Resumed } else { full },
                suite: u16::from_be_bytes([first, second]),
                group: has_group.then(|| code_of_group(&text(group))),
                signature: has_signature.then(|| code_of_signature(&text(signature))),
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: it is not used any more.
        unsafe {
            s2n_connection_free(self.raw.as_ptr());
        }
    }
}

/// Passes the peer's bytes to s2n-tls.
unsafe extern "C" fn receive(context: *mut c_void, into: *mut u8, size: u32) -> c_int {
    // SAFETY: the context is a connection's wire, which nothing else uses during the call that this is made in.
    let Some(count) = (unsafe { Wire::give(context, into, size as usize) }) else {
        // SAFETY: the thread's own variable; s2n-tls reads the reason there.
        unsafe { *libc::__errno_location() = libc::EWOULDBLOCK };
        return -1;
    };
    count as c_int
}

/// Takes s2n-tls's bytes for the peer.
unsafe extern "C" fn send(context: *mut c_void, from: *const u8, size: u32) -> c_int {
    // SAFETY: as above; `from` has `size` bytes.
    if unsafe { Wire::take(context, from, size as usize) } { size as c_int } else { -1 }
}

/// Called for each ticket that a client reads.
unsafe extern "C" fn keep(
    _: *mut s2n_connection,
    store: *mut c_void,
    ticket: *mut s2n_session_ticket,
) -> c_int {
    // SAFETY: the context is a configuration's store, which is only ever read.
    let store = unsafe { &*store.cast::<Store>() };
    notes::ticket();
    if !store.keeps {
        return 0;
    }
    let mut size = 0;
    // SAFETY: the ticket is valid during the call, and the buffer has the stated size.
    let session = unsafe {
        if s2n_session_ticket_get_data_len(ticket, &mut size) != 0 {
            return -1;
        }
        let mut session = vec![0; size];
        if s2n_session_ticket_get_data(ticket, size, session.as_mut_ptr()) != 0 {
            return -1;
        }
        session
    };
    *store.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
    0
}

fn check(result: c_int, what: &str) -> Result<(), Error> {
    if result == 0 { Ok(()) } else { Err(failed(what)) }
}

fn failed(what: &str) -> Error {
    Error::stack(what, last())
}

/// The thread's last error.
fn last() -> String {
    // SAFETY: the number is the thread's own; the strings live in the library.
    unsafe {
        let error = *s2n_errno_location();
        format!("{} ({})", text(s2n_strerror(error, c"EN".as_ptr())), text(s2n_strerror_name(error)))
    }
}

/// # Safety
///
/// `text` must be null or null-terminated.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Its own names, in code points; 0 is no group's.
fn code_of_group(name: &str) -> u16 {
    match name {
        "x25519" => Group::X25519.code(),
        "secp256r1" => Group::P256.code(),
        "X25519MLKEM768" => Group::X25519MlKem768.code(),
        "secp384r1" => 24,
        _ => 0,
    }
}

fn code_of_signature(name: &str) -> u16 {
    match name {
        "rsa_pss_rsae_sha256" => 0x0804,
        // One code point in both versions; in TLS 1.2 the curve is open.
        "ecdsa_secp256r1_sha256" | "ecdsa_sha256" | "legacy_ecdsa_sha256" => 0x0403,
        "ecdsa_secp384r1_sha384" | "ecdsa_sha384" | "legacy_ecdsa_sha384" => 0x0503,
        _ => 0,
    }
}
