#!/usr/bin/env python3
"""Changes of one service's servers among many services, under load: their time, the worst response meanwhile, and the memory.

    python3 tests/long/endpoints.py target/release/weir [--lab WEIR] [--services N] [--changes N] [--rate N] [--pause S]

The gateway has --services (default 5000) of three servers each, and a route to each. While a load sends --rate requests/s
(default 500) to another service, that service gets other servers through the admin address: --changes times (default 1000),
--pause seconds (default 0.05) apart. Its server stays, and up to three backups come and go. It fails if a response is missing or
wrong. It prints the time of a change, the CPU time of the threads per change, the response times with and without changes, and the
resident memory.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import tempfile
import time

from common import Gateway, Process
from reloads import HEAD, begin, end, service, thread_ms, wait_until


def servers(origin, nth):
    """The origin, and up to three backups, which get no request while it is up."""
    backups = [{"url": f"http://127.9.0.{1 + (nth + more) % 9}:1", "backup": True} for more in range(nth % 4)]
    return json.dumps([origin, *backups])


def main(program, lab, services, changes, rate, pause):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-endpoints-"))
    origin = Process(lab, "origin", "--listen", "http://127.0.0.1:0", "--workers", "1")
    try:
        [at] = origin.listening(1)
        config = HEAD.format(origin=at) + "".join(service(nth, 1) for nth in range(services))
        with Gateway(program, folder, config) as gateway:
            url = gateway.urls[0] + "/bytes/500"
            load = begin(lab, url, rate)
            wait_until("the load runs", lambda: gateway.metrics()["weir_clients"] > 1)
            time.sleep(changes * pause / 2)
            quiet = end(load)
            # The first changes fill what stays allocated.
            for nth in range(20):
                gateway.ask("/services/loaded/servers", "PUT", servers(at, nth))
            cpu = thread_ms(gateway.pid)
            for nth in range(100):
                gateway.ask("/services/loaded/servers", "PUT", servers(at, nth))
            spent = {name: (ms - cpu.get(name, 0)) / 100 for name, ms in thread_ms(gateway.pid).items()}
            load = begin(lab, url, rate)
            wait_until("the load runs", lambda: gateway.metrics()["weir_clients"] > 1)
            # Not sooner: a page of metrics leaves room in the allocator's heap.
            times, before = [], gateway.rss_kib()
            for nth in range(changes):
                begun = time.monotonic()
                gateway.ask("/services/loaded/servers", "PUT", servers(at, nth))
                times.append((time.monotonic() - begun) * 1000)
                time.sleep(pause)
            busy = end(load)
            after = gateway.rss_kib()
    finally:
        origin.stop()
    print(f"{services} services; {changes} changes of one service, {rate} requests/s")
    times.sort()
    print(f"change: median {statistics.median(times):.1f} ms, p99 {times[len(times) * 99 // 100]:.1f} ms, worst {times[-1]:.1f} ms")
    worker = max(ms for name, ms in spent.items() if name.startswith("worker"))
    print(f"CPU of a change without load: {spent['reload']:.3f} ms of its thread, {worker:.3f} ms of a worker")
    for what, result in [("without changes", quiet), ("with changes", busy)]:
        response, late = result["response"], result["unsent"]["count"]
        p99, worst = response["p99_us"] or 0, response["max_us"]
        print(f"{what}: p99 {p99 / 1000:.1f} ms, worst {worst / 1000:.1f} ms, {late} requests not sent in time")
    print(f"RSS {before / 1024:.0f} MiB before, {after / 1024:.0f} MiB after ({after / before - 1:+.0%})")
    shutil.rmtree(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("--lab")
    parser.add_argument("--services", type=int, default=5000)
    parser.add_argument("--changes", type=int, default=1000)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--pause", type=float, default=0.05)
    given = parser.parse_args()
    main(given.program, given.lab or given.program, given.services, given.changes, given.rate, given.pause)
