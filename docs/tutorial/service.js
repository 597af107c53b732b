// The tutorial's service: cleartext HTTP in, one HTTPS request out for each.
// Usage: node service.js PORT UPSTREAM-URL CA-FILE KEEP-ALIVE, with `on` or `off` for the last.
'use strict';
const fs = require('fs');
const http = require('http');
const https = require('https');

const [port, upstream, ca, keepAlive] = process.argv.slice(2);
// Since Node.js 19 its own agent keeps connections. Much code has one that does not.
const agent = new https.Agent({ keepAlive: keepAlive === 'on', ca: fs.readFileSync(ca) });

http
  .createServer((request, response) => {
    const options = { agent, servername: 'localhost' };
    https
      .get(new URL(request.url, upstream), options, (answer) => {
        response.writeHead(answer.statusCode, { 'Content-Length': answer.headers['content-length'] });
        answer.pipe(response);
      })
      .on('error', (error) => response.writeHead(502).end(`${error.message}\n`));
  })
  .listen(Number(port), '127.0.0.1', 4096);
