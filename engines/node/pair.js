// Two connected sides, and the time of each.
//
// Node's tls works when it receives bytes, and defers some work (the end of a write, events) to later turns of the
// event loop. So only one side ever works: it receives its input, and then the loop turns until it has no work left.
// All time meanwhile is that side's. Its output is held until its turn is over; a side that writes in the other's turn
// is an error, not a wrong time. Each side's turn includes two turns of the loop, about 2 µs when empty: real
// connections have them, too.
'use strict';
const tls = require('tls');
const { broken } = require('./fault');
const { Heard, Wire } = require('./wire');

// Opens a connection and runs it until neither side has anything left to send. Resumes `session`, if any; calls `keep`
// with resumable sessions.
async function connect(clientContext, server, session, keep) {
  const client = new End();
  const accepted = new End();
  const heard = new Heard();
  await client.turn(() => {
    client.socket = tls.connect({
      socket: client.wire, secureContext: clientContext, servername: 'localhost', session,
    });
    client.watch('secureConnect');
    if (keep) client.socket.on('session', keep);
  });
  await accepted.turn(() => {
    server.once('secureConnection', (socket) => {
      accepted.socket = socket;
      accepted.secure = true;
      accepted.watch();
    });
    server.once('tlsClientError', accepted.fail);
    server.emit('connection', accepted.wire);
    accepted.give(client.wire.take());
  });
  while (client.wire.sent.length > 0 || accepted.wire.sent.length > 0) {
    const sent = accepted.wire.take();
    if (!client.secure) heard.hear(sent);
    if (sent.length > 0) await client.turn(() => client.give(sent));
    const answer = client.wire.take();
    if (answer.length > 0) await accepted.turn(() => accepted.give(answer));
  }
  server.removeListener('tlsClientError', accepted.fail);
  if (!client.secure || !accepted.secure) throw broken('both ends wait');
  return { client, server: accepted, heard };
}

class End {
  constructor() {
    this.wire = new Wire();
    this.ns = 0;
    this.secure = false;
    this.error = null;
    this.fail = (error) => { this.error ??= error; };
    this.wire.on('error', this.fail);
  }

  // Runs an action of this side, and everything that follows from it.
  async turn(work) {
    this.wire.active = true;
    const began = process.hrtime.bigint();
    await work();
    await idle();
    this.ns += Number(process.hrtime.bigint() - began);
    this.wire.active = false;
    if (this.error) throw this.error;
  }

  give(chunks) {
    for (const chunk of chunks) this.wire.push(chunk);
  }

  watch(event) {
    this.socket.on('error', this.fail);
    if (event) this.socket.on(event, () => { this.secure = true; });
  }
}

// Resolves when deferred work, and work deferred by that, is done.
function idle() {
  return new Promise((resolve) => setImmediate(setImmediate, resolve));
}

module.exports = { connect };
