//! The fields of the access log: their names, values, and texts in docs/gateway/monitoring.md.

/// Calls the macro `$with` with all fields, in the order of JSON objects. Each field is one entry here and one row in
/// the document. A template refers to a field by a variable of the same name. Each entry ends with the function of
/// `observe::access` that computes the value; the configuration ignores the functions, so it uses only the names.
macro_rules! log_fields {
    ($with:ident) => {
        $with! {
            time, "when the request head was complete, or the TCP connection got its server",
                |line| Value::Time(line.entry.at);
            client, "the client's IP address",
                |line| line.client.map_or(NONE, |client| Value::Address(client.ip()));
            client_port, "the client's port",
                |line| line.client.map_or(ZERO, |client| Value::Number(client.port().into()));
            listener, "the listener's name",
                |line| Value::Text(line.listener);
            method, "the request's method. A rejected request has the received part of its method, host and target",
                |line| text(line.entry.method());
            host, "the host of the request",
                |line| text(line.entry.host());
            target, "the target, as the client sent it",
                |line| text(line.entry.target());
            protocol, "`HTTP/2.0`, `HTTP/1.1` or `HTTP/1.0`; `TCP` on a listener with `tcp`",
                |line| text(line.protocol);
            status, "the response's status; 0: the client got none, or there are no responses (TCP)",
                |line| Value::Number(line.status.into());
            grpc_status, "the status of a [gRPC](http.md#grpc) call: the server's, or that of the gateway's own response",
                |line| line.grpc.map_or(NONE, |grpc| Value::Number(grpc.number().into()));
            reason, "the [reason](reasons.md) of an early end",
                |line| line.reason.map_or(NONE, Value::Text);
            received, "bytes of the request body; of a TCP connection, all bytes from the client, without TLS",
                |line| Value::Number(line.received);
            sent, "bytes of the response body; of a TCP connection, all bytes to the client, without TLS",
                |line| Value::Number(line.sent);
            service, "the service of the request",
                |line| text(line.service);
            server, "the server that got the request last",
                |line| text(line.server);
            retries, "how often the gateway sent the request again",
                |line| if line.service.is_empty() { ZERO } else { Value::Number(line.retries.into()) };
            tls_version, "the version of the client's TLS session",
                |line| line.tls.map_or(NONE, |tls| Value::Text(tls.version.name()));
            tls_suite, "the cipher suite of the client's TLS session",
                |line| line.tls.map_or(NONE, |tls| Value::Text(tls.suite.name()));
            tls_handshake, "the kind of the client's TLS handshake: `full`, `resume-1.2-id`, `resume-1.2-ticket` or `resume-1.3-psk`",
                |line| line.tls.map_or(NONE, |tls| Value::Text(tls.kind.name()));
            connect_ms, "connecting to the server; 0 on a reused connection",
                |line| millis(line.connect());
            tls_ms, "the TLS handshake with the server",
                |line| millis(line.handshake_with_server());
            wait_ms, "from the last byte of the request to the first of the response",
                |line| millis(line.wait());
            transfer_ms, "from there to the response's last byte",
                |line| millis(line.transfer());
            total_ms, "the whole exchange; of a TCP connection, from `time` to its end",
                |line| millis(line.total());
            user_agent, "the `User-Agent` of the request",
                |line| text(line.entry.user_agent());
            referer, "the `Referer` of the request",
                |line| text(line.entry.referer());
            request_id, "the request's ID, with `tracing.request_id`",
                |line| text(&line.entry.request_id);
        }
    };
}

pub(crate) use log_fields;
