#!/usr/bin/env python3
"""Reloads of many services under load: their time, the worst response meanwhile, and the memory afterwards.

    python3 tests/long/reloads.py target/release/weir [--lab WEIR] [--services N] [--reloads N] [--rate N] [--most-ms MS]

The gateway has --services (default 5000) of three servers each, and a route to each. While a load sends --rate requests/s
(default 500) on another route, one server of one service changes, and the gateway reloads: --reloads times (default 10), half
a second apart. Then it reloads as often without a load, for its CPU time, which says more than elapsed time on a busy
machine. It fails if a response is missing or wrong, if a reload changes
anything else than one service, or if the reloads have grown the resident memory by more than a tenth; with --most-ms, also if a
reload takes longer. It prints the time of each reload, the response times with and without reloads, and the resident memory.

--lab names the program for load and origin, if that of the gateway has neither.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

from common import Gateway, Process, fail, other_cores

HEAD = """
workers = 2
[listener.web]
bind = "127.0.0.1:0"
[service.loaded]
servers = "{origin}"
[[route]]
path = "/bytes/*"
service = "loaded"
"""


def service(nth, version):
    """A service of three servers that no request reaches, and its route."""
    last = 2 + version
    servers = ", ".join(f'"http://127.{1 + nth // 65536}.{nth // 256 % 256}.{nth % 256}:{port}"' for port in (1, 2, last))
    return f'[service.s{nth}]\nservers = [{servers}]\n[[route]]\nhost = "s{nth}.example.org"\nservice = "s{nth}"\n'


def configuration(origin, services, changed):
    """The configuration after the services 0 to `changed` - 1 have each got another server."""
    return HEAD.format(origin=origin) + "".join(service(nth, 1 + int(nth < changed)) for nth in range(services))


def main(program, lab, services, reloads, rate, most):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-reloads-"))
    origin = Process(lab, "origin", "--listen", "http://127.0.0.1:0", "--workers", "1")
    try:
        [at] = origin.listening(1)
        with Gateway(program, folder, configuration(at, services, 0)) as gateway:
            url = gateway.urls[0] + "/bytes/500"
            load = begin(lab, url, rate)
            wait_until("the load runs", lambda: gateway.metrics()["weir_clients"] > 1)
            time.sleep(reloads * PAUSE)
            quiet = end(load)
            before = gateway.rss_kib()
            load = begin(lab, url, rate)
            times, memory = [], []
            wait_until("the load runs", lambda: gateway.metrics()["weir_clients"] > 1)
            for nth in range(1, reloads + 1):
                times.append(reload(gateway, configuration(at, services, nth)))
                memory.append(gateway.rss_kib())
                time.sleep(PAUSE)
            busy = end(load)
            begun = cpu_ms(gateway.pid)
            for nth in range(reloads + 1, 2 * reloads + 1):
                reload(gateway, configuration(at, services, nth))
            total, worker = ((now - then) / reloads for now, then in zip(cpu_ms(gateway.pid), begun))
            time.sleep(PAUSE)
            after = gateway.rss_kib()
    finally:
        origin.stop()
    print(f"{services} services; {reloads} reloads of one changed service, {rate} requests/s")
    print(f"reload {min(times):.0f} to {max(times):.0f} ms, median {statistics.median(times):.0f} ms")
    print(f"CPU of a reload: {total:.0f} ms, {worker:.1f} ms of them of workers")
    for what, result in [("without reloads", quiet), ("with reloads", busy)]:
        response, late = result["response"], result["unsent"]["count"]
        p99, worst = response["p99_us"] or 0, response["max_us"]
        print(f"{what}: p99 {p99 / 1000:.1f} ms, worst {worst / 1000:.1f} ms, {late} requests not sent in time")
    print(f"RSS {before / 1024:.0f} MiB before, {max(memory) / 1024:.0f} MiB at most, {after / 1024:.0f} MiB after ({after / before - 1:+.0%})")
    if after > 1.1 * before:
        fail(f"the memory has grown; see {folder}")
    if most and max(times) > most:
        fail(f"a reload took {max(times):.0f} ms; see {folder}")
    shutil.rmtree(folder)


def reload(gateway, config):
    """Reloads, and returns the milliseconds that this took. Ends the script unless one service changes, and nothing else."""
    gateway.write(config)
    begun = time.monotonic()
    outcome = json.loads(gateway.ask("/reload", "POST"))
    taken = (time.monotonic() - begun) * 1000
    if {what: count for what, count in outcome.get("changed", {}).items() if count} != {"services": 1}:
        fail(f"the reload: {outcome}")
    return taken


def cpu_ms(pid):
    """The CPU time in milliseconds of a process, threads that have ended included, and of its workers."""
    ticks = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    workers = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            if (task / "comm").read_text().startswith("worker"):
                workers += int((task / "schedstat").read_text().split()[0]) / 1e6
        except OSError:
            # It has ended, as do those of the admin address.
            continue
    return sum(map(int, ticks)) * 1000 / os.sysconf("SC_CLK_TCK"), workers


def begin(lab, url, rate, connections=16, options=()):
    cores = ",".join(map(str, other_cores()))
    fixed = ["-c", str(connections), "--rate", str(rate), "-d", "1h", "--cores", cores, "--json", "-"]
    command = [lab, "load", url, *fixed, *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def end(load):
    load.send_signal(signal.SIGINT)
    result = json.loads(load.communicate(timeout=300)[0])
    if result["errors"]:
        fail(f"requests were lost: {result['errors']} {result['error_examples']}")
    return result


def wait_until(what, is_so):
    end = time.monotonic() + 30
    while not is_so():
        if time.monotonic() > end:
            fail(f"in 30 s it is not so that {what}")
        time.sleep(0.02)


# Seconds between reloads.
PAUSE = 0.5

if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("--lab")
    parser.add_argument("--services", type=int, default=5000)
    parser.add_argument("--reloads", type=int, default=10)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--most-ms", type=float)
    given = parser.parse_args()
    main(given.program, given.lab or given.program, given.services, given.reloads, given.rate, given.most_ms)
