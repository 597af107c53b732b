// The memory of open sessions.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const { Ends } = require('./ends');
const { count, lines } = require('./outcomes');
const { connect } = require('./pair');

// One-time allocations of Node and the library happen before the first session.
const BEFORE = 200;

async function memory(scenario) {
  const ends = new Ends(scenario, crypto.randomBytes(48));
  const client = ends.client();
  const server = ends.server();
  for (let i = 0; i < BEFORE; i++) await connect(client, server);
  const before = residentKib();
  const connections = [];
  const outcomes = new Map();
  for (let i = 0; i < scenario.sessions / 2; i++) {
    const connection = await connect(client, server);
    count(outcomes, connection);
    connections.push(connection.client.socket, connection.server.socket);
  }
  const after = residentKib();
  return [
    { type: 'memory', sessions: connections.length, before_kib: before, after_kib: after },
    ...lines(outcomes),
  ];
}

// After a garbage collection.
function residentKib() {
  global.gc();
  return Number(/^VmRSS:\s*(\d+)/m.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1]);
}

module.exports = { memory };
