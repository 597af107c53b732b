client_tls=false
