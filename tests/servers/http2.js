// A server on Node's http2 that speaks HTTP/2 alone. Usage: node http2.js [CERT KEY]; prints the port that it listens on.
'use strict';
const fs = require('fs');
const http2 = require('http2');
const { pipeline, Readable } = require('stream');
const { NGHTTP2_INTERNAL_ERROR, NGHTTP2_REFUSED_STREAM } = http2.constants;

// Byte i is i mod 251: a shift by any power of two shows.
function* pattern(length) {
  const period = Buffer.from(Array.from({ length: 251 }, (_, i) => i));
  const block = Buffer.concat(Array(256).fill(period));
  for (let at = 0; at < length; at += block.length) yield block.subarray(0, Math.min(block.length, length - at));
}

// A client that disconnects ends only its own response.
const done = () => {};
let connections = 0;
let refused = 0;
let abandoned = 0;

function respond(request, response) {
  const [, name, size] = request.url.split('/');
  switch (name) {
    case 'bytes':
      response.setHeader('Content-Length', size);
      return request.method === 'HEAD' ? response.end() : pipeline(Readable.from(pattern(+size)), response, done);
    case 'chunked':
      return pipeline(Readable.from(pattern(+size)), response, done);
    case 'echo': {
      let sum = 0;
      request.on('data', (part) => (sum += part.length));
      request.on('end', () => {
        response.setTrailer('X-Sum', String(sum));
        response.end();
      });
      response.setHeader('Trailer', 'X-Sum');
      // Otherwise an empty response ends with its head.
      response.flushHeaders();
      return request.pipe(response, { end: false });
    }
    case 'request': {
      const { ':authority': host, te = '', cookie = '' } = request.headers;
      return response.end(`HTTP/${request.httpVersion} ${host} te=${te} cookie=${cookie}`);
    }
    case 'fields':
      response.setHeader('X-Large', 'x'.repeat(+size));
      return response.end(String((request.headers['x-large'] || '').length));
    case 'hints':
      response.writeEarlyHints({ link: '</style.css>; rel=preload' });
      return response.end('hinted');
    case '204':
      return response.writeHead(204).end();
    case '304':
      return response.writeHead(304, { ETag: '"1"' }).end();
    case 'early':
      // The response is complete before the request: Node resets the stream with NO_ERROR behind it.
      return response.writeHead(413).end('too large');
    case 'cut':
      response.setHeader('Content-Length', '1000');
      return response.write('the beginning', () => request.stream.close(NGHTTP2_INTERNAL_ERROR));
    case 'silent':
      return request.stream.close(NGHTTP2_INTERNAL_ERROR);
    // Each second request.
    case 'refused':
      if (++refused % 2) return request.stream.close(NGHTTP2_REFUSED_STREAM);
      // curl 7.88 takes the reset behind an early response for an error.
      return request.resume().on('end', () => response.end('accepted'));
    // GOAWAY.
    case 'last':
      return response.end('last', () => request.stream.session?.close());
    // Responds without an end until the client is gone.
    case 'endless':
      request.stream.on('close', () => abandoned++);
      return response.write('the beginning');
    case 'abandoned':
      return response.end(String(abandoned));
    case 'connections':
      return response.end(String(connections));
    default:
      return response.writeHead(404).end();
  }
}

const [cert, key] = process.argv.slice(2);
const settings = { maxConcurrentStreams: 20 };
const server = cert
  ? http2.createSecureServer({ settings, cert: fs.readFileSync(cert), key: fs.readFileSync(key) }, respond)
  : http2.createServer({ settings }, respond);
server.on('session', () => connections++);
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
