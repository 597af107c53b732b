#ifndef WEIR_FAIL_H
#define WEIR_FAIL_H

#include <stddef.h>

/* What ends a run: an `error` line with its fault, and status 1. Any thread may call these. */

/* The scenario asks for what is unknown, or what this library cannot do. */
_Noreturn void fail_scenario(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The library failed; what it has to say of it is added. */
_Noreturn void fail_stack(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The runner itself, or the machine, failed. */
_Noreturn void fail_runner(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* calloc that does not return NULL. */
void *must_allocate(size_t count, size_t size);

#endif
