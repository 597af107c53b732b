#!/usr/bin/env python3
"""A soak: a steady load at half of saturation for an hour, with reloads, restarts of a server, slow clients and clients that go away.

    python3 tests/long/soak.py target/release/weir [--lab WEIR] [--minutes N] [--minute SECONDS] [--rate R]

Half of the load is HTTP/2, half HTTP/1.1. Each requests two services in turn, with HTTP/2 to the servers and without. Clients
misbehave in both versions.

Each minute has a line: the requests, what was lost, and what the gateway holds: memory, descriptors, timers. At the end they are compared with
minute five (of a run of less than ten minutes, with the middle). It fails if a request is lost that could have been sent again, or if one of
them has grown.

--lab names the program for load and origin, if that of the gateway has neither. --rate replaces half of saturation, and
--minute shortens minutes, both for a try on a machine that others use: then the rate and what was not sent have no verdict.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from common import Gateway, Process, certificates, fail, other_cores
from misbehaving import misbehave

# Version -> options of its load: as many requests at a time by either.
VERSIONS = {"1.1": ["-c", "32"], "2": ["--http", "2", "-c", "4", "-m", "8"]}

CONFIG = """
workers = 1
cores = "0"
[listener.secure]
bind = "127.0.0.1:0"
tls = {{}}
[[certificate]]
chain = "{chain}"
key = "{key}"
[service.app]
servers = ["{first}", "{second}"]
retry_percent = 100
[service.streams]
servers = ["{first}", "{second}"]
retry_percent = 100
http2 = true
[[route]]
path = ["/bytes/501", "/bytes/3000001"]
service = "streams"
response_headers.set = {{ X-Generation = "{generation}" }}
[[route]]
service = "app"
response_headers.set = {{ X-Generation = "{generation}" }}
[log]
access = "{log}"
"""

# Of a server that is killed, what had begun cannot be sent again.
FORBIDDEN = {"upstream_closed", "upstream_truncated"}
BY_HTTP2 = {"client_reset", "bad_http2", "bad_http2_stream", "http2_abuse"}
# Of the clients that are slow or go away.
EXPECTED = FORBIDDEN | BY_HTTP2 | {"client_closed", "client_stalled", "body_timeout", "body_too_slow", "client_too_slow", "handshake_timeout", "head_timeout", "client_tls"}


def main(weir, lab, minutes, seconds, given_rate):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-soak-"))
    chain, key = certificates(folder)["ecdsa"]
    others = other_cores()
    start = lambda url: Process(lab, "origin", "--listen", url, "--workers", "1", "--cores", str(others[0]))
    origins = [start("http://127.0.0.1:0") for _ in range(2)]
    urls = [origin.listening(1)[0] for origin in origins]
    generation = 0
    config = lambda: CONFIG.format(
        chain=chain, key=key, first=urls[0], second=urls[1], generation=generation, log=folder / "access.log"
    )
    over = threading.Event()
    with Gateway(weir, folder, config()) as gateway:
        os.sched_setaffinity(0, set(others))
        [url] = gateway.urls
        crowd = [threading.Thread(target=misbehave, args=(url, over, seed)) for seed in range(4)]
        for client in crowd:
            client.start()
        held, wrong, unsent = [], [], 0
        try:
            rate = given_rate or steady_rate(lab, url, others)
            for minute in range(1, minutes + 1):
                options = ["--rate", f"{rate / 2:.0f}", "-d", f"{seconds}s", "--error-budget", "1"]
                loads = [begin(lab, url, others, version, options) for version in VERSIONS]
                end = time.monotonic() + seconds
                while time.monotonic() < end - 5:
                    time.sleep(8)
                    generation += 1
                    gateway.write(config())
                    os.kill(gateway.pid, signal.SIGHUP)
                    # A server at a time: what is not under way there finds the other one.
                    which = generation % 2
                    origins[which].kill()
                    origins[which] = start(urls[which])
                    origins[which].listening(1)
                results = [json.loads(load.communicate()[0]) for load in loads]
                metrics = gateway.metrics()
                held.append((gateway.rss_kib(), gateway.descriptors(), metrics["weir_timers"]))
                early = gateway.ended_early()
                for version, result in zip(VERSIONS, results, strict=True):
                    print(
                        f"minute {minute}: HTTP/{version}: {result['answered_in_all']} responses, errors {result['errors'] or 'none'}, "
                        f"unsent {result['unsent']['count']}"
                    )
                print(
                    f"minute {minute}: to servers by HTTP/2 {metrics['weir_upstream_http2_requests_total']:.0f}; "
                    f"RSS {held[-1][0]} KiB, {held[-1][1]} descriptors, {held[-1][2]:.0f} timers; "
                    f"reloads {metrics['weir_reloads_total']:.0f}, retries {metrics['weir_retries_total']:.0f}, early {early}",
                    flush=True,
                )
                unexpected = {reason: count for reason, count in early.items() if reason not in EXPECTED}
                unsent += sum(result["unsent"]["count"] for result in results)
                if unexpected:
                    wrong.append(f"minute {minute}: {unexpected}")
                lost = sum(sum(result["errors"].values()) for result in results)
                if lost > sum(early.get(reason, 0) for reason in FORBIDDEN):
                    examples = [(result["errors"], result["error_examples"]) for result in results]
                    wrong.append(f"minute {minute}: {lost} requests were lost: {examples}")
        finally:
            over.set()
            for client in crowd:
                client.join()
            for origin in origins:
                origin.kill()
        # The machine may have its pauses.
        if not given_rate and unsent > 0.05 * rate * seconds * minutes:
            wrong.append(f"of the load {unsent} requests could not be sent")
        then, now = held[min(4, len(held) // 2)], held[-1]
        # The reports of a minute catch different moments of the clients that come and go.
        for what, before, after, slack in zip(("RSS in KiB", "descriptors", "timers"), then, now, (2048, 80, 80), strict=True):
            print(f"{what}: {before:.0f} then, {after:.0f} at the end")
            if after > before * 1.05 + slack:
                wrong.append(f"{what} grew from {before:.0f} to {after:.0f}")
    if wrong:
        fail("\n".join([*wrong, f"see {folder}"]))
    # Gigabytes of an access log.
    shutil.rmtree(folder)


def begin(lab, url, cores, version, options):
    urls = [f"{url}/bytes/500", f"{url}/bytes/501"]
    command = [lab, "load", *urls, "-k", *VERSIONS[version], "--cores", str(cores[0]), *options, "--json", "-"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def steady_rate(lab, url, cores):
    """Half of saturation; or as much as the load engine can send at a steady rate, if the cores that it shares allow no more."""

    def run(options):
        loads = [begin(lab, url, cores, version, options) for version in VERSIONS]
        return [json.loads(load.communicate()[0]) for load in loads]

    both = lambda results: sum(result["requests_per_second"] for result in results)
    half = both(run(["-d", "10s"])) / 2
    tried = run(["--rate", f"{half / 2:.0f}", "-d", "20s", "--error-budget", "1"])
    unsent = sum(result["unsent"]["count"] for result in tried)
    rate = half if unsent < 0.01 * half * 20 else 0.8 * both(tried)
    print(f"half of saturation: {half:.0f} requests/s; the load has {rate:.0f}", flush=True)
    return rate


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("--lab")
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--minute", type=int, default=60, metavar="SECONDS")
    parser.add_argument("--rate", type=float)
    given = parser.parse_args()
    main(given.program, given.lab or given.program, given.minutes, given.minute, given.rate)
