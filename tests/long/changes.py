#!/usr/bin/env python3
"""A gateway whose servers, weights, listeners and certificates change while requests run.

    python3 tests/long/changes.py target/release/weir [--lab WEIR] [--minutes M] [--rate N] [--most-ms MS]

Five loads send --rate requests/s each (default 50): by HTTP/1.1 on warm connections and on a new one for each request, over TLS
and without, and by HTTP/2. In --minutes (default 10), evenly mixed and in a seeded order, 1000 changes replace the servers of
their service through the admin address, 100 change a weight there, and 100 replace the certificate there; reloads add and remove
200 listeners, and replace the files of the certificate 100 times; fewer in less time. Each new listener must respond, each new
certificate must be served, and reloads keep one of the admin address until they find other files.

The loads run as long without changes, but with as many requests that only ask: a quarter before, half in the middle, a quarter after. It fails if a
request is lost, if a change is refused, and with --most-ms if more responses take longer than that with changes than without, by more
than three standard deviations of these counts.
"""

import argparse
import functools
import json
import math
import pathlib
import random
import shutil
import socket
import ssl
import statistics
import tempfile
import time
import urllib.request

from common import Gateway, Process, certificates, fail
from histogram import slower_than
from reloads import begin, end, wait_until

CONFIG = """
workers = 2
[listener.cleartext]
bind = "{cleartext}"
[listener.secure]
bind = "{secure}"
tls = {{}}
{listeners}
[[certificate]]
name = "own"
chain = "{chain}"
key = "{key}"
[service.app]
servers = ["{origins[0]}", "{origins[1]}"]
[service.other]
servers = "{origins[0]}"
[[route]]
service = [{{ name = "app", weight = 9 }}, {{ name = "other" }}]
"""
# In ten minutes.
CHANGES = {"servers": 1000, "listener": 400, "files": 100, "certificate": 100, "weight": 100}
LOADS = {
    "HTTP/1.1": (0, []),
    "HTTP/1.1, new connections": (0, ["--new-connection"]),
    "TLS": (1, ["-k"]),
    "TLS, new connections": (1, ["-k", "--new-connection"]),
    "HTTP/2": (1, ["-k", "--http", "2"]),
}
ADMIN_ADDRESS = "/services/app/servers"


class Changes:
    """The changes to a gateway. Ends the script if one is refused, or has no effect."""

    def __init__(self, gateway, folder, origins, draw):
        self.gateway, self.folder, self.origins, self.draw = gateway, folder, origins, draw
        self.pairs = [certificates(made(folder / f"certificate-{nth}"))["ecdsa"] for nth in range(3)]
        self.places = {name: url.split("//")[1] for name, url in zip(("cleartext", "secure"), gateway.urls)}
        self.added, self.filed, self.served = None, 0, 0
        self.files()

    def ask(self):
        """Changes nothing."""
        self.gateway.ask(ADMIN_ADDRESS)
        self.check_certificate()

    def servers(self):
        """Both servers in either order, or one of them, with other weights."""
        chosen = self.draw.sample(self.origins, self.draw.choice((1, 2, 2)))
        servers = [{"url": url, "weight": self.draw.randint(1, 9)} for url in chosen]
        now = json.loads(self.gateway.ask(ADMIN_ADDRESS, "PUT", json.dumps(servers)))
        if [server["url"] for server in now["servers"]] != chosen:
            fail(f"the servers are {now}, not {chosen}")

    def weight(self):
        server = json.loads(self.gateway.ask(ADMIN_ADDRESS))["servers"][0]["url"]
        self.gateway.ask(f"{ADMIN_ADDRESS}/{server}?weight={self.draw.randint(1, 1000)}", "POST")

    def listener(self):
        """Adds a listener, which must respond, or removes it."""
        self.added = None if self.added else free_address(self.draw)
        self.reload()
        if self.added:
            urllib.request.urlopen(f"http://{self.added}/bytes/1", timeout=20).read()

    def files(self):
        """Other files of the certificate, which replace it even if the admin address has."""
        self.filed = self.served = self.another()
        self.reload()

    def certificate(self):
        """Another certificate, without its files."""
        self.served = self.another()
        chain, key = (pathlib.Path(file).read_text() for file in self.pairs[self.served])
        now = json.loads(self.gateway.ask("/certificates/own", "PUT", json.dumps({"chain": chain, "key": key})))
        if now["from"] != "admin":
            fail(f"the certificate is {now}")
        self.check_certificate()

    def another(self):
        """A pair that is neither served nor that of the files."""
        return next(nth for nth in range(3) if nth not in (self.served, self.filed))

    def reload(self):
        chain, key = self.pairs[self.filed]
        listeners = f'[listener.added]\nbind = "{self.added}"' if self.added else ""
        config = CONFIG.format(**self.places, listeners=listeners, chain=chain, key=key, origins=self.origins)
        self.gateway.write(config)
        outcome = json.loads(self.gateway.ask("/reload", "POST"))
        if outcome["result"] != "taken":
            fail(f"a reload: {outcome}")
        self.check_certificate()

    def check_certificate(self):
        host, port = self.places["secure"].rsplit(":", 1)
        found = ssl.get_server_certificate((host, int(port)))
        if found.split() != pathlib.Path(self.pairs[self.served][0]).read_text().split():
            fail("the certificate is not the last one")


