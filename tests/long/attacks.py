#!/usr/bin/env python3
"""Attacks on the gateway, and what they cost others: the p99 of a steady load with and without each attack.

    python3 tests/long/attacks.py target/release/weir [ROUNDS [NAME]]

slowhttptest (Debian's package) in its four modes, and 20 000 half-open TLS handshakes, or as many as the hard limit of open
files lets a gateway hold; those that it closes are opened again. They are opened in the time that a handshake has, so that they
are held, closed and opened at an even rate from then on; and once more as fast as the attacker can, so that they are closed as
fast. The latter is a flood of connections rather than of handshakes, which takes what the kernel has of both cores, and is
reported without a verdict. Each attack, or those with NAME in their name, runs ROUNDS times (default 5), with windows before
and after, on one core that the gateway has alone; load, origin and attack share the others. The verdict is the median of all
windows' p99 within over that of those without. It fails above 1.5, on any lost request, and if the gateway keeps anything of an
attack.
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
import time

from common import Gateway, Process, certificates, fail, other_cores

RATE, CONNECTIONS = 500, 32
# Seconds, and how many at a stretch. A host's pauses make the p99 of single ones differ by a factor of three: many short ones have
# a steadier median than few long ones.
WINDOW, WINDOWS = 4, 4
HALF_OPEN = 20_000
# Processes, as each has an open-file limit.
ATTACKERS = 2
FLOOD = "half-open handshakes at once"
# `timeouts.handshake`, whose default the gateway has.
HANDSHAKE = 10
# Descriptors of the gateway for all but half-open handshakes: other clients, servers, and its own.
OTHERS = 1000
# Load and origin share their core with the attack. What that takes from them is not the gateway's doing: so it runs when they do not
# (SCHED_IDLE; a nice one would keep its turn for milliseconds).
BEHIND = ["chrt", "--idle", "0"]

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
[limits]
connections = {most}
handshakes = {most}
"""


