client_tls=true
