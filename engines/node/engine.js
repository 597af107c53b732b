// A TLS engine on Node's tls: reads a scenario, runs it in memory and reports. See docs/ENGINES.md.
'use strict';
const fs = require('fs');
const { Fault } = require('./fault');
const { load } = require('./load');
const { memory } = require('./memory');
const { readScenario } = require('./scenario');

main();

async function main() {
  const lines = [];
  try {
    const scenario = readScenario(fs.readFileSync(0));
    lines.push(facts());
    if (scenario.do === 'memory') lines.push(...(await memory(scenario)));
    else if (scenario.do !== 'facts') lines.push(...(await load(scenario)));
    lines.push({ type: 'done' });
  } catch (error) {
    lines.push({ type: 'error', fault: error instanceof Fault ? error.fault : 'stack', message: error.message });
    console.error(error);
  }
  // Flush before exiting: buffered output would be lost.
  fs.writeFileSync(1, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  process.exit(lines.at(-1).type === 'done' ? 0 : 1);
}

function facts() {
  return {
    type: 'facts', stack: 'node', tls: `node ${process.versions.node}`, crypto: `openssl ${process.versions.openssl}`,
    compiler: `v8 ${process.versions.v8}`, allocator: 'system', build: 'release',
    // Node does not expose CPU features.
    features: [],
  };
}
