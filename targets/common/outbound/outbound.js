// The service of the study: it serves cleartext HTTP and makes one HTTPS request for each that it receives. ES5, since
// it runs on Node.js 0.10 as on today's. Usage: node outbound.js SETTINGS.json
'use strict';
var fs = require('fs');
var http = require('http');
var https = require('https');
var tls = require('tls');

var settings = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));

// Bytes that TLS connections of Node.js 0.10 share for reading; later versions ignore it.
if (settings.slab > 0) {
  tls.SLAB_BUFFER_SIZE = settings.slab;
}

var options = tlsOptions();
var agent = createAgent();

http
  .createServer(function (request, response) {
    // With the TLS options in each request too: Node.js 0.12 looks for a free connection under a name made of the
    // request's options, but keeps it under one made of the agent's as well, and would never find it.
    var out = https.request(
      merged([
        options,
        {
          host: '127.0.0.1',
          port: settings.upstreamPort,
          servername: 'localhost',
          method: request.method,
          path: request.url,
          headers: { host: 'localhost' },
          agent: agent,
        },
      ])
    );
    out.on('response', function (answer) {
      response.writeHead(answer.statusCode, endToEnd(answer.headers));
      answer.pipe(response);
    });
    out.on('error', function (error) {
      response.writeHead(502, { 'content-type': 'text/plain' });
      response.end('502 Bad Gateway: ' + error.message + '\n');
    });
    request.pipe(out);
  })
  .on('connection', function (socket) {
    if (settings.noDelay === 'on') socket.setNoDelay(true);
  })
  .listen(settings.port, '127.0.0.1', 4096)
  // Clients of the run stay connected longer than the default of later versions (5 s).
  .keepAliveTimeout = 0;

function tlsOptions() {
  var options = { ca: fs.readFileSync(settings.ca).toString(), rejectUnauthorized: true };
  if (settings.ciphers !== 'default') options.ciphers = settings.ciphers;
  // Suites of TLS 1.2 alone would have no effect on a connection with TLS 1.3.
  if (settings.ciphers !== 'default' && !/TLS_/.test(settings.ciphers)) options.maxVersion = 'TLSv1.2';
  if (settings.version !== 'default') options.minVersion = options.maxVersion = settings.version;
  if (settings.group !== 'default') options.ecdhCurve = settings.group;
  if (settings.context === 'shared' && tls.createSecureContext) {
    options.secureContext = tls.createSecureContext(options);
    // The agent makes a part of its key of it.
    delete options.ca;
  }
  return options;
}

function createAgent() {
  // The default of Node.js 0.10 is 5.
  var own = { maxSockets: settings.maxSockets };
  // The agent's own cache, since io.js 1; earlier versions ignore this.
  if (settings.resumption !== 'agent') own.maxCachedSessions = 0;
  own.keepAlive = settings.keepAlive === 'own';
  own.maxFreeSockets = settings.maxSockets;
  var resumes = settings.resumption === 'wrapper';
  if (settings.keepAlive === 'module') {
    var Agent = require(settings.module).HttpsAgent;
    own.keepAlive = true;
    // The defaults are a minute and, in later versions of the module, 15 s.
    own.maxKeepAliveTime = 3600e3;
    own.keepAliveTimeout = 3600e3;
    // With TLS options of its own it would never find a free connection either: they are the wrapper's.
    return wrapped(new Agent(own), resumes);
  }
  var agent = new https.Agent(merged([options, own]));
  return resumes ? wrapped(agent, resumes) : agent;
}

// The study's wrapper: each connection offers the session of the last one.
function wrapped(agent, resumes) {
  var session;
  agent.createConnection = function () {
    // Node.js 0.10 passes (port, host, options), later versions (options).
    var given = typeof arguments[0] === 'object' ? arguments[0] : arguments[2] || {};
    var all = merged([options, given]);
    all.host = '127.0.0.1';
    all.port = settings.upstreamPort;
    all.servername = 'localhost';
    if (resumes) all.session = session;
    if (all.session) all.checkServerIdentity = checkUnlessResumed;
    var socket = tls.connect(all);
    // In TLS 1.3 tickets arrive after the handshake.
    socket.on('session', function (ticket) {
      session = ticket;
    });
    socket.on('secureConnect', function () {
      var own = socket.getSession && socket.getSession();
      if (own && !(socket.getProtocol && socket.getProtocol() === 'TLSv1.3')) session = own;
    });
    return socket;
  };
  return agent;
}

// Node.js 0.11 and 0.12 have no certificate of a resumed session: it was verified when the session was established.
var check = tls.checkServerIdentity;
tls.checkServerIdentity = checkUnlessResumed;
function checkUnlessResumed(name, certificate) {
  return certificate && certificate.subject ? check(name, certificate) : undefined;
}

function merged(all) {
  var one = {};
  all.forEach(function (some) {
    Object.keys(some).forEach(function (key) {
      one[key] = some[key];
    });
  });
  return one;
}

// RFC 9110, section 7.6.1.
function endToEnd(headers) {
  var kept = {};
  Object.keys(headers).forEach(function (name) {
    if (['connection', 'keep-alive', 'transfer-encoding'].indexOf(name) < 0) kept[name] = headers[name];
  });
  return kept;
}
