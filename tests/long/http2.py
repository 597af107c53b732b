"""HTTP/2 frames of clients that do what no library would, valid or not (RFC 9113, RFC 7541)."""

import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4
CANCEL = 8


def frame(kind, flags=0, stream=0, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def settings(*pairs):
    return frame(SETTINGS, payload=b"".join(struct.pack(">HI", *pair) for pair in pairs))


def update(stream, increment):
    return frame(WINDOW_UPDATE, 0, stream, increment.to_bytes(4, "big"))


def reset(stream, code=CANCEL):
    return frame(RST_STREAM, 0, stream, code.to_bytes(4, "big"))


def literal(name, value, pattern=0):
    """A field without Huffman codes; with the pattern 0x40 it enters the peer's table. Name and value have less than 127 bytes."""
    return bytes([pattern, len(name)]) + name + bytes([len(value)]) + value


def request(method, path):
    fields = {":method": method, ":scheme": "http", ":authority": "h", ":path": path}
    return b"".join(literal(name.encode(), value.encode()) for name, value in fields.items())


def get(stream, path):
    return frame(HEADERS, END_HEADERS | END_STREAM, stream, request("GET", path))


def post(stream, path):
    """A request whose body follows."""
    return frame(HEADERS, END_HEADERS, stream, request("POST", path))


def connect(url, *pairs):
    """A cleartext connection whose preface and settings have left."""
    host, port = url.removeprefix("http://").split(":")
    client = socket.create_connection((host, int(port)), timeout=30)
    client.sendall(PREFACE + settings(*pairs))
    return client


def frames(buffer):
    """Takes whole frames from the front of a bytearray: (kind, flags, stream, payload)."""
    while len(buffer) >= 9 and len(buffer) >= 9 + (length := int.from_bytes(buffer[:3], "big")):
        head, payload = bytes(buffer[:9]), bytes(buffer[9 : 9 + length])
        del buffer[: 9 + length]
        yield head[3], head[4], int.from_bytes(head[5:9], "big") & 0x7FFFFFFF, payload
