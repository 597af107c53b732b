//! A security policy of one suite, group and signature for s2n-tls, which offers only named policies.
#![allow(unsafe_code)] // the policy is built in C, from structures without bindings

use std::sync::OnceLock;

// It sets its headers' directory, and is linked through s2n-tls.
use aws_lc_sys as _;
use s2n_tls_sys::s2n_config;

/// The TLS code points offered and accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// The suite, which decides the version.
    pub suite: u16,
    /// The group.
    pub group: u16,
    /// A curve that the client offers too, for the server's certificate; 0 for none.
    pub certificate_curve: u16,
    /// The signature scheme.
    pub signature: u16,
}

static CHOSEN: OnceLock<Option<Chosen>> = OnceLock::new();

/// Sets the policy of this process, after s2n_init. Returns whether s2n-tls supports all of it and no other was set.
pub fn choose(chosen: Chosen) -> bool {
    let made = CHOSEN.get_or_init(|| {
        let Chosen { suite, group, certificate_curve, signature } = chosen;
        // SAFETY: it takes numbers, and fills static structures that are not read before it returns.
        unsafe { weir_s2n_choose(suite, group, certificate_curve, signature) }.then_some(chosen)
    });
    *made == Some(chosen)
}

/// Applies the policy to a configuration. Returns s2n-tls's result: 0 for success.
///
/// # Safety
///
/// `config` must be one created by s2n-tls and not yet used.
pub unsafe fn apply(config: *mut s2n_config, client: bool) -> i32 {
    // SAFETY: as the caller promises; the policy is static.
    unsafe { weir_s2n_apply(config, client) }
}

unsafe extern "C" {
    fn weir_s2n_choose(suite: u16, group: u16, certificate_curve: u16, scheme: u16) -> bool;
    fn weir_s2n_apply(config: *mut s2n_config, client: bool) -> i32;
}
