// Two connected sides, and the time of each.
//
// Node's tls works when it is given bytes, and, for what it leaves for later (the end of a write, events), in the turns
// of the event loop that follow. So only one end is ever at work: it is given what there is for it, and then the loop
// turns until nothing of it can be left to do. All that happens meanwhile is that end's, and the clock is its own. What
// an end writes is kept until its turn is over; an end that writes in the other's turn is an error, not a wrong time.
// Two turns of the loop are in each end's turn, empty ones about 2 µs: on a connection to elsewhere they are there, too.
'use strict';
const tls = require('tls');
const { broken } = require('./fault');
const { Heard, Wire } = require('./wire');

// Opens a connection and runs it until neither side has anything left to send. `session` is what is resumed, if any;
// `keep` is given the sessions that can be.
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
