#!/usr/bin/env python3
"""Attacks by HTTP/2, and what they cost others: the p99 of a steady load by HTTP/2 on other connections.

    python3 tests/long/http2_attacks.py target/release/weir [--lab WEIR] [--rounds N] [--only NAME] [--busy | --turns]

Each of two attackers opens a connection, sends its frames as fast as the gateway takes them, and opens the next one when the
gateway closes it. As in attacks.py, each round measures without an attack, with it, and with the same attack on a bystander.
It fails if p99 may double, on any lost request, if the gateway's memory grows by more than 64 MiB beside an attack, and if the
gateway does not count the attack's reason, or does not say it on stderr.

--lab names the program for load and origin, if that of the gateway has neither. --busy is for a machine that others use: one
short round, without a bystander, without SCHED_FIFO, and without a verdict on p99. --turns measures the gateway alone, with `perf`: for
how long its worker serves other connections before it looks for events again, beside each attack.
"""

import argparse
import os
import pathlib
import selectors
import shutil
import subprocess
import sys
import tempfile

import turns
from common import Gateway, Process, certificates, fail, other_cores
from http2_floods import ATTACKS, SLOWLY, SLOWLY_STORED, run
from neighbours import AHEAD, Load, keep_awake, measure_in_turns, report, wait_for_clients

