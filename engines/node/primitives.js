// One operation of the library's arithmetic, in batches, so that the clock's own time does not count.
'use strict';
const { operation } = require('./operations');

const BATCH_NS = 50_000n;

async function hire(scenario) {
  return new Primitives(scenario);
}

class Primitives {
  constructor(scenario) {
    this.operate = operation(scenario);
    this.outcomes = new Map();
    this.batch = 1;
    while (this.run() < BATCH_NS && (scenario.count === 0 || 2 * this.batch <= scenario.count)) this.batch *= 2;
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

  forget() {
    this.ns = [];
  }

  lines() {
    return [{ type: 'samples', side: 'operation', ns: this.ns }];
  }
}

module.exports = { hire };