def main(program, lab, minutes, rate, most):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-changes-"))
    draw = random.Random(1)
    origins = [Process(lab, "origin", "--listen", "http://127.0.0.1:0", "--workers", "1") for _ in range(2)]
    try:
        urls = [origin.listening(1)[0] for origin in origins]
        chain, key = certificates(folder)["ecdsa"]
        ports = {name: free_address(draw) for name in ("cleartext", "secure")}
        config = CONFIG.format(**ports, listeners="", chain=chain, key=key, origins=urls)
        with Gateway(program, folder, config) as gateway:
            changes = Changes(gateway, folder, urls, draw)
            order = [name for name, count in CHANGES.items() for _ in range(round(count * minutes / 10))]
            draw.shuffle(order)
            parts = [order[nth::4] for nth in range(4)]
            memory, asked, changed = [], [], []
            for nth, made in enumerate(parts):
                # With and without in turns: ask, change, change, ask; twice.
                for results, order_of in [(asked, ["ask"] * len(made)), (changed, made)][:: 1 if nth % 2 == 0 else -1]:
                    work = functools.partial(make, order_of, changes, minutes * 15, memory)
                    results.append(beside(lab, gateway, rate, work))
    finally:
        for origin in origins:
            origin.stop()
    made_of = ", ".join(f"{order.count(name)} of {name}" for name in CHANGES)
    print(f"{len(order)} changes in {minutes:g} minutes: {made_of}; {len(LOADS)} loads of {rate} requests/s")
    limit, slow = most or 20, {}
    for what, results in [("without changes", asked), ("with changes", changed)]:
        responses = [result[name]["response"] for result in results for name in LOADS]
        slow[what] = sum(slower_than(response, limit) for response in responses)
        all_of = sum(response["count"] for response in responses)
        half = sum(slower_than(response, limit / 2) for response in responses)
        worst = max(response["max_us"] for response in responses) / 1000
        print(f"  {what}: {all_of} responses, {half} above {limit / 2:g} ms, {slow[what]} above {limit:g} ms, the worst {worst:.1f} ms")
    for name in LOADS:
        p99s = [statistics.mean((result[name]["response"]["p99_us"] or 0) / 1000 for result in results) for results in (asked, changed)]
        print(f"  {name:26} p99 {p99s[0]:.1f} ms without, {p99s[1]:.1f} ms with changes")
    first, last = memory[len(memory) // 10], memory[-1]
    print(f"RSS {first / 1024:.1f} MiB after a tenth of the changes, {last / 1024:.1f} MiB at the end ({last / first - 1:+.0%})")
    without, having = slow.values()
    if most and having > without + 3 * math.sqrt(having + without):
        fail(f"{having} responses took longer than {most:g} ms with changes, {without} without")
    shutil.rmtree(folder)


def make(order, changes, seconds, memory):
    """Makes the changes, evenly spread over the time as far as each leaves some."""
    begun = time.monotonic()
    for nth, name in enumerate(order):
        time.sleep(max(0, begun + seconds * nth / len(order) - time.monotonic()))
        getattr(changes, name)()
        memory.append(changes.gateway.rss_kib())


def beside(lab, gateway, rate, work):
    """Name -> result of each load, which runs beside the work. Ends the script if a request is lost."""
    loads = {
        name: begin(lab, gateway.urls[at] + "/bytes/500", rate, connections=8, options=options)
        for name, (at, options) in LOADS.items()
    }
    wait_until("the loads run", lambda: gateway.metrics()["weir_clients"] > len(LOADS))
    work()
    return {name: end(load) for name, load in loads.items()}


def free_address(draw):
    """An address with a port that no client's connection gets."""
    for _ in range(100):
        port = draw.randint(20_000, 30_000)
        try:
            socket.create_server(("127.0.0.1", port)).close()
            return f"127.0.0.1:{port}"
        except OSError:
            continue
    fail("no port is free")


def made(folder):
    folder.mkdir()
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("--lab")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rate", type=int, default=50)
    parser.add_argument("--most-ms", type=float)
    given = parser.parse_args()
    main(given.program, given.lab or given.program, given.minutes, given.rate, given.most_ms)
