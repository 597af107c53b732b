// Errors other than the stack's.
'use strict';

class Fault extends Error {
  constructor(fault, message) {
    super(message);
    this.fault = fault;
  }
}

// The scenario is invalid or unsupported.
const refuse = (message) => new Fault('scenario', message);
// The runner itself failed.
const broken = (message) => new Fault('runner', message);

module.exports = { Fault, broken, refuse };
