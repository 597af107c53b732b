#!/usr/bin/env python3
"""Scans each TLS profile of the gateway with testssl.sh, sslscan and sslyze, and fails on findings above "low".

    python3 tests/long/scans.py target/release/weir

Needs testssl.sh and sslscan (Debian's packages) and, in the Python that runs it, sslyze. A profile takes about two minutes.
Findings about the trust in a certificate are left out by their ids: it is made here, and no CA knows it. So is the one about the
order of suites, where the client's is what the configuration asks for.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from common import Gateway, certificates, fail

# Of testssl.sh: the chain, the lifetime and the revocation of a certificate that was made for this scan.
TRUST = {"cert_chain_of_trust", "cert_expirationStatus", "cert_revocation", "cert_notAfter", "cert_trust", "cert_extlifeSpan"}

PROFILES = {
    "default": "tls = {}",
    "modern": "tls = { versions = '1.3' }",
    "tls12": "tls = { versions = '1.2' }",
    "mtls": "tls = { client_ca = 'CA', client_certificates = 'optional' }",
    "no-tickets": "tls = { tickets = 0 }",
    "clients-order": "tls = { suite_order = 'client' }",
}

# What a site says about its pages is not the gateway's to say.
ROUTE = """
[[route]]
respond.status = 200
response_headers.set = { X-Frame-Options = "DENY", Strict-Transport-Security = "max-age=31536000" }
"""


def main(weir):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-scans-"))
    files = certificates(folder)
    listeners = "".join(
        f"[listener.{name}]\nbind = '127.0.0.1:0'\n{tls.replace('CA', files['rsa'][0])}\n" for name, tls in PROFILES.items()
    )
    presented = "".join(f"[[certificate]]\nchain = '{chain}'\nkey = '{key}'\n" for chain, key in files.values())
    gateway = Gateway(weir, folder, listeners + presented + ROUTE)
    bad = []
    with gateway:
        # Listeners are reported in the order of their names.
        for name, url in zip(sorted(PROFILES), gateway.urls, strict=True):
            at = url.removeprefix("https://").replace("127.0.0.1", "localhost")
            tools = [start(folder, name, at) for start in (testssl, sslscan, sslyze)]
            for tool, process, read in tools:
                output = process.communicate()[0]
                found = list(read(output))
                print(f"{name}: {tool}: {'nothing above low' if not found else '; '.join(found)}", flush=True)
                bad += found
    if bad:
        fail(f"{len(bad)} findings")


def run(*command):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def testssl(folder, name, at):
    report = folder / f"{name}-testssl.json"
    process = run("testssl", "--quiet", "--warnings", "off", "--color", "0", "--ip", "one", "--jsonfile", str(report), at)

    def read(_):
        findings = json.loads(report.read_text())
        assert len(findings) > 50, f"{name}: {len(findings)} findings of testssl.sh are too few for a whole scan"
        for finding in findings:
            # With two certificates their ids have a suffix.
            if name == "clients-order" and finding["id"] == "cipher_order":
                continue
            if finding["severity"] in {"MEDIUM", "HIGH", "CRITICAL", "FATAL"} and finding["id"].split(" ")[0] not in TRUST:
                yield f"{finding['id']}: {finding['severity']}: {finding['finding']}"

    return "testssl.sh", process, read


def sslscan(_folder, _name, at):
    process = run("sslscan", "--no-colour", at)
    weak = ("SSLv2     enabled", "SSLv3     enabled", "TLSv1.0   enabled", "TLSv1.1   enabled", " vulnerable to heartbleed")
    weak += ("RC4", "3DES", "DES-CBC", "NULL", "EXP-", "ADH", "AECDH", "MD5", "Insecure session renegotiation", "Compression enabled")

    def read(output):
        assert "Supported Server Cipher" in output, output
        lines = [line for line in output.splitlines() if not line.startswith(("Signature", "Issuer", "Subject"))]
        for line in lines:
            if any(word in line for word in weak) and "not vulnerable" not in line:
                yield line.strip()

    return "sslscan", process, read


def sslyze(folder, name, at):
    report = folder / f"{name}-sslyze.json"
    process = run(sys.executable, "-m", "sslyze", "--json_out", str(report), at)

    def read(output):
        assert report.exists(), output
        [server] = json.loads(report.read_text())["server_scan_results"]
        scans = server["scan_result"]
        assert scans, server
        for version in ("ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1"):
            if scans[f"{version}_cipher_suites"]["result"]["accepted_cipher_suites"]:
                yield f"{version} is accepted"
        flaws = {
            "heartbleed": "is_vulnerable_to_heartbleed",
            "openssl_ccs_injection": "is_vulnerable_to_ccs_injection",
            "tls_compression": "supports_compression",
            "session_renegotiation": "is_vulnerable_to_client_renegotiation_dos",
        }
        for scan, flaw in flaws.items():
            result = scans[scan]["result"]
            if result is None:
                yield f"{scan}: {scans[scan]['error_reason']}"
            elif result[flaw]:
                yield f"{scan}: {flaw}"
        if not scans["robot"]["result"]["robot_result"].startswith("NOT_VULNERABLE"):
            yield f"robot: {scans['robot']['result']['robot_result']}"

    return "sslyze", process, read


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) == 2 else fail(__doc__))
