// Bytes from the server to the client, over an established connection.
'use strict';
const { Ends } = require('./ends');
const { broken } = require('./fault');
const { count } = require('./outcomes');
const { connect } = require('./pair');

// Number of distinct texts: each unit starts a byte later in the pattern than the previous one, so that
// leftovers of an earlier unit cannot be mistaken for this one's. Also the pattern's period, a prime.
const SHIFTS = 251;

async function hire(scenario, ticketKeys) {
  const ends = new Ends(scenario, ticketKeys);
  const connection = await connect(ends.client(), ends.server());
  if (!connection.server.socket.setMaxSendFragment(scenario.record)) {
    throw broken(`record ${scenario.record}: the library does not take it`);
  }
  return new Transfers(scenario, connection);
}

class Transfers {
  constructor(scenario, connection) {
    this.scenario = scenario;
    this.client = connection.client;
    this.server = connection.server;
    this.pattern = Buffer.from(Uint8Array.from({ length: scenario.bytes + SHIFTS }, (_, i) => i % SHIFTS));
    this.units = 0;
    this.read = [];
    this.outcomes = new Map();
    count(this.outcomes, connection);
    this.client.socket.on('data', (chunk) => this.read.push(chunk));
    this.forget();
  }

  async unit() {
    const { client, server, scenario } = this;
    const begin = this.units++ % SHIFTS;
    const text = this.pattern.subarray(begin, begin + scenario.bytes);
    this.read = [];
    client.ns = server.ns = 0;
    await server.turn(() => this.write(text));
    const sent = server.wire.take();
    await client.turn(() => client.give(sent));
    this.clientNs.push(client.ns);
    this.serverNs.push(server.ns);
    if (!Buffer.concat(this.read).equals(text)) throw new Error('what was read is not what was written');
    this.bytes += text.length;
    return 1;
  }

  // Writes the bytes in pieces. Node may merge pieces while an earlier one is pending.
  write(text) {
    return new Promise((resolve) => {
      for (let at = 0; at < text.length; at += this.scenario.write) {
        const end = Math.min(at + this.scenario.write, text.length);
        this.server.socket.write(text.subarray(at, end), end === text.length ? resolve : undefined);
      }
    });
  }

  forget() {
    this.clientNs = [];
    this.serverNs = [];
    this.bytes = 0;
  }

  lines() {
    return [
      { type: 'samples', side: 'client', ns: this.clientNs },
      { type: 'samples', side: 'server', ns: this.serverNs },
      { type: 'moved', side: 'server', bytes: this.bytes },
      { type: 'moved', side: 'client', bytes: this.bytes },
    ];
  }
}

module.exports = { hire };
