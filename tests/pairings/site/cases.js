// What a client in JavaScript asks of each service, and the transcript of it. A client is an object with
// - ask(method, path, {fields, body, length}): {status, field(name), bytes()}; a body with a length is an iterable
// - parts(path): an async iterable of the blocks of a response's body
// - data(path): an async iterable of the data of server-sent events
// - socket(path, protocol): a WebSocket
// - sha256(): an object with update(bytes) and hex()
'use strict';

const text = (bytes) => new TextDecoder().decode(bytes);

// Byte i is i mod 251: a shift by any power of two shows.
function* pattern(length) {
  const block = Uint8Array.from({ length: 251 * 256 }, (_, i) => i % 251);
  for (let at = 0; at < length; at += block.length) yield block.subarray(0, Math.min(block.length, length - at));
}

function patterned(length) {
  return Uint8Array.from({ length }, (_, i) => i % 251);
}

async function digest(client, blocks) {
  const sha256 = client.sha256();
  let bytes = 0;
  for await (const block of blocks) {
    bytes += block.length;
    sha256.update(block);
  }
  return `${bytes} ${await sha256.hex()}`;
}

const sum = (client, bytes) => digest(client, [bytes]);

async function* site(client) {
  for (const path of ['/', '/style.css', '/picture.png']) {
    const response = await client.ask('GET', path);
    yield `GET ${path} ${response.status} ${response.field('content-type')} ${await sum(client, await response.bytes())}`;
  }
  const picture = await client.ask('GET', '/picture.png');
  await picture.bytes();
  for (const [name, condition] of [['etag', 'If-None-Match'], ['last-modified', 'If-Modified-Since']]) {
    const response = await client.ask('GET', '/picture.png', { fields: { [condition]: picture.field(name) } });
    yield `${name} ${response.status} ${(await response.bytes()).length}`;
  }
  const range = await client.ask('GET', '/picture.png', { fields: { Range: 'bytes=10-19' } });
  yield `range ${range.status} ${range.field('content-range')} ${await sum(client, await range.bytes())}`;
  const head = await client.ask('HEAD', '/picture.png');
  yield `HEAD ${head.status} ${head.field('content-length')} ${(await head.bytes()).length}`;
  const missing = await client.ask('GET', '/missing');
  await missing.bytes();
  yield `missing ${missing.status}`;
}

async function* api(client) {
  const json = { 'Content-Type': 'application/json' };
  const ask = async (method, path, body) => {
    const response = await client.ask(method, path, { fields: body ? json : {}, body });
    const place = response.field('location');
    const said = text(await response.bytes());
    return [method, response.status, place, said].filter(Boolean).join(' ');
  };
  yield await ask('POST', '/api/items', '{"name":"Zoë"}');
  yield await ask('GET', '/api/items/1');
  yield await ask('PUT', '/api/items/1', '{"name":"Ada"}');
  yield await ask('DELETE', '/api/items/1');
  yield await ask('GET', '/api/items/1');
  yield await ask('POST', '/api/items', '{"name":');
  const gzip = await client.ask('GET', '/api/gzip', { fields: { 'Accept-Encoding': 'gzip' } });
  yield `gzip ${gzip.status} ${gzip.field('content-encoding')} ${await sum(client, await gzip.bytes())}`;
  const echo = await client.ask('POST', '/api/echo', { body: patterned(300000) });
  yield `echo ${echo.status} ${echo.field('x-framing')} ${await sum(client, await echo.bytes())}`;
}

async function* chunked(client) {
  const echo = await client.ask('POST', '/api/echo', { body: pattern(300000) });
  yield `echo ${echo.status} ${echo.field('x-framing')} ${await sum(client, await echo.bytes())}`;
}

async function expect(client, name) {
  const fields = { Expect: '100-continue', 'Content-Length': 300000 };
  const response = await client.ask('PUT', `/api/${name}`, { fields, body: patterned(300000) });
  return `${name} ${response.status} ${text(await response.bytes())}`;
}

async function* continued(client) {
  yield await expect(client, 'continued');
}

async function* refused(client) {
  yield await expect(client, 'refused');
}

async function* websocket(client) {
  const socket = client.socket('/websocket', 'echo');
  socket.binaryType = 'arraybuffer';
  const next = (name) => new Promise((resolve, reject) => {
    socket.addEventListener(name, resolve, { once: true });
    socket.addEventListener('error', (event) => reject(new Error(event.message ?? 'the connection failed')), { once: true });
  });
  await next('open');
  yield `open ${socket.protocol}`;
  for (const said of ['Zoë €', '', patterned(5), patterned(70000), patterned(1000000)]) {
    const echo = next('message');
    socket.send(said);
    const { data } = await echo;
    yield typeof data === 'string' ? `text ${data}` : `binary ${await sum(client, new Uint8Array(data))}`;
  }
  const close = next('close');
  socket.close(1000);
  yield `close ${(await close).code}`;
}

async function* events(client) {
  const path = `/events/${Math.random()}`;
  let number = 0;
  for await (const data of client.data(path)) {
    const confirmed = await client.ask('POST', `${path}/${++number}`);
    await confirmed.bytes();
    yield `${data} ${confirmed.status}`;
    if (number === 5) return;
  }
}

async function* upload(client, length) {
  const response = await client.ask('PUT', '/bulk', { body: pattern(length), length });
  const { bytes, sha256 } = JSON.parse(text(await response.bytes()));
  yield `upload ${bytes} ${sha256}`;
}

async function* download(client, length) {
  yield `download ${await digest(client, client.parts(`/bulk/${length}`))}`;
}

async function* slow(client) {
  for (const name of ['late', 'trickle', 'never']) {
    const response = await client.ask('GET', `/slow/${name}`);
    yield `${name} ${response.status} ${text(await response.bytes()).trim()}`;
  }
}

const cases = { site, api, chunked, continued, refused, websocket, events, upload, download, slow };

async function transcript(client, name, length) {
  let lines = '';
  for await (const line of cases[name](client, length)) lines += `${line}\n`;
  return lines;
}

if (typeof module === 'object') module.exports = { transcript };