def main(weir, rounds=5, only=""):
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    half_opened = min(HALF_OPEN, files - OTHERS)
    print(f"open-file limit {files}: {half_opened} half-open handshakes", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-attacks-"))
    chain, key = certificates(folder)["ecdsa"]
    others = ",".join(map(str, other_cores()))
    origin = Process(weir, "origin", "--listen", "http://127.0.0.1:0", "--workers", "1", "--cores", others)
    [at] = origin.listening(1)
    config = CONFIG.format(chain=chain, key=key, origin=at, most=half_opened + OTHERS // 2)
    wrong = []
    try:
        with Gateway(weir, folder, config) as gateway:
            cleartext, secure = gateway.urls
            os.sched_setaffinity(0, other_cores())
            attacks = {
                "slow heads": slowhttptest(cleartext, "-H", "-i", "2"),
                "slow bodies": slowhttptest(cleartext, "-B", "-i", "2", "-s", "100000"),
                "ranges": slowhttptest(cleartext, "-R"),
                "slow reads": slowhttptest(cleartext + "/bytes/1000000", "-X", "-n", "2", "-z", "10"),
                "half-open handshakes": half_open(secure, half_opened, HANDSHAKE),
                FLOOD: half_open(secure, half_opened, 0),
            }
            settle(gateway)
            measure(weir, secure, others)
            for name, attack in attacks.items():
                if only not in name:
                    continue
                ratio = compare(name, attack, gateway, lambda: measure(weir, secure, others), rounds)
                if ratio > 1.5 and name != FLOOD:
                    wrong.append(f"{name}: p99 rises to {ratio:.2f}")
            early = gateway.ended_early().items()
            print("ended early:", ", ".join(f"{reason} {count:.0f}" for reason, count in early))
    finally:
        origin.stop()
    if wrong:
        fail("\n".join(wrong))


def compare(name, attack, gateway, p99, rounds):
    phase = lambda: [p99() for _ in range(WINDOWS)]
    within, without = [], phase()
    for _ in range(rounds):
        stop = attack()
        within += phase()
        stop()
        settle(gateway)
        without += phase()
    ratio = statistics.median(within) / statistics.median(without)
    print(f"{name}: p99 {ratio:.2f} of without; RSS {gateway.rss_kib()} KiB")
    for what, times in ("within", within), ("without", without):
        print(f"  us {what}: {', '.join(f'{time:.0f}' for time in times)}", flush=True)
    return ratio


def settle(gateway):
    """Waits until nothing is left of an attack, neither in the gateway nor, but for what the load itself leaves there, in the kernel."""
    end = time.monotonic() + 180
    while (clients := gateway.metrics()["weir_clients"]) > 0 or (ended := in_time_wait()) > 1000:
        if time.monotonic() > end:
            fail(f"{clients:.0f} clients are left" if clients else f"{ended} sockets are still in TIME-WAIT")
        time.sleep(0.5)


def in_time_wait():
    """Sockets in TIME-WAIT in this network namespace."""
    [counts] = [line.split() for line in pathlib.Path("/proc/net/sockstat").read_text().splitlines() if line.startswith("TCP:")]
    return int(counts[counts.index("tw") + 1])


def measure(weir, url, cores):
    command = [weir, "load", f"{url}/bytes/500", "-k", "-c", str(CONNECTIONS), "--rate", str(RATE), "-d", f"{WINDOW}s", "--cores", cores]
    done = subprocess.run([*command, "--json", "-"], capture_output=True, text=True)
    result = json.loads(done.stdout)
    if result["errors"] or result["unsent"]["count"]:
        fail(f"requests were lost: {result['errors']} {result['unsent']} {result['error_examples']}")
    return result["response"]["p99_us"]


def slowhttptest(url, *options):
    def attack():
        length = str(WINDOWS * (WINDOW + 1) + 8)
        command = [*BEHIND, "slowhttptest", *options, "-c", "1000", "-r", "500", "-l", length, "-p", "10", "-u", url]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(3)

        def stop():
            child.terminate()
            child.wait()

        return stop

    return attack


def half_open(url, count, over):
    """A record that announces a ClientHello, of which half comes, opened over so many seconds; one that is closed is opened again."""
    host, port = url.removeprefix("https://").split(":")

    def attack():
        command = [*BEHIND, sys.executable, __file__, "--half-open", host, port, str(count // ATTACKERS), str(over)]
        children = [subprocess.Popen([*command, str(nth)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for nth in range(ATTACKERS)]
        for child in children:
            child.stdout.readline()

        def stop():
            opened = 0
            for child in children:
                said, _ = child.communicate()
                opened += int(said)
            print(f"half-open handshakes: {opened} connections for {count} that are open at a time")

        return stop

    return attack


def hold_half_open(host, port, most, over, nth):
    """Keeps so many open until stdin ends. Says on stdout that it has them, and at the end how many it has opened."""
    hello = bytes([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]) + bytes(200)
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    opened, is_told, begin = 0, False, time.monotonic()
    while True:
        passed = time.monotonic() - begin
        wanted = most if passed >= over else int(most * passed / over)
        # Some hundreds at a time, so that the accept queue does not overflow.
        for _ in range(min(200, wanted + 1 - len(selector.get_map()))):
            client = socket.socket()
            # Several sources: one has 28 000 ports.
            client.bind((f"127.0.{2 + nth}.{2 + opened % 4}", 0))
            client.connect((host, port))
            client.setblocking(False)
            client.send(hello)
            selector.register(client, selectors.EVENT_READ)
            opened += 1
        if not is_told and opened >= most:
            print("ready", flush=True)
            is_told = True
        for key, _ in selector.select(0.005):
            if key.fileobj is sys.stdin:
                print(opened)
                return
            selector.unregister(key.fileobj)
            key.fileobj.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--half-open"]:
        hold_half_open(sys.argv[2], *map(int, sys.argv[3:]))
    elif len(sys.argv) not in (2, 3, 4):
        fail(__doc__)
    else:
        main(sys.argv[1], *map(int, sys.argv[2:3]), *sys.argv[3:])
