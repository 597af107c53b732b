//! The audit: every directive is translated, needs no counterpart, or is reported.

use super::module::in_proxy;
use crate::note::Notes;
use weir_syntax::nginx::Directive;

/// Reports directives that no other part of the translation reads.
pub(super) fn audit(directives: &[Directive], notes: &mut Notes) {
    let mut pending: Vec<&Directive> = directives.iter().rev().collect();
    while let Some(directive) = pending.pop() {
        look(directive, notes);
        if descends(&directive.name) {
            pending.extend(directive.block().iter().rev());
        }
    }
}

/// Whether a block contains directives; `map`, `types`, `geo` and similar blocks contain values.
fn descends(name: &str) -> bool {
    matches!(name, "http" | "stream" | "server" | "location" | "events")
}

fn look(directive: &Directive, notes: &mut Notes) {
    let (written, known) = (directive.name.as_str(), in_proxy(&directive.name));
    let name = known.as_ref();
    let (on, text, at) = (directive.arg() != "off", directive.text(), &directive.at);
    if TRANSLATED.contains(&name) {
        return;
    }
    if QUIET.contains(&name) || QUIET_FAMILIES.iter().any(|family| name.starts_with(family)) {
        return notes.quiet(written);
    }
    if let Some((_, message)) = WITHOUT.iter().find(|(known, _)| *known == name) {
        match on {
            true => notes.quiet(written),
            false => notes.loss_once(written, at, text, message),
        }
        return;
    }
    if let Some((_, message)) = LOSSES.iter().find(|(known, _)| *known == name) {
        // Weir retries by default, so `proxy_next_upstream off` is a loss, too.
        if on || name == "proxy_next_upstream" {
            notes.loss_once(written, at, text, message);
        }
        return;
    }
    if let Some((family, message)) = FAMILIES.iter().find(|(family, _)| name.starts_with(family)) {
        if on {
            notes.loss_once(family, at, text, message);
        }
        return;
    }
    match name {
        "map" if directive.arg() == "$http_upgrade" => notes.quiet("map of $http_upgrade"),
        "map" if directive.arg() == "$ssl_preread_server_name" => {}
        "split_clients" => {}
        "map" | "geo" => {
            let message = "variables of one's own have no counterpart; write a [[route]] for each value";
            notes.loss(at, text, message);
        }
        "limit_except" => {}
        "proxy_request_buffering" if on => {
            let message = "Weir passes bodies on as they come; set request_buffer of the [[route]]";
            notes.loss_once(name, at, text, message);
        }
        "proxy_request_buffering" => notes.quiet(name),
        _ => notes.loss(at, text, "unknown to `weir import`; look for a counterpart in docs/GATEWAY.md"),
    }
}

/// Directives that other parts of the translation read.
const TRANSLATED: [&str; 87] = [
    "access_log",
    "add_header",
    "alias",
    "allow",
    "auth_basic",
    "auth_jwt",
    "auth_request",
    "break",
    "client_body_timeout",
    "client_header_timeout",
    "client_max_body_size",
    "default_type",
    "deny",
    "error_page",
    "expires",
    "fastcgi_pass",
    "http",
    "http2",
    "if",
    "index",
    "internal",
    "keepalive_timeout",
    "large_client_header_buffers",
    "limit_except",
    "listen",
    "location",
    "log_format",
    "memcached_pass",
    "proxy_connect_timeout",
    "proxy_hide_header",
    "proxy_http_version",
    "proxy_ignore_client_abort",
    "proxy_pass",
    "proxy_protocol",
    "proxy_read_timeout",
    "proxy_send_timeout",
    "proxy_set_header",
    "proxy_ssl",
    "proxy_ssl_certificate",
    "proxy_ssl_certificate_key",
    "proxy_ssl_ciphers",
    "proxy_ssl_name",
    "proxy_ssl_protocols",
    "proxy_ssl_trusted_certificate",
    "proxy_ssl_verify",
    "proxy_timeout",
    "real_ip_header",
    "return",
    "rewrite",
    "root",
    "satisfy",
    "scgi_pass",
    "send_timeout",
    "server",
    "server_name",
    "set",
    "set_real_ip_from",
    "ssl",
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_ciphers",
    "ssl_client_certificate",
    "ssl_conf_command",
    "ssl_crl",
    "ssl_ecdh_curve",
    "ssl_preread",
    "ssl_protocols",
    "ssl_reject_handshake",
    "ssl_session_cache",
    "ssl_session_tickets",
    "ssl_session_timeout",
    "ssl_stapling_file",
    "ssl_verify_client",
    "stream",
    "stub_status",
    "try_files",
    "underscores_in_headers",
    "upstream",
    "uwsgi_pass",
    "worker_processes",
    "health_check",
    "autoindex",
    "api",
    "js_content",
    "content_by_lua_block",
    "content_by_lua_file",
    "empty_gif",
];

