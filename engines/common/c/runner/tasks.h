#ifndef WEIR_TASKS_H
#define WEIR_TASKS_H

#include "scenario.h"

/* What a scenario can have done: each does its work and writes what it saw. */

void report_facts(void);
void do_handshake(const struct scenario *scenario);
void do_transfer(const struct scenario *scenario);
void do_memory(const struct scenario *scenario);
void do_primitive(const struct scenario *scenario);

#endif
