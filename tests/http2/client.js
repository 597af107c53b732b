// Node's http2 as a client. Usage: node client.js BASE CA; sends many requests at once on one connection and prints `ok`.
'use strict';
const fs = require('fs');
const http2 = require('http2');
const [base, ca] = process.argv.slice(2);

// Byte i is i mod 251: a shift by any power of two shows.
const patterned = (length) => Buffer.from(Uint8Array.from({ length }, (_, i) => i % 251));

function send(session, method, path, pieces = []) {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':method': method, ':path': path });
    const parts = [];
    let status;
    stream.on('response', (headers) => (status = headers[':status']));
    stream.on('data', (part) => parts.push(part));
    stream.on('end', () => resolve({ status, body: Buffer.concat(parts) }));
    stream.on('error', reject);
    for (const piece of pieces) stream.write(piece);
    stream.end();
  });
}

async function check(sent, status, body, what) {
  const got = await sent;
  if (got.status !== status || !got.body.equals(body)) {
    throw new Error(`${what}: ${got.status}, ${got.body.length} bytes of ${body.length}`);
  }
}

const download = (session, size) => check(send(session, 'GET', `/bytes/${size}`), 200, patterned(size), `download of ${size}`);

function upload(session, size) {
  const body = patterned(size);
  const pieces = [];
  for (let at = 0; at < size; at += 3000) pieces.push(body.subarray(at, at + 3000));
  return check(send(session, 'POST', '/echo', pieces), 200, body, `upload of ${size}`);
}

async function main() {
  const session = http2.connect(base, { ca: fs.readFileSync(ca) });
  const failed = new Promise((_, reject) => session.on('error', reject));
  const nothing = Buffer.alloc(0);
  const sizes = Array.from({ length: 60 }, (_, number) => number * 5000);
  const all = async () => {
    await check(send(session, 'GET', '/204'), 204, nothing, '204');
    await check(send(session, 'HEAD', '/bytes/1000'), 200, nothing, 'HEAD');
    await Promise.all(sizes.map((size) => download(session, size)));
    await Promise.all(sizes.map((size) => upload(session, size)));
    await download(session, 5_000_000);
  };
  await Promise.race([all(), failed]);
  session.close();
  console.log('ok');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
