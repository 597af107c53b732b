#!/usr/bin/env python3
"""The load engine beside Apache JMeter, the study's load tool: the same plan, alternately, through the same gateway.

POST of a JSON body of 1000 bytes to the test server's /echo, N users over keep-alive connections. Three ways:

  rate     both offer R requests per second over N connections, far below their maximum. Compares the mean service
           time, and the tools' counts with the test server's own
  think    N users that pause between a response and the next request: the same, in a closed loop
  closed   N users without a pause. On shared cores this measures the load tool as well: JMeter costs far more CPU per
           request, takes it from gateway and origin, and the throughput is its own. No agreement is expected.

  crosscheck.py [--weir PROGRAM] [--gateway weir|nginx] [--users 20] [--rate 200] [--runs 5] [--seconds 6]

Maven downloads JMeter into $XDG_CACHE_HOME/weir/jmeter-VERSION (pom.xml beside this file names the version). Needs a
JDK, Maven, the release build of weir, and nginx if it is the gateway.
"""

import argparse
import json
import math
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
BODY = json.dumps({"payload": "x" * (1000 - len('{"payload": ""}'))})
WARM_UP = 3  # seconds cut from the start of each run
ORIGIN, GATEWAY = 18180, 18181

NGINX = """daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log stderr error;
events {{ worker_connections 8192; }}
http {{
    access_log off; keepalive_requests 1000000000; keepalive_timeout 3600s;
    client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
    upstream origin {{ server 127.0.0.1:{origin}; keepalive 1000; keepalive_requests 1000000000; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; }}
    }}
}}
"""

# %(timer)s goes into the thread group beside the sampler. The elements are JMeter's; the values are this plan's.
PLAN = """<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2" properties="5.0" jmeter="5.6.3">
 <hashTree>
  <TestPlan guiclass="TestPlanGui" testclass="TestPlan" testname="echo" enabled="true"/>
  <hashTree>
   <ThreadGroup guiclass="ThreadGroupGui" testclass="ThreadGroup" testname="users" enabled="true">
    <intProp name="ThreadGroup.num_threads">%(users)d</intProp>
    <intProp name="ThreadGroup.ramp_time">0</intProp>
    <boolProp name="ThreadGroup.scheduler">true</boolProp>
    <stringProp name="ThreadGroup.duration">%(seconds)d</stringProp>
    <stringProp name="ThreadGroup.on_sample_error">continue</stringProp>
    <boolProp name="ThreadGroup.same_user_on_next_iteration">true</boolProp>
    <elementProp name="ThreadGroup.main_controller" elementType="LoopController" testclass="LoopController">
     <intProp name="LoopController.loops">-1</intProp>
    </elementProp>
   </ThreadGroup>
   <hashTree>
    %(timer)s
    <HTTPSamplerProxy guiclass="HttpTestSampleGui" testclass="HTTPSamplerProxy" testname="echo" enabled="true">
     <stringProp name="HTTPSampler.protocol">http</stringProp>
     <stringProp name="HTTPSampler.domain">127.0.0.1</stringProp>
     <stringProp name="HTTPSampler.port">%(port)d</stringProp>
     <stringProp name="HTTPSampler.path">/echo</stringProp>
     <stringProp name="HTTPSampler.method">POST</stringProp>
     <stringProp name="HTTPSampler.implementation">HttpClient4</stringProp>
     <boolProp name="HTTPSampler.use_keepalive">true</boolProp>
     <boolProp name="HTTPSampler.postBodyRaw">true</boolProp>
     <elementProp name="HTTPsampler.Arguments" elementType="Arguments">
      <collectionProp name="Arguments.arguments">
       <elementProp name="" elementType="HTTPArgument">
        <stringProp name="Argument.value">%(body)s</stringProp>
        <stringProp name="Argument.metadata">=</stringProp>
       </elementProp>
      </collectionProp>
     </elementProp>
    </HTTPSamplerProxy>
    <hashTree>
     <ResponseAssertion guiclass="AssertionGui" testclass="ResponseAssertion" testname="echoed" enabled="true">
      <collectionProp name="Asserion.test_strings"><stringProp name="0">payload</stringProp></collectionProp>
      <stringProp name="Assertion.test_field">Assertion.response_data</stringProp>
      <intProp name="Assertion.test_type">16</intProp>
     </ResponseAssertion>
     <hashTree/>
    </hashTree>
   </hashTree>
  </hashTree>
 </hashTree>
</jmeterTestPlan>
"""
CONSTANT_RATE = """<ConstantThroughputTimer guiclass="TestBeanGUI" testclass="ConstantThroughputTimer" testname="rate" enabled="true">
     <intProp name="calcMode">0</intProp>
     <doubleProp><name>throughput</name><value>%f</value><savedValue>0.0</savedValue></doubleProp>
    </ConstantThroughputTimer><hashTree/>"""
