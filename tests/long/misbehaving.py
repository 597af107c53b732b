"""Clients that are slow, go away, or do what they should not, by HTTP/1.1 and by HTTP/2."""

import random
import socket
import ssl

import http2


def misbehave(url, over, seed):
    """A client that does one thing after the other that it should not."""
    chance = random.Random(seed)
    host, port = url.removeprefix("https://").split(":")
    contexts = {protocol: context_of(protocol) for protocol in ("http/1.1", "h2")}
    while not over.wait(chance.uniform(0.05, 0.3)):
        try:
            with socket.create_connection((host, int(port)), timeout=5) as plain:
                if chance.random() < 0.2:
                    # It goes away in its handshake.
                    plain.send(bytes([22, 3, 1, 2, 0]))
                    continue
                if chance.random() < 0.5:
                    with contexts["h2"].wrap_socket(plain) as client:
                        misbehave_in_streams(client, over, chance)
                    continue
                with contexts["http/1.1"].wrap_socket(plain) as client:
                    what = chance.randrange(4)
                    if what == 0:
                        client.sendall(b"GET /bytes/5000000 HTTP/1.1\r\nHost: h\r\n\r\n")
                        client.recv(1000)
                    elif what == 1:
                        client.sendall(b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nonly so much")
                        over.wait(chance.uniform(0, 1))
                    elif what == 2:
                        client.sendall(b"GET /bytes/500?delay_ms=500 HTTP/1.1\r\nHost: h\r\n\r\n")
                    else:
                        client.sendall(b"GET /bytes/3000000 HTTP/1.1\r\nHost: h\r\n\r\n")
                        for _ in range(20):
                            client.recv(2000)
                            over.wait(0.05)
        except OSError:
            # The gateway closes on it, as it should.
            pass


def context_of(protocol):
    """TLS of a client that trusts any certificate and speaks this protocol."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([protocol])
    return context


def misbehave_in_streams(client, over, chance):
    """As [`misbehave`], on one connection with several streams to both services."""
    what = chance.randrange(6)
    client.sendall(http2.PREFACE + http2.settings(*([(http2.INITIAL_WINDOW_SIZE, 1)] if what == 0 else [])))
    path = chance.choice(["/bytes/500", "/bytes/501"])
    large = chance.choice(["/bytes/3000000", "/bytes/3000001"])
    streams = range(1, 21, 2)
    if what == 0:
        # Windows of a byte, opened one by one.
        client.sendall(b"".join(http2.get(stream, path) for stream in streams))
        for _ in range(20):
            client.sendall(b"".join(http2.update(stream, 1) for stream in streams))
            over.wait(0.05)
    elif what == 1:
        client.sendall(b"".join(http2.get(stream, f"{path}?delay_ms=200") + http2.reset(stream) for stream in streams))
        over.wait(chance.uniform(0, 0.5))
    elif what == 2:
        # It provokes resets.
        client.sendall(b"".join(http2.get(stream, f"{path}?delay_ms=200") + http2.update(stream, 0) for stream in streams))
        over.wait(chance.uniform(0, 0.5))
    elif what == 3:
        # Bodies without an end.
        client.sendall(b"".join(http2.post(stream, "/echo") + http2.frame(http2.DATA, 0, stream, b"only so much") for stream in streams))
        over.wait(chance.uniform(0, 1))
    elif what == 4:
        client.sendall(b"".join(http2.get(stream, f"{path}?delay_ms=500") for stream in streams))
    else:
        client.sendall(b"".join(http2.get(stream, large) for stream in streams))
        for _ in range(20):
            client.recv(2000)
            over.wait(0.05)
