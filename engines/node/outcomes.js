// Outcomes of connections per side, as JSON with counts.
'use strict';
const { SUITES } = require('./ends');

function count(outcomes, { client, server, heard }) {
  add(outcomes, 'client', client.socket, heard);
  add(outcomes, 'server', server.socket, heard);
}

function lines(outcomes) {
  return [...outcomes].map(([outcome, count]) => ({ type: 'negotiated', ...JSON.parse(outcome), count }));
}

function add(outcomes, side, socket, { retried, group, signature }) {
  const outcome = JSON.stringify({
    side,
    version: socket.getProtocol().replace('TLSv', ''),
    kind: socket.isSessionReused() ? 'resumed' : retried ? 'full-with-hello-retry' : 'full',
    suite: suiteOf(socket.getCipher()),
    group,
    signature,
  });
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
}

// The scenario's name, else the library's.
function suiteOf({ name, standardName }) {
  const known = Object.entries(SUITES).find(([, [new13, old12]]) => name === new13 || name.endsWith(`-${old12}`));
  return known ? known[0] : standardName;
}

module.exports = { count, lines };
