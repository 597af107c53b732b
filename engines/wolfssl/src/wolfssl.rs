//! wolfSSL's configurations and connections.
#![allow(unsafe_code)] // wolfSSL is C

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uchar, c_void};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use weir_engine::callbacks::{Calls, Ended, Wire};
use weir_engine::{End, Error, Kind, Outcome, Side, notes};

use crate::ffi;

/// The version reported by the library.
pub(crate) fn version() -> String {
    // SAFETY: it returns a string that lives in the library.
    unsafe { CStr::from_ptr(ffi::wolfSSL_lib_version()) }.to_string_lossy().into_owned()
}

/// Settings of both sides.
pub(crate) struct Chosen {
    /// TLS 1.3, or else 1.2.
    pub(crate) new: bool,
    pub(crate) suite: String,
    pub(crate) groups: Vec<u16>,
    pub(crate) signature: &'static str,
    /// Whether the server stores sessions by ID.
    pub(crate) store: bool,
    pub(crate) tickets: u32,
    /// The code of TLS's maximum fragment length.
    pub(crate) fragment: Option<u8>,
}

/// A complete configuration.
pub(crate) struct Config {
    raw: NonNull<ffi::Context>,
    side: Side,
    store: Option<Arc<Store>>,
}

// SAFETY: threads may share a complete wolfSSL context, and these never change after their creation.
unsafe impl Send for Config {}
// SAFETY: as above.
unsafe impl Sync for Config {}

impl Config {
    /// A client's configuration, which trusts `root`, and keeps its last session if sessions are resumed.
    pub(crate) fn client(chosen: &Chosen, root: &[u8], keeps: bool) -> Result<Config, Error> {
        let mut config = Config::new(chosen, Side::Client)?;
        let raw = config.raw.as_ptr();
        config.store = keeps.then(Arc::default);
        // SAFETY: the context is alive and not yet used; the buffer comes with its size, and is copied.
        unsafe {
            if ffi::wolfSSL_CTX_load_verify_buffer(raw, root.as_ptr(), size(root), ffi::FILETYPE_PEM)
                != ffi::SUCCESS
            {
                return Err(Error::scenario("ca: expected a PEM certificate"));
            }
            ffi::wolfSSL_CTX_set_verify(raw, ffi::VERIFY_PEER, None);
            if let Some(fragment) = chosen.fragment {
                check(ffi::wolfSSL_CTX_UseMaxFragment(raw, fragment), "record size")?;
            }
            if chosen.tickets > 0 {
                check(ffi::wolfSSL_CTX_UseSessionTicket(raw), "client's tickets")?;
            }
        }
        Ok(config)
    }

    /// A server's configuration, with the library's own ticket keys.
    pub(crate) fn server(chosen: &Chosen, chain: &[u8], key: &[u8]) -> Result<Config, Error> {
        let config = Config::new(chosen, Side::Server)?;
        let raw = config.raw.as_ptr();
        // SAFETY: as above.
        unsafe {
            if ffi::wolfSSL_CTX_use_certificate_chain_buffer(raw, chain.as_ptr(), size(chain)) != ffi::SUCCESS
            {
                return Err(Error::scenario("chain: expected a PEM certificate chain"));
            }
            if ffi::wolfSSL_CTX_use_PrivateKey_buffer(raw, key.as_ptr(), size(key), ffi::FILETYPE_PEM)
                != ffi::SUCCESS
                || ffi::wolfSSL_CTX_check_private_key(raw) != ffi::SUCCESS
            {
                return Err(Error::scenario("key: expected the PEM key of the chain's leaf"));
            }
            match (chosen.new, chosen.tickets) {
                (true, 0) => zero(ffi::wolfSSL_CTX_no_ticket_TLSv13(raw), "no tickets")?,
                (true, count) => {
                    check(ffi::wolfSSL_CTX_set_num_tickets(raw, count as usize), "number of tickets")?
                }
                (false, 0) => check(ffi::wolfSSL_CTX_NoTicketTLSv12(raw), "no tickets")?,
                (false, _) => {}
            }
        }
        Ok(config)
    }

