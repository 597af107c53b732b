#ifndef WEIR_ENGINE_H
#define WEIR_ENGINE_H

#include "scenario.h"

/* Runs the scenario on standard input; returns the status to end with. */
int engine_main(void);

/* What a scenario can have done: each does its work and writes what it saw. */
void report_facts(void);
void do_handshake(const struct scenario *scenario);
void do_transfer(const struct scenario *scenario);
void do_memory(const struct scenario *scenario);
void do_primitive(const struct scenario *scenario);

#endif
