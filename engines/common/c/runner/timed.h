#ifndef WEIR_TIMED_H
#define WEIR_TIMED_H

#include <stdint.h>

/* What is timed goes through one of two functions that are there to be found by name in the program: instruction
   counters collect inside of them. What a thread prepares, before `timed_begin`, does not. */

typedef void (*call)(void *argument);

void weir_engine_client(call call, void *argument);
void weir_engine_server(call call, void *argument);

/* The calling thread measures from now on. */
void timed_begin(void);

/* Calls, and returns how long it took in nanoseconds. */
uint64_t timed_client(call call, void *argument);
uint64_t timed_server(call call, void *argument);

#endif
