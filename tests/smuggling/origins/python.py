"""A server on Python's http.server that reports its reading of the request line. It prints its port."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def read(self, length):
        block = self.rfile.read(length)
        if len(block) != length:
            raise EOFError
        return block

    def read_body(self):
        """http.server leaves framing to the application."""
        self.read(int(self.headers.get("Content-Length", 0)))
        while "Transfer-Encoding" in self.headers:
            size = int(self.rfile.readline().split(b";")[0], 16)
            if size:
                self.read(size + 2)
                continue
            while self.rfile.readline().strip():
                pass
            return

    def answer(self):
        try:
            self.read_body()
        except (EOFError, OverflowError, ValueError):
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("X-Served", f"{self.command} {self.path}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Some cases break the connection, which is no error."""


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
