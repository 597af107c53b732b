// The services behind the gateway, on a port that is printed and on a Unix socket. Usage: node services.js SOCKET
'use strict';
const { createHash } = require('crypto');
const { createServer } = require('http');
const { pipeline, Readable } = require('stream');
const { gzipSync } = require('zlib');

// Absent if the packages are not installed: then nothing connects to it.
let WebSocketServer;
try {
  ({ WebSocketServer } = require('ws'));
} catch {}

// A client that disconnects ends only its own response.
const done = () => {};

function reply(response, status, value, fields = {}) {
  const body = value === undefined ? '' : JSON.stringify(value);
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body), ...fields });
  response.end(body);
}

async function whole(request) {
  const blocks = [];
  for await (const block of request) blocks.push(block);
  return Buffer.concat(blocks);
}

// A collection of items, with the lowest free number for a new one.
const items = new Map();

async function api(request, response, [name, id]) {
  if (name === 'gzip') {
    const accepted = /\bgzip\b/.test(request.headers['accept-encoding']);
    const body = gzipSync('All that glitters is not gold.\n'.repeat(5000));
    return accepted
      ? response.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': body.length }).end(body)
      : reply(response, 406, { error: 'gzip is not accepted' });
  }
  // The response has the framing of the request.
  if (name === 'echo') {
    const length = request.headers['content-length'];
    response.writeHead(200, length === undefined ? { 'X-Framing': 'chunked' } : { 'X-Framing': 'length', 'Content-Length': length });
    return pipeline(request, response, done);
  }
  if (name === 'continued') return reply(response, 200, { bytes: (await whole(request)).length, asked: request.asked });
  if (name !== 'items') return reply(response, 404, { error: 'no such collection' });

  const key = Number(id);
  if (request.method === 'POST' || request.method === 'PUT') {
    let item;
    try {
      item = JSON.parse(await whole(request));
    } catch {
      return reply(response, 400, { error: 'invalid JSON' });
    }
    if (request.method === 'PUT') {
      items.set(key, item);
      return reply(response, 200, { id: key, ...item });
    }
    let free = 1;
    while (items.has(free)) free++;
    items.set(free, item);
    return reply(response, 201, { id: free, ...item }, { Location: `/api/items/${free}` });
  }
  if (!items.has(key)) return reply(response, 404, { error: 'no such item' });
  if (request.method === 'DELETE') {
    items.delete(key);
    return response.writeHead(204).end();
  }
  return reply(response, 200, { id: key, ...items.get(key) });
}

// Each event is sent only after the client has confirmed the one before it, so one that is held back on its way stops
// the stream.
const EVENTS = 5;
const streams = new Map();

function events(request, response, [name, number]) {
  if (request.method === 'GET') {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    response.write('id: 1\ndata: event 1\n\n');
    return streams.set(name, { response, sent: 1 });
  }
  const stream = streams.get(name);
  if (stream?.sent !== Number(number)) return reply(response, 409, { error: 'not the last event' });
  response.writeHead(204).end();
  if (stream.sent === EVENTS) return stream.response.end();
  stream.sent++;
  stream.response.write(`id: ${stream.sent}\ndata: event ${stream.sent}\n\n`);
}

// Byte i is i mod 251: a shift by any power of two shows.
function* pattern(length) {
  const period = Buffer.from(Array.from({ length: 251 }, (_, i) => i));
  const block = Buffer.concat(Array(256).fill(period));
  for (let at = 0; at < length; at += block.length) yield block.subarray(0, Math.min(block.length, length - at));
}

async function bulk(request, response, [length]) {
  if (request.method === 'GET') {
    response.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': length });
    return pipeline(Readable.from(pattern(Number(length))), response, done);
  }
  const digest = createHash('sha256');
  let bytes = 0;
  for await (const block of request) {
    digest.update(block);
    bytes += block.length;
  }
  reply(response, 200, { bytes, sha256: digest.digest('hex') });
}

function slow(request, response, [name]) {
  if (name === 'late') return setTimeout(() => response.end('late'), 700);
  // Its client gives up before, by a route's timeout.
  if (name === 'never') return;
  let left = 20;
  const timer = setInterval(() => {
    response.write('drop ');
    if (--left) return;
    clearInterval(timer);
    response.end();
  }, 20);
  response.on('close', () => clearInterval(timer));
}

// A GET is answered after a POST to the same name, so that a page's load can wait for its script. They come on two
// connections, in either order.
const reports = new Map();

function report(request, response, [name]) {
  const other = reports.get(name);
  if (!other) reports.set(name, response);
  if (request.method === 'POST' || other) response.writeHead(204).end();
  if (request.method === 'POST') other?.writeHead(204).end();
}

const paths = { api, bulk, events, report, slow };

function answer(request, response) {
  const [, name, ...rest] = request.url.split('/');
  const service = paths[name];
  if (!service) return reply(response, 404, { error: 'no such service' });
  Promise.resolve(service(request, response, rest)).catch(() => response.destroy());
}

function server() {
  const http = createServer(answer);
  http.on('checkContinue', (request, response) => {
    if (request.url === '/api/refused') return reply(response, 413, { error: 'too large' });
    request.asked = true;
    response.writeContinue();
    answer(request, response);
  });
  if (!WebSocketServer) return http;
  const chat = new WebSocketServer({ server: http, path: '/websocket', perMessageDeflate: true, handleProtocols: () => 'echo' });
  chat.on('connection', (socket) => socket.on('message', (data, binary) => socket.send(data, { binary })));
  return http;
}

server().listen(process.argv[2], () => {
  const http = server().listen(0, '127.0.0.1', () => console.log(http.address().port));
});
