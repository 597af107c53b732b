// A side's stream in memory, and the facts in the server's unencrypted messages.
'use strict';
const { Duplex } = require('stream');
const { broken } = require('./fault');

// A side's output is buffered until it is passed to the other.
class Wire extends Duplex {
  constructor() {
    // Never reached: one side writes at most a unit's bytes at once.
    super({ readableHighWaterMark: 2 ** 30, writableHighWaterMark: 2 ** 30 });
    this.sent = [];
    this.active = false;
  }

  _read() {}

  _write(chunk, _, done) {
    // Its time would count for the other side.
    if (!this.active) this.destroy(broken('an end has written while the other was at work'));
    this.sent.push(chunk);
    done();
  }

  take() {
    const sent = this.sent;
    this.sent = [];
    return sent;
  }
}

const HANDSHAKE = 22;
const [SERVER_HELLO, SERVER_KEY_EXCHANGE] = [2, 12];
const KEY_SHARE = 51;
// The random of a ServerHello that is a HelloRetryRequest (RFC 8446, 4.1.3) starts like this.
const RETRY = Buffer.from('cf21ad74e59a6111', 'hex');
const GROUPS = { 0x1d: 'x25519', 0x17: 'p256', 0x18: 'p384' };
const SIGNATURES = {
  0x0804: 'rsa_pss_rsae_sha256', 0x0401: 'rsa_pkcs1_sha256', 0x0403: 'ecdsa_secp256r1_sha256',
  0x0503: 'ecdsa_secp384r1_sha384',
};

// Facts from the server's cleartext messages, which Node does not expose. Null if absent.
class Heard {
  constructor() {
    this.retried = false;
    this.group = null;
    this.signature = null;
  }

  // Parses the output up to the first record that is not a handshake record.
  hear(sent) {
    const bytes = sent.length === 1 ? sent[0] : Buffer.concat(sent);
    const records = [];
    for (let at = 0; at + 5 <= bytes.length && bytes[at] === HANDSHAKE;) {
      const end = at + 5 + bytes.readUInt16BE(at + 3);
      records.push(bytes.subarray(at + 5, end));
      at = end;
    }
    const messages = Buffer.concat(records);
    for (let at = 0; at + 4 <= messages.length;) {
      const end = at + 4 + messages.readUIntBE(at + 1, 3);
      // Messages after ChangeCipherSpec in TLS 1.2 are encrypted.
      if (end > messages.length) return;
      this.message(messages[at], messages.subarray(at + 4, end));
      at = end;
    }
  }

  message(type, body) {
    if (type === SERVER_HELLO) this.hello(body);
    if (type !== SERVER_KEY_EXCHANGE) return;
    // A named curve, its number, the key with its length, the signature scheme.
    this.group = name(GROUPS, body.readUInt16BE(1));
    this.signature = name(SIGNATURES, body.readUInt16BE(4 + body[3]));
  }

  hello(body) {
    this.retried ||= body.subarray(2, 2 + RETRY.length).equals(RETRY);
    // Version and random, the session ID with its length, suite, compression, the length of the extensions.
    for (let at = 34 + 1 + body[34] + 3 + 2; at + 4 <= body.length;) {
      if (body.readUInt16BE(at) === KEY_SHARE) this.group = name(GROUPS, body.readUInt16BE(at + 4));
      at += 4 + body.readUInt16BE(at + 2);
    }
  }
}

function name(names, number) {
  return names[number] ?? `0x${number.toString(16).padStart(4, '0')}`;
}

module.exports = { Heard, Wire };