RATE, SECONDS = 1200, 15
BUSY_RATE, BUSY_SECONDS = 100, 2
# Of p99.
MOST_RISE = 1
MOST_MEMORY_KIB = 64 * 1024
ATTACKERS = 2

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
servers = "{origins[0]}"
[service.attacked]
servers = "{origins[1]}"
[[route]]
path = "/bytes/500"
service = "app"
# A second's credit: that of a response is at least the time of 64 KiB.
[[route]]
path = ["{slow}", "{stored}"]
service = "attacked"
min_rate = {{ response = "64KiB", window = "1s" }}
[[route]]
service = "attacked"
[timeouts]
stall = "1s"
"""


def main(program, lab, rounds, only, busy, of_turns):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-http2-attacks-"))
    chain, key = certificates(folder)["ecdsa"]
    cores = os.sched_getaffinity(0)
    own, others = (cores, cores) if busy else ({0}, other_cores())
    own, others = (",".join(map(str, sorted(each))) for each in (own, others))
    ahead = [] if busy else AHEAD
    start = lambda: Process(*ahead, lab, "origin", "--listen", "http://127.0.0.1:0", "--workers", "1", "--cores", others)
    # An attack that overloads its own server is not the gateway's doing.
    origins = [start(), start()]
    urls = [origin.listening(1)[0] for origin in origins]
    config = lambda at: CONFIG.format(cores=at, slow=SLOWLY, stored=SLOWLY_STORED, chain=chain, key=key, origins=urls)
    (folder / "bystander").mkdir()
    rate, seconds = (BUSY_RATE, BUSY_SECONDS) if busy else (RATE, SECONDS)
    options = ["--http", "2", "-c", "8", "-m", "4", *(["--timeout", "60s"] if busy else [])]
    load = Load(lab, folder, others, rate, seconds, options, ahead)
    awake = [] if busy else keep_awake()
    wrong = []
    try:
        with (
            Gateway(program, folder, config(own)) as gateway,
            Gateway(program, folder / "bystander", config(others)) as bystander,
        ):
            if not busy:
                os.sched_setaffinity(0, other_cores())
            p99s = lambda: load.p99s(gateway.urls[1])
            print(f"without an attack: {quantiles(load, gateway)}", flush=True)
            if of_turns:
                print(f"  {turns_beside(load, gateway, folder)}", flush=True)
            for name, attack in ATTACKS.items():
                if only not in name:
                    continue
                before, memory = gateway.ended_early(), gateway.rss_kib()
                restart_peak(gateway)
                lines = len(gateway.process.lines["stderr"])
                if busy:
                    measure_once(name, gateway, load)
                elif of_turns:
                    stop = begin(name)(gateway)
                    found = turns_beside(load, gateway, folder)
                    stop()
                    wait_for_clients(gateway)
                    print(f"{name}\n  {found}", flush=True)
                elif (most := report(name, measure_in_turns(begin(name), gateway, bystander, p99s, rounds))) > MOST_RISE:
                    wrong.append(f"{name}: p99 may rise by {most:.2f} of itself")
                wrong += [f"{name}: {fault}" for fault in faults(gateway, attack, before, memory, lines)]
    finally:
        for origin in origins:
            origin.stop()
        for process in awake:
            process.kill()
    if wrong:
        fail("\n".join([*wrong, f"see {folder}"]))
    shutil.rmtree(folder)


def measure_once(name, gateway, load):
    stop = begin(name)(gateway)
    beside = quantiles(load, gateway)
    stop()
    # Sockets in TIME-WAIT may be those of others.
    wait_for_clients(gateway)
    print(f"{name}: {beside} (no verdict)")


def turns_beside(load, gateway, folder):
    with load.started(gateway.urls[1]):
        return turns.in_words(turns.record(gateway.pid, folder))


def quantiles(load, gateway):
    response = load.run(gateway.urls[1])["response"]
    return f"p50 {response['p50_us']:.0f} us, p90 {response['p90_us']:.0f} us"


def faults(gateway, attack, before, memory, lines):
    """Prints what the gateway says about an attack, and yields what it should have said or kept to."""
    early = {reason: count - before.get(reason, 0) for reason, count in gateway.ended_early().items()}
    early = {reason: int(count) for reason, count in early.items() if count}
    grown = peak_kib(gateway) - memory
    said = [line for line in gateway.process.lines["stderr"][lines:] if f" {attack.reason} " in line]
    print(f"  ended early: {early}; {len(said)} lines on stderr; peak memory {grown:+} KiB", flush=True)
    if attack.reason not in early:
        yield f"{attack.reason} was not counted"
    if not any(attack.detail in line for line in said):
        yield f"no line on stderr has {attack.reason} and `{attack.detail}`"
    if grown > MOST_MEMORY_KIB:
        yield f"peak memory grew by {grown} KiB"
    if "internal_error" in early:
        yield "internal errors"


def restart_peak(gateway):
    """Makes the peak of resident memory what it is now (proc(5))."""
    pathlib.Path(f"/proc/{gateway.pid}/clear_refs").write_text("5")


def peak_kib(gateway):
    status = pathlib.Path(f"/proc/{gateway.pid}/status").read_text().splitlines()
    [line] = [line for line in status if line.startswith("VmHWM")]
    return int(line.split()[1])


def begin(name):
    """What begins an attack at a gateway, and returns what ends it."""

    def attack(gateway):
        command = [sys.executable, __file__, "--attacker", name, gateway.urls[0]]
        children = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(ATTACKERS)]
        for child in children:
            child.stdout.readline()

        def stop():
            opened = sum(int(child.communicate()[0]) for child in children)
            print(f"{name}: {opened} connections of the attackers", flush=True)

        return stop

    return attack


def attacker(name, url):
    """Attacks until stdin ends. Says on stdout when it has begun, and at the end how many connections it has opened."""
    opened = 0
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin, selectors.EVENT_READ)
        while not selector.select(0):
            run(ATTACKS[name], url, selector)
            opened += 1
            if opened == 1:
                print("begun", flush=True)
    print(opened)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--attacker"]:
        attacker(*sys.argv[2:])
        sys.exit()
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("--lab")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--turns", action="store_true")
    given = parser.parse_args()
    if not given.busy and os.geteuid() != 0:
        fail("http2_attacks.py needs root, for SCHED_FIFO: run it with sudo, or with --busy")
    main(given.program, given.lab or given.program, given.rounds, given.only, given.busy, given.turns)
