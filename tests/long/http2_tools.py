#!/usr/bin/env python3
"""The CPU time of the test server and of the load engine with HTTP/2, against nginx, h2o and h2load, in turns.

    python3 tests/long/http2_tools.py target/release/weir [--blocks N]

The servers, on core 0, send a file of 1000 bytes over TLS to h2load: 4 connections of 100 streams. The engines, on core 1, load
the test server for two seconds. Each block runs all of them once, in random order; a ratio has its interval of 95 %.
"""

import argparse
import json
import math
import os
import pathlib
import random
import re
import resource
import socket
import statistics
import subprocess
import tempfile
import time

from common import certificates, fail

SHAPES = [(4, 100), (8, 16), (64, 1)]
REQUESTS = 60_000
SUITE = "ECDHE-ECDSA-AES128-GCM-SHA256"

NGINX = """
user root; daemon off; error_log stderr; pid {folder}/nginx.pid; worker_processes 1; worker_cpu_affinity 01;
events {{ }}
http {{
  access_log off; keepalive_requests 100000000; keepalive_timeout 600s; open_file_cache max=10 inactive=600s; sendfile on;
  ssl_certificate {chain}; ssl_certificate_key {key}; ssl_protocols TLSv1.3; ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
  server {{ listen 127.0.0.1:7001 ssl http2; location /bytes/ {{ alias {folder}/files/; }} }}
}}
"""

H2O = """
user: root
num-threads: 1
http2-idle-timeout: 600
hosts:
  default:
    listen: {{host: 127.0.0.1, port: 7002, ssl: {{certificate-file: {chain}, key-file: {key}, minimum-version: TLSv1.3}}}}
    paths: {{/bytes: {{file.dir: {folder}/files}}}}
"""

PORTS = {"weir": 7000, "nginx": 7001, "h2o": 7002}


def main(weir, blocks):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        chain, key = certificates(folder)["ecdsa"]
        (folder / "files").mkdir()
        (folder / "files/1000").write_bytes(b"x" * 1000)
        for file, text in (("nginx.conf", NGINX), ("h2o.conf", H2O)):
            (folder / file).write_text(text.format(folder=folder, chain=chain, key=key))
        commands = {
            "weir": f"{weir} origin --listen https://127.0.0.1:7000 --listen http://127.0.0.1:7003 --cert {chain} --key {key}"
            " --workers 1 --cores 0 --suite aes128-gcm-sha256",
            "nginx": f"nginx -c {folder}/nginx.conf",
            "h2o": f"taskset -c 0 h2o -c {folder}/h2o.conf",
        }
        servers = {name: start(command) for name, command in commands.items()}
        try:
            for port in PORTS.values():
                wait_for(port)
            compare("servers, 4 x 100, TLS", blocks, {name: lambda name=name: of_server(name, servers[name]) for name in servers})
            for url in ("https://127.0.0.1:7000/bytes/1000", "http://127.0.0.1:7003/bytes/1000"):
                for shape in SHAPES:
                    engines = {"weir": lambda: of_engine(weir_load(weir, url, *shape)), "h2load": lambda: of_engine(h2load(url, *shape))}
                    compare(f"engines, {shape[0]} x {shape[1]}, {url.split(':')[0]}", blocks, engines)
        finally:
            for server in servers.values():
                server.terminate()
                server.wait()


def start(command):
    return subprocess.Popen(command.split(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for(port):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.01)
    fail(f"nothing listens on port {port}")


def compare(what, blocks, subjects):
    """Prints each subject's median, in microseconds per request, and Weir's ratio to the others."""
    figures = {name: [] for name in subjects}
    for _ in range(blocks):
        for name in random.sample(list(subjects), len(subjects)):
            figures[name].append(subjects[name]())
    print(what, *(f"{name} {statistics.median(all):.2f} us" for name, all in figures.items()), sep="  ", flush=True)
    for name in list(subjects)[1:]:
        logs = [math.log(ours / other) for ours, other in zip(figures["weir"], figures[name])]
        # Student's t for 7 to 11 degrees of freedom.
        middle, reach = statistics.mean(logs), 2.3 * statistics.stdev(logs) / math.sqrt(len(logs))
        low, value, high = (math.exp(middle + by) for by in (-reach, 0, reach))
        print(f"  weir / {name}: {value:.2f} [{low:.2f}, {high:.2f}]", flush=True)


def of_server(name, server):
    before = nanoseconds(server.pid)
    url = f"https://127.0.0.1:{PORTS[name]}/bytes/1000"
    command = ["taskset", "-c", "1", "h2load", "-n", str(REQUESTS), "-c", "4", "-m", "100", "--ciphers", SUITE, url]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f" {REQUESTS} 2xx," in printed, printed
    return (nanoseconds(server.pid) - before) / 1000 / REQUESTS


def nanoseconds(pid):
    """The CPU time of a process, its threads and its children."""
    children = [int(child) for task in os.listdir(f"/proc/{pid}/task") for child in read(f"/proc/{pid}/task/{task}/children").split()]
    own = sum(int(read(f"/proc/{pid}/task/{task}/schedstat").split()[0]) for task in os.listdir(f"/proc/{pid}/task"))
    return own + sum(map(nanoseconds, children))


def read(path):
    return pathlib.Path(path).read_text()


def of_engine(run):
    command, count = run
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = subprocess.run(["taskset", "-c", "1", *command], capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e6 / count(printed)


def h2load(url, connections, streams):
    command = ["h2load", "-D", "2", "-c", str(connections), "-m", str(streams), "--ciphers", SUITE, url]
    return command, lambda printed: int(re.search(r"(\d+) succeeded", printed)[1])


def weir_load(weir, url, connections, streams):
    command = [weir, "load", url, "--http", "2", "-c", str(connections), "-m", str(streams), "-d", "2s", "--warmup", "0s", "-t", "1"]
    command += ["--suite", "aes128-gcm-sha256", "--json", "-", *(["-k"] if url.startswith("https") else [])]
    return command, lambda printed: json.loads(printed)["answered_in_all"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weir", help="a release build")
    parser.add_argument("--blocks", type=int, default=8)
    arguments = parser.parse_args()
    main(arguments.weir, arguments.blocks)
