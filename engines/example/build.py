"""Builds nothing; fails if this Python and its OpenSSL do not match engine.toml."""

import platform
import ssl
import sys
import tomllib

with open("engine.toml", "rb") as file:
    engine = tomllib.load(file)
found = {"version": platform.python_version(), "crypto": " ".join(ssl.OPENSSL_VERSION.lower().split()[:2])}
for key, value in found.items():
    if not f"{value}.".startswith(f"{engine[key]}."):
        sys.exit(f"example: this machine has {value}, engine.toml needs {engine[key]}")
