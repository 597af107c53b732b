// The scenario: the run's parameters.
'use strict';
const { refuse } = require('./fault');
const { checkOperation, operationNames } = require('./operations');

const CONNECTED = ['handshake', 'transfer', 'memory'];
const MEASURED = ['handshake', 'transfer', 'primitive'];
const MOST = 2 ** 30;

// By key: its tasks (none: all), and its words or range; with neither, the value is a path.
const RULES = {
  bytes: { tasks: ['transfer'], range: [1, MOST] },
  ca: { tasks: CONNECTED },
  certificate: { tasks: CONNECTED, words: ['rsa-2048', 'ecdsa-p256', 'ecdsa-p384'] },
  chain: { tasks: CONNECTED },
  config: { tasks: ['handshake'], words: ['warm', 'cold'], optional: true },
  count: { tasks: MEASURED, range: [1, MOST], optional: true },
  do: { words: ['facts', 'handshake', 'transfer', 'memory', 'primitive'] },
  group: { tasks: CONNECTED, words: ['x25519', 'p256'] },
  key: { tasks: [...CONNECTED, 'primitive'], optional: true },
  operation: { tasks: ['primitive'], words: operationNames },
  record: { tasks: ['transfer', 'primitive'], range: [1, 16384], optional: true },
  resumption: { tasks: ['handshake'], words: ['none', 'id', 'ticket', 'psk'] },
  sessions: { tasks: ['memory'], range: [2, MOST] },
  suite: { tasks: CONNECTED, words: ['aes128-gcm', 'aes256-gcm', 'chacha20-poly1305'] },
  threads: { tasks: MEASURED, range: [1, 1024], optional: true },
  tickets: { tasks: ['handshake'], range: [0, 2], optional: true },
  version: { tasks: CONNECTED, words: ['1.2', '1.3'] },
  warmup: { tasks: MEASURED, range: [0, MOST], optional: true },
  window_ms: { tasks: MEASURED, range: [1, MOST], optional: true },
  write: { tasks: ['transfer'], range: [1, MOST] },
};
const DEFAULTS = { config: 'warm', threads: 1, warmup: 0, count: 0, window_ms: 0, record: 0 };

function readScenario(input) {
  const given = pairs(input);
  if (!given.has('do')) throw refuse(`do is missing: expected ${expected(RULES.do)}`);
  check('do', given.get('do'));
  const task = given.get('do');
  const keys = Object.keys(RULES).filter((key) => (RULES[key].tasks ?? [task]).includes(task));
  for (const [key, value] of given) {
    if (!keys.includes(key)) throw refuse(`${key} ${value}: not for do ${task}: expected ${keys.join(', ')}`);
    check(key, value);
  }
  for (const key of keys) {
    if (!RULES[key].optional && !given.has(key)) throw refuse(`${key} is missing: expected ${expected(RULES[key])}`);
  }
  const scenario = { ...DEFAULTS };
  for (const [key, value] of given) scenario[key] = RULES[key].range ? Number(value) : value;
  checkTogether(scenario);
  return scenario;
}

function pairs(input) {
  let text;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(input);
  } catch {
    throw refuse('the input: expected UTF-8');
  }
  const given = new Map();
  for (const line of text.replace(/\n$/, '').split('\n')) {
    const [, key, value] = /^([^ ]+) (.+)$/.exec(line) ?? [];
    if (key === undefined) throw refuse(`\`${line}\`: expected a key, one space and a value`);
    if (given.has(key)) throw refuse(`${key} ${value}: repeated, first with ${given.get(key)}: expected once`);
    given.set(key, value);
  }
  return given;
}

function check(key, value) {
  const { words, range } = RULES[key];
  const inRange = () => /^(0|[1-9]\d{0,9})$/.test(value) && Number(value) >= range[0] && Number(value) <= range[1];
  if (words ? !words.includes(value) : range && !inRange()) {
    throw refuse(`${key} ${value}: expected ${expected(RULES[key])}`);
  }
}

function expected({ words, range }) {
  if (words) return words.join(', ');
  return range ? `a number from ${range[0]} to ${range[1]}` : 'the path of a file';
}

// Checks the combination of values.
function checkTogether(s) {
  if (MEASURED.includes(s.do) && (s.window_ms === 0) === (s.count === 0)) {
    throw refuse('window_ms, count: expected exactly one of them');
  }
  if (CONNECTED.includes(s.do) && s.key === undefined) throw refuse('key is missing: expected the path of a file');
  if (s.do === 'handshake') checkResumption(s);
  if (s.do === 'transfer' && s.record < 512) throw refuse(`record ${s.record}: expected a number from 512 to 16384`);
  if (s.do === 'memory' && s.sessions % 2 === 1) throw refuse(`sessions ${s.sessions}: expected an even number`);
  if (s.do === 'primitive') checkOperation(s);
}

// Tickets by version and resumption: cannot be set in TLS 1.3.
const TICKETS = { 1.2: { none: [0, 1], id: [0], ticket: [1] }, 1.3: { none: [2], psk: [0] } };

function checkResumption(s) {
  const tickets = TICKETS[s.version][s.resumption];
  if (tickets === undefined) {
    const names = Object.keys(TICKETS[s.version]).join(', ');
    throw refuse(`resumption ${s.resumption}: expected ${names} with version ${s.version}`);
  }
  if (s.resumption !== 'none' && s.config === 'cold') {
    throw refuse(`config cold: expected warm with resumption ${s.resumption}: a new configuration has no session`);
  }
  if (s.version === '1.2') s.tickets ??= tickets[0];
  if (!tickets.includes(s.tickets)) {
    const what = `with version ${s.version} and resumption ${s.resumption} expected ${tickets.join(', ')}`;
    throw refuse(`tickets ${s.tickets ?? 'is missing'}: ${what}`);
  }
}

module.exports = { readScenario };
