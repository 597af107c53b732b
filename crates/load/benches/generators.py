#!/usr/bin/env python3
"""CPU of load generators for the same work: weir load, wrk, h2load, oha and ab, in turn, against `weir origin`.

Cells: cleartext and TLS 1.3 with keep-alive (64 connections, 500 bytes), and full TLS 1.3 handshakes, a new connection
for each request. In every block each generator runs once in each cell, in an order drawn from a seed. The origin has
one core, the generator another. CPU is user + system time of the generator's whole process; the work is what the
ORIGIN counted (responses, full handshakes), so no generator's own count is trusted. weir runs with its defaults: all
checks, all histograms. Ratios are compared block by block: Hodges-Lehmann, and the exact interval of the signed-rank
distribution.

usage: generators.py [--blocks N] [--seconds S] [--weir FILE] [--only CELL,..] [--install] [--json FILE]
"""

import argparse
import itertools
import json
import math
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUITE = "TLS_AES_256_GCM_SHA384"
CONNECTIONS = 64
BYTES = 500
# Each generator runs for a fixed time, or sends a number of requests that takes about that time.
REQUESTS_PER_SECOND = {"http": 60_000, "https": 50_000, "handshake": 1_800}
PACKAGES = {"wrk": "wrk", "h2load": "nghttp2-client", "ab": "apache2-utils"}


def main():
    options = arguments()
    if options.install:
        install()
    tools = {name: path for name in ("wrk", "h2load", "oha", "ab") if (path := find(name))}
    print("versions: " + "; ".join(f"{name} {version(name, path)}" for name, path in tools.items()))
    tools["weir"] = options.weir
    generator = random.Random(options.seed)
    rows = {cell: {name: [] for name in commands(options, tools, cell, "", "")} for cell in options.only}
    with Origin(options.weir, options.origin_core) as origin:
        for block in range(options.blocks):
            for cell in options.only:
                order = list(rows[cell])
                generator.shuffle(order)
                for name in order:
                    rows[cell][name].append(run(options, tools, origin, cell, name))
                shown = ", ".join(f"{name} {rows[cell][name][-1]['cost_us']:.2f}" for name in sorted(rows[cell]))
                print(f"block {block + 1} of {options.blocks}, {cell}: {shown}", file=sys.stderr, flush=True)
    for cell in options.only:
        table(cell, rows[cell])
    memory(options)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=2.0, help="duration of each run")
    parser.add_argument("--weir", type=Path, default=HERE / "../../../target/release/weir")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(REQUESTS_PER_SECOND))
    parser.add_argument("--install", action="store_true", help="install missing tools (Debian, as root; oha: cargo)")
    parser.add_argument("--json", type=Path, help="write the runs to this file")
    parser.add_argument("--origin-core", type=int, default=0)
    parser.add_argument("--load-core", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.weir = options.weir.resolve()
    if not options.weir.exists():
        parser.error(f"{options.weir} is missing; run cargo build --release, or pass --weir FILE")
    for cell in options.only:
        if cell not in REQUESTS_PER_SECOND:
            parser.error(f"--only: unknown cell `{cell}`: expected one of {', '.join(REQUESTS_PER_SECOND)}")
    return options


def install():
    missing = [package for name, package in PACKAGES.items() if not find(name)]
    if missing:
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing], check=True)
    if not find("oha"):
        subprocess.run(["cargo", "install", "--quiet", "--locked", "oha"], check=True)


def find(name):
    return shutil.which(name) or shutil.which(name, path=Path.home() / ".cargo/bin")


def version(name, path):
    flag = {"ab": "-V", "wrk": "-v"}.get(name, "--version")
    text = subprocess.run([path, flag], capture_output=True, text=True)
    found = re.search(r"\d+\.\d+(\.\d+)*", text.stdout + text.stderr)
    return found.group() if found else "?"


class Origin:
    """`weir origin` on its own core, with its own counters."""

    def __init__(self, weir, core):
        self.log = tempfile.TemporaryFile("w+")
        command = [weir, "origin", "--workers", "1", "--listen", "http://127.0.0.1:0", "--listen", "https://127.0.0.1:0"]
        self.process = subprocess.Popen(
            command, stdout=self.log, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {core})
        )
        while "listening on https" not in (text := self.read()):
            if self.process.poll() is not None:
                sys.exit("weir origin exited")
        self.urls = dict(re.findall(r"listening on (\w+)(://\S+)", text))
        self.urls = {scheme: scheme + rest for scheme, rest in self.urls.items()}

    def read(self):
        self.log.seek(0)
        return self.log.read()

    def counts(self):
        with urllib.request.urlopen(self.urls["http"] + "/stats") as answer:
            return json.load(answer)

    def cpu(self):
        threads = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def commands(options, tools, cell, url, scratch):
    """The command of each generator that supports a cell, with suite and version pinned as far as it allows."""
    seconds = f"{options.seconds:g}"
    total = str(int(REQUESTS_PER_SECOND[cell] * options.seconds))
    c = str(CONNECTIONS)
    weir = [tools["weir"], "load", url, "-c", c, "-d", f"{seconds}s", "--warmup", "0s", "--json", f"{scratch}/json"]
    if cell != "http":
        weir += ["-k", "--tls", "1.3", "--suite", SUITE, "--group", "x25519"]
    handshake = cell == "handshake"
    if handshake:
        weir += ["--new-connection"]
    all_of_them = {"weir": weir}
    if "wrk" in tools and not handshake:
        all_of_them["wrk"] = [tools["wrk"], "-t1", "-c", c, "-d", f"{seconds}s", url]
    if "h2load" in tools:
        # A connection per request takes as many clients as requests: 64 of them start every 30 ms.
        clients = ["-n", total, "-c", total, "-r", "64", "--rate-period", "30ms"] if handshake else ["-n", total, "-c", c]
        all_of_them["h2load"] = [tools["h2load"], "--h1", *clients, "--tls13-ciphers", SUITE, "--groups", "X25519", url]
    if "ab" in tools:
        tls = [] if cell == "http" else ["-f", "TLS1.3"]
        keep_alive = [] if handshake else ["-k"]
        all_of_them["ab"] = [tools["ab"], "-q", "-n", total, "-c", c, *keep_alive, *tls, url]
    if "oha" in tools and not handshake:
        all_of_them["oha"] = [tools["oha"], "--no-tui", "--insecure", "-z", f"{seconds}s", "-c", c, url]
    return all_of_them