THINK = """<ConstantTimer guiclass="ConstantTimerGui" testclass="ConstantTimer" testname="think" enabled="true">
     <stringProp name="ConstantTimer.delay">%d</stringProp>
    </ConstantTimer><hashTree/>"""


def jmeter():
    """JMeter's home in the cache: lib/ from Maven, bin/ with the properties that the engine reads."""
    version = re.search(r"<jmeter.version>(.*)</", (HERE / "pom.xml").read_text()).group(1)
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    home = cache / "weir" / f"jmeter-{version}"
    if not (home / "bin" / "jmeter.properties").exists():
        print(f"JMeter {version}: fetching", file=sys.stderr)
        subprocess.run(
            ["mvn", "--batch-mode", "--quiet", "-f", HERE / "pom.xml",
             "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies",
             "-DincludeScope=runtime", f"-DoutputDirectory={home}/lib"], check=True)
        # Where the launcher looks for JMeter's own parts.
        (home / "lib" / "ext").mkdir(exist_ok=True)
        for part in (home / "lib").glob("ApacheJMeter_*.jar"):
            part.rename(home / "lib" / "ext" / part.name)
        with zipfile.ZipFile(home / "lib" / "ext" / f"ApacheJMeter_config-{version}.jar") as config:
            config.extractall(home, [name for name in config.namelist() if name.startswith("bin/")])
    return home


def started(command, port, **more):
    process = subprocess.Popen(command, **more)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return process
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    sys.exit(f"{command[0]}: does not listen on {port}")


