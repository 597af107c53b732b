"""The p99 of a steady load beside an attack, beside the same attack on a bystander, and without one."""

import contextlib
import csv
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

from common import fail

# Load and origin do not wait for the attackers on their core. (Attackers in SCHED_IDLE would not be enough: even they get their
# share of it, for up to half a millisecond at a time.)
AHEAD = ["chrt", "--fifo", "1"]


class Load:
    """`weir load` at a steady rate on warm connections, for `seconds` each time, with further options."""

    def __init__(self, weir, folder, cores, rate, seconds, options, ahead=AHEAD):
        self.csv = folder / "seconds.csv"
        # Enough requests for a p99 of each second.
        fixed = ["--rate", str(rate), "-d", f"{seconds}s", "--cores", cores, "--json", "-", "--csv", str(self.csv)]
        self.start, self.options = [*ahead, weir, "load"], [*options, *fixed]

    def p99s(self, url):
        """The p99 of each second in microseconds. Ends the script if a request is lost or late."""
        result = self.run(url)
        if result["unsent"]["count"]:
            fail(f"requests could not be sent: {result['unsent']}")
        with self.csv.open() as rows:
            return [float(row["p99_us"]) for row in csv.DictReader(rows) if row["p99_us"]]

    @contextlib.contextmanager
    def started(self, url):
        """The load, for as long as the context lasts."""
        load = subprocess.Popen(self.command(url), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            load.kill()
            load.wait()

    def command(self, url):
        return [*self.start, f"{url}/bytes/500", "-k", *self.options]

    def run(self, url):
        """The load's result. Ends the script if a request is lost."""
        done = subprocess.run(self.command(url), capture_output=True, text=True)
        if not done.stdout:
            fail(f"the load did not run: {done.stderr}")
        result = json.loads(done.stdout)
        if result["errors"]:
            fail(f"requests were lost: {result['errors']} {result['error_examples']}")
        return result


def measure_in_turns(attack, gateway, bystander, p99s, rounds):
    """Phase -> for each round, the p99 of its seconds in microseconds."""
    phases = {"without": [], "bystander": [], "attack": []}
    for nth in range(rounds):
        phases["without"].append(p99s())
        targets = [("bystander", bystander), ("attack", gateway)]
        for phase, target in targets if nth % 2 else reversed(targets):
            stop = attack(target)
            phases[phase].append(p99s())
            stop()
            settle(target)
    return phases


def report(name, phases):
    """Prints what the attack costs, and returns the upper end of the rise's interval."""
    print(name)
    for phase, times in phases.items():
        every = [time for seconds in times for time in seconds]
        low, middle, high = statistics.quantiles(every, n=4)
        print(f"  {phase:10} p99 {middle:.0f} us, a half of {len(every)} seconds {low:.0f} to {high:.0f}")
    rounds = range(len(phases["attack"]))
    draw = random.Random(1)
    # A bootstrap that draws rounds.
    drawn = sorted(rise(phases, draw.choices(rounds, k=len(rounds))) for _ in range(4000))
    low, high = drawn[100], drawn[-100]
    print(f"  rise {rise(phases, rounds):.2f} [{low:.2f}, {high:.2f}]")
    return high


def rise(phases, rounds):
    """How much more the attack adds to p99 than it adds on the bystander, as a share of p99 without it."""
    median = lambda phase: statistics.median(time for nth in rounds for time in phases[phase][nth])
    return (median("attack") - median("bystander")) / median("without")


def settle(gateway):
    """Waits until nothing is left of an attack, neither in the gateway nor, but for what the load itself leaves there, in the kernel."""
    wait_for_clients(gateway)
    end = time.monotonic() + 180
    while (ended := in_time_wait()) > 1000:
        if time.monotonic() > end:
            fail(f"{ended} sockets are still in TIME-WAIT")
        time.sleep(0.5)


def wait_for_clients(gateway):
    """Waits until the gateway has no client."""
    end = time.monotonic() + 180
    while (clients := gateway.metrics()["weir_clients"]) > 0:
        if time.monotonic() > end:
            fail(f"{clients:.0f} clients are left")
        time.sleep(0.5)


def in_time_wait():
    """Sockets in TIME-WAIT in this network namespace."""
    [counts] = [line.split() for line in pathlib.Path("/proc/net/sockstat").read_text().splitlines() if line.startswith("TCP:")]
    return int(counts[counts.index("tw") + 1])


def keep_awake():
    """Keeps each core busy when nobody else wants it: a virtual one that sleeps is woken as late as its host likes."""
    spin = ["chrt", "--idle", "0", "taskset", "-c"]
    return [subprocess.Popen([*spin, str(core), sys.executable, "-c", "while True: pass"]) for core in os.sched_getaffinity(0)]
