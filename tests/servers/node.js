// An upstream server on Node's http and https. Usage: node node.js [CERT KEY]; prints the port that it listens on.
'use strict';
const fs = require('fs');
const { pipeline, Readable } = require('stream');

// Byte i is i mod 251: a shift by any power of two shows.
function* pattern(length) {
  const period = Buffer.from(Array.from({ length: 251 }, (_, i) => i));
  const block = Buffer.concat(Array(256).fill(period));
  for (let at = 0; at < length; at += block.length) yield block.subarray(0, Math.min(block.length, length - at));
}

// A client that disconnects ends only its own response.
const done = () => {};
let connections = 0;

// How programs read a path: as it is, decoded, or resolved.
const readings = {
  raw: (url) => url,
  decoded: (url) => decodeURIComponent(url),
  resolved: (url) => require('path').posix.normalize(decodeURIComponent(url)),
  url: (url) => (URL.canParse(url, 'http://h') ? new URL(url, 'http://h').pathname : 'not a URL'),
};

function answer(request, response) {
  const reading = readings[request.headers['x-read-path']];
  if (reading) return response.end(reading(request.url));
  const [, name, size] = request.url.split('/');
  switch (name) {
    case 'bytes':
      response.setHeader('Content-Length', size);
      return request.method === 'HEAD' ? response.end() : pipeline(Readable.from(pattern(+size)), response, done);
    case 'chunked':
      return pipeline(Readable.from(pattern(+size)), response, done);
    case 'echo': {
      const length = request.headers['content-length'];
      if (length !== undefined) response.setHeader('Content-Length', length);
      return pipeline(request, response, done);
    }
    case '204':
      return response.writeHead(204).end();
    case '304':
      return response.writeHead(304, { ETag: '"1"' }).end();
    case 'connections':
      return response.end(String(connections));
    case 'last':
      return response.setHeader('Connection', 'close').end('last');
    case 'cut':
      return response.setHeader('Content-Length', '1000').write('the beginning', () => request.socket.destroy());
    case 'silent':
      return request.socket.destroy();
    default:
      return response.writeHead(404).end();
  }
}

const [cert, key] = process.argv.slice(2);
const server = cert
  ? require('https').createServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(key) }, answer)
  : require('http').createServer(answer);
server.on('connection', () => connections++);
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
