"""Shared by the long tests: a gateway, certificates, its metrics and its resources."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request


def fail(why):
    print(why, file=sys.stderr)
    sys.exit(1)


def other_cores():
    """The allowed cores but for the gateway's, core 0; that one, if there is no other."""
    return sorted(os.sched_getaffinity(0) - {0}) or [0]


def certificates(folder):
    """Self-signed pairs for 127.0.0.1: kind -> (chain, key)."""
    files = {}
    for kind, key in {"ecdsa": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"], "rsa": ["-newkey", "rsa:2048"]}.items():
        chain, private = str(folder / f"{kind}.pem"), str(folder / f"{kind}.key")
        command = ["openssl", "req", "-x509", *key, "-nodes", "-days", "365", "-subj", "/CN=localhost"]
        names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        subprocess.run([*command, *names, "-keyout", private, "-out", chain], check=True, capture_output=True)
        files[kind] = (chain, private)
    return files


class Process:
    """A program that says where it listens; its output is kept."""

    def __init__(self, *command):
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = {"stdout": [], "stderr": []}
        for name in self.lines:
            threading.Thread(target=self._collect, args=(name,), daemon=True).start()

    def _collect(self, name):
        for line in getattr(self.child, name):
            self.lines[name].append(line.rstrip())

    def listening(self, count):
        end = time.monotonic() + 30
        while time.monotonic() < end and self.child.poll() is None:
            urls = [line.split(" on ")[1] for line in self.lines["stdout"] if line.startswith("listening on ")]
            if len(urls) == count:
                return urls
            time.sleep(0.01)
        raise RuntimeError(f"it does not listen: {self.lines}")

    def stop(self):
        self.child.terminate()
        self.child.wait(60)

    def kill(self):
        self.child.kill()
        self.child.wait()


class Gateway:
    """`weir serve` with a configuration, to which an admin address is added."""

    def __init__(self, weir, folder, config):
        self.file = pathlib.Path(folder) / "weir.toml"
        self.write(config)
        self.process = Process(weir, "serve", "--config", str(self.file))
        self.urls = self.process.listening(config.count("bind ="))
        [admin] = [line for line in self.process.lines["stdout"] if line.startswith("admin on ")]
        self.admin = admin.removeprefix("admin on ")
        self.pid = self.process.child.pid

    def write(self, config):
        self.file.write_text(f"{config}\n[admin]\nbind = '127.0.0.1:0'\n")

    def ask(self, path, method="GET", body=None):
        request = urllib.request.Request(self.admin + path, method=method, data=body.encode() if body else None)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read().decode()

    def metrics(self):
        """Name -> sum over its labels; with labels, each on its own, too."""
        found = {}
        for line in self.ask("/metrics").splitlines():
            if line.startswith("#"):
                continue
            name, value = line.rsplit(" ", 1)
            found[name] = float(value)
            bare = re.sub(r"\{.*", "", name)
            if bare != name:
                found[bare] = found.get(bare, 0) + float(value)
        return found

    def ended_early(self):
        """Reason -> count."""
        counts = self.metrics().items()
        return {name.split('"')[1]: count for name, count in counts if name.startswith("weir_ended_early_total{")}

    def rss_kib(self):
        [line] = [line for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
        return int(line.split()[1])

    def descriptors(self):
        return len(list(pathlib.Path(f"/proc/{self.pid}/fd").iterdir()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid != self.process.child.pid:
            # An upgrade has taken its place.
            os.kill(self.pid, signal.SIGTERM)
        self.process.stop()
