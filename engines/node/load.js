// Runs a task on threads that start together. A Node thread has its own event loop and shares no configuration with
// others: each also has its own server, all with the same ticket keys.
'use strict';
const crypto = require('crypto');
const path = require('path');
const { Worker } = require('worker_threads');
const { Fault, broken } = require('./fault');
const { lines: negotiated } = require('./outcomes');

// The threads' output, as lines.
async function load(scenario) {
  const start = new Int32Array(new SharedArrayBuffer(4));
  const workerData = { scenario, start, ticketKeys: crypto.randomBytes(48) };
  const threads = Array.from({ length: scenario.threads }, (_, thread) => {
    return new Thread({ ...workerData, thread });
  });
  await Promise.all(threads.map((thread) => thread.warm));
  Atomics.store(start, 0, 1);
  Atomics.notify(start, 0);
  const results = await Promise.all(threads.map((thread) => thread.done));
  const outcomes = new Map();
  for (const [outcome, count] of results.flatMap((result) => result.outcomes)) {
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + count);
  }
  return [...results.flatMap((result) => result.lines), ...negotiated(outcomes)];
}

class Thread {
  constructor(workerData) {
    const worker = new Worker(path.join(__dirname, 'thread.js'), { workerData });
    const end = new Promise((_, reject) => {
      worker.on('error', reject);
      worker.on('messageerror', reject);
      worker.on('exit', () => reject(broken('a thread has ended with work left')));
    });
    const message = (kind) => new Promise((resolve, reject) => {
      worker.on('message', (message) => {
        if (message.fault) reject(new Fault(message.fault, message.message));
        if (message.kind === kind) resolve(message);
      });
    });
    this.warm = Promise.race([message('warm'), end]);
    this.done = Promise.race([message('done'), end]);
    // The first thread to fail reports it; another must not end the process before that.
    this.done.catch(() => {});
  }
}

module.exports = { load };
