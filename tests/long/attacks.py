#!/usr/bin/env python3
"""Attacks on the gateway, and what they cost others: the p99 of a steady load with and without each attack.

    python3 tests/long/attacks.py target/release/weir [ROUNDS [NAME]]

slowhttptest (Debian's package) in its four modes, and 20 000 half-open TLS handshakes, or as many as the hard limit of open
files lets a gateway hold; those that it closes are opened again. They are opened in the time that a handshake has, so that they
are held, closed and opened at an even rate from then on; and once more as fast as the attacker can, so that they are closed as
fast. The latter is a flood of connections rather than of handshakes, which takes what the kernel has of both cores, and is
reported without a verdict.

The gateway has a core alone; load, origin and attack share the others, and what the attack takes from load and origin there is
not the gateway's doing. So each of ROUNDS rounds (default 5) measures three times: without an attack, with it, and with the same
attack on a bystander, a second gateway on the attackers' cores. The rise of p99 is that of the attack beyond that of the
bystander, as a share of p99 without. It fails if the rise may be a half, on any lost request, and if the gateway keeps anything
of an attack. Run the attacks whose name has NAME in it, or all.
"""

import os
import pathlib
import resource
import selectors
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

from common import Gateway, Process, certificates, fail, other_cores
from neighbours import AHEAD, Load, keep_awake, measure_in_turns, report, settle

RATE, CONNECTIONS = 1200, 32
# Seconds of a phase, each with its p99. A host's pauses make single ones ten times as long: their median is steady.
PHASE = 15
MOST_RISE = 0.5
HALF_OPEN = 20_000
# Processes, as each has an open-file limit.
ATTACKERS = 2
FLOOD = "half-open handshakes at once"
# `timeouts.handshake`, whose default the gateway has.
HANDSHAKE = 10
# Descriptors of the gateway for all but half-open handshakes: other clients, servers, and its own.
OTHERS = 1000
# Program -> its Debian package.
TOOLS = {"slowhttptest": "slowhttptest", "chrt": "util-linux"}

CONFIG = """
workers = 1
cores = "{cores}"
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
    origin = Process(*AHEAD, weir, "origin", "--listen", "http://127.0.0.1:0", "--workers", "1", "--cores", others)
    [at] = origin.listening(1)
    config = lambda cores: CONFIG.format(cores=cores, chain=chain, key=key, origin=at, most=half_opened + OTHERS // 2)
    (folder / "bystander").mkdir()
    awake = keep_awake()
    load = Load(weir, folder, others, RATE, PHASE, ["-c", str(CONNECTIONS)])
    wrong = []
    try:
        with (
            Gateway(weir, folder, config("0")) as gateway,
            Gateway(weir, folder / "bystander", config(others)) as bystander,
        ):
            os.sched_setaffinity(0, other_cores())
            settle(gateway)
            p99s = lambda: load.p99s(gateway.urls[1])
            p99s()
            for name, attack in attacks(half_opened).items():
                if only not in name:
                    continue
                most = report(name, measure_in_turns(attack, gateway, bystander, p99s, rounds))
                print(f"  RSS {gateway.rss_kib()} KiB", flush=True)
                if most > MOST_RISE and name != FLOOD:
                    wrong.append(f"{name}: p99 may rise by {most:.2f} of itself")
            early = gateway.ended_early().items()
            print("ended early:", ", ".join(f"{reason} {count:.0f}" for reason, count in early))
    finally:
        origin.stop()
        for process in awake:
            process.kill()
    if wrong:
        fail("\n".join(wrong))


def attacks(half_opened):
    """Name -> what begins it at a gateway, and returns what ends it."""
    return {
        "slow heads": slowhttptest("", "-H", "-i", "2"),
        "slow bodies": slowhttptest("", "-B", "-i", "2", "-s", "100000"),
        "ranges": slowhttptest("", "-R"),
        "slow reads": slowhttptest("/bytes/1000000", "-X", "-n", "2", "-z", "10"),
        "half-open handshakes": half_open(half_opened, HANDSHAKE),
        FLOOD: half_open(half_opened, 0),
    }


def slowhttptest(path, *options):
    def attack(gateway):
        url = gateway.urls[0] + path
        length = str(PHASE + 10)
        command = ["slowhttptest", *options, "-c", "1000", "-r", "500", "-l", length, "-p", "10", "-u", url]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(3)

        def stop():
            child.terminate()
            child.wait()

        return stop

    return attack


def half_open(count, over):
    """A record that announces a ClientHello, of which half comes, opened over so many seconds; one that is closed is opened again."""

    def attack(gateway):
        host, port = gateway.urls[1].removeprefix("https://").split(":")
        command = [sys.executable, __file__, "--half-open", host, port, str(count // ATTACKERS), str(over)]
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
            # Those that are open at the end leave nothing in TIME-WAIT.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
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
    elif os.geteuid() != 0:
        fail("attacks.py needs root, for SCHED_FIFO: run it with sudo")
    elif missing := [name for name in TOOLS if not shutil.which(name)]:
        fail(f"not installed: {', '.join(missing)}; run apt-get install {' '.join(TOOLS.values())}")
    else:
        main(sys.argv[1], *map(int, sys.argv[2:3]), *sys.argv[3:])
