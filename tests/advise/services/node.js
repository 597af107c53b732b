// An HTTPS service with one switchable fault. Usage: node node.js FAULT CERT KEY [UPSTREAM]; prints its port.
// In cleartext if CERT is `-`.
'use strict';
const fs = require('fs');
const crypto = require('crypto');
const http = require('http');
const https = require('https');

const [fault, cert, key, upstream] = process.argv.slice(2);
const body = Buffer.alloc(100_000, 'x');
const records = JSON.stringify(Array.from({ length: 2000 }, (_, id) => ({ id, name: `record ${id}`, tags: ['a', 'b'] })));
// One agent that keeps connections, unless the fault is that it does not.
const agent = new https.Agent({
  keepAlive: fault !== 'upstream-without-keep-alive',
  maxSockets: fault === 'too-few-sockets' ? 1 : Infinity,
  rejectUnauthorized: false,
});

const isClear = cert === '-';
const tls = isClear ? {} : {
  cert: fs.readFileSync(cert),
  key: fs.readFileSync(key),
  ecdhCurve: fault === 'hello-retry' ? 'P-384' : 'X25519:P-256',
};
if (fault === 'tls-1.2-only') tls.maxVersion = 'TLSv1.2';
if (fault === 'resumption-off') tls.secureOptions = crypto.constants.SSL_OP_NO_TICKET;
if (fault === 'chacha20-first') {
  tls.ciphers = 'TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256';
  tls.honorCipherOrder = true;
}

// Waits for each piece: Node.js gathers what is written meanwhile.
function inPieces(response, at = 0) {
  if (at >= body.length) return response.end();
  response.write(body.subarray(at, at + 500), () => inPieces(response, at + 500));
}

function answer(request, response) {
  if (fault === 'keep-alive-off') response.setHeader('Connection', 'close');
  if (fault === 'slow-json') {
    response.end(JSON.stringify(JSON.parse(records)).slice(0, 5));
  } else if (upstream && fault !== 'ocsp-per-handshake') {
    const options = { agent, path: request.url };
    https.get(upstream, options, (answered) => answered.pipe(response.writeHead(answered.statusCode)));
  } else if (request.url === '/large') {
    if (fault !== 'small-records') return response.end(body);
    inPieces(response.writeHead(200, { 'Content-Length': body.length }));
  } else {
    response.end('hello');
  }
}

const server = isClear ? http.createServer(answer) : https.createServer(tls, answer);
server.keepAliveTimeout = fault === 'keep-alive-too-short' ? 1000 : 75000;
if (fault === 'few-requests') server.maxRequestsPerSocket = 10;
if (fault === 'ticket-keys-change') server.on('connection', () => server.setTicketKeys(crypto.randomBytes(48)));
if (fault === 'ocsp-per-handshake') {
  server.on('OCSPRequest', (certificate, issuer, done) => {
    https.get(upstream, { agent: false, path: '/bytes/100', rejectUnauthorized: false }, (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part)).on('end', () => done(null, Buffer.concat(parts)));
    });
  });
}

// As many as no load of the test has at once.
function fillPool(filled) {
  let left = fault === 'too-many-sockets' ? 100 : 0;
  if (left === 0) return filled();
  for (let count = left; count > 0; count--) {
    https.get(upstream, { agent, path: '/bytes/1' }, (response) => {
      response.resume().on('end', () => --left || filled());
    });
  }
}

fillPool(() => server.listen(0, '127.0.0.1', () => console.log(server.address().port)));
