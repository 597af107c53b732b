// Errors that are not the stack's.
'use strict';

class Fault extends Error {
  constructor(fault, message) {
    super(message);
    this.fault = fault;
  }
}

// The scenario asks for what is not known, or cannot be done.
const refuse = (message) => new Fault('scenario', message);
// This program cannot do what it should.
const broken = (message) => new Fault('runner', message);

module.exports = { Fault, broken, refuse };
