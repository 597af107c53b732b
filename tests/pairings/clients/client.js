// Clients in Node. Usage: node client.js LIBRARY BASE CA SERVICE LENGTH, where LIBRARY is `core` (http and https, with
// the package ws) or `undici`. Prints the transcript.
'use strict';
const { createHash } = require('crypto');
const { readFileSync } = require('fs');
const { Readable } = require('stream');
const { transcript } = require('../site/cases.js');

const [library, base, file, service, length] = process.argv.slice(2);
const ca = readFileSync(file);

const sha256 = () => {
  const hash = createHash('sha256');
  return { update: (bytes) => hash.update(bytes), hex: () => hash.digest('hex') };
};

async function whole(parts) {
  const blocks = [];
  for await (const part of parts) blocks.push(part);
  return Buffer.concat(blocks);
}

function core() {
  const http = require(base.startsWith('https') ? 'https' : 'http');
  const WebSocket = require('ws');
  const { createGunzip } = require('zlib');
  const agent = new http.Agent({ keepAlive: true, ca });

  function send(method, path, { fields = {}, body, length } = {}) {
    const headers = length === undefined ? fields : { ...fields, 'Content-Length': length };
    return new Promise((resolve, reject) => {
      const request = http.request(base + path, { method, headers, agent });
      request.on('error', reject);
      request.on('response', (response) => {
        resolve({
          status: response.statusCode,
          field: (name) => response.headers[name],
          body: response.headers['content-encoding'] === 'gzip' ? response.pipe(createGunzip()) : response,
        });
      });
      const finish = () => {
        if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) request.end(body);
        else Readable.from(body).pipe(request);
      };
      if (!fields.Expect) return finish();
      // A body that is refused is never sent.
      request.on('continue', finish);
      request.flushHeaders();
    });
  }

  return {
    async ask(...what) {
      const response = await send(...what);
      return { ...response, bytes: () => whole(response.body) };
    },
    async *parts(path) {
      yield* (await send('GET', path)).body;
    },
    async *data(path) {
      let read = '';
      for await (const part of (await send('GET', path)).body) {
        const lines = (read + part).split('\n');
        read = lines.pop();
        for (const line of lines) if (line.startsWith('data: ')) yield line.slice(6);
      }
    },
    socket: (path, protocol) => new WebSocket(base.replace('http', 'ws') + path, protocol, { ca }),
    sha256,
  };
}

function undici() {
  const { Agent, EventSource, WebSocket, fetch, request, setGlobalDispatcher } = require('undici');
  setGlobalDispatcher(new Agent({ connect: { ca } }));
  return {
    async ask(method, path, { fields, body, length } = {}) {
      if (length !== undefined) {
        const headers = { 'Content-Length': String(length) };
        const response = await request(base + path, { method, headers, body: Readable.from(body) });
        return { status: response.statusCode, bytes: () => whole(response.body) };
      }
      const streamed = body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array);
      const response = await fetch(base + path, {
        method,
        headers: fields,
        body: streamed ? Readable.toWeb(Readable.from(body)) : body,
        duplex: 'half',
      });
      return {
        status: response.status,
        field: (name) => response.headers.get(name),
        bytes: async () => new Uint8Array(await response.arrayBuffer()),
      };
    },
    async *parts(path) {
      yield* (await request(base + path)).body;
    },
    async *data(path) {
      const source = new EventSource(base + path);
      const [come, waiting] = [[], []];
      source.onmessage = (event) => (waiting.length ? waiting.shift()(event.data) : come.push(event.data));
      try {
        for (;;) yield come.length ? come.shift() : await new Promise((resolve) => waiting.push(resolve));
      } finally {
        source.close();
      }
    },
    socket: (path, protocol) => new WebSocket(base.replace('http', 'ws') + path, protocol),
    sha256,
  };
}

transcript({ core, undici }[library](), service, Number(length)).then(
  // Idle connections do not keep the process.
  (lines) => process.stdout.write(lines, () => process.exit()),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