def answers():
    """The number of requests that the test server has answered."""
    with urllib.request.urlopen(f"http://127.0.0.1:{ORIGIN}/stats") as stats:
        return json.load(stats)["answers"]


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_jmeter(home, way, arguments, folder):
    timer = {"rate": CONSTANT_RATE % (arguments.rate * 60 / arguments.users), "think": THINK % arguments.think,
             "closed": ""}[way]
    total = WARM_UP + arguments.seconds
    plan, log = folder / "plan.jmx", folder / "result.jtl"
    plan.write_text(PLAN % {"users": arguments.users, "seconds": total, "timer": timer, "port": GATEWAY,
                            "body": BODY.replace('"', "&quot;")})
    log.unlink(missing_ok=True)
    subprocess.run(
        ["java", "-Xms1g", "-Xmx1g", "-cp", *(home / "lib").glob("ApacheJMeter-*.jar"), "org.apache.jmeter.NewDriver",
         "-n", "-t", plan, "-l", log, "-j", folder / "jmeter.log",
         "-Jsummariser.name=", "-Jjmeter.save.saveservice.output_format=csv"],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rows = [line.split(",") for line in log.read_text().splitlines()]
    at, took, right = (rows[0].index(name) for name in ("timeStamp", "elapsed", "success"))
    begin = min(int(row[at]) for row in rows[1:]) + 1000 * WARM_UP
    window = [row for row in rows[1:] if begin <= int(row[at]) < begin + 1000 * (arguments.seconds - 1)]
    times = sorted(int(row[took]) * 1000 for row in window)
    return {"rate": len(window) / (arguments.seconds - 1), "mean": sum(times) / len(times),
            "p99": times[math.ceil(len(times) * 0.99) - 1], "sent": len(rows) - 1,
            "errors": sum(row[right] != "true" for row in rows[1:])}


def run_weir(way, arguments, folder):
    body = folder / "body.json"
    body.write_text(BODY)
    load = {"rate": ["--rate", str(arguments.rate)], "think": ["--think", f"{arguments.think}ms"], "closed": []}[way]
    out = subprocess.run(
        [arguments.weir, "load", f"http://127.0.0.1:{GATEWAY}/echo", "-c", str(arguments.users), "-t", "1",
         "--warmup", f"{WARM_UP}s", "-d", f"{arguments.seconds - 1}s", "--data", body, "--json", "-", *load],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    result = json.loads(out)
    service = result["service"]
    return {"rate": result["requests_per_second"], "mean": service["mean_us"], "p99": service["p99_us"],
            "sent": result["answered_in_all"], "errors": sum(result["errors"].values())}


def measured(tool, *arguments):
    """One run, with the tool's CPU per request, and the test server's count beside its own."""
    before, cpu = answers(), cpu_of_children()
    result = tool(*arguments)
    result["origin"] = answers() - before - 1  # minus this query
    result["cpu"] = 1e6 * (cpu_of_children() - cpu) / result["sent"]
    return result


def compared(way, weir, other):
    """One line for each figure: medians of both, and the ratio in the same block with its interval."""
    print(f"\n{way}: median of {len(weir)} runs each")
    print(f"{'':28}{'weir':>10}{'JMeter':>10}   JMeter / weir in the same block")
    names = {"rate": "requests/s", "mean": "mean service time, us", "p99": "p99, us", "cpu": "CPU per request, us"}
    for key, name in names.items():
        pairs = [(a[key], b[key]) for a, b in zip(weir, other) if a[key] and b[key]]
        if not pairs:
            print(f"{name:28}too few samples")
            continue
        ratios = sorted(math.log(b / a) for a, b in pairs)
        walsh = [(x + y) / 2 for i, x in enumerate(ratios) for y in ratios[i:]]
        coverage = 100 * (1 - 2 ** (1 - len(ratios)))
        print(f"{name:28}{median([a for a, _ in pairs]):10.1f}{median([b for _, b in pairs]):10.1f}   "
              f"{math.exp(median(walsh)):.3f} [{math.exp(ratios[0]):.3f}, {math.exp(ratios[-1]):.3f}] at {coverage:.1f} %")
    for name, runs in (("weir", weir), ("JMeter", other)):
        counts = ", ".join(f"{run['sent']}/{run['origin']}" for run in runs)
        print(f"{name}: errors {sum(run['errors'] for run in runs)}; own count/test server's count: {counts}")


def median(values):
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--weir", default=str(HERE.parent.parent / "target" / "release" / "weir"))
    flags.add_argument("--gateway", choices=["weir", "nginx"], default="weir")
    flags.add_argument("--users", type=int, default=20)
    flags.add_argument("--rate", type=int, default=200, help="requests per second of the way `rate`")
    flags.add_argument("--think", type=int, default=100, help="milliseconds of the way `think`")
    flags.add_argument("--runs", type=int, default=5, help="of each tool in each way")
    flags.add_argument("--seconds", type=int, default=6, help="of each run after the warm-up")
    flags.add_argument("--ways", default="rate,think,closed")
    arguments = flags.parse_args()
    home = jmeter()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "nginx.conf").write_text(NGINX.format(dir=folder, origin=ORIGIN, port=GATEWAY))
        gateways = {
            "weir": [arguments.weir, "serve", "--listen", f"http://127.0.0.1:{GATEWAY}", "--to",
                     f"http://127.0.0.1:{ORIGIN}", "--workers", "1"],
            "nginx": ["nginx", "-e", "stderr", "-p", folder, "-c", folder / "nginx.conf"],
        }
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        servers = [started([arguments.weir, "origin", "--listen", f"http://127.0.0.1:{ORIGIN}", "--workers", "1"],
                           ORIGIN, **quiet)]
        try:
            servers.append(started(gateways[arguments.gateway], GATEWAY, **quiet))
            for way in arguments.ways.split(","):
                weir, other = [], []
                for block in range(arguments.runs):
                    # Alternately; each goes first in every second block.
                    for tool in ("weir", "jmeter") if block % 2 == 0 else ("jmeter", "weir"):
                        if tool == "weir":
                            weir.append(measured(run_weir, way, arguments, folder))
                        else:
                            other.append(measured(run_jmeter, home, way, arguments, folder))
                    print(f"{way} {block + 1}/{arguments.runs}: weir {weir[-1]}, JMeter {other[-1]}", file=sys.stderr)
                compared(way, weir, other)
        finally:
            for server in servers:
                server.send_signal(signal.SIGTERM)
            for server in servers:
                server.wait(10)


if __name__ == "__main__":
    main()
