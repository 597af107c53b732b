// A server on Node's http that reports its reading of the request line. It prints its port.
'use strict';

const server = require('http').createServer((request, response) => {
  request.on('error', () => {});
  request.on('end', () => {
    response.setHeader('X-Served', `${request.method} ${request.url}`);
    response.end();
  });
  request.resume();
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
