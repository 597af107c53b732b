"""A small TLS engine: full TLS 1.3 handshakes with Python's ssl. docs/ENGINES.md documents its input and output."""

import collections
import json
import platform
import resource
import ssl
import sys
import time

PATH = "the path of a PEM file"
NUMBER = "a number from 0 to 1000000000"
VALUES = {
    "version": ["1.3"], "resumption": ["none"], "suite": ["aes256-gcm"], "group": ["x25519", "p256"],
    "certificate": ["rsa-2048", "ecdsa-p256", "ecdsa-p384"], "chain": PATH, "key": PATH, "ca": PATH,
    "tickets": ["0", "1", "2", "3", "4"], "config": ["warm"], "threads": ["1"], "warmup": NUMBER, "count": NUMBER,
    "window_ms": NUMBER,
}
DEFAULTS = {"config": "warm", "threads": "1", "warmup": "0", "count": "0", "window_ms": "0"}
# Markers in the leaf's public key.
KEYS = {"rsa-2048": "2a864886f70d010101", "ecdsa-p256": "2a8648ce3d030107", "ecdsa-p384": "2b81040022"}
NAMES = {"TLSv1.3": "1.3", "TLS_AES_256_GCM_SHA384": "aes256-gcm", "x25519": "X25519", "p256": "prime256v1"}


class Refused(Exception):
    """The scenario is invalid or unsupported."""


def say(kind, /, **keys):
    print(json.dumps({"type": kind, **keys}))


def read_scenario(lines):
    given = {}
    for line in lines:
        key, _, value = line.removesuffix("\n").partition(" ")
        expected = ["facts", "handshake"] if key == "do" else VALUES.get(key)
        if expected is None or key in given:
            raise Refused(f"{key} {value}: expected, once each: {', '.join(['do', *VALUES])}")
        good = value in expected if isinstance(expected, list) else value != ""
        if expected is NUMBER:
            good = value.isascii() and value.isdigit() and len(value) < 10
        if not good:
            raise Refused(f"{key} {value}: expected {expected if isinstance(expected, str) else ', '.join(expected)}")
        given[key] = value
    keys = {"facts": [], "handshake": list(VALUES)}.get(given.get("do"))
    wrong = {"do"} if keys is None else set(keys) - set(given) - set(DEFAULTS) or set(given) - set(keys) - {"do"}
    if wrong:
        raise Refused(f"{', '.join(sorted(wrong))}: expected only do facts, or do handshake with all others")
    if keys and (given.get("count", "0") == "0") == (given.get("window_ms", "0") == "0"):
        raise Refused("count, window_ms: expected exactly one of them, above 0")
    return DEFAULTS | given


def configure(scenario):
    client, server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for context in client, server:
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
        context.set_ecdh_curve(NAMES[scenario["group"]])
    try:
        client.load_verify_locations(scenario["ca"])
        server.load_cert_chain(scenario["chain"], scenario["key"])
        with open(scenario["chain"]) as file:
            leaf = ssl.PEM_cert_to_DER_cert(file.read().partition("-----END")[0] + ssl.PEM_FOOTER)
    except (OSError, ValueError) as error:
        raise Refused(f"chain, key, ca: {error}: expected {PATH}") from error
    if bytes.fromhex(KEYS[scenario["certificate"]]) not in leaf:
        raise Refused(f"certificate {scenario['certificate']}: the chain's is another")
    server.num_tickets = int(scenario["tickets"])
    return client, server


class End:
    """One side of a connection, and the time of its calls."""

    def __init__(self, context, incoming, outgoing, name):
        self.make = lambda: context.wrap_bio(incoming, outgoing, name is None, name)
        self.tls, self.handshakes, self.finished, self.ns = None, 0, False, 0

    def step(self):
        began = time.perf_counter_ns()
        try:
            self.tls = self.tls or self.make()
            if not self.finished:
                self.handshakes += 1
                self.tls.do_handshake()
                self.finished = True
            self.tls.read(1)  # What follows the handshake: tickets.
        except ssl.SSLWantReadError:
            pass
        self.ns += time.perf_counter_ns() - began


def connect(client_context, server_context):
    """Opens a connection and runs it until neither side has anything left to send."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = End(client_context, to_client, to_server, "localhost")
    server = End(server_context, to_server, to_client, None)
    client.step()
    while to_server.pending or to_client.pending:
        server.step()
        client.step()
    if not client.finished or not server.finished:
        raise ssl.SSLError("both ends wait")
    return client, server


def outcome(side, end, client):
    # A second hello means a third step of the client.
    kind = "resumed" if end.tls.session_reused else "full" if client.handshakes == 2 else "full-with-hello-retry"
    return side, NAMES.get(end.tls.version()), kind, NAMES.get(end.tls.cipher()[0])


def measure(scenario):
    contexts = configure(scenario)
    for _ in range(int(scenario["warmup"])):
        connect(*contexts)
    times, outcomes, before, began = [], collections.Counter(), used(), time.perf_counter_ns()
    window = int(scenario["window_ms"]) * 1_000_000
    while len(times) < int(scenario["count"]) or time.perf_counter_ns() - began < window:
        client, server = connect(*contexts)
        times.append((client.ns, server.ns))
        outcomes.update([outcome("client", client, client), outcome("server", server, client)])
    wall, after = time.perf_counter_ns() - began, used()
    for (side, version, kind, suite), count in outcomes.items():
        # Python exposes neither group nor signature.
        say("negotiated", side=side, version=version, kind=kind, suite=suite, group=None, signature=None, count=count)
    for side, ns in zip(("client", "server"), zip(*times)):
        for begin in range(0, len(ns), 1000):
            say("samples", thread=0, side=side, ns=ns[begin:begin + 1000])
    say("thread", thread=0, units=len(times), wall_ns=wall, cpu_ns=after[0] - before[0],
        voluntary_switches=after[1] - before[1])


def used():
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return round((usage.ru_utime + usage.ru_stime) * 1e9), usage.ru_nvcsw


def main():
    try:
        scenario = read_scenario(open(0, encoding="utf-8", newline="\n"))
        say("facts", stack="python", tls=f"python {platform.python_version()}", compiler=platform.python_compiler(),
            crypto=" ".join(ssl.OPENSSL_VERSION.lower().split()[:2]), allocator="system", build="release", features=[])
        if scenario["do"] == "handshake":
            measure(scenario)
        say("done")
    except Exception as error:
        faults = {Refused: "scenario", UnicodeDecodeError: "scenario", ssl.SSLError: "stack"}
        fault = next((fault for kind, fault in faults.items() if isinstance(error, kind)), "runner")
        say("error", fault=fault, message=f"{type(error).__name__}: {error}")
        sys.exit(1)


main()
