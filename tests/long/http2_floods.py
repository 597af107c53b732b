"""What an attacker sends on one HTTP/2 connection, and the reason that the gateway must give."""

import dataclasses
import selectors
import socket
import struct
import sys
import time
from typing import Callable

from http2 import (
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, INITIAL_WINDOW_SIZE, PING, PRIORITY, SETTINGS,
    connect, frame, get, literal, post, request, reset, update,
)  # fmt: skip

# Seconds that a connection lasts which the gateway need not close.
HELD = 3
# A client's streams at a time.
STREAMS = range(1, 200, 2)


@dataclasses.dataclass
class Attack:
    # In a reason's line on stderr.
    reason: str
    detail: str
    # The frames after the client's SETTINGS.
    flood: bytes
    # Initial windows of streams; None for the default.
    window: int | None = None
    # Frames that follow every `pause` seconds.
    then: bytes = b""
    pause: float = 0


def streams(count, frames: Callable[[int], bytes]):
    return b"".join(frames(stream) for stream in range(1, 2 * count, 2))


def on_a_request(frames, count):
    """Frames beside a request whose response is late."""
    return post(1, LATE) + frames * count


# The server responds when a flood is over.
LATE = "/echo?delay_ms=1000"
SLOW = "/bytes/1000?delay_ms=1000"
BODY = "/bytes/100000"
# Their clients must be faster.
SLOWLY, SLOWLY_STORED = "/bytes/200000", "/bytes/50000"
WHOLE = END_HEADERS | END_STREAM

PROVOKED = "too many streams reset because of the peer's frames"
NO_EFFECT = "too many frames without effect"
BOMB = "a field block decompresses to far more than the limit"


def bomb(length):
    """A field that enters the table, and a block of references to it."""
    first = request("GET", "/bytes/1") + literal(b"a", b"a" * length, 0x40)
    return frame(HEADERS, WHOLE, 1, first) + frame(HEADERS, WHOLE, 3, request("GET", "/bytes/1") + bytes([0x80 | 62]) * 16_000)


def trickle(path):
    """Each stream takes a byte now and then."""
    requests, updates = (b"".join(each(stream) for stream in STREAMS) for each in (lambda s: get(s, path), lambda s: update(s, 1)))
    return Attack("client_too_slow", "", requests, window=1, then=updates, pause=0.05)


ATTACKS = {
    "rapid reset": Attack("http2_abuse", "too many streams reset by the peer", streams(1000, lambda s: get(s, SLOW) + reset(s))),
    "increments of 0": Attack("http2_abuse", PROVOKED, streams(400, lambda s: get(s, SLOW) + update(s, 0))),
    "windows that overflow": Attack("http2_abuse", PROVOKED, streams(400, lambda s: get(s, SLOW) + update(s, 2**31 - 1))),
    "CONTINUATION": Attack(
        "bad_http2",
        "a field block is too long",
        frame(HEADERS, END_STREAM, 1, request("GET", "/")) + frame(CONTINUATION, 0, 1, bytes(1000)) * 200,
    ),
    "empty CONTINUATION": Attack(
        "bad_http2", "a field block is too long", frame(HEADERS, END_STREAM, 1, request("GET", "/")) + frame(CONTINUATION, 0, 1) * 2000
    ),
    "references to empty fields": Attack("bad_http2", BOMB, bomb(0)),
    "references to fields of a byte": Attack("bad_http2", BOMB, bomb(1)),
    "SETTINGS": Attack("http2_abuse", "too many SETTINGS frames", on_a_request(frame(SETTINGS), 1000)),
    "PING": Attack("http2_abuse", "too many PING frames", on_a_request(frame(PING, payload=bytes(8)), 20_000)),
    "PRIORITY": Attack("http2_abuse", NO_EFFECT, on_a_request(frame(PRIORITY, 0, 1, bytes([0, 0, 0, 3, 16])), 3000)),
    "empty DATA": Attack("http2_abuse", "too many DATA frames of at most one byte", on_a_request(frame(DATA, 0, 1), 3000)),
    "WINDOW_UPDATE": Attack("http2_abuse", "too many WINDOW_UPDATE frames", on_a_request(update(0, 1), 20_000)),
    "windows of 0": Attack("client_stalled", "", b"".join(get(s, BODY) for s in STREAMS), window=0),
    "windows of a byte": trickle(SLOWLY),
    # The exchange is over, and its response waits with its stream.
    "windows of a byte, stored responses": trickle(SLOWLY_STORED),
}


def run(attack, url, selector):
    """One connection, until the gateway closes it, `HELD` is over, or the selector's stdin ends."""
    pairs = [] if attack.window is None else [(INITIAL_WINDOW_SIZE, attack.window)]
    try:
        with connect(url, *pairs) as client:
            send(attack, client, selector)
    except ConnectionError:
        # The gateway has closed it, as it should.
        pass


def send(attack, client, selector):
    # Nothing stays in TIME-WAIT.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.setblocking(False)
    left, end, due = memoryview(attack.flood), time.monotonic() + HELD, time.monotonic() + attack.pause
    selector.register(client, selectors.EVENT_READ | selectors.EVENT_WRITE)
    try:
        while (now := time.monotonic()) < end:
            if not left and attack.then and now >= due:
                left, due = memoryview(attack.then), now + attack.pause
            selector.modify(client, selectors.EVENT_READ | (selectors.EVENT_WRITE if left else 0))
            for key, events in selector.select(max(0, min(end, due if attack.then else end) - now)):
                if key.fileobj is sys.stdin:
                    return
                if events & selectors.EVENT_WRITE:
                    left = left[client.send(left) :]
                if events & selectors.EVENT_READ and not client.recv(1 << 16):
                    return
    finally:
        selector.unregister(client)
