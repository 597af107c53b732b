"""The turns of a gateway's worker: how long a connection with work may wait for the others."""

import pathlib
import re
import statistics
import subprocess

SECONDS = 5
WAIT = "epoll_pwait2"


def record(pid, folder):
    """The turns of the first worker within `SECONDS`, in microseconds: from the end of a wait for events to the next wait."""
    [worker] = [task.name for task in pathlib.Path(f"/proc/{pid}/task").iterdir() if (task / "comm").read_text() == "worker-0\n"]
    data = folder / "turns.data"
    events = [f"syscalls:sys_{at}_{WAIT}" for at in ("exit", "enter")]
    subprocess.run(
        ["perf", "record", "-q", *(part for event in events for part in ("-e", event)), "-t", worker, "-c", "1", "-o", data, "--", "sleep", str(SECONDS)],
        check=True,
    )
    script = subprocess.run(["perf", "script", "-i", data, "-F", "time,event"], capture_output=True, text=True, check=True).stdout
    turns, began = [], None
    for time, at in re.findall(rf"(\d+\.\d+): +syscalls:sys_(enter|exit)_{WAIT}:", script):
        if at == "exit":
            began = float(time)
        elif began is not None:
            turns.append((float(time) - began) * 1e6)
            began = None
    return turns


def in_words(turns):
    cuts = statistics.quantiles(turns, n=1000)
    return f"{len(turns)} turns: p50 {cuts[499]:.0f} us, p99 {cuts[989]:.0f} us, p99.9 {cuts[998]:.0f} us, longest {max(turns):.0f} us"
