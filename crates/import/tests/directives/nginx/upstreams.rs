//! nginx's `upstream` groups, translated to services.

use crate::assert_all;
use weir_import::Kind;

#[test]
fn groups_of_nginx() {
    for (inner, part, losses) in [
        ("server a:1;", "servers = \"http://a:1\"", &[][..]),
        ("server a:1 down; server b;", "servers = \"http://b\"", &[]),
        ("random two least_conn; server a:1;", "balance = \"two-choices\"", &[]),
        ("hash $cookie_id consistent; server a:1;", "hash = \"cookie:id\"", &[]),
        ("hash $http_x_user; server a:1;", "hash = \"header:x-user\"", &[]),
        ("hash $request_uri; server a:1;", "servers", &["1: hash $request_uri"]),
        ("sticky cookie S; server a:1;", "sticky = \"S\"", &[]),
        ("server a:1 max_conns=7; server b:1 max_conns=7;", "max_connections = 7", &[]),
        ("server a:1; keepalive_time 1h; keepalive_requests 10;", "pool.max_requests = 10", &[]),
        ("server a:1; keepalive_time 2h;", "pool.max_age = \"2h\"", &[]),
        ("server a:1 weight=3; server b:1;", "{ url = \"http://a:1\", weight = 3 }", &[]),
        ("server a:1; keepalive_timeout 30s;", "[timeouts]\npooled = \"30s\"", &[]),
        ("server a:1 slow_start=20s;", "eject.slow_return = \"20s\"", &[]),
        ("server a:1 down;", "status = 501", &["1: proxy_pass http://g"]),
    ] {
        let text = format!("upstream g {{ {inner} }} server {{ location / {{ proxy_pass http://g; }} }}");
        assert_all(Kind::Nginx, &[(&text, &[part], losses)]);
    }
}
