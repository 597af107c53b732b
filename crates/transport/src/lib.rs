//! A TCP connection, cleartext or TLS: where the reactor's sockets meet the TLS byte transformer.