/// Directives that need no setting in Weir, or that neither clients nor servers notice.
const QUIET: [&str; 77] = [
    "absolute_redirect",
    "accept_mutex",
    "aio",
    "auth_basic_user_file",
    "auth_request_set",
    "chunked_transfer_encoding",
    "client_body_buffer_size",
    "client_body_in_file_only",
    "client_body_temp_path",
    "client_header_buffer_size",
    "connection_pool_size",
    "daemon",
    "directio",
    "env",
    "error_log",
    "etag",
    "events",
    "fastcgi_param",
    "fastcgi_index",
    "fastcgi_split_path_info",
    "keepalive_requests",
    "keepalive_disable",
    "lingering_close",
    "lingering_time",
    "lingering_timeout",
    "load_module",
    "lock_file",
    "log_not_found",
    "log_subrequest",
    "map_hash_bucket_size",
    "map_hash_max_size",
    "max_ranges",
    "multi_accept",
    "open_file_cache",
    "open_file_cache_errors",
    "open_file_cache_min_uses",
    "open_file_cache_valid",
    "output_buffers",
    "pcre_jit",
    "pid",
    "port_in_redirect",
    "postpone_output",
    "preread_buffer_size",
    "preread_timeout",
    "proxy_buffer_size",
    "proxy_buffering",
    "proxy_buffers",
    "proxy_busy_buffers_size",
    "proxy_half_close",
    "proxy_headers_hash_bucket_size",
    "proxy_headers_hash_max_size",
    "proxy_max_temp_file_size",
    "proxy_pass_header",
    "proxy_protocol_timeout",
    "proxy_requests",
    "proxy_responses",
    "proxy_socket_keepalive",
    "proxy_ssl_server_name",
    "proxy_ssl_session_reuse",
    "proxy_ssl_verify_depth",
    "proxy_temp_path",
    "real_ip_recursive",
    "request_pool_size",
    "reset_timedout_connection",
    "resolver",
    "resolver_timeout",
    "sendfile",
    "sendfile_max_chunk",
    "server_name_in_redirect",
    "server_names_hash_bucket_size",
    "server_names_hash_max_size",
    "server_tokens",
    "tcp_nodelay",
    "tcp_nopush",
    "types",
    "use",
    "user",
];

const QUIET_FAMILIES: [&str; 24] = [
    "fastcgi_buffer",
    "fastcgi_connect",
    "fastcgi_read",
    "fastcgi_send",
    "fastcgi_intercept",
    "fastcgi_hide",
    "fastcgi_request",
    "gzip_",
    "brotli_",
    "uwsgi_",
    "scgi_",
    "rewrite_log",
    "ssl_buffer",
    "ssl_dhparam",
    "ssl_prefer",
    "ssl_stapling_verify",
    "ssl_stapling_responder",
    "ssl_trusted_certificate",
    "ssl_verify_depth",
    "ssl_handshake_timeout",
    "types_hash",
    "variables_hash",
    "worker_",
    "working_directory",
];

