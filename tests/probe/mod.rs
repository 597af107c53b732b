//! `weir probe` against servers whose settings are known: our own origin, OpenSSL, nginx and HAProxy.

mod openssl;
mod own;
mod proxies;
mod report;
mod servers;
