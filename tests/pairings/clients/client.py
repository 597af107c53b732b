"""Clients in Python. Usage: client.py LIBRARY BASE CA SERVICE LENGTH, where LIBRARY is `urllib`, `requests`, `httpx` or
`websockets`. Prints the transcript."""

import asyncio
import gzip
import hashlib
import json
import random
import ssl
import sys

library, base, ca, service, length = sys.argv[1:]


class Pattern:
    """A streamed body of a known length; byte i is i mod 251, so a shift by any power of two shows."""

    BLOCK = bytes(range(251)) * 256

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __iter__(self):
        for at in range(0, self.length, len(self.BLOCK)):
            yield self.BLOCK[: min(len(self.BLOCK), self.length - at)]


def patterned(length):
    return b"".join(Pattern(length))


class Urllib:
    def __init__(self):
        import urllib.request

        self.request = urllib.request.Request
        handler = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca))
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), handler)

    def open(self, method, path, fields, body):
        from urllib.error import HTTPError

        fields = dict(fields)
        if isinstance(body, Pattern):
            fields["Content-Length"] = str(len(body))
        try:
            return self.opener.open(self.request(base + path, body, fields, method=method))
        except HTTPError as response:
            return response

    def ask(self, method, path, fields={}, body=None):
        with self.open(method, path, fields, body) as response:
            content = response.read()
            if response.headers["Content-Encoding"] == "gzip":
                content = gzip.decompress(content)
            return response.status, response.headers, content

    def parts(self, path):
        with self.open("GET", path, {}, None) as response:
            while block := response.read(65536):
                yield block

    def lines(self, path):
        with self.open("GET", path, {}, None) as response:
            for line in response:
                yield line.decode().rstrip("\n")


class Requests:
    def __init__(self):
        import requests

        self.session = requests.Session()
        self.session.trust_env = False
        self.session.verify = ca

    def ask(self, method, path, fields={}, body=None):
        response = self.session.request(method, base + path, headers=fields, data=body)
        return response.status_code, response.headers, response.content

    def parts(self, path):
        with self.session.get(base + path, stream=True) as response:
            yield from response.iter_content(65536)

    def lines(self, path):
        with self.session.get(base + path, stream=True) as response:
            for line in response.iter_lines(1):
                yield line.decode()


class Httpx:
    def __init__(self):
        import httpx

        context = ssl.create_default_context(cafile=ca)
        self.client = httpx.Client(verify=context, trust_env=False, timeout=None)

    def ask(self, method, path, fields={}, body=None):
        if isinstance(body, Pattern):
            fields = {**fields, "Content-Length": str(len(body))}
        response = self.client.request(method, base + path, headers=fields, content=body)
        return response.status_code, response.headers, response.content

    def parts(self, path):
        with self.client.stream("GET", base + path) as response:
            yield from response.iter_bytes()

    def lines(self, path):
        with self.client.stream("GET", base + path) as response:
            yield from response.iter_lines()


def digest(blocks):
    sha256 = hashlib.sha256()
    count = 0
    for block in blocks:
        sha256.update(block)
        count += len(block)
    return f"{count} {sha256.hexdigest()}"


def site(client):
    for path in ["/", "/style.css", "/picture.png"]:
        status, fields, content = client.ask("GET", path)
        yield f"GET {path} {status} {fields['Content-Type']} {digest([content])}"
    _, picture, _ = client.ask("GET", "/picture.png")
    for name, condition in [("etag", "If-None-Match"), ("last-modified", "If-Modified-Since")]:
        status, _, content = client.ask("GET", "/picture.png", {condition: picture[name]})
        yield f"{name} {status} {len(content)}"
    status, fields, content = client.ask("GET", "/picture.png", {"Range": "bytes=10-19"})
    yield f"range {status} {fields['Content-Range']} {digest([content])}"
    status, fields, content = client.ask("HEAD", "/picture.png")
    yield f"HEAD {status} {fields['Content-Length']} {len(content)}"
    yield f"missing {client.ask('GET', '/missing')[0]}"


def api(client):
    for method, path, body in [
        ("POST", "/api/items", '{"name":"Zoë"}'),
        ("GET", "/api/items/1", None),
        ("PUT", "/api/items/1", '{"name":"Ada"}'),
        ("DELETE", "/api/items/1", None),
        ("GET", "/api/items/1", None),
        ("POST", "/api/items", '{"name":'),
    ]:
        sent = {"Content-Type": "application/json"} if body else {}
        status, fields, content = client.ask(method, path, sent, body and body.encode())
        place = fields.get("Location")
        yield " ".join(filter(None, [method, str(status), place, content.decode()]))
    status, fields, content = client.ask("GET", "/api/gzip", {"Accept-Encoding": "gzip"})
    yield f"gzip {status} {fields['Content-Encoding']} {digest([content])}"
    fields = {"Content-Type": "application/octet-stream"}
    status, fields, content = client.ask("POST", "/api/echo", fields, patterned(300000))
    yield f"echo {status} {fields['X-Framing']} {digest([content])}"


def chunked(client):
    # A generator's length is unknown.
    body = (block for block in Pattern(300000))
    fields = {"Content-Type": "application/octet-stream"}
    status, fields, content = client.ask("POST", "/api/echo", fields, body)
    yield f"echo {status} {fields['X-Framing']} {digest([content])}"


def websocket(_):
    # Not `websockets.sync`: it reads and writes on one TLS connection in two threads, which CPython 3.11 does not support,
    # and now and then misses what has come.
    yield from asyncio.run(websocket_lines())


async def websocket_lines():
    from websockets.asyncio.client import connect

    context = ssl.create_default_context(cafile=ca) if base.startswith("https") else None
    place = base.replace("http", "ws") + "/websocket"
    lines = []
    async with connect(place, ssl=context, subprotocols=["echo"], max_size=None, proxy=None) as socket:
        lines.append(f"open {socket.subprotocol}")
        for said in ["Zoë €", "", patterned(5), patterned(70000), patterned(1000000)]:
            await socket.send(said)
            data = await socket.recv()
            lines.append(f"text {data}" if isinstance(data, str) else f"binary {digest([data])}")
        await socket.close(1000)
        lines.append(f"close {socket.close_code}")
    return lines


def events(client):
    path = f"/events/{random.random()}"
    number = 0
    for line in client.lines(path):
        if line.startswith("data: "):
            number += 1
            status, _, _ = client.ask("POST", f"{path}/{number}")
            yield f"{line[6:]} {status}"


def upload(client):
    _, _, content = client.ask(
        "PUT", "/bulk", {"Content-Type": "application/octet-stream"}, Pattern(int(length))
    )
    answer = json.loads(content)
    yield f"upload {answer['bytes']} {answer['sha256']}"


def download(client):
    yield f"download {digest(client.parts(f'/bulk/{length}'))}"


def slow(client):
    for name in ["late", "trickle", "never"]:
        status, _, content = client.ask("GET", f"/slow/{name}")
        yield f"{name} {status} {content.decode().strip()}"


libraries = {"urllib": Urllib, "requests": Requests, "httpx": Httpx, "websockets": lambda: None}
for line in globals()[service](libraries[library]()):
    print(line)
