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

// One process per gateway core; for a single core there is no primary that would hand connections over.
if (settings.workers > 1 && cluster.isPrimary) {
  // A returning client can resume on any worker.
  const env = { TICKET_KEYS: crypto.randomBytes(48).toString('hex') };
  for (let worker = 0; worker < settings.workers; worker++) cluster.fork(env);
  let ending = false;
  // The primary exits after the last worker.
  const end = () => {
    ending = true;
    for (const worker of Object.values(cluster.workers)) worker.process.kill();
  };
  process.on('SIGTERM', end);
  cluster.on('exit', (worker, code, signal) => {
    if (ending) return;
    // No worker may exit before the others.
    console.error(`worker ${worker.id} exited: ${signal ?? code}`);
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
    // Further requests wait for a connection; the default has no limit.
    maxSockets: settings.pool,
    // The default keeps 256 idle ones.
    maxFreeSockets: settings.pool,
    // TCP keep-alive probes of idle connections would begin after one second.
    keepAliveMsecs: 3600e3,
    ...(upstreamTls && {
      // Created once. With plain options each connection would create its own and parse the certificates again.
      secureContext: tls.createSecureContext({ ...pinned, ca: fs.readFileSync(settings.ca) }),
      // Verify a name in the certificate, as Weir does by default. Sessions are resumed by default.
      servername: 'localhost',
    }),
  });
  // The agent computes the name of a pool for each request, from all TLS options by default. There is one upstream.
  agent.getName = () => 'upstream';
  const upstream = {
    agent,
    host: '127.0.0.1',
    port: settings.upstreamPort,
    request: (upstreamTls ? https : http).request,
  };
  const options = {
    // No timeouts: client connections outlive the run (default: 5 s), and Node does not scan them for slow ones
    // (defaults: 300 s for a request, 60 s for a head).
    keepAliveTimeout: 0,
    requestTimeout: 0,
    headersTimeout: 0,
    ...(clientTls && {
      ...pinned,
      // The experiment's certificate. Node cannot set the number of tickets (2, OpenSSL's default).
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
    response.writeHead(answer.statusCode, answer.statusMessage, passedOn(answer.rawHeaders, ofTheConnection));
    answer.pipe(response);
  });
  out.on('error', (error) => {
    if (response.headersSent) return response.destroy();
    response.writeHead(502, { 'Content-Type': 'text/plain', Connection: 'close' });
    response.end(`502 Bad Gateway: ${error.message}\n`);
  });
  // If the client disconnects, abort its upstream request.
  response.on('close', () => response.writableFinished || out.destroy());
  const { headers } = request;
  if ('transfer-encoding' in headers || ('content-length' in headers && headers['content-length'] !== '0')) {
    request.pipe(out);
  } else {
    out.end();
  }
}

// Headers are copied between raw lists, which Node writes unchanged; the response's never become an object.
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
  );
  return headers;
}

// Hop-by-hop headers, not forwarded. Node frames bodies again, by Content-Length and Transfer-Encoding.
const ofTheConnection = new Set(['connection', 'keep-alive', 'proxy-connection', 'te', 'upgrade']);

// The client's own values of these are not forwarded either, as in Weir.
const notOfTheClient = new Set([...ofTheConnection, 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host']);

function passedOn(raw, dropped) {
  const headers = [];
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at].toLowerCase();
    if (!dropped.has(name)) {
      headers.push(raw[at], raw[at + 1]);
    } else if (name === 'connection' && !/^(keep-alive|close)$/i.test(raw[at + 1])) {
      // Connection names further hop-by-hop headers.
      const named = raw[at + 1].toLowerCase().split(/[ \t,]+/);
      if (!named.every((name) => dropped.has(name) || name === 'close')) {
        return passedOn(raw, new Set([...dropped, ...named]));
      }
    }
  }
  return headers;
}
