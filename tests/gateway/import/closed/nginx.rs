//! The rows for nginx.

use super::Row;

/// The configuration around the rows for nginx itself.
pub(super) const AROUND: &str = "
daemon off;
user root;
worker_processes 1;
pid @FOLDER@/nginx.pid;
error_log stderr crit;
events { worker_connections 64; }
http {
    access_log off;
    client_body_temp_path @FOLDER@/body;
    proxy_temp_path @FOLDER@/proxy;
    fastcgi_temp_path @FOLDER@/fastcgi;
    uwsgi_temp_path @FOLDER@/uwsgi;
    scgi_temp_path @FOLDER@/scgi;
@SERVERS@
}
";

macro_rules! server {
    ($inner:literal) => {
        concat!(
            "server {\n listen 127.0.0.1:@PORT@;\n",
            $inner,
            "\n location / { proxy_pass http://@TO@; }\n}\n"
        )
    };
}

pub(super) const ROWS: &[Row] = &[
    // Prefixes that end within a segment.
    Row::new(
        server!("location /wp- { deny all; } # closed"),
        &["/wp-", "/wp-login.php", "/wp-admin/x", "/x/../wp-admin", "/%77p-admin"],
        &["/", "/wp", "/wq-", "/x/wp-admin"],
        &[],
    ),
    Row::new(
        server!("location /admin { deny all; } # closed"),
        &["/admin", "/admin/", "/admin/x", "/administrator", "/admin.php", "//admin/x", "/admin%2Fx"],
        &["/", "/adm", "/Admin"],
        &[],
    ),
    Row::new(
        server!("location /admin/ { deny all; } # closed"),
        &["/admin/", "/admin/x", "/admin%2Fx"],
        &["/", "/admins"],
        &["/admin"],
    ),
    Row::new(
        server!(
            "location /a/v1.0- { return 403; } # closed\n location /a/v1.0-public/ { proxy_pass http://@TO@; }"
        ),
        &["/a/v1.0-", "/a/v1.0-x/y"],
        &["/a/v1.0", "/a/", "/a/v1.0-public/x"],
        &[],
    ),
    Row::new(
        server!("location = /status { deny all; } # closed"),
        &["/status", "/./status"],
        &["/status/", "/status/x", "/statusx"],
        &[],
    ),
    // Any case, and longer names.
    Row::new(
        server!("location ~* ^/admin { deny all; } # closed"),
        &["/admin", "/Admin/x", "/ADMINISTRATOR", "/aDmIn.php"],
        &["/", "/adm"],
        &[],
    ),
    Row::new(
        server!("location ~* ^/wp-login\\.php$ { deny all; } # closed"),
        &["/wp-login.php", "/WP-Login.PHP"],
        &["/", "/wp-l", "/wp-admin"],
        &["/wp-logo"],
    ),
    Row::new(
        server!("location ~* ^/(back|old)/ { return 404; } # closed"),
        &["/back/x", "/OLD/x", "/Back/"],
        &["/", "/backs"],
        &["/back"],
    ),
    Row::new(
        server!("location ~ ^/x/[0-9]+/secret { deny all; } # closed"),
        &["/x/1/secret", "/x/23/secrets"],
        &["/", "/xy"],
        &["/x", "/x/a/secret"],
    ),
    Row::new(
        server!(
            "location ~ ^/users/[^/]+/keys$ { deny all; } # closed\n location /users/me/ { proxy_pass http://@TO@; }"
        ),
        &["/users/a/keys", "/users/me/keys"],
        &["/", "/users/a", "/users/me/x"],
        &[],
    ),
    // A regular expression for the end of a path could match any path.
    Row::new(
        server!("location ~ /\\.ht { deny all; } # closed\n location = /health { proxy_pass http://@TO@; }"),
        &["/.htaccess", "/a/.htpasswd"],
        &["/health"],
        &["/", "/a"],
    ),
    Row::new(
        server!(
            "location ~ \\.(git|env)$ { return 404; } # closed\n location ^~ /assets/ { proxy_pass http://@TO@; }"
        ),
        &["/x.git", "/a/.env"],
        &["/assets/x"],
        &["/"],
    ),
    Row::new(
        server!("location /app/ { proxy_pass http://@TO@; location ~ \\.bak$ { deny all; } } # closed"),
        &["/app/x.bak"],
        &["/", "/x.bak"],
        &["/app/x"],
    ),
    // nginx prefers a regular expression to a longer prefix, the first of several expressions, and `^~` to both.
    Row::new(
        server!("location ~ ^/a/ { deny all; } # closed\n location /a/b/ { proxy_pass http://@TO@; }"),
        &["/a/x", "/a/b/x"],
        &["/"],
        &["/a"],
    ),
    Row::new(
        server!("location ~ ^/a/b { deny all; } # closed\n location ~ ^/a/b/c/ { proxy_pass http://@TO@; }"),
        &["/a/b", "/a/b/c/x"],
        &["/a/x"],
        &[],
    ),
    Row::new(
        server!("location ^~ /a/ { deny all; } # closed\n location ~ ^/a/b/ { proxy_pass http://@TO@; }"),
        &["/a/x", "/a/b/x"],
        &["/"],
        &["/a"],
    ),
    Row::new(
        server!(
            "location ^~ /a/ { proxy_pass http://@TO@; }\n location ~ ^/a/b { deny all; } # closed\n location /a/bc/ { proxy_pass http://@TO@; }"
        ),
        &["/a/bc/x"],
        &["/a/x", "/a/b/x"],
        &[],
    ),
    Row::new(
        "server {\n listen 127.0.0.1:@PORT@;\n location / { deny all; } # closed\n location /app/ { proxy_pass http://@TO@; }\n location /ok/ { return 200; }\n}\n",
        &["/", "/x", "/ok", "/okay", "/apple"],
        &["/app/", "/app/x"],
        &[],
    ),
    // Internal locations.
    Row::new(
        server!("location /protected/ { internal; proxy_pass http://@TO@; } # closed"),
        &["/protected/x"],
        &["/"],
        &[],
    ),
    Row::new(
        server!("location = /auth { internal; proxy_pass http://@TO@; } # closed"),
        &["/auth"],
        &["/auth/x"],
        &[],
    ),
    Row::new(
        server!("error_page 500 /passwd;\n location = /passwd { internal; root /etc; } # closed"),
        &["/passwd"],
        &["/"],
        &[],
    ),
    Row::new(
        server!(
            "location /files/ { internal; alias /srv/; } # closed\n location /files/open/ { proxy_pass http://@TO@; }"
        ),
        &["/files/x"],
        &["/files/open/x"],
        &[],
    ),
    Row::new(
        server!("location /a/ { internal; # closed\n location /a/b/ { proxy_pass http://@TO@; } }"),
        &["/a/x", "/a/b/x"],
        &["/"],
        &[],
    ),
    Row::new(
        server!("location ~ ^/sent/ { internal; root /srv; } # closed"),
        &["/sent/x"],
        &["/"],
        &["/sent"],
    ),
    // Passwords, and other ways to authenticate.
    Row::new(
        server!(
            "location /p/ { auth_basic x; # closed\n auth_basic_user_file users; proxy_pass http://@TO@; }"
        ),
        &["/p/x"],
        &["/"],
        &[],
    ),
    Row::new(
        server!(
            "auth_basic x; # closed\n auth_basic_user_file users;\n location /open/ { auth_basic off; proxy_pass http://@TO@; }"
        ),
        &["/", "/p"],
        &["/open/x"],
        &[],
    ),
    Row::new(
        server!(
            "location /p/ { satisfy any; allow 192.0.2.1; deny all; # closed\n auth_basic x; auth_basic_user_file users; proxy_pass http://@TO@; }"
        ),
        &["/p/x"],
        &["/"],
        &[],
    ),
    Row::new(
        server!(
            "location /p/ { satisfy all; allow 127.0.0.1; deny all; auth_basic x; # closed\n auth_basic_user_file users; proxy_pass http://@TO@; }"
        ),
        &["/p/x"],
        &["/"],
        &[],
    ),
    Row::alone(
        server!("location /p/ { auth_jwt x; # closed\n auth_jwt_key_file k; proxy_pass http://@TO@; }"),
        &["/p/x"],
        &["/"],
    ),
    Row::alone(
        server!("location /p/ { auth_ldap x; # closed\n auth_ldap_servers y; proxy_pass http://@TO@; }"),
        &["/p/x"],
        &["/"],
    ),
    Row::alone(
        server!("location /p/ { access_by_lua_block { ngx.exit(403) } # closed\n proxy_pass http://@TO@; }"),
        &["/p/x"],
        &["/"],
    ),
    Row::new(
        server!(
            "location /p/ { auth_request /auth; # closed\n proxy_pass http://@TO@; }\n location = /auth { internal; return 401; }"
        ),
        &["/p/x", "/auth"],
        &["/"],
        &[],
    ),
    Row::new(
        server!(
            "location /f/ { try_files /nothing @app; }\n location @app { deny all; # closed\n proxy_pass http://@TO@; }"
        ),
        &["/f/x"],
        &["/"],
        &[],
    ),
    // Addresses and methods.
    Row::new(
        server!("location /p/ { allow 192.0.2.0/24; deny all; # closed\n proxy_pass http://@TO@; }"),
        &["/p/x"],
        &["/"],
        &[],
    ),
    Row::new(
        server!("location /p/ { deny 127.0.0.0/8; # closed\n allow all; proxy_pass http://@TO@; }"),
        &["/p/x"],
        &["/"],
        &[],
    ),
    Row::new(
        server!("deny 127.0.0.1; # closed\n location /open/ { allow all; proxy_pass http://@TO@; }"),
        &["/", "/x"],
        &["/open/x"],
        &[],
    ),
    Row::new(
        server!("location /a/ { deny all; # closed\n location /a/b/ { proxy_pass http://@TO@; } }"),
        &["/a/x", "/a/b/x"],
        &["/"],
        &[],
    ),
    Row::new(
        server!("location /p/ { limit_except GET { deny all; } # closed\n proxy_pass http://@TO@; }"),
        &["POST /p/x", "DELETE /p/x"],
        &["/p/x", "POST /x"],
        &[],
    ),
    Row::new(
        server!(
            "if ($request_method = DELETE) { return 405; } # closed\n location /a/ { proxy_pass http://@TO@; }"
        ),
        &["DELETE /", "DELETE /a/x"],
        &["/", "/a/x"],
        &[],
    ),
    Row::new(
        server!("if ($request_method ~* (PUT|DELETE)) { return 405; } # closed"),
        &["DELETE /", "PUT /x"],
        &[],
        &["/"],
    ),
    Row::new(
        server!("if ($request_method !~ ^(GET|HEAD)$) { return 444; } # closed"),
        &["POST /", "DELETE /x"],
        &[],
        &["/"],
    ),
    // Conditions that routes do not support.
    Row::new(
        server!("if ($http_user_agent ~* (bot|curl)) { return 403; } # closed"),
        &["/ User-Agent:curl/8"],
        &[],
        &["/"],
    ),
    Row::new(
        server!(
            "location /p/ { if ($arg_key != secret) { return 403; } # closed\n proxy_pass http://@TO@; }"
        ),
        &["/p/x"],
        &["/"],
        &["/p/x?key=secret"],
    ),
    Row::new(
        server!("if ($request_uri ~* /hidden) { return 404; } # closed"),
        &["/hidden", "/a/HIDDEN"],
        &[],
        &["/"],
    ),
    Row::new(
        server!(
            "if ($uri ~ ^/x/hidden) { return 404; } # closed\n location /x/hidden/deep/ { proxy_pass http://@TO@; }"
        ),
        &["/x/hidden", "/x/hidden/deep/y"],
        &["/", "/x/hid"],
        &[],
    ),
    Row::new(
        server!(
            "location /d/ { valid_referers none example.org; if ($invalid_referer) { return 403; } # closed\n proxy_pass http://@TO@; }"
        ),
        &["/d/x Referer:http://evil.test/"],
        &["/"],
        &["/d/x"],
    ),
    Row::new(
        concat!("geo $bad { default 0; 127.0.0.0/8 1; }\n", server!("if ($bad) { return 403; } # closed")),
        &["/", "/x"],
        &[],
        &[],
    ),
    Row::new(
        concat!(
            "map $http_x_key $known { default 0; secret 1; }\n",
            server!("location /p/ { if ($known = 0) { return 401; } # closed\n proxy_pass http://@TO@; }")
        ),
        &["/p/x"],
        &["/"],
        &["/p/x X-Key:secret"],
    ),
    Row::new(
        server!(
            "location /p/ { set $ok 0; if ($cookie_session = 1) { set $ok 1; } if ($ok = 0) { return 302 /login; } # closed\n proxy_pass http://@TO@; }"
        ),
        &[],
        &["/"],
        &["/p/x Cookie:session=1"],
    ),
    Row::new(
        server!(
            "location /s/ { secure_link $arg_md5; secure_link_md5 \"$uri x\"; if ($secure_link = \"\") { return 403; } # closed\n proxy_pass http://@TO@; }"
        ),
        &["/s/x"],
        &["/"],
        &[],
    ),
    Row::new(
        "server {\n listen 127.0.0.1:@PORT@;\n return 403 \"not for $remote_addr\"; # of the server\n location / { proxy_pass http://@TO@; }\n}\n",
        &["/", "/x"],
        &[],
        &[],
    ),
    Row::new(
        "server {\n listen 127.0.0.1:@PORT@ default_server;\n return 444; # of the server\n}\nserver {\n listen 127.0.0.1:@PORT@;\n server_name a.test;\n location / { proxy_pass http://@TO@; }\n}\n",
        &["b.test /", "/x"],
        &["a.test /"],
        &[],
    ),
    Row::new(
        server!(
            "location /p/ { error_page 403 =200 /ok; deny all; # closed\n proxy_pass http://@TO@; }\n location = /ok { return 404; }"
        ),
        &["/p/x"],
        &["/"],
        &[],
    ),
    // Rewrites to protected targets.
    Row::new(
        server!("rewrite ^/get/(.*)$ /protected/$1 last; # closed\n location /protected/ { deny all; }"),
        &["/get/x", "/protected/x"],
        &["/"],
        &["/get"],
    ),
    Row::new(
        server!(
            "location /get/ { rewrite ^/get/(.*)$ /protected/$1 last; # closed\n proxy_pass http://@TO@; }\n location /protected/ { deny all; }"
        ),
        &["/get/x", "/protected/x"],
        &["/"],
        &[],
    ),
];
