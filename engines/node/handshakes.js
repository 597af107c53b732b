// Connections from start to end.
'use strict';
const { Ends } = require('./ends');
const { count } = require('./outcomes');
const { connect } = require('./pair');

async function hire(scenario, ticketKeys) {
  const worker = new Handshakes(scenario, new Ends(scenario, ticketKeys));
  if (worker.resumes) await worker.connect();
  return worker;
}

class Handshakes {
  constructor(scenario, ends) {
    this.scenario = scenario;
    this.ends = ends;
    this.resumes = scenario.resumption !== 'none';
    this.configure();
    this.forget();
  }

  configure() {
    this.client = this.ends.client();
    this.server = this.ends.server();
  }

  // Node's server sends no ticket after a resumed handshake: the first session is then resumed again and again.
  connect() {
    const keep = this.resumes ? (session) => { this.session = session; } : undefined;
    return connect(this.client, this.server, this.session, keep);
  }

  async unit() {
    if (this.scenario.config === 'cold') this.configure();
    if (this.resumes && !this.session) throw new Error("the client's store is empty: nothing to resume");
    const connection = await this.connect();
    this.clientNs.push(connection.client.ns);
    this.serverNs.push(connection.server.ns);
    count(this.outcomes, connection);
    return 1;
  }

  forget() {
    this.clientNs = [];
    this.serverNs = [];
    this.outcomes = new Map();
  }

  lines() {
    return [
      { type: 'samples', side: 'client', ns: this.clientNs },
      { type: 'samples', side: 'server', ns: this.serverNs },
    ];
  }
}

module.exports = { hire };
