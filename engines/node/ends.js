// Creates both sides' configurations.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const tls = require('tls');
const { refuse } = require('./fault');

const GROUPS = { x25519: 'X25519', p256: 'P-256' };
const CURVES = { 'ecdsa-p256': 'P-256', 'ecdsa-p384': 'P-384' };
const SIGNATURES = {
  'rsa-2048': 'rsa_pss_rsae_sha256', 'ecdsa-p256': 'ecdsa_secp256r1_sha256', 'ecdsa-p384': 'ecdsa_secp384r1_sha384',
};
const SUITES = {
  'aes128-gcm': ['TLS_AES_128_GCM_SHA256', 'AES128-GCM-SHA256'],
  'aes256-gcm': ['TLS_AES_256_GCM_SHA384', 'AES256-GCM-SHA384'],
  'chacha20-poly1305': ['TLS_CHACHA20_POLY1305_SHA256', 'CHACHA20-POLY1305'],
};

class Ends {
  constructor(scenario, ticketKeys) {
    this.scenario = scenario;
    this.chain = read('chain', scenario.chain);
    this.key = read('key', scenario.key);
    this.root = read('ca', scenario.ca);
    this.ticketKeys = ticketKeys;
    const kind = kindOf(this.leaf().publicKey);
    if (kind !== scenario.certificate) {
      throw refuse(`certificate ${scenario.certificate}: the chain's is ${kind}`);
    }
  }

  // A server without a listener: it gets streams.
  server() {
    const { scenario } = this;
    const server = tls.createServer({
      ...this.both(),
      ecdhCurve: GROUPS[scenario.group],
      sigalgs: SIGNATURES[scenario.certificate],
      cert: this.chain,
      key: this.key,
      ticketKeys: Buffer.from(this.ticketKeys),
      secureOptions: scenario.version === '1.2' && !scenario.tickets ? crypto.constants.SSL_OP_NO_TICKET : 0,
    });
    if (scenario.resumption === 'id') keepSessions(server);
    return server;
  }

  client() {
    const { scenario } = this;
    // In TLS 1.2 the list also limits the certificate's curves; the server accepts only the scenario's group.
    const curve = scenario.version === '1.2' ? CURVES[scenario.certificate] : undefined;
    const groups = new Set([GROUPS[scenario.group], curve ?? GROUPS[scenario.group]]);
    return tls.createSecureContext({ ...this.both(), ecdhCurve: [...groups].join(':'), ca: this.root });
  }

  both() {
    const { version, suite, certificate } = this.scenario;
    const key = certificate === 'rsa-2048' ? 'RSA' : 'ECDSA';
    return {
      minVersion: `TLSv${version}`,
      maxVersion: `TLSv${version}`,
      ciphers: version === '1.3' ? SUITES[suite][0] : `ECDHE-${key}-${SUITES[suite][1]}`,
    };
  }

  leaf() {
    try {
      return new crypto.X509Certificate(this.chain);
    } catch (error) {
      throw refuse(`chain ${this.scenario.chain}: ${error.message}: expected a PEM file of certificates`);
    }
  }
}

// The scenario's name of a key's kind.
function kindOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }) {
  if (type === 'rsa') return `rsa-${details.modulusLength}`;
  return { prime256v1: 'ecdsa-p256', secp384r1: 'ecdsa-p384' }[details.namedCurve] ?? type;
}

function read(key, path) {
  try {
    return fs.readFileSync(path);
  } catch (error) {
    throw refuse(`${key} ${path}: ${error.message}: expected the path of a PEM file`);
  }
}

// Node leaves a server's store to the application.
function keepSessions(server) {
  const sessions = new Map();
  server.on('newSession', (id, session, done) => {
    sessions.set(id.toString('latin1'), session);
    done();
  });
  server.on('resumeSession', (id, done) => done(null, sessions.get(id.toString('latin1')) ?? null));
}

module.exports = { Ends, SUITES, kindOf };
