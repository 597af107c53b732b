"""An HTTPS service with one switchable fault. Usage: python.py FAULT CERT KEY; prints its port."""

import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

fault, certificate, key = sys.argv[1:]
LARGE = b"x" * 100_000


def context():
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificate, key)
    if fault == "many-tickets":
        made.num_tickets = 8
    if fault == "resumption-off":
        made.num_tickets = 0
        made.options |= ssl.OP_NO_TICKET
    if fault == "hello-retry":
        made.set_ecdh_curve("prime256v1")
    if fault == "tls-1.2-only":
        made.maximum_version = ssl.TLSVersion.TLSv1_2
    return made


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0" if fault == "keep-alive-off" else "HTTP/1.1"
    # Otherwise head and body are two writes with Nagle's algorithm on: http.server's default.
    disable_nagle_algorithm = fault != "nagle"
    timeout = 2 if fault == "keep-alive-too-short" else 75

    def do_GET(self):
        body = LARGE if self.path == "/large" else b"hello"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        piece = 1000 if fault == "small-records" else len(body)
        for at in range(0, len(body), piece):
            self.wfile.write(body[at : at + piece])

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def process_request_thread(self, request, address):
        # A context for each connection has its own ticket keys.
        made = context() if fault == "ticket-keys-change" else shared
        try:
            with made.wrap_socket(request, server_side=True) as tls:
                self.finish_request(tls, address)
        except OSError:
            # A client that goes away is no fault.
            request.close()


shared = context()
server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
