//! A security policy of one suite, group and signature for s2n-tls, which has policies by name only.
#![allow(unsafe_code)] // the policy is made in C, of structures that have no binding

use std::sync::OnceLock;

// It says where its headers are, and is linked through s2n-tls.
use aws_lc_sys as _;
use s2n_tls_sys::s2n_config;

/// TLS's code points of all that is offered and accepted.
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

/// Chooses for this process, after s2n_init. Says whether s2n-tls has all that was chosen, and nothing else was before.
pub fn choose(chosen: Chosen) -> bool {
    let made = CHOSEN.get_or_init(|| {
        let Chosen { suite, group, certificate_curve, signature } = chosen;
        // SAFETY: it takes numbers, and fills static structures that nobody reads before it has returned.
        unsafe { weir_s2n_choose(suite, group, certificate_curve, signature) }.then_some(chosen)
    });
    *made == Some(chosen)
}

/// Gives a configuration what was chosen. Returns what s2n-tls does: 0 if it took it.
///
/// # Safety
///
/// `config` must be one that s2n-tls has made and that is not yet used.
pub unsafe fn apply(config: *mut s2n_config, client: bool) -> i32 {
    // SAFETY: as the caller promises; the policy is static.
    unsafe { weir_s2n_apply(config, client) }
}

unsafe extern "C" {
    fn weir_s2n_choose(suite: u16, group: u16, certificate_curve: u16, scheme: u16) -> bool;
    fn weir_s2n_apply(config: *mut s2n_config, client: bool) -> i32;
}
