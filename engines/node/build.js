// Nothing to build; fails if Node and its OpenSSL do not match engine.toml.
'use strict';
const fs = require('fs');

const manifest = fs.readFileSync('engine.toml', 'utf8');
const wanted = (key) => new RegExp(`^${key} = "([^"]*)"`, 'm').exec(manifest)[1];
const found = { version: process.versions.node, crypto: `openssl ${process.versions.openssl}` };
for (const [key, value] of Object.entries(found)) {
  // OpenSSL's version may have a suffix: 3.0.19+quic.
  if (!`${value}.`.startsWith(`${wanted(key)}.`)) {
    console.error(`node: this machine has ${value}, engine.toml needs ${wanted(key)}`);
    process.exitCode = 1;
  }
}
