#!/usr/bin/env python3
"""Attacks on the gateway, and what they cost others: the p99 of a steady load with and without each attack.

    python3 tests/long/attacks.py target/release/weir [ROUNDS]

slowhttptest (Debian's package) in its four modes, and 20 000 half-open TLS handshakes. Each attack runs ROUNDS times (default 3),
each time between two windows without it, on one core that the gateway has alone; load, origin and attack share the others. The verdict
is the median over the rounds of p99 within over p99 without. It fails above 1.5, on any lost request, and if the gateway keeps anything
of an attack. Needs root, or a hard limit of 50 000 open files, for the half-open handshakes.
"""

import json
import os
import pathlib
import resource
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from common import Gateway, Process, certificates, fail, other_cores

RATE, CONNECTIONS, WINDOW = 500, 32, 12
HALF_OPEN, FILES = 20_000, 50_000

CONFIG = """
workers = 1
cores = "0"
[listener.cleartext]
bind = "127.0.0.1:0"
[listener.secure]
bind = "127.0.0.1:0"
tls = {{}}
[[certificate]]
chain = "{chain}"
key = "{key}"
[service.app]
servers = "{origin}"
[[route]]
service = "app"
"""


def main(weir, rounds):
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-attacks-"))
    chain, key = certificates(folder)["ecdsa"]
    others = ",".join(map(str, other_cores()))
    origin = Process(weir, "origin", "--listen", "http://127.0.0.1:0", "--workers", "1", "--cores", others)
    [at] = origin.listening(1)
    wrong = []
    try:
        with Gateway(weir, folder, CONFIG.format(chain=chain, key=key, origin=at)) as gateway:
            cleartext, secure = gateway.urls
            os.sched_setaffinity(0, other_cores())
            attacks = {
                "slow heads": slowhttptest(cleartext, "-H", "-i", "2"),
                "slow bodies": slowhttptest(cleartext, "-B", "-i", "2", "-s", "100000"),
                "ranges": slowhttptest(cleartext, "-R"),
                "slow reads": slowhttptest(cleartext + "/bytes/1000000", "-X", "-n", "2", "-z", "10"),
                "half-open handshakes": half_open(secure),
            }
            measure(weir, secure, others)
            for name, attack in attacks.items():
                wrong += judge(name, attack, gateway, lambda: measure(weir, secure, others), rounds)
            early = gateway.ended_early().items()
            print("ended early:", ", ".join(f"{reason} {count:.0f}" for reason, count in early))
    finally:
        origin.stop()
    if wrong:
        fail("\n".join(wrong))


def judge(name, attack, gateway, p99, rounds):
    ratios, without = [], p99()
    for _ in range(rounds):
        stop = attack()
        within = p99()
        stop()
        settle(gateway)
        after = p99()
        ratios.append(within / ((without + after) / 2))
        without = after
    ratio = statistics.median(ratios)
    print(f"{name}: p99 {ratio:.2f} of without ({', '.join(f'{ratio:.2f}' for ratio in ratios)}); RSS {gateway.rss_kib()} KiB", flush=True)
    return [f"{name}: p99 rises to {ratio:.2f}"] if ratio > 1.5 else []


def settle(gateway):
    """Waits until nothing is left of an attack."""
    end = time.monotonic() + 180
    while gateway.metrics()["weir_clients"] > 0:
        if time.monotonic() > end:
            fail(f"{gateway.metrics()['weir_clients']:.0f} clients are left")
        time.sleep(0.5)


def measure(weir, url, cores):
    command = [weir, "load", f"{url}/bytes/500", "-k", "-c", str(CONNECTIONS), "--rate", str(RATE), "-d", f"{WINDOW}s", "--cores", cores]
    done = subprocess.run([*command, "--json", "-"], capture_output=True, text=True)
    result = json.loads(done.stdout)
    if result["errors"] or result["unsent"]["count"]:
        fail(f"requests were lost: {result['errors']} {result['unsent']} {result['error_examples']}")
    return result["response"]["p99_us"]


def slowhttptest(url, *options):
    def attack():
        length = str(WINDOW + 8)
        command = ["slowhttptest", *options, "-c", "1000", "-r", "500", "-l", length, "-p", "10", "-u", url]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(3)

        def stop():
            child.terminate()
            child.wait()

        return stop

    return attack


def half_open(url):
    """A record that announces a ClientHello, of which half comes; one that is closed is opened again."""
    host, port = url.removeprefix("https://").split(":")
    hello = bytes([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]) + bytes(200)

    def attack():
        over, ready = threading.Event(), threading.Event()

        def run():
            selector = selectors.DefaultSelector()
            opened = 0
            while not over.is_set():
                # Some hundreds at a time, so that the accept queue does not overflow.
                for _ in range(min(200, HALF_OPEN - len(selector.get_map()))):
                    client = socket.socket()
                    # Several sources: one has 28 000 ports.
                    client.bind((f"127.0.0.{2 + opened % 4}", 0))
                    client.connect((host, int(port)))
                    client.setblocking(False)
                    client.send(hello)
                    selector.register(client, selectors.EVENT_READ)
                    opened += 1
                for key, _ in selector.select(0.02):
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
                if len(selector.get_map()) >= HALF_OPEN - 400:
                    ready.set()
            for key in list(selector.get_map().values()):
                key.fileobj.close()

        thread = threading.Thread(target=run)
        thread.start()
        if not ready.wait(60):
            print("half-open handshakes: fewer than asked for within a minute")

        def stop():
            over.set()
            thread.join()

        return stop

    return attack


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        fail(__doc__)
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 3)
