#!/usr/bin/env python3
"""Reloads and drains under load by HTTP/2 and HTTP/1.1: no request is lost.

    python3 tests/long/drains.py target/release/weir [--lab WEIR] [--times N] [--streams N]

N times (default 100): a reload that turns the HTTP/2 of a service on or off, and an upgrade, whose old process drains; every
second one drains after SIGTERM. Each of four clients has --streams requests in flight (default 25), and 16 have one each by
HTTP/1.1, some with bodies, to three services: one with HTTP/2, one without, and the one that changes. It fails if a client misses a response, if the gateway reports an early end,
and if the load did not see drains, or the servers no HTTP/2.

--lab names the program for load and origin, if that of the gateway has neither.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

from common import Gateway, Process, certificates, fail

CONFIG = """
workers = 1
[listener.secure]
bind = "127.0.0.1:0"
tls = {{}}
[[certificate]]
chain = "{chain}"
key = "{key}"
[service.plain]
servers = "{origin}"
[service.streams]
servers = "{origin}"
http2 = true
[service.changing]
servers = "{origin}"
http2 = {http2}
[[route]]
path = "/bytes/1000"
service = "plain"
[[route]]
path = "/bytes/200000"
service = "streams"
[[route]]
service = "changing"
[timeouts]
upgrade_drain = "30s"
"""

REQUESTS = [
    {"path": "/bytes/1000?delay_ms=50"},
    {"path": "/bytes/200000?delay_ms=50"},
    {"path": "/bytes/2000?delay_ms=200"},
    # The gateway must not send it again.
    {"method": "POST", "path": "/echo?delay_ms=50", "body": "x" * 3000},
]
EARLY_END = re.compile(r"weir: (\d{3}|-) [a-z0-9_]+ ")
# Of an old process.
DRAIN = 40


def main(program, lab, times, streams):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-drains-"))
    chain, key = certificates(folder)["ecdsa"]
    requests = folder / "requests"
    requests.write_text("".join(json.dumps(each) + "\n" for each in REQUESTS))
    origin = Process(lab, "origin", "--listen", "http://127.0.0.1:0", "--workers", "1")
    [at] = origin.listening(1)
    config = lambda http2: CONFIG.format(chain=chain, key=key, origin=at, http2=http2)
    loads = {}
    try:
        with Gateway(program, folder, config("false")) as gateway:
            [url] = gateway.urls
            # In a closed loop no connection of HTTP/1.1 is idle, so that none closes while a request is on its way.
            loads = {
                "2": begin(lab, url, requests, "--http", "2", "-c", "4", "-m", str(streams)),
                "1.1": begin(lab, url, requests, "-c", "16"),
            }
            wait_until("the load runs", lambda: gateway.metrics()["weir_http2_requests_total"] > 10)
            by_http2 = 0
            for nth in range(times):
                gateway.write(config("false" if nth % 2 else "true"))
                gateway.ask("/reload", "POST")
                before = gateway.metrics()["weir_upstream_http2_requests_total"]
                wait_until("the servers get requests", lambda: gateway.metrics()["weir_upstream_http2_requests_total"] > before)
                by_http2 += gateway.metrics()["weir_upstream_http2_requests_total"]
                drain(gateway, by_signal=nth % 2 == 1)
            early = [line for line in gateway.process.lines["stderr"] if EARLY_END.match(line)]
            results = {version: end(load) for version, load in loads.items()}
    finally:
        for load in loads.values():
            load.kill()
        origin.stop()
    wrong = [f"early ends: {len(early)}, such as {early[0]}"] if early else []
    print(f"{times} reloads, {times} drains; {by_http2:.0f} requests to servers by HTTP/2 before the drains")
    for version, result in results.items():
        print(f"HTTP/{version}: {result['answered_in_all']} responses, errors {result['errors'] or 'none'}")
        if result["errors"]:
            wrong.append(f"HTTP/{version}: {result['errors']} {result['error_examples']}")
    figures = results["2"]["http2"]
    print(f"GOAWAY {figures['goaways']}, {figures['refused']} requests refused, {figures['retried']} sent again")
    if figures["goaways"].get("no_error", 0) < times:
        wrong.append("the load did not see each drain")
    if wrong:
        fail("\n".join([*wrong, f"see {folder}"]))
    shutil.rmtree(folder)


def begin(lab, url, requests, *options):
    command = [lab, "load", url, "--requests", str(requests), "-k", *options, "-d", "1h", "--timeout", "60s", "--json", "-"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def end(load):
    load.send_signal(signal.SIGINT)
    return json.loads(load.communicate(timeout=120)[0])


def drain(gateway, by_signal):
    """An upgrade, until the old process has exited."""
    old, gateway.pid = gateway.pid, json.loads(gateway.ask("/upgrade", "POST"))["pid"]
    if by_signal:
        os.kill(old, signal.SIGTERM)
    wait_until(f"process {old} exits", lambda: has_exited(gateway, old))


def has_exited(gateway, pid):
    # The first one is a child of this process, and the others have no parent that waits for them here.
    if pid == gateway.process.child.pid:
        return gateway.process.child.poll() is not None
    status = pathlib.Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rsplit(") ", 1)[1].startswith("Z")


def wait_until(what, is_so):
    end = time.monotonic() + DRAIN
    while not is_so():
        if time.monotonic() > end:
            fail(f"in {DRAIN} s it is not so that {what}")
        time.sleep(0.02)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("--lab")
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--streams", type=int, default=25)
    given = parser.parse_args()
    main(given.program, given.lab or given.program, given.times, given.streams)