def run(options, tools, origin, cell, name):
    scheme = "http" if cell == "http" else "https"
    # ab verifies nothing, and parses a port only in a URL with a path.
    url = f"{origin.urls[scheme]}/bytes/{BYTES}"
    with tempfile.TemporaryDirectory() as scratch:
        command = commands(options, tools, cell, url, scratch)[name]
        before, own, theirs = origin.counts(), cpu_of_children(), origin.cpu()
        ended = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "TOKIO_WORKER_THREADS": "1"},
            preexec_fn=lambda: os.sched_setaffinity(0, {options.load_core}),
        )
        own, theirs, after = cpu_of_children() - own, origin.cpu() - theirs, origin.counts()
        if ended.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))}\n{ended.stdout}")
        if name == "weir":
            validity = json.loads(Path(f"{scratch}/json").read_text())["validity"]
            if validity != "valid":
                sys.exit(f"weir load: {validity}")
    grew = {key: after[key] - before[key] for key in before}
    full, resumed = grew["handshakes_full"], sum(grew[key] for key in grew if key.startswith("resumed"))
    work = full if cell == "handshake" else grew["answers"] - 1
    if cell == "handshake" and resumed:
        sys.exit(f"{name}: {resumed} handshakes were resumed, {full} were full")
    if work == 0:
        sys.exit(f"{' '.join(map(str, command))}: the origin received nothing\n{ended.stdout}")
    return {"cost_us": own / work * 1e6, "work": work, "cpu_s": own, "origin_cpu_s": theirs}


def cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def table(cell, runs):
    unit = "full handshake" if cell == "handshake" else "request"
    print(f"\n{cell}: CPU of the generator per {unit}, median of {len(runs['weir'])} blocks")
    ours = [run["cost_us"] for run in runs["weir"]]
    for name, rows in sorted(runs.items(), key=lambda item: median([run["cost_us"] for run in item[1]])):
        costs = [run["cost_us"] for run in rows]
        share = median([run["origin_cpu_s"] / run["cpu_s"] for run in rows])
        line = f"  {name:7} {median(costs):8.2f} us   origin's CPU per CPU of the generator {share:.2f}"
        if name != "weir":
            ratio, low, high, coverage = hodges_lehmann([math.log(a / b) for a, b in zip(ours, costs)])
            line += f"   weir / {name} {ratio:.3f} [{low:.3f}, {high:.3f}] ({coverage:.1%})"
        print(line)


def memory(options):
    """Resident memory of the engine per open TLS connection."""
    with Origin(options.weir, options.origin_core) as origin:
        peaks = {}
        for connections in (100, 10_000):
            command = [options.weir, "load", f"{origin.urls['https']}/bytes/{BYTES}", "-c", str(connections), "-k",
                       "--rate", "200", "-d", "2s", "--timeout", "60s", "--json", "/dev/null"]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            if status != 0:
                sys.exit(f"{' '.join(map(str, command))}: {status}")
            peaks[connections] = usage.ru_maxrss
        each = (peaks[10_000] - peaks[100]) / 9_900
        print(f"\nmemory: {peaks[100]} KiB with 100 TLS connections, {peaks[10_000]} KiB with 10000: {each:.1f} KiB each")


def median(values):
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def hodges_lehmann(logs):
    """Estimate and the narrowest exact signed-rank interval of at least 95 %, as far as the number of blocks allows."""
    count = len(logs)
    walsh = sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(logs, 2))
    ways = [1]
    for rank in range(1, count + 1):
        longer = ways + [0] * rank
        for total, number in enumerate(ways):
            longer[total + rank] += number
        ways = longer
    below, skip = ways[0], 0
    while 2 * (below + ways[skip + 1]) <= 0.05 * 2**count:
        skip += 1
        below += ways[skip]
    coverage = 1 - 2 * below / 2**count
    return math.exp(median(walsh)), math.exp(walsh[skip]), math.exp(walsh[-1 - skip]), coverage


main()
