upstream_tls=false
scheme=http