    fn new(chosen: &Chosen, side: Side) -> Result<Config, Error> {
        begin()?;
        let suite = CString::new(chosen.suite.as_str()).map_err(|error| Error::runner("suite", error))?;
        let signature = CString::new(chosen.signature).map_err(|error| Error::runner("signature", error))?;
        // SAFETY: the context takes ownership of the method; it is alive; strings are null-terminated and copied.
        unsafe {
            let method = match (chosen.new, side) {
                (true, Side::Client) => ffi::wolfTLSv1_3_client_method(),
                (true, _) => ffi::wolfTLSv1_3_server_method(),
                (false, Side::Client) => ffi::wolfTLSv1_2_client_method(),
                (false, _) => ffi::wolfTLSv1_2_server_method(),
            };
            let raw = ffi::wolfSSL_CTX_new(method);
            let owned = NonNull::new(raw).ok_or_else(|| Error::stack("context", "was not made"))?;
            let config = Config { raw: owned, side, store: None };
            check(ffi::wolfSSL_CTX_set_cipher_list(raw, suite.as_ptr()), "suite")?;
            if chosen.new {
                let mut groups: Vec<c_int> = chosen.groups.iter().map(|group| c_int::from(*group)).collect();
                // The list comes with its size, and is copied.
                check(ffi::wolfSSL_CTX_set_groups(raw, groups.as_mut_ptr(), groups.len() as c_int), "group")?;
            } else {
                for group in &chosen.groups {
                    check(ffi::wolfSSL_CTX_UseSupportedCurve(raw, *group), "group")?;
                }
            }
            check(ffi::wolfSSL_CTX_set1_sigalgs_list(raw, signature.as_ptr()), "signature")?;
            ffi::wolfSSL_CTX_SetIORecv(raw, receive);
            ffi::wolfSSL_CTX_SetIOSend(raw, send);
            if !chosen.store {
                ffi::wolfSSL_CTX_set_session_cache_mode(raw, ffi::CACHE_OFF);
            }
            Ok(config)
        }
    }

    /// A new connection, whose callbacks get this context.
    fn connect(&self, context: *mut c_void) -> Result<Connection, Error> {
        // SAFETY: the context is alive.
        let raw = unsafe { ffi::wolfSSL_new(self.raw.as_ptr()) };
        let raw = NonNull::new(raw).ok_or_else(|| Error::stack("connection", "was not made"))?;
        let connection = Connection { raw, side: self.side, store: self.store.clone() };
        let raw = raw.as_ptr();
        // SAFETY: the connection is alive; the callbacks' context lives as long; names come with their sizes or are
        // null-terminated, and are copied; the session is alive, and is copied or counted.
        unsafe {
            ffi::wolfSSL_SetIOReadCtx(raw, context);
            ffi::wolfSSL_SetIOWriteCtx(raw, context);
            if self.side == Side::Client {
                const NAME: &CStr = c"localhost";
                let size = NAME.count_bytes() as u16;
                check(
                    ffi::wolfSSL_UseSNI(raw, ffi::SNI_HOST_NAME, NAME.as_ptr().cast(), size),
                    "server's name",
                )?;
                check(ffi::wolfSSL_check_domain_name(raw, NAME.as_ptr()), "server's name")?;
                check(ffi::wolfSSL_set_SessionTicket_cb(raw, ticket, ptr::null_mut()), "tickets")?;
                if let Some(store) = &self.store
                    && let Some(session) = &*store.lock()
                {
                    check(ffi::wolfSSL_set_session(raw, session.0.as_ptr()), "session")?;
                }
            }
        }
        Ok(connection)
    }
}

impl End for Config {
    type Session = Ended<Connection>;

    fn session(&self) -> Result<Ended<Connection>, Error> {
        Ended::new(self.side, |context| self.connect(context))
    }
}

impl Drop for Config {
    fn drop(&mut self) {
        // SAFETY: it is not used any more; connections count it.
        unsafe { ffi::wolfSSL_CTX_free(self.raw.as_ptr()) }
    }
}

/// The last session of a client.
#[derive(Default)]
struct Store(Mutex<Option<Session>>);

impl Store {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Session(NonNull<ffi::Session>);

// SAFETY: the store's lock ensures that one thread at a time uses a session.
unsafe impl Send for Session {}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: it is this one's own.
        unsafe { ffi::wolfSSL_SESSION_free(self.0.as_ptr()) }
    }
}

/// A connection.
pub(crate) struct Connection {
    raw: NonNull<ffi::Ssl>,
    side: Side,
    store: Option<Arc<Store>>,
}

impl Calls for Connection {
    fn handshake(&mut self) -> isize {
        let raw = self.raw.as_ptr();
        // SAFETY: the connection is alive.
        let result = unsafe {
            if self.side == Side::Client { ffi::wolfSSL_connect(raw) } else { ffi::wolfSSL_accept(raw) }
        };
        result as isize
    }

