"""An upstream server on Python's http.server. Usage: python.py [CERT KEY]; prints the port that it listens on."""

import itertools
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Byte i is i mod 251: a shift by any power of two shows.
BLOCK = bytes(range(251)) * 256


def pattern(length):
    for at in range(0, length, len(BLOCK)):
        yield BLOCK[: min(len(BLOCK), length - at)]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes: the second would wait for the client's delayed ACK.
    disable_nagle_algorithm = True
    connections = itertools.count(1)
    served = 0

    def setup(self):
        super().setup()
        Handler.served = next(Handler.connections)

    def log_message(self, *_):
        pass

    def head(self, status, **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def whole(self, body, **fields):
        self.head(200, Content_Length=len(body), **fields)
        self.wfile.write(body)

    def chunks(self, blocks):
        for block in blocks:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(block), block))
        self.wfile.write(b"0\r\n\r\n")

    def request_body(self):
        """The blocks of a body; http.server leaves framing to the application."""
        left = int(self.headers.get("Content-Length", 0))
        while left:
            block = self.rfile.read(min(left, len(BLOCK)))
            left -= len(block)
            yield block
        while "Transfer-Encoding" in self.headers:
            size = int(self.rfile.readline().split(b";")[0], 16)
            block = self.rfile.read(size)
            self.rfile.readline()
            if not size:
                break
            yield block

    def do_GET(self):
        _, name, *rest = self.path.split("/")
        match name:
            case "bytes":
                self.head(200, Content_Length=int(rest[0]))
                if self.command != "HEAD":
                    self.wfile.writelines(pattern(int(rest[0])))
            case "chunked":
                self.head(200, Transfer_Encoding="chunked")
                self.chunks(pattern(int(rest[0])))
            case "204":
                self.head(204)
            case "304":
                self.head(304, ETag='"1"')
            case "connections":
                self.whole(b"%d" % Handler.served)
            case "last":
                self.whole(b"last", Connection="close")
            case "cut":
                self.head(200, Content_Length=1000)
                self.wfile.write(b"the beginning")
                self.close_connection = True
            case "silent":
                self.close_connection = True
            case _:
                self.head(404, Content_Length=0)

    do_HEAD = do_GET

    def do_POST(self):
        if "Transfer-Encoding" in self.headers:
            self.head(200, Transfer_Encoding="chunked")
            self.chunks(self.request_body())
        else:
            self.head(200, Content_Length=self.headers["Content-Length"])
            self.wfile.writelines(self.request_body())


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
if len(sys.argv) == 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    # The handshake runs on the connection's thread, not on the accepting one.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
