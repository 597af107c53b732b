#!/usr/bin/env python3
"""A soak: a steady load at half of saturation for an hour, with reloads, restarts of a server, slow clients and clients that go away.

    python3 tests/long/soak.py target/release/weir [MINUTES]

Each minute has a line: the requests, what was lost, and what the gateway holds: memory, descriptors, timers. At the end they are compared with
minute five (of a run of less than ten minutes, with the middle). It fails if a request is lost that could have been sent again, or if one of
them has grown.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from common import Gateway, Process, certificates, fail, other_cores

CONNECTIONS = 32

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
[[route]]
service = "app"
response_headers.set = {{ X-Generation = "{generation}" }}
[log]
access = "{log}"
"""

# Of a server that is killed, what had begun cannot be sent again.
FORBIDDEN = {"upstream_closed", "upstream_truncated"}
# Of the clients that are slow or go away.
EXPECTED = FORBIDDEN | {"client_closed", "client_stalled", "body_timeout", "body_too_slow", "client_too_slow", "handshake_timeout", "head_timeout", "client_tls"}


def main(weir, minutes):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-soak-"))
    chain, key = certificates(folder)["ecdsa"]
    others = other_cores()
    start = lambda url: Process(weir, "origin", "--listen", url, "--workers", "1", "--cores", str(others[0]))
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
            rate = steady_rate(weir, url, others)
            for minute in range(1, minutes + 1):
                load = begin(weir, url, others, ["--rate", f"{rate:.0f}", "-d", "60s", "--error-budget", "1"])
                end = time.monotonic() + 60
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
                result = json.loads(load.communicate()[0])
                metrics = gateway.metrics()
                held.append((gateway.rss_kib(), gateway.descriptors(), metrics["weir_timers"]))
                early = gateway.ended_early()
                print(
                    f"minute {minute}: {result['answered_in_all']} answers, errors {result['errors'] or 'none'}, unsent {result['unsent']['count']}; "
                    f"RSS {held[-1][0]} KiB, {held[-1][1]} descriptors, {held[-1][2]:.0f} timers; "
                    f"reloads {metrics['weir_reloads_total']:.0f}, retries {metrics['weir_retries_total']:.0f}, early {early}",
                    flush=True,
                )
                unexpected = {reason: count for reason, count in early.items() if reason not in EXPECTED}
                unsent += result["unsent"]["count"]
                if unexpected:
                    wrong.append(f"minute {minute}: {unexpected}")
                lost = sum(count for kind, count in result["errors"].items())
                if lost > sum(early.get(reason, 0) for reason in FORBIDDEN):
                    wrong.append(f"minute {minute}: {lost} requests were lost: {result['errors']} {result['error_examples']}")
        finally:
            over.set()
            for client in crowd:
                client.join()
            for origin in origins:
                origin.kill()
        # The machine may have its pauses.
        if unsent > 0.05 * rate * 60 * minutes:
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


def begin(weir, url, cores, options):
    command = [weir, "load", f"{url}/bytes/500", "-k", "-c", str(CONNECTIONS), "--cores", str(cores[0]), *options, "--json", "-"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def steady_rate(weir, url, cores):
    """Half of saturation; or as much as the load engine can send at a steady rate, if the cores that it shares allow no more."""
    run = lambda options: json.loads(begin(weir, url, cores, options).communicate()[0])
    half = run(["-d", "10s"])["requests_per_second"] / 2
    tried = run(["--rate", f"{half:.0f}", "-d", "20s", "--error-budget", "1"])
    rate = half if tried["unsent"]["count"] < 0.01 * half * 20 else 0.8 * tried["requests_per_second"]
    print(f"half of saturation: {half:.0f} requests/s; the load has {rate:.0f}", flush=True)
    return rate


def misbehave(url, over, seed):
    """A client that does one thing after the other that it should not."""
    chance = random.Random(seed)
    host, port = url.removeprefix("https://").split(":")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    while not over.wait(chance.uniform(0.05, 0.3)):
        try:
            with socket.create_connection((host, int(port)), timeout=5) as plain:
                if chance.random() < 0.2:
                    # It goes away in its handshake.
                    plain.send(bytes([22, 3, 1, 2, 0]))
                    continue
                with context.wrap_socket(plain) as client:
                    what = chance.randrange(4)
                    if what == 0:
                        client.sendall(b"GET /bytes/5000000 HTTP/1.1\r\nHost: h\r\n\r\n")
                        client.recv(1000)
                    elif what == 1:
                        client.sendall(b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nonly so much")
                        over.wait(chance.uniform(0, 1))
                    elif what == 2:
                        client.sendall(b"GET /bytes/500?delay_ms=500 HTTP/1.1\r\nHost: h\r\n\r\n")
                    else:
                        client.sendall(b"GET /bytes/3000000 HTTP/1.1\r\nHost: h\r\n\r\n")
                        for _ in range(20):
                            client.recv(2000)
                            over.wait(0.05)
        except OSError:
            # The gateway closes on it, as it should.
            pass


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        fail(__doc__)
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 60)
