// A pass-through on Node's http and https, tuned to win: each setting has its reason.
// Usage: node proxy.js SETTINGS.json
'use strict';
const cluster = require('cluster');
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const https = require('https');
const tls = require('tls');

const settings = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const clientTls = settings.clientSide === 'h1';
const upstreamTls = settings.upstreamSide === 'h1';

// One process per core given; for one core there is none beside it that would hand connections over.
if (settings.workers > 1 && cluster.isPrimary) {
  // A returning client resumes on whichever worker it lands.
  const env = { TICKET_KEYS: crypto.randomBytes(48).toString('hex') };
  for (let worker = 0; worker < settings.workers; worker++) cluster.fork(env);
  let ending = false;
  // It ends itself when the last of them has.
  const end = () => {
    ending = true;
    for (const worker of Object.values(cluster.workers)) worker.process.kill();
  };
  process.on('SIGTERM', end);
  cluster.on('exit', (worker, code, signal) => {
    if (ending) return;
    // A worker ends only with the others, so this is a fault.
    console.error(`worker ${worker.id} ended: ${signal ?? code}`);
    process.exitCode = 1;
    end();
  });
} else {
  serve();
}

function serve() {
  // The experiment's version, suite and group on both sides; the client asserts them on every handshake.
  const pinned = {
    minVersion: settings.version,
    maxVersion: settings.version,
    ciphers: settings.ciphers,
    ecdhCurve: settings.group,
  };
  const agent = new (upstreamTls ? https : http).Agent({
    // Without it each request opens a connection.
    keepAlive: true,
    // Requests beyond so many wait for a connection; there is no limit by default.
    maxSockets: settings.pool,
    // The default keeps 256 idle ones.
    maxFreeSockets: settings.pool,
    // The system's own probes of idle connections would begin after one second.
    keepAliveMsecs: 3600e3,
    ...(upstreamTls && {
      // Made once. From the bare options each connection would make its own, and read the certificates anew.
      secureContext: tls.createSecureContext({ ...pinned, ca: fs.readFileSync(settings.ca) }),
      // Verify a name in the certificate, as Weir does by default. Sessions are reused by default.
      servername: 'localhost',
    }),
  });
  // The agent asks for each request which of its pools it belongs to, and puts all options of TLS into the answer.
  // There is one upstream.
  agent.getName = () => 'upstream';
  const upstream = {
    agent,
    host: '127.0.0.1',
    port: settings.upstreamPort,
    request: (upstreamTls ? https : http).request,
  };
  const options = {
    // No Node timeouts: client connections outlive the run (5 s), and there is no list of them to be
    // looked through for slow ones (300 s for a request, 60 s for a head).
    keepAliveTimeout: 0,
    requestTimeout: 0,
    headersTimeout: 0,
    ...(clientTls && {
      ...pinned,
      // The experiment's certificate. The number of tickets cannot be set in Node: it is 2, OpenSSL's default.
      cert: fs.readFileSync(settings.cert),
      key: fs.readFileSync(settings.key),
      ...(process.env.TICKET_KEYS && { ticketKeys: Buffer.from(process.env.TICKET_KEYS, 'hex') }),
      // HTTP/1.1 only, as in every target.
      ALPNProtocols: ['http/1.1'],
    }),
  };
  const server = (clientTls ? https : http).createServer(options, (request, response) =>
    pass(upstream, request, response),
  );
  // The backlog holds all clients that connect at once; the default is 511.
  server.listen({ port: settings.port, host: '127.0.0.1', backlog: 4096 });
}

function pass(upstream, request, response) {
  const { agent, host, port } = upstream;
  const { method, url: path } = request;
  const out = upstream.request({ agent, host, port, method, path, headers: requestHeaders(request) });
  out.on('response', (answer) => {
    answer.on('error', () => response.destroy());
    response.writeHead(answer.statusCode, answer.statusMessage, answerHeaders(answer));
    answer.pipe(response);
  });
  out.on('error', (error) => {
    if (response.headersSent) return response.destroy();
    response.writeHead(502, { 'Content-Type': 'text/plain', Connection: 'close' });
    response.end(`502 Bad Gateway: ${error.message}\n`);
  });
  // A client that went away takes its upstream request along.
  response.on('close', () => response.writableFinished || out.destroy());
  const { headers } = request;
  if ('transfer-encoding' in headers || ('content-length' in headers && headers['content-length'] !== '0')) {
    request.pipe(out);
  } else {
    out.end();
  }
}

// Headers go from one raw list to another, which Node writes as it is; the answer's are never made into a table.
function requestHeaders(request) {
  const headers = passedOn(request.rawHeaders, notOfTheClient);
  // The same headers as Weir adds, so that all targets do the same work. Host is forwarded too.
  headers.push(
    'X-Forwarded-For',
    request.socket.remoteAddress,
    'X-Forwarded-Proto',
    clientTls ? 'https' : 'http',
    'X-Forwarded-Host',
    request.headers.host ?? '',
    'Via',
    '1.1 node',
  );
  return headers;
}

function answerHeaders(answer) {
  const headers = passedOn(answer.rawHeaders, ofTheConnection);
  headers.push('Via', '1.1 node');
  return headers;
}

// What belongs to one connection and is not passed on. Bodies are framed anew, as Content-Length and Transfer-Encoding
// say.
const ofTheConnection = new Set(['connection', 'keep-alive', 'proxy-connection', 'te', 'upgrade']);

// What a client says of these itself is not passed on either, as in Weir.
const notOfTheClient = new Set([...ofTheConnection, 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host']);

function passedOn(raw, dropped) {
  const headers = [];
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at].toLowerCase();
    if (!dropped.has(name)) {
      headers.push(raw[at], raw[at + 1]);
    } else if (name === 'connection' && !/^(keep-alive|close)$/i.test(raw[at + 1])) {
      // It names further headers of the connection.
      const named = raw[at + 1].toLowerCase().split(/[ \t,]+/);
      if (!named.every((name) => dropped.has(name) || name === 'close')) {
        return passedOn(raw, new Set([...dropped, ...named]));
      }
    }
  }
  return headers;
}
