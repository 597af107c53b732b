// One crypto operation, in batches, so that reading the clock does not count.
'use strict';
const { operation } = require('./operations');

const BATCH_NS = 50_000n;

async function hire(scenario) {
  return new Primitives(scenario);
}

class Primitives {
  constructor(scenario) {
    this.operate = operation(scenario);
    this.most = scenario.count || Infinity;
    this.outcomes = new Map();
    this.forget();
  }

  unit() {
    this.ns.push(Math.round(Number(this.run()) / this.batch));
    return this.batch;
  }

  run() {
    const began = process.hrtime.bigint();
    for (let i = 0; i < this.batch; i++) this.operate();
    return process.hrtime.bigint() - began;
  }

  // Also determines the batch size: compiled code needs more.
  forget() {
    this.batch = 1;
    while (this.run() < BATCH_NS && 2 * this.batch <= this.most) this.batch *= 2;
    this.ns = [];
  }

  lines() {
    return [{ type: 'samples', side: 'operation', ns: this.ns }];
  }
}

module.exports = { hire };