    fn write(&mut self, plain: &[u8]) -> isize {
        let (data, size) = (plain.as_ptr().cast(), plain.len() as c_int);
        // SAFETY: the connection is alive; `data` has `size` bytes.
        unsafe { ffi::wolfSSL_write(self.raw.as_ptr(), data, size) as isize }
    }

    fn read(&mut self, plain: &mut [u8]) -> isize {
        let (data, size) = (plain.as_mut_ptr().cast(), plain.len() as c_int);
        // SAFETY: the connection is alive; `data` has room for `size` bytes.
        unsafe { ffi::wolfSSL_read(self.raw.as_ptr(), data, size) as isize }
    }

    fn done(&self, result: isize) -> Result<Option<usize>, String> {
        if result > 0 {
            return Ok(Some(result as usize));
        }
        // SAFETY: the connection is alive, and the result that of its last call.
        let error = unsafe { ffi::wolfSSL_get_error(self.raw.as_ptr(), result as c_int) };
        if error == ffi::WANT_READ {
            return Ok(None);
        }
        let mut text: [c_char; ffi::ERROR_SIZE] = [0; ffi::ERROR_SIZE];
        // SAFETY: the buffer has the size that the call expects, and is null-terminated afterwards.
        let text = unsafe {
            ffi::wolfSSL_ERR_error_string(error as _, text.as_mut_ptr());
            CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
        };
        Err(format!("{text} ({error})"))
    }

    fn outcome(&self) -> Outcome {
        let raw = self.raw.as_ptr();
        // SAFETY: the connection is alive and its handshake over.
        unsafe {
            Outcome {
                version: ffi::wolfSSL_version(raw) as u16,
                kind: if ffi::wolfSSL_session_reused(raw) == 1 { Kind::Resumed } else { Kind::Full },
                suite: ffi::wolfSSL_get_current_cipher_suite(raw) as u16,
                // Its names differ between releases, so parse the server's messages instead. Of
                // the signature it only exposes the hash.
                group: None,
                signature: None,
            }
        }
    }

    /// Stores the session in the client's store, if any.
    fn keep(&mut self) {
        if let Some(store) = &self.store {
            // SAFETY: the connection is alive and its handshake over; the session is counted for the caller.
            let session = NonNull::new(unsafe { ffi::wolfSSL_get1_session(self.raw.as_ptr()) });
            *store.lock() = session.map(Session);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: it is not used any more.
        unsafe { ffi::wolfSSL_free(self.raw.as_ptr()) }
    }
}

/// Passes the peer's bytes to wolfSSL.
unsafe extern "C" fn receive(
    _: *mut ffi::Ssl,
    into: *mut c_char,
    size: c_int,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the context is a connection's wire, which nothing else uses during the call that this is made in.
    let count = unsafe { Wire::give(context, into.cast(), size as usize) };
    count.map_or(ffi::IO_WANT_READ, |count| count as c_int)
}

/// Takes wolfSSL's bytes for the peer.
unsafe extern "C" fn send(_: *mut ffi::Ssl, from: *mut c_char, size: c_int, context: *mut c_void) -> c_int {
    // Outside a call it is the close_notify that wolfSSL may send when freed: discard it.
    // SAFETY: as above; `from` has `size` bytes.
    let _ = unsafe { Wire::take(context, from.cast_const().cast(), size as usize) };
    size
}

/// Called for each ticket that a client reads.
unsafe extern "C" fn ticket(_: *mut ffi::Ssl, _: *const c_uchar, _: c_int, _: *mut c_void) -> c_int {
    notes::ticket();
    0
}

/// Initialises the library once.
fn begin() -> Result<(), Error> {
    static BEGUN: OnceLock<c_int> = OnceLock::new();
    // SAFETY: it takes no arguments, and is called once.
    check(*BEGUN.get_or_init(|| unsafe { ffi::wolfSSL_Init() }), "wolfSSL_Init")
}

fn check(result: c_int, what: &str) -> Result<(), Error> {
    if result == ffi::SUCCESS { Ok(()) } else { Err(Error::stack(what, format!("it said {result}"))) }
}

/// Some calls return 0 for success.
fn zero(result: c_int, what: &str) -> Result<(), Error> {
    if result == 0 { Ok(()) } else { Err(Error::stack(what, format!("it said {result}"))) }
}

fn size(bytes: &[u8]) -> c_long {
    bytes.len() as c_long
}
