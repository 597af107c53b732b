// The operations, through Node's crypto.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const { kindOf } = require('./ends');
const { refuse } = require('./fault');

// By name: returns the function to repeat.
const OPERATIONS = {
  'rsa-2048-sign': sign, 'rsa-2048-verify': verify,
  'ecdsa-p256-sign': sign, 'ecdsa-p256-verify': verify,
  'ecdsa-p384-sign': sign, 'ecdsa-p384-verify': verify,
  x25519, p256,
  'aes128-gcm-seal': seal, 'aes128-gcm-open': open,
  'aes256-gcm-seal': seal, 'aes256-gcm-open': open,
  'chacha20-poly1305-seal': seal, 'chacha20-poly1305-open': open,
};
const operationNames = Object.keys(OPERATIONS);
const CIPHERS = { aes128: ['aes-128-gcm', 16], aes256: ['aes-256-gcm', 32], chacha20: ['chacha20-poly1305', 32] };

// Hashed in the operation, as in a handshake.
const MESSAGE = Buffer.alloc(32);
// Replaces a record's header, which is authenticated.
const HEADER = Buffer.alloc(5);

// Checks that the scenario has exactly the keys of the operation.
function checkOperation({ operation: name, record, key }) {
  const ciphers = /-(seal|open)$/.test(name);
  const signs = /-(sign|verify)$/.test(name);
  if (ciphers && record === 0) throw refuse('record is missing: expected a number from 1 to 16384');
  if (!ciphers && record !== 0 && !(signs && record === MESSAGE.length)) {
    throw refuse(`record ${record}: expected none with operation ${name}`);
  }
  if (signs !== (key !== undefined)) {
    throw refuse(`key ${key}: expected a file only for rsa and ecdsa operations`);
  }
}

function operation(scenario) {
  return OPERATIONS[scenario.operation](scenario);
}

function sign(scenario) {
  const { key, hash } = signing(scenario);
  return () => crypto.sign(hash, MESSAGE, key);
}

function verify(scenario) {
  const { key, hash } = signing(scenario);
  const signature = crypto.sign(hash, MESSAGE, key);
  const publicKey = { ...key, key: crypto.createPublicKey(key.key) };
  return () => {
    if (!crypto.verify(hash, MESSAGE, publicKey, signature)) throw new Error('the signature is not valid');
  };
}

// The scenario's key, of the operation's kind, with the signature algorithm of a handshake.
function signing({ operation: name, key: path }) {
  let key;
  try {
    key = crypto.createPrivateKey(fs.readFileSync(path));
  } catch (error) {
    throw refuse(`key ${path}: ${error.message}: expected a PEM file with a PKCS #8 key`);
  }
  const kind = kindOf(key);
  if (!name.startsWith(`${kind}-`)) throw refuse(`key ${path}: its kind is ${kind}: expected a key for operation ${name}`);
  if (kind !== 'rsa-2048') return { key: { key }, hash: kind === 'ecdsa-p384' ? 'sha384' : 'sha256' };
  const { RSA_PKCS1_PSS_PADDING: padding, RSA_PSS_SALTLEN_DIGEST: saltLength } = crypto.constants;
  return { key: { key, padding, saltLength }, hash: 'sha256' };
}

// One side's part: its key pair and the shared secret.
function x25519() {
  const { publicKey } = crypto.generateKeyPairSync('x25519');
  return () => {
    const { privateKey } = crypto.generateKeyPairSync('x25519');
    crypto.diffieHellman({ privateKey, publicKey });
  };
}

function p256() {
  const other = crypto.createECDH('prime256v1').generateKeys();
  return () => {
    const own = crypto.createECDH('prime256v1');
    own.generateKeys();
    own.computeSecret(other);
  };
}

// Node needs a new cipher object for each message.
function seal({ operation: name, record }) {
  const { cipher, key, nonce } = aead(name);
  const plain = Buffer.alloc(record);
  let number = 0;
  return () => {
    nonce.writeUIntBE(number++, 6, 6);
    sealed(cipher, key, nonce, plain);
  };
}

function open({ operation: name, record }) {
  const { cipher, key, nonce } = aead(name);
  const { text, tag } = sealed(cipher, key, nonce, Buffer.alloc(record));
  return () => {
    const opener = crypto.createDecipheriv(cipher, key, nonce, { authTagLength: tag.length });
    opener.setAAD(HEADER, { plaintextLength: text.length });
    opener.setAuthTag(tag);
    opener.update(text);
    opener.final();
  };
}

function aead(name) {
  const [cipher, keySize] = CIPHERS[name.split('-')[0]];
  return { cipher, key: crypto.randomBytes(keySize), nonce: Buffer.alloc(12) };
}

function sealed(cipher, key, nonce, plain) {
  const sealer = crypto.createCipheriv(cipher, key, nonce, { authTagLength: 16 });
  sealer.setAAD(HEADER, { plaintextLength: plain.length });
  const text = sealer.update(plain);
  sealer.final();
  return { text, tag: sealer.getAuthTag() };
}

module.exports = { checkOperation, operation, operationNames };
