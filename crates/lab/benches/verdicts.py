#!/usr/bin/env python3
"""How often `weir run` is right on this machine: repeats the quick start's comparison on targets with a known ratio.

`twin` is Weir under another name: calling it different is a false alarm. `planted` is Weir with a process beside it that
burns a share of Weir's CPU time, and is accounted with it: not calling it different is a miss. With --half-busy this
script keeps one core busy half of the time.

usage: verdicts.py [--weir FILE] [--what twin|planted] [--repetitions N] [--blocks N] [--share S] [--half-busy]
                   [--layout duet|blocks] [--first N] [--json FILE]
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]

BURN = """\
# Runs a program, and burns a share of its CPU time beside it.
import os, signal, sys, time
share, child = float(sys.argv[1]), os.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
clock, started = (~child << 3) | 2, time.process_time()
while os.waitpid(child, os.WNOHANG)[0] == 0:
    try:
        debt = share * time.clock_gettime(clock) - (time.process_time() - started)
    except OSError:
        continue
    until = time.process_time() + max(0.0, debt)
    while time.process_time() < until:
        pass
    time.sleep(0.002)
"""

# One core, half of the time, wherever the scheduler puts it.
HALF_BUSY = """\
import time
while True:
    started, until = time.monotonic(), time.process_time() + 0.01
    while time.process_time() < until:
        pass
    time.sleep(max(0.0, started + 0.02 - time.monotonic()))
"""


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        experiment = prepare(Path(folder), options)
        neighbour = subprocess.Popen([sys.executable, "-c", HALF_BUSY]) if options.half_busy else None
        try:
            results = [repetition(Path(folder), experiment, options, index) for index in repetitions(options)]
        finally:
            if neighbour:
                neighbour.kill()
    report(results, options)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", default=REPOSITORY / "target/release/weir", type=Path)
    parser.add_argument("--what", choices=["twin", "planted"], default="twin")
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--first", type=int, default=1, help="number of the first repetition, which is its seed")
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--layout", choices=["duet", "blocks"], default="duet")
    parser.add_argument("--half-busy", action="store_true")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def repetitions(options):
    return range(options.first, options.first + options.repetitions)


def prepare(folder, options):
    """Writes the quick start with weir and one other target, and both targets' directories."""
    weir = (REPOSITORY / "targets/weir/target.toml").read_text()
    other = weir
    if options.what == "planted":
        burn = f'"python3", "{{{{dir}}}}/burn.py", "{options.share}", "{{{{weir}}}}", "serve"'
        other = other.replace('"{{weir}}", "serve"', burn, 1).replace("\nstart =", '\nfiles = ["burn.py"]\nstart =', 1)
    for name, text in [("weir", weir), (options.what, other)]:
        (folder / "targets" / name).mkdir(parents=True)
        (folder / "targets" / name / "target.toml").write_text(text)
    (folder / "targets" / options.what / "burn.py").write_text(BURN)
    text = (REPOSITORY / "experiments/quickstart.toml").read_text()
    text = re.sub(r"^target = .*$", f'target = ["weir", "{options.what}"]', text, flags=re.M)
    text = re.sub(r"^layout = .*$", f'layout = "{options.layout}"', text, flags=re.M)
    text = re.sub(r"^alone_blocks = .*$", "", text, flags=re.M)
    experiment = folder / "experiments/verdicts.toml"
    experiment.parent.mkdir()
    experiment.write_text(text)
    return experiment


def repetition(folder, experiment, options, index):
    out = folder / f"out{index}"
    command = [options.weir.resolve(), "run", experiment, "--blocks", options.blocks, "--out", out]
    command += ["--set", f"seed={index}", "--allow-invalid"]
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    summary = json.loads((out / "summary.json").read_text())
    found = [one for one in summary["comparisons"] if one["metric"] == "cpu_us_per_request"]
    seen = {
        "taken": summary["foreign"]["median"],
        "repeated": summary["foreign"].get("repeated", 0),
        "compared": [one for one in found if not one["aa"]],
        "floors": {one["mode"]: one["ratio"] for one in found if one["aa"]},
    }
    for one in seen["compared"]:
        words = f"{one['ratio']:.3f} [{one['low']:.3f}, {one['high']:.3f}] {one['verdict']} {one.get('note') or ''}"
        print(f"{index:3} {one['mode']:8} {words}  others took {100 * (seen['taken'] or 0):.0f} %", flush=True)
    return seen


def report(results, options):
    for mode in sorted({one["mode"] for seen in results for one in seen["compared"]}):
        own = [one for seen in results for one in seen["compared"] if one["mode"] == mode]
        counts = Counter(one["verdict"] for one in own)
        ratios = sorted(one["ratio"] for one in own)
        width = sorted(one["high"] / one["low"] - 1 for one in own)[len(own) // 2]
        print(f"{options.what} {options.layout} {mode}: {dict(counts)}; ratio {ratios[0]:.3f} to {ratios[-1]:.3f}, "
              f"median {ratios[len(ratios) // 2]:.3f}; median width of the interval {100 * width:.1f} %")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
