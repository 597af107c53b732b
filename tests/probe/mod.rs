//! `weir probe` against servers with known settings: Weir's own origin, OpenSSL, nginx and HAProxy.

mod openssl;
mod own;
mod proxies;
mod report;
mod servers;
