// A test server on OpenSSL, by Node.js: what `weir origin` serves to an experiment, with what rustls rightly lacks, RSA
// key transport. The client's preference decides. Usage: node origin.js SETTINGS.json
'use strict';
const fs = require('fs');
const http = require('http');
const https = require('https');

const settings = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const LETTERS = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXY';

const counts = { requests: 0, connections: 0, handshakes_full: 0, resumed: 0, negotiated: {} };
const bodies = new Map();

// Byte i is letter i % 61, as in `weir origin`.
function body(length) {
  if (!bodies.has(length)) bodies.set(length, Buffer.from(LETTERS.repeat(Math.ceil(length / 61)).slice(0, length)));
  return bodies.get(length);
}

function serve(request, response) {
  counts.requests++;
  const [path, query = ''] = request.url.split('?');
  const bytes = /^\/bytes\/(\d+)$/.exec(path);
  const delay = /(?:^|&)delay_ms=(\d+)/.exec(query);
  const answer = () => {
    if (path === '/echo') {
      const length = request.headers['content-length'];
      response.writeHead(200, { 'content-type': 'application/json', ...(length && { 'content-length': length }) });
      return request.pipe(response);
    }
    if (!bytes) {
      response.writeHead(404, { 'content-type': 'text/plain' });
      return response.end('expected /bytes/N or /echo\n');
    }
    const data = body(Number(bytes[1]));
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': data.length });
    response.end(data);
  };
  return delay ? setTimeout(answer, Number(delay[1])) : answer();
}

// Where the content of a DER element begins and ends.
function element(der, at) {
  const first = der[at + 1];
  const octets = first < 0x80 ? 0 : first & 0x7f;
  const begin = at + 2 + octets;
  return [begin, begin + (octets ? der.readUIntBE(at + 2, octets) : first)];
}

// The issuer's signature algorithm, which follows the signed part of a certificate (RFC 5280, section 4.1).
function signature(der) {
  const [certificate] = element(der, 0);
  const [, signed] = element(der, certificate);
  const [algorithm] = element(der, signed);
  const identifier = der.toString('hex', ...element(der, algorithm));
  if (identifier.startsWith('2a864886f70d0101')) return 'rsa';
  return identifier.startsWith('2a8648ce3d04') ? 'ecdsa' : identifier;
}

function keyKind(key) {
  const { modulusLength, namedCurve } = key.asymmetricKeyDetails;
  if (key.asymmetricKeyType === 'rsa') return `rsa-${modulusLength}`;
  return `ecdsa-${namedCurve === 'prime256v1' ? 'p256' : namedCurve}`;
}

// The presented certificate's key and its issuer's signature: `rsa-2048 by rsa`.
const chains = new Map();
function chain(socket) {
  const certificate = socket.getX509Certificate();
  // The client has closed the connection.
  if (!certificate) return 'gone';
  const name = certificate.fingerprint256;
  if (!chains.has(name)) chains.set(name, `${keyKind(certificate.publicKey)} by ${signature(certificate.raw)}`);
  return chains.get(name);
}

const secure = https.createServer({
  cert: fs.readFileSync(settings.cert),
  key: fs.readFileSync(settings.key),
  minVersion: 'TLSv1',
  // RSA key transport last: a client gets it if it offers nothing else. Level 0 admits the oldest clients.
  ciphers: 'DEFAULT:AES256-GCM-SHA384:AES128-GCM-SHA256:AES256-SHA:AES128-SHA:@SECLEVEL=0',
  honorCipherOrder: false,
  ecdhCurve: settings.group,
  ALPNProtocols: ['http/1.1'],
  keepAliveTimeout: 0,
  requestTimeout: 0,
  headersTimeout: 0,
});
secure.on('request', serve);
secure.on('connection', () => counts.connections++);
secure.on('secureConnection', (socket) => {
  const kind = socket.isSessionReused() ? 'resumed' : 'handshakes_full';
  counts[kind]++;
  const [version, cipher] = [socket.getProtocol(), socket.getCipher().name];
  // A server of Node.js does not see the group, but this one has a single group.
  const group = version === 'TLSv1.3' || (cipher.startsWith('ECDHE') && kind !== 'resumed') ? ` ${settings.group}` : '';
  // A resumption presents no certificate.
  const how = kind === 'resumed' ? 'resumed' : `${chain(socket)} full`;
  const name = `${version} ${cipher}${group} ${how}`;
  counts.negotiated[name] = (counts.negotiated[name] || 0) + 1;
});
const counters = http.createServer((request, response) => {
  response.writeHead(200, { 'content-type': 'application/json', connection: 'close' });
  response.end(JSON.stringify(counts));
});

const [host, port] = settings.counts.split(':');
counters.listen({ host, port: Number(port) }, () => {
  const [host, port] = settings.listen.split(':');
  secure.listen({ host, port: Number(port), backlog: 4096 });
});
process.on('SIGTERM', () => process.exit(0));
