//! TLS as a byte transformer over rustls.
