//! The rows for HAProxy.

use super::Row;

macro_rules! lines {
    ($($inner:literal),* ; $backend:literal) => {
        concat!(
            "defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n",
            "frontend f\n bind 127.0.0.1:@PORT@\n",
            $(" ", $inner, "\n",)*
            " default_backend app\n",
            "backend app\n", $backend, " server s @TO@\n"
        )
    };
    ($($inner:literal),*) => { lines!($($inner),* ; "") };
}

/// A configuration around a `defaults` section with a name, which rules in it require.
macro_rules! defaults {
    ($inner:literal, $rest:literal) => {
        concat!(
            "defaults d\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n",
            $inner,
            "defaults plain\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n",
            $rest
        )
    };
}

pub(super) const ROWS: &[Row] = &[
    // A backend may share its frontend's name.
    Row::new(
        "defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\nfrontend app\n bind 127.0.0.1:@PORT@\n default_backend app\nbackend app\n http-request deny if !{ src 192.0.2.0/24 } # closed\n server s @TO@\n",
        &["/", "/x"],
        &[],
        &[],
    ),
    Row::new(
        "defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\nfrontend app\n bind 127.0.0.1:@PORT@\n use_backend app if { path_beg /a }\n default_backend b\nbackend app\n http-request auth # closed\n server s @TO@\nbackend b\n server s @TO@\n",
        &["/a", "/ab"],
        &["/"],
        &[],
    ),
    Row::new(
        "defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\nfrontend f\n bind 127.0.0.1:@PORT@\n use_backend g if { path_beg /g/ }\n default_backend f\nfrontend g\n default_backend f\nbackend g\n http-request deny if METH_POST # closed\n server s @TO@\nbackend f\n http-request return status 404 if { path /hidden } # closed\n server s @TO@\n",
        &["POST /g/x", "/hidden"],
        &["/g/x", "/"],
        &[],
    ),
    Row::new(
        "defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\nlisten l\n bind 127.0.0.1:@PORT@\n http-request deny if { path_beg /x } # closed\n server s @TO@\n",
        &["/x", "/xy"],
        &["/"],
        &[],
    ),
    // Rules in defaults.
    Row::new(
        defaults!(
            " http-request deny if { path_beg /admin } # closed\n",
            "frontend f from d\n bind 127.0.0.1:@PORT@\n default_backend app\nbackend app from plain\n server s @TO@\n"
        ),
        &["/admin", "/administrator"],
        &["/"],
        &[],
    ),
    Row::new(
        defaults!(
            " acl local src 192.0.2.0/24\n http-request deny unless local # closed\n",
            "frontend f from d\n bind 127.0.0.1:@PORT@\n default_backend app\nbackend app from plain\n server s @TO@\n"
        ),
        &["/"],
        &[],
        &[],
    ),
    Row::new(
        concat!(
            "defaults d\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n http-request deny if METH_DELETE # closed\n",
            "defaults e\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n",
            "frontend f from e\n bind 127.0.0.1:@PORT@\n default_backend app\nbackend app from d\n server s @TO@\n"
        ),
        &["DELETE /"],
        &["/"],
        &[],
    ),
    Row::new(
        defaults!(
            " tcp-request content reject if { src 127.0.0.0/8 } # closed\n",
            "frontend f from d\n bind 127.0.0.1:@PORT@\n default_backend app\nbackend app from plain\n server s @TO@\n"
        ),
        &["/"],
        &[],
        &[],
    ),
    Row::new(
        defaults!(
            " http-request return status 403 if { path /secret } # closed\n",
            "frontend f from d\n bind 127.0.0.1:@PORT@\n default_backend app\nbackend app from plain\n server s @TO@\n"
        ),
        &["/secret"],
        &["/", "/secret/x"],
        &[],
    ),
    // Prefixes, in upper and lower case.
    Row::new(
        lines!("http-request deny if { path_beg /wp- } # closed"),
        &["/wp-", "/wp-login.php"],
        &["/", "/wp"],
        &[],
    ),
    Row::new(
        lines!("http-request deny if { path_beg -i /admin } # closed"),
        &["/admin", "/Admin/x", "/ADMINISTRATOR"],
        &["/", "/adm"],
        &[],
    ),
    Row::new(
        lines!("http-request deny if { path -i -m beg /wp-login } # closed"),
        &["/wp-login.php", "/WP-LOGIN"],
        &["/", "/wp-l"],
        &["/wp-logo"],
    ),
    Row::new(
        lines!("http-request deny if { path,lower -m beg /admin } # closed"),
        &["/admin", "/ADMIN/x"],
        &["/"],
        &[],
    ),
    Row::new(
        lines!("http-request deny unless { path_beg /public/ } # closed"),
        &["/", "/public", "/publicx", "/PUBLIC/x"],
        &["/public/x"],
        &[],
    ),
    Row::new(
        lines!("http-request deny unless { path_beg -i /pub } # closed"),
        &["/", "/x"],
        &["/pub", "/public"],
        &["/PUB"],
    ),
    Row::new(
        lines!("http-request deny if { path_reg ^/x/[0-9]+/secret } # closed"),
        &["/x/1/secret"],
        &["/", "/xy"],
        &["/x", "/x/a/secret"],
    ),
    Row::new(
        lines!(
            "http-request deny if { path_reg ^/users/[^/]+/keys$ } # closed",
            "use_backend app if { path_beg /users/me/ }"
        ),
        &["/users/a/keys", "/users/me/keys"],
        &["/", "/users/me/x"],
        &[],
    ),
    Row::new(
        lines!("http-request deny if { path_reg ^/app(/|$) } # closed"),
        &["/app", "/app/x"],
        &["/", "/apple"],
        &[],
    ),
    Row::new(
        lines!("http-request deny if { path_end .php .env } # closed"),
        &["/x.php", "/.env"],
        &[],
        &["/"],
    ),
    Row::new(
        lines!("http-request deny if { path_sub -i /.git } { method GET } # closed"),
        &["/a/.git/config"],
        &["POST /a"],
        &["/"],
    ),
    // Conditions that routes do not support.
    Row::new(
        lines!(
            "acl protected path_beg /p/",
            "http-request deny if protected !{ var(txn.ok) -m bool } # closed"
        ),
        &["/p/x"],
        &["/", "/p"],
        &[],
    ),
    Row::new(
        lines!(
            "http-request set-var(txn.ok) bool(true) if { hdr(x-key) secret }",
            "http-request deny unless { var(txn.ok) -m bool } # closed"
        ),
        &["/"],
        &[],
        &["/ X-Key:secret"],
    ),
    Row::new(
        lines!(
            "http-request set-var(txn.bad) bool(true) if { hdr(x-bad) 1 }",
            "http-request deny if { path_beg /p } { var(txn.bad) -m bool } # closed"
        ),
        &["/p X-Bad:1"],
        &["/"],
        &["/p"],
    ),
    Row::new(
        lines!("http-request deny if { hdr_sub(user-agent) -i bot curl } # closed"),
        &["/ User-Agent:cUrl/8"],
        &["/"],
        &["/ User-Agent:x"],
    ),
    Row::new(
        lines!("http-request deny if { hdr(x-role) -i guest } # closed"),
        &["/ X-Role:GUEST", "/ X-Role:guest"],
        &["/"],
        &["/ X-Role:user"],
    ),
    Row::new(
        lines!("http-request deny if { hdr_end(host) evil.test } # closed"),
        &["a.evil.test /", "notevil.test /"],
        &[],
        &["a.test /"],
    ),
    Row::new(
        lines!(
            "stick-table type ip size 1k expire 10s store gpc0",
            "http-request track-sc0 src",
            "http-request deny if { path_beg /b } { sc0_inc_gpc0 gt 0 } # closed"
        ),
        &["/b"],
        &["/"],
        &[],
    ),
    Row::new(
        lines!(
            "stick-table type ip size 1k expire 10s store http_req_rate(10s)",
            "http-request track-sc0 src",
            "http-request deny deny_status 429 if { sc_http_req_rate(0) gt 3 } # closed"
        ),
        &[],
        &["/", "/a", "/b"],
        &[],
    ),
    Row::new(
        lines!("http-request deny if { rand(1) 0 } { path /d } or { path /e } # closed"),
        &["/d", "/e"],
        &["/"],
        &[],
    ),
    // Other actions with the same effect.
    Row::new(lines!("http-request reject if { path /x } # closed"), &["/x"], &["/"], &[]),
    // HAProxy does not respond, so the client would wait.
    Row::alone(lines!("http-request silent-drop if { path /x } # closed"), &["/x"], &["/"]),
    Row::new(
        lines!("timeout tarpit 10ms", "http-request tarpit deny_status 403 if { path /x } # closed"),
        &["/x"],
        &["/"],
        &[],
    ),
    Row::new(
        lines!("http-request return status 404 if { path_dir hidden } # closed"),
        &["/a/hidden/b"],
        &[],
        &["/"],
    ),
    Row::new(lines!("tcp-request connection reject if !{ src 192.0.2.1 } # closed"), &["/"], &[], &[]),
    Row::new(lines!("tcp-request content reject if { src 127.0.0.1 } # closed"), &["/"], &[], &[]),
    Row::new(lines!("http-request auth if { path_beg /p } # closed"), &["/p"], &["/"], &[]),
    Row::new(
        concat!(
            "userlist u\n user a insecure-password b\n",
            lines!("http-request auth realm x if { path_beg /p } !{ http_auth(u) } # closed")
        ),
        &["/p/x"],
        &["/"],
        &[],
    ),
    Row::new(lines!("" ; " http-request deny if { path_beg /b } # closed\n"), &["/b"], &["/"], &[]),
    Row::new(lines!("http-response deny if { status 418 } # closed"), &[], &[], &["/"]),
    Row::alone(lines!("block if { path_beg /x } # closed"), &["/x"], &["/"]),
    Row::alone(lines!("reqideny ^[^:]*:.*admin # closed"), &["/admin"], &[]),
    Row::alone(lines!("http-request lua.check if { path_beg /x } # closed"), &["/x"], &["/"]),
    // Backends and redirects for clients without access.
    Row::new(
        concat!(
            lines!("use_backend deny if { path_end .bak } # closed"),
            "backend deny\n http-request deny\n"
        ),
        &["/x.bak"],
        &[],
        &["/"],
    ),
    Row::new(
        concat!(
            lines!("use_backend known if { path_beg /p/ } { path_end .x } # closed"),
            "backend known\n http-request deny unless { src 192.0.2.1 }\n server s @TO@\n"
        ),
        &["/p/a.x"],
        &["/"],
        &["/p/a"],
    ),
    Row::new(
        lines!(
            "http-request redirect location /login if { path_beg /p } !{ req.cook(session) -m found } # closed"
        ),
        &[],
        &["/"],
        &["/p Cookie:session=1"],
    ),
    // Values that earlier rules have changed.
    Row::new(
        lines!(
            "http-request set-path %[path,regsub(^/api/,/)] if { path_beg /api/ }",
            "http-request deny if { path_beg /admin } # closed"
        ),
        &["/admin", "/api/admin"],
        &["/"],
        &["/api/x"],
    ),
    Row::new(
        lines!("http-request del-header X-Inner", "http-request deny unless { hdr(x-inner) 1 } # closed"),
        &["/", "/ X-Inner:1"],
        &[],
        &[],
    ),
    Row::new(
        lines!("http-request deny if !{ path_beg /a } !{ path_beg /b } # closed"),
        &["/", "/c"],
        &["/a", "/b/x"],
        &[],
    ),
];
