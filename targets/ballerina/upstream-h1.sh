upstream_tls=true
scheme=https
