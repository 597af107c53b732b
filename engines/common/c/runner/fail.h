#ifndef WEIR_FAIL_H
#define WEIR_FAIL_H

#include <stddef.h>

/* Ends the run with an `error` line with this fault, and status 1. Any thread may call it. */
_Noreturn void fail(const char *fault, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The scenario is invalid or unsupported. */
#define fail_scenario(...) fail("scenario", __VA_ARGS__)
/* The library failed; its own message is added. */
#define FAULT_STACK "stack"
#define fail_stack(...) fail(FAULT_STACK, __VA_ARGS__)
/* The runner itself, or the machine, failed. */
#define fail_runner(...) fail("runner", __VA_ARGS__)

/* calloc that does not return NULL. */
void *must_allocate(size_t count, size_t size);

#endif
