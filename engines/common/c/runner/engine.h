#ifndef WEIR_ENGINE_H
#define WEIR_ENGINE_H

#include "scenario.h"

/* Runs the scenario on standard input; returns the exit status. */
int engine_main(void);

/* The tasks of a scenario: each runs and reports. */
void report_facts(void);
void do_handshake(const struct scenario *scenario);
void do_transfer(const struct scenario *scenario);
void do_memory(const struct scenario *scenario);
void do_primitive(const struct scenario *scenario);

#endif
