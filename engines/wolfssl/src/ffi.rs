//! wolfSSL's functions, as its headers declare them.
#![allow(unsafe_code)] // wolfSSL is C

use std::ffi::{c_char, c_int, c_long, c_uchar, c_ulong, c_void};

/// WOLFSSL_METHOD
#[repr(C)]
pub(crate) struct Method {
    _private: [u8; 0],
}

/// WOLFSSL_CTX
#[repr(C)]
pub(crate) struct Context {
    _private: [u8; 0],
}

/// WOLFSSL
#[repr(C)]
pub(crate) struct Ssl {
    _private: [u8; 0],
}

/// WOLFSSL_SESSION
#[repr(C)]
pub(crate) struct Session {
    _private: [u8; 0],
}

pub(crate) const SUCCESS: c_int = 1;
pub(crate) const FILETYPE_PEM: c_int = 1;
pub(crate) const VERIFY_PEER: c_int = 1;
pub(crate) const WANT_READ: c_int = 2;
pub(crate) const IO_WANT_READ: c_int = -2;
pub(crate) const CACHE_OFF: c_long = 0;
pub(crate) const SNI_HOST_NAME: c_uchar = 0;

pub(crate) type Io = unsafe extern "C" fn(*mut Ssl, *mut c_char, c_int, *mut c_void) -> c_int;
pub(crate) type Verify = unsafe extern "C" fn(c_int, *mut c_void) -> c_int;
pub(crate) type Ticket = unsafe extern "C" fn(*mut Ssl, *const c_uchar, c_int, *mut c_void) -> c_int;

unsafe extern "C" {
    pub(crate) fn wolfSSL_Init() -> c_int;
    pub(crate) fn wolfSSL_lib_version() -> *const c_char;
    pub(crate) fn wolfSSL_ERR_error_string(error: c_ulong, text: *mut c_char) -> *mut c_char;

    pub(crate) fn wolfTLSv1_2_client_method() -> *mut Method;
    pub(crate) fn wolfTLSv1_2_server_method() -> *mut Method;
    pub(crate) fn wolfTLSv1_3_client_method() -> *mut Method;
    pub(crate) fn wolfTLSv1_3_server_method() -> *mut Method;

    pub(crate) fn wolfSSL_CTX_new(method: *mut Method) -> *mut Context;
    pub(crate) fn wolfSSL_CTX_free(context: *mut Context);
    pub(crate) fn wolfSSL_CTX_set_cipher_list(context: *mut Context, list: *const c_char) -> c_int;
    pub(crate) fn wolfSSL_CTX_set_groups(context: *mut Context, groups: *mut c_int, count: c_int) -> c_int;
    pub(crate) fn wolfSSL_CTX_UseSupportedCurve(context: *mut Context, group: u16) -> c_int;
    pub(crate) fn wolfSSL_CTX_set1_sigalgs_list(context: *mut Context, list: *const c_char) -> c_int;
    pub(crate) fn wolfSSL_CTX_SetIORecv(context: *mut Context, io: Io);
    pub(crate) fn wolfSSL_CTX_SetIOSend(context: *mut Context, io: Io);
    pub(crate) fn wolfSSL_CTX_load_verify_buffer(
        context: *mut Context,
        pem: *const c_uchar,
        size: c_long,
        kind: c_int,
    ) -> c_int;
    pub(crate) fn wolfSSL_CTX_set_verify(context: *mut Context, mode: c_int, verify: Option<Verify>);
    pub(crate) fn wolfSSL_CTX_use_certificate_chain_buffer(
        context: *mut Context,
        pem: *const c_uchar,
        size: c_long,
    ) -> c_int;
    pub(crate) fn wolfSSL_CTX_use_PrivateKey_buffer(
        context: *mut Context,
        pem: *const c_uchar,
        size: c_long,
        kind: c_int,
    ) -> c_int;
    pub(crate) fn wolfSSL_CTX_check_private_key(context: *const Context) -> c_int;
    pub(crate) fn wolfSSL_CTX_set_session_cache_mode(context: *mut Context, mode: c_long) -> c_long;
    pub(crate) fn wolfSSL_CTX_UseSessionTicket(context: *mut Context) -> c_int;
    pub(crate) fn wolfSSL_CTX_NoTicketTLSv12(context: *mut Context) -> c_int;
    pub(crate) fn wolfSSL_CTX_no_ticket_TLSv13(context: *mut Context) -> c_int;
    pub(crate) fn wolfSSL_CTX_set_num_tickets(context: *mut Context, count: usize) -> c_int;
    pub(crate) fn wolfSSL_CTX_UseMaxFragment(context: *mut Context, code: c_uchar) -> c_int;

    pub(crate) fn wolfSSL_new(context: *mut Context) -> *mut Ssl;
    pub(crate) fn wolfSSL_free(ssl: *mut Ssl);
    pub(crate) fn wolfSSL_SetIOReadCtx(ssl: *mut Ssl, context: *mut c_void);
    pub(crate) fn wolfSSL_SetIOWriteCtx(ssl: *mut Ssl, context: *mut c_void);
    pub(crate) fn wolfSSL_UseSNI(ssl: *mut Ssl, kind: c_uchar, name: *const c_void, size: u16) -> c_int;
    pub(crate) fn wolfSSL_check_domain_name(ssl: *mut Ssl, name: *const c_char) -> c_int;
    pub(crate) fn wolfSSL_set_SessionTicket_cb(ssl: *mut Ssl, ticket: Ticket, context: *mut c_void) -> c_int;
    pub(crate) fn wolfSSL_connect(ssl: *mut Ssl) -> c_int;
    pub(crate) fn wolfSSL_accept(ssl: *mut Ssl) -> c_int;
    pub(crate) fn wolfSSL_write(ssl: *mut Ssl, data: *const c_void, size: c_int) -> c_int;
    pub(crate) fn wolfSSL_read(ssl: *mut Ssl, data: *mut c_void, size: c_int) -> c_int;
    pub(crate) fn wolfSSL_get_error(ssl: *mut Ssl, result: c_int) -> c_int;
    pub(crate) fn wolfSSL_version(ssl: *mut Ssl) -> c_int;
    pub(crate) fn wolfSSL_get_current_cipher_suite(ssl: *mut Ssl) -> c_int;
    pub(crate) fn wolfSSL_session_reused(ssl: *mut Ssl) -> c_int;
    pub(crate) fn wolfSSL_get1_session(ssl: *mut Ssl) -> *mut Session;
    pub(crate) fn wolfSSL_set_session(ssl: *mut Ssl, session: *mut Session) -> c_int;
    pub(crate) fn wolfSSL_SESSION_free(session: *mut Session);
}

/// The error buffer's size.
pub(crate) const ERROR_SIZE: usize = 80;
