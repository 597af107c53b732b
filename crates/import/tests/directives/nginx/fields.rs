//! Header fields, and the timeouts and limits of a location.

use crate::{assert_settings, server};
use weir_import::Kind;

#[test]
fn fields_of_nginx() {
    for (inner, parts, losses) in [
        ("", &["request_headers.set = { Host = \"{upstream}\" }"][..], &[][..]),
        ("proxy_set_header Host $http_host;", &["!request_headers"], &[]),
        ("proxy_set_header Host a.org;", &["Host = \"a.org\""], &[]),
        ("proxy_set_header Host $server_name;", &["Host = \"n.org\""], &[]),
        ("proxy_set_header X-A \"$scheme://$host\";", &["X-A = \"{scheme}://{host}\""], &[]),
        ("proxy_set_header X-A $http_x_a;", &["!X-A"], &[]),
        ("proxy_set_header X-A \"\";", &["request_headers.remove = \"X-A\""], &[]),
        ("proxy_set_header X-A $geoip;", &["!X-A = "], &["1: proxy_set_header X-A $geoip"]),
        ("proxy_set_header X-Forwarded-Proto https;", &["X-Forwarded-Proto = \"https\""], &[]),
        ("proxy_set_header TE $http_te;", &["!TE ="], &[]),
        ("add_header A b always;", &["response_headers.add = { A = \"b\" }"], &[]),
        ("add_header A \"{b}\" always;", &["response_headers.add = { A = \"{{b}}\" }"], &[]),
        ("add_header A b; add_header A c;", &["A = \"b\""], &["1: add_header A c"]),
        ("proxy_hide_header A; add_header A b;", &["response_headers.set = { A = \"b\" }"], &[]),
        ("expires -1;", &["Cache-Control = \"no-cache\""], &[]),
        ("client_max_body_size 0;", &["max_body = \"1024TiB\""], &[]),
        ("proxy_read_timeout 90;", &["timeouts.response = \"90s\""], &[]),
        ("proxy_send_timeout 7;", &["timeouts.stall = \"7s\""], &[]),
        ("proxy_connect_timeout 3;", &["[timeouts]\nconnect = \"3s\""], &[]),
    ] {
        let inner = format!("server_name n.org; location / {{ proxy_pass http://h:1; {inner} }}");
        assert_settings(Kind::Nginx, &server(&inner), parts, losses);
    }
}
