"""A server on h11 that reports its reading of the request line. It prints its port."""

import socketserver

import h11


class Handler(socketserver.BaseRequestHandler):
    def next_event(self):
        while (event := self.connection.next_event()) is h11.NEED_DATA:
            self.connection.receive_data(self.request.recv(1 << 16))
        return event

    def send(self, status, served):
        fields = [("Content-Length", "0"), ("X-Served", served)]
        for event in (h11.Response(status_code=status, headers=fields), h11.EndOfMessage()):
            self.request.sendall(self.connection.send(event))

    def handle(self):
        self.connection = h11.Connection(h11.SERVER)
        try:
            while isinstance(request := self.next_event(), h11.Request):
                while not isinstance(self.next_event(), h11.EndOfMessage):
                    pass
                self.send(200, request.method + b" " + request.target)
                if self.connection.our_state is h11.MUST_CLOSE:
                    return
                self.connection.start_next_cycle()
        except h11.RemoteProtocolError as error:
            if self.connection.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                self.send(error.error_status_hint, b"")
        except (ConnectionError, h11.LocalProtocolError):
            pass


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Some cases break the connection, which is no error."""


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
