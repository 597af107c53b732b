// One thread: warms up, waits for the others, and measures until its window or count is over.
'use strict';
const fs = require('fs');
const { parentPort, workerData } = require('worker_threads');
const { Fault } = require('./fault');

const TASKS = { handshake: './handshakes', transfer: './transfers', primitive: './primitives' };

main().catch((error) => {
  console.error(error);
  parentPort.postMessage({ fault: error instanceof Fault ? error.fault : 'stack', message: error.message });
});

async function main() {
  const { scenario, start, thread } = workerData;
  const { hire } = require(TASKS[scenario.do]);
  const worker = await hire(scenario, workerData.ticketKeys);
  for (let units = 0; units < scenario.warmup;) units += await worker.unit();
  worker.forget();
  parentPort.postMessage({ kind: 'warm' });
  Atomics.wait(start, 0, 0);

  const before = used();
  const began = process.hrtime.bigint();
  const window = BigInt(scenario.window_ms) * 1_000_000n;
  let units = 0;
  let wall = 0n;
  while (units === 0 || units < scenario.count || wall < window) {
    units += await worker.unit();
    wall = process.hrtime.bigint() - began;
  }
  const after = used();
  const lines = [...worker.lines().flatMap((line) => parts({ ...line, thread })), {
    type: 'thread', thread, units, wall_ns: Number(wall), cpu_ns: after.ns - before.ns,
    voluntary_switches: after.switches - before.switches,
  }];
  parentPort.postMessage({ kind: 'done', lines, outcomes: [...worker.outcomes] });
}

// Maximum samples per line.
function parts(line) {
  if (line.type !== 'samples') return [line];
  const lines = [];
  for (let begin = 0; begin < line.ns.length; begin += 1000) {
    lines.push({ ...line, ns: line.ns.slice(begin, begin + 1000) });
  }
  return lines;
}

// This thread's CPU time and voluntary context switches.
function used() {
  const [ns] = fs.readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ');
  const [, switches] = /^voluntary_ctxt_switches:\s*(\d+)/m.exec(fs.readFileSync('/proc/thread-self/status', 'utf8'));
  return { ns: Number(ns), switches: Number(switches) };
}
