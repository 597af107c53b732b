#ifndef WEIR_TIMED_H
#define WEIR_TIMED_H

#include <stdint.h>

/* What is timed goes through one of two functions that are there to be found by name in the program:
   instruction counters collect inside of them. */

typedef void (*call)(void *argument);

void weir_engine_client(call call, void *argument);
void weir_engine_server(call call, void *argument);

/* Calls, and returns how long it took in nanoseconds. */
uint64_t timed_client(call call, void *argument);
uint64_t timed_server(call call, void *argument);

#endif
