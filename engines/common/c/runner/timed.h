#ifndef WEIR_TIMED_H
#define WEIR_TIMED_H

#include <stdint.h>

/* Timed code runs through one of two functions that can be found by name: instruction
   counters collect inside of them. What a thread prepares, before `timed_begin`, does not. */

typedef void (*call)(void *argument);

void weir_engine_client(call call, void *argument);
void weir_engine_server(call call, void *argument);

/* Starts measuring on this thread. */
void timed_begin(void);

/* Calls; returns the time in nanoseconds. */
uint64_t timed_client(call call, void *argument);
uint64_t timed_server(call call, void *argument);

#endif