/// Directives that cannot be `off`: the reason, and what to do instead.
const WITHOUT: [(&str, &str); 4] = [
    ("ignore_invalid_headers", "Weir refuses requests with such fields"),
    ("merge_slashes", "routes take several slashes for one; requests are passed on as they came"),
    ("proxy_pass_request_body", "Weir forwards the client's body"),
    (
        "proxy_pass_request_headers",
        "Weir forwards the client's fields; drop some with request_headers.remove",
    ),
];

/// Directives without a counterpart: the reason, and what to do instead.
const LOSSES: [(&str, &str); 22] = [
    ("http3", "Weir speaks HTTP over TCP; clients of HTTP/3 fall back to it, nothing to do"),
    ("gzip", "Weir does not compress; let the service compress its responses"),
    ("gunzip", "Weir does not decompress; let the service send what the client accepts"),
    ("brotli", "Weir does not compress; let the service compress its responses"),
    ("charset", "Weir leaves Content-Type as it is; let the service name the charset"),
    ("proxy_intercept_errors", "Weir replaces only its own error responses; let the service send the page"),
    ("proxy_redirect", "Weir leaves `Location` as it is; let the service use X-Forwarded-Proto and -Host"),
    ("proxy_next_upstream", "Weir retries what has not left, on up to two more servers; no setting needed"),
    ("proxy_next_upstream_tries", "Weir retries on up to two more servers; no setting needed"),
    ("proxy_next_upstream_timeout", "Weir retries on up to two more servers; no setting needed"),
    ("proxy_ssl_crl", "Weir reads no revocation lists about servers; use a CA of their own in tls.ca"),
    ("proxy_download_rate", "Weir does not limit bandwidth"),
    ("proxy_upload_rate", "Weir does not limit bandwidth"),
    ("ssl_alpn", "TLS of a listener with `tcp` has no ALPN; nothing to do unless clients insist on it"),
    ("ssl_stapling", "Weir staples from a file; fetch the response and name it in [[certificate]] ocsp"),
    ("ssl_early_data", "Weir does not accept early data (0-RTT), which can be replayed"),
    (
        "ssl_session_ticket_key",
        "the file's format differs; write secrets with `openssl rand -hex 32` and set tls.ticket_secrets",
    ),
    (
        "ssl_password_file",
        "Weir reads keys without a passphrase; decrypt the key and protect it by permissions",
    ),
    ("ssl_ocsp", "Weir does not ask a CA about client certificates; use tls.client_crl"),
    ("proxy_bind", "Weir does not choose its own address; use the routing table"),
    ("proxy_method", "Weir keeps the client's method"),
    ("proxy_set_body", "Weir keeps the client's body"),
];

/// Like [`LOSSES`], by name prefix.
const FAMILIES: [(&str, &str); 16] = [
    ("proxy_cache", "Weir does not cache; put a cache behind it, or leave it to clients"),
    ("proxy_store", "Weir does not store responses"),
    ("proxy_no_cache", "Weir does not cache; put a cache behind it, or leave it to clients"),
    ("proxy_ignore_headers", "Weir has no cache to steer"),
    ("proxy_cookie", "Weir leaves cookies as they are; let the service set their path and domain"),
    ("limit_req", "set `rate` of the [[route]]s"),
    ("limit_conn", "set connections_per_client of [limits], which is for all listeners together"),
    ("limit_rate", "Weir does not limit bandwidth"),
    ("sub_filter", "Weir leaves bodies as they are"),
    ("auth_", "Weir does not check credentials"),
    ("fastcgi_cache", "Weir does not cache; put a cache behind it, or leave it to clients"),
    ("quic_", "Weir speaks HTTP/1.1 over TCP; clients of HTTP/3 fall back to it, nothing to do"),
    ("modsecurity", "Weir has no firewall for requests; put one behind it"),
    ("mirror", "set `mirror` of the [[route]]s"),
    ("more_", "the module headers-more is unknown; use request_headers and response_headers of a [[route]]"),
    ("proxy_ssl_conf", "Weir has no other settings of TLS; see [service.NAME] tls"),
];
